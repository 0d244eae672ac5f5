//! This crate against a real broker, whose address comes from `AMQP_URL`.

mod cutting_proxy;
mod faults;
mod intake;
mod publishing;
mod rig;
