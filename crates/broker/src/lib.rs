//! Everything that knows AMQP: the topology, publishing hints with confirms, and taking them in.
//!
//! A message is a *hint*: "look at this delivery now". It carries a delivery id and trace context,
//! never a payload, so losing, repeating or wiping messages loses nothing. This crate does not
//! know where deliveries are stored, how they are sent, or when they should be tried again; it
//! only promises that a hint reported as published arrives at least once, not before its delay.
//!
//! Two sides, each with a connection of its own, because a broker short of memory stops reading
//! from connections that publish, acknowledgements included:
//!
//! - [`Publisher`]: owned by one task, publishes batches, reports each hint's fate.
//! - [`Intake`]: owned by one task, hands out [`Message`]s for ever; [`Acks`] settles them, from
//!   any task.
//!
//! Both rebuild their connection, channel and consumer themselves whenever the broker goes away,
//! and declare the [`topology`] each time they do.

mod ack_window;
mod acks;
mod backoff;
mod config;
mod consumer;
mod declare;
mod dialer;
mod error;
mod hint;
mod intake;
mod link;
mod publisher;
pub mod topology;

pub use acks::{Acks, Receipt};
pub use config::BrokerConfig;
pub use error::{BrokerError, PublishFault};
pub use hint::Hint;
pub use intake::{Intake, Message};
pub use publisher::Publisher;

#[cfg(test)]
mod tests {
    use super::*;

    fn can_move_to_another_thread<T: Send>(_: T) {}

    #[test]
    fn both_sides_and_their_waits_can_be_given_to_a_task() {
        let config = BrokerConfig::new("amqp://localhost");
        let (mut publisher, mut intake) = (Publisher::new(config.clone()), Intake::new(config));
        can_move_to_another_thread(publisher.publish(&[]));
        can_move_to_another_thread(publisher.work_backlog());
        can_move_to_another_thread(intake.next());
        can_move_to_another_thread(intake.stop());
        can_move_to_another_thread(intake.acks());
        can_move_to_another_thread((publisher.close(), intake.close()));
    }
}
