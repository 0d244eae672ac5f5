//! The store's statements against a real PostgreSQL, every test in a database of its own. What the
//! programs make of them is tested elsewhere.

mod chores;
mod claim;
mod endpoints;
mod legal_rows;
mod lock_waiting;
mod migrations;
mod outbox;
mod partitions;
mod plans;
mod release;
mod retention;
mod rig;
mod settle;
mod sweep;
