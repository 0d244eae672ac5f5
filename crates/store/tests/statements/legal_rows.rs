//! Rows that make no sense, which the database itself refuses.

use sqlx::error::DatabaseError;

use crate::rig::Rig;

async fn refuses(rig: &Rig, table: &str, change: &str) {
    let statement = format!("UPDATE kurier.{table} SET {change}");
    let error = rig.try_execute(&statement).await.expect_err(&statement);
    let code = error.as_database_error().and_then(DatabaseError::code);
    assert_eq!(code.as_deref(), Some("23514"), "{statement}: {error}");
}

#[tokio::test]
async fn no_delivery_is_in_two_states_or_in_none() {
    let rig = Rig::start().await;
    rig.delivery().await;
    for change in [
        "status = 'lost'",
        "status = 'in_flight'",
        "lease_token = gen_random_uuid(), lease_until = now()",
        "status = 'in_flight', lease_token = gen_random_uuid()",
        "lease_until = now()",
        "reason = 'paused'",
        "status = 'held', hint_at = NULL, held_since = now()",
        "status = 'held', hint_at = NULL, reason = 'paused'",
        "status = 'held', reason = 'paused', held_since = now()",
        "held_since = now()",
        "status = 'delivered', hint_at = NULL",
        "status = 'delivered', delivered_at = now()",
        "delivered_at = now()",
        "status = 'dead_letter', hint_at = NULL, reason = 'rejected'",
        "status = 'dead_letter', hint_at = NULL, dead_lettered_at = now()",
        "dead_lettered_at = now()",
        "hint_at = NULL",
    ] {
        refuses(&rig, "deliveries", change).await;
    }
}

#[tokio::test]
async fn a_breaker_that_is_not_closed_says_since_when_and_half_open_means_one_probe() {
    let rig = Rig::start().await;
    rig.endpoint().await;
    for change in [
        "state = 'ajar'",
        "state = 'open'",
        "state = 'half_open', opened_at = now()",
        "state = 'half_open', opened_at = now(), probe_token = gen_random_uuid()",
        "probe_token = gen_random_uuid(), probe_deadline = now()",
        "probe_deadline = now()",
        "consecutive_failures = -1",
    ] {
        refuses(&rig, "endpoint_health", change).await;
    }
}

#[tokio::test]
async fn an_endpoints_limits_are_within_reason() {
    let rig = Rig::start().await;
    rig.endpoint().await;
    rig.execute("UPDATE kurier.endpoints SET attempt_timeout_ms = 600000, max_attempts = 1000")
        .await;
    for change in [
        "attempt_timeout_ms = 0",
        "attempt_timeout_ms = 600001",
        "max_attempts = 0",
        "max_attempts = 1001",
        "retry_base_ms = -1",
        "retry_cap_ms = -1",
        "retry_schedule_ms = '{}'",
        "retry_schedule_ms = '{1000,-1}'",
        "breaker_threshold = 0",
        "breaker_cooldown_ms = 0",
        "disabled_at = now()",
    ] {
        refuses(&rig, "endpoints", change).await;
    }
}
