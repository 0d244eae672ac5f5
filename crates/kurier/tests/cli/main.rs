//! The real program against a real PostgreSQL and a real RabbitMQ, each test in a database of its own.

mod deliveries;
mod doctor;
mod endpoints;
mod events;
mod rig;
mod usage;
