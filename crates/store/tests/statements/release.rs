//! Held deliveries: let out in order, or given up after too long.

use std::{collections::HashSet, time::Duration};

use uuid::Uuid;

use crate::rig::Rig;

#[tokio::test]
async fn the_oldest_due_go_first_and_no_more_than_there_is_room_for() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.held(endpoint, 4).await;
    for (id, age_seconds) in all.iter().zip([10, 40, 20, 30]) {
        rig.execute(&format!(
            "UPDATE kurier.deliveries SET next_attempt_at = now() - {age_seconds} * interval '1 second'
            WHERE id = '{id}'"
        ))
        .await;
    }
    let released = rig.store.release(&[(endpoint, 2)]).await.unwrap();
    let released: HashSet<Uuid> = released.iter().map(|hint| hint.delivery_id).collect();
    assert_eq!(released, HashSet::from([all[1], all[3]]));
    for (id, status) in all.iter().zip(["held", "pending", "held", "pending"]) {
        assert_eq!(rig.status(*id).await, status);
    }
}

#[tokio::test]
async fn every_endpoint_has_room_of_its_own() {
    let rig = Rig::start().await;
    let (narrow, wide, closed) = (
        rig.endpoint().await,
        rig.endpoint().await,
        rig.endpoint().await,
    );
    for endpoint in [narrow, wide, closed] {
        rig.held(endpoint, 3).await;
    }
    let rooms = [(narrow, 1), (wide, 5)];
    assert_eq!(rig.store.release(&rooms).await.unwrap().len(), 4);
    let still: Vec<Uuid> = rig
        .values("SELECT DISTINCT endpoint_id FROM kurier.deliveries WHERE status = 'held'")
        .await;
    assert_eq!(
        still.into_iter().collect::<HashSet<_>>(),
        HashSet::from([narrow, closed])
    );
}

#[tokio::test]
async fn a_held_retry_keeps_its_due_time_and_its_attempts() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    rig.held(endpoint, 1).await;
    rig.execute(
        "UPDATE kurier.deliveries SET attempt_count = 2, next_attempt_at = now() + interval '1 minute'",
    )
    .await;
    let released = rig.store.release(&[(endpoint, 1)]).await.unwrap();
    assert!(released[0].delay > Duration::from_secs(40));
    assert_eq!(rig.status(released[0].delivery_id).await, "failed");
}

#[tokio::test]
async fn two_releases_at_once_share_nothing() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    rig.held(endpoint, 30).await;
    let rooms = [(endpoint, 30)];
    let (first, second) = tokio::join!(rig.store.release(&rooms), rig.store.release(&rooms));
    assert_eq!(first.unwrap().len() + second.unwrap().len(), 30);
}

#[tokio::test]
async fn endpoints_with_held_deliveries_are_found_once_each_with_their_gate() {
    let rig = Rig::start().await;
    let (paused, open, _none) = (
        rig.endpoint().await,
        rig.endpoint().await,
        rig.endpoint().await,
    );
    rig.held(paused, 3).await;
    rig.held(open, 2).await;
    rig.store.pause_endpoint(paused).await.unwrap();
    let found = rig.store.endpoints_with_held().await.unwrap();
    let found: HashSet<(Uuid, bool)> = found
        .iter()
        .map(|held| (held.endpoint_id, held.gate.paused))
        .collect();
    assert_eq!(found, HashSet::from([(paused, true), (open, false)]));
}

#[tokio::test]
async fn a_wait_ends_after_its_maximum_and_not_before() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.held(endpoint, 2).await;
    for (id, seconds) in all.iter().zip([59, 61]) {
        rig.execute(&format!(
            "UPDATE kurier.deliveries SET waiting_since = now() - {seconds} * interval '1 second'
            WHERE id = '{id}'"
        ))
        .await;
    }
    let wait_max = Duration::from_mins(1);
    assert_eq!(rig.store.expire_held(wait_max, 10).await.unwrap(), 1);
    assert_eq!(rig.status(all[0]).await, "held");
    let expired = rig.store.delivery(all[1]).await.unwrap().unwrap();
    assert_eq!(expired.status, "dead_letter");
    assert_eq!(expired.reason.as_deref(), Some("wait_expired"));
    assert_eq!(
        expired.last_error.as_deref(),
        Some("waited too long: paused")
    );
}

#[tokio::test]
async fn no_more_waits_are_ended_at_once_than_asked_for() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    rig.held(endpoint, 3).await;
    rig.execute("UPDATE kurier.deliveries SET waiting_since = now() - interval '1 hour'")
        .await;
    assert_eq!(rig.store.expire_held(Duration::ZERO, 2).await.unwrap(), 2);
    assert_eq!(rig.store.expire_held(Duration::ZERO, 2).await.unwrap(), 1);
}
