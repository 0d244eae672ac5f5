//! `kurier doctor`: asks the database and the broker, and says what is wrong and how to mend it.
//!
//! Every check runs whatever the others found, all at once, each within a few seconds. What the
//! answers mean is decided in `judge`. It mends two things by the way, because asking is declaring:
//! missing partitions are created, and a missing topology is declared.

mod check;
mod judge;

use std::{fmt::Display, time::Duration};

use anyhow::bail;
use broker::{BrokerConfig, Publisher};
use chrono::{TimeDelta, Utc};
use process::Environment;
use serde_json::json;
use store::{Store, StoreError};
use tokio::time::timeout;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::{Layer as _, filter::Targets, fmt, layer::SubscriberExt as _};

use crate::{
    input,
    output::{Output, records_table},
};
use check::{Check, Report};

/// How long each question may take; shorter than the store's own wait for a connection.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(4);

const COLUMNS: &[&str] = &["level", "name", "found", "mend"];

/// An answer, or why there is none.
type Answer<T> = Result<T, String>;

/// Runs every check and prints them; an error if one of them failed.
pub(crate) async fn run(output: Output) -> anyhow::Result<()> {
    tell_broker_failures();
    let mut env = Environment::from_process();
    let database = Database(input::open_store(&mut env));
    let broker = settings::broker(&mut env, "kurier");
    read_all_others(&mut env);
    let mut checks = judge::configuration(env.finish());
    let (of_database, of_broker) = tokio::join!(
        examine_database(&database),
        examine_broker(broker, &database)
    );
    checks.extend(of_database);
    checks.extend(of_broker);
    let report = Report::new(checks);
    output.document(&report, || records_table(&json!(report.checks), COLUMNS))?;
    match report.failed_count() {
        0 => Ok(()),
        failed => bail!("{failed} of {} checks failed", report.checks.len()),
    }
}

/// The broker crate logs why it cannot get a session and goes on trying. An operator wants to see
/// that; nothing else is logged.
fn tell_broker_failures() {
    let warnings = fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_filter(Targets::new().with_target("broker", LevelFilter::WARN));
    let subscriber = tracing_subscriber::registry().with(warnings);
    // Fails only if there is a subscriber already, which is as good.
    let _ = tracing::subscriber::set_global_default(subscriber);
}

/// What other programs read from the same environment, for its faults.
fn read_all_others(env: &mut Environment) {
    settings::max_attempts(env);
    settings::attempt_timeout(env);
    settings::retry(env);
    settings::breaker(env);
    settings::destinations(env);
    settings::payload_bytes_max(env);
    settings::relay(env);
    settings::dispatch_concurrency(env);
    settings::refuse_misspelt(env);
}

/// The database, if `DATABASE_URL` can be used at all.
struct Database(Option<Store>);

impl Database {
    /// One question to the database. The time limit is part of the answer.
    async fn ask<T>(
        &self,
        question: impl AsyncFnOnce(&Store) -> Result<T, StoreError>,
    ) -> Answer<T> {
        let store = self.0.as_ref().ok_or("DATABASE_URL cannot be used")?;
        bounded(question(store)).await
    }
}

async fn examine_database(database: &Database) -> Vec<Check> {
    let (ping, schema, partitions, clock, outbox, deliveries) = tokio::join!(
        database.ask(Store::ping),
        database.ask(Store::schema_state),
        database.ask(Store::create_partitions),
        database.ask(clock_difference),
        database.ask(Store::outbox_backlog),
        database.ask(Store::open_deliveries),
    );
    vec![
        judge::database(ping),
        judge::schema(schema),
        judge::partitions(partitions),
        judge::clock(clock),
        judge::outbox(&outbox),
        judge::parked_events(&outbox),
        judge::dead_letters(deliveries),
    ]
}

/// How far the database's clock is ahead of this machine's, to half a round trip.
#[expect(
    clippy::disallowed_methods,
    reason = "this machine's clock is what is being examined"
)]
async fn clock_difference(store: &Store) -> Result<TimeDelta, StoreError> {
    let before = Utc::now();
    let database = store.clock().await?;
    let round_trip = Utc::now() - before;
    Ok(database - (before + round_trip / 2))
}

async fn examine_broker(config: BrokerConfig, database: &Database) -> Vec<Check> {
    let answer = ask_broker(config).await;
    if answer.as_ref().is_ok_and(|queue| queue.created) {
        // Whoever creates the queue tells the relay that its messages are gone; the check of the
        // database says so if it cannot be told.
        let _ = database.ask(Store::request_full_sweep).await;
    }
    vec![
        judge::broker(&answer),
        judge::topology(&answer),
        judge::work_queue(&answer),
    ]
}

async fn ask_broker(config: BrokerConfig) -> Answer<judge::WorkQueue> {
    config.check().map_err(|error| error.to_string())?;
    let mut publisher = Publisher::new(BrokerConfig {
        confirm_timeout: ANSWER_TIMEOUT,
        ..config
    });
    let backlog = publisher
        .work_backlog()
        .await
        .map_err(|error| error.to_string())?;
    let created = publisher.take_work_queue_created();
    publisher.close().await;
    Ok(judge::WorkQueue { backlog, created })
}

async fn bounded<T, E: Display>(answer: impl Future<Output = Result<T, E>>) -> Answer<T> {
    match timeout(ANSWER_TIMEOUT, answer).await {
        Ok(answered) => answered.map_err(|error| error.to_string()),
        Err(_) => Err(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_question_without_an_answer_ends() {
        let never = std::future::pending::<Result<(), String>>();
        assert_eq!(bounded(never).await, Err("no answer within 4 s".to_owned()));
    }
}
