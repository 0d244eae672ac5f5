//! Nothing is lost and at most one request is repeated for each that was in flight: programs killed
//! at every hand-over and at random, services killed, wiped, stopped and cut off, with real
//! processes and real services. What is promised without faults is tested elsewhere.

mod broker;
mod database;
mod failpoints;
mod load;
mod network;
mod random_kills;
