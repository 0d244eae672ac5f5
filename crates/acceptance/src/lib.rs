//! The world an acceptance test lives in: the real programs, a real database and broker, and a
//! receiver whose behaviour is written down beforehand.
//!
//! A [`World`] is one test's own: a new database, a namespace of its own on the broker, a receiver.
//! It takes everything away again when it is dropped, after a panic too. Nothing here retries a
//! test or sleeps instead of waiting for a condition; what does not hold in time panics and says
//! what there was. The harness knows what Kurier promises to its users, and nothing of its insides.

mod broker_operator;
mod closed_port;
mod database;
mod endpoint;
mod environment;
mod event;
mod health;
mod launch;
mod otlp_sink;
mod private_service;
mod program;
mod proxy;
mod record;
mod verifiers;
mod world;

pub use broker_operator::BrokerOperator;
pub use closed_port::ClosedPort;
pub use endpoint::Endpoint;
pub use event::Event;
pub use launch::{DISPATCHER, Ended, KURIER, Launch, RELAY};
pub use otlp_sink::{OtlpSink, Point, Span};
pub use private_service::PrivateService;
pub use program::Program;
pub use proxy::TcpProxy;
pub use record::{AttemptRow, DeliveryRow};
pub use verifiers::{Verifier, given, run_python};
pub use world::{PATIENCE, World};
