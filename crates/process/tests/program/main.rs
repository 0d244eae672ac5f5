//! Whole programs, watched from outside: how they live and end, and what they export.

mod life;
mod support;
mod telemetry;
