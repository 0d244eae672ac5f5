//! The relay's hold on the outbox.

use std::collections::HashSet;

use store::{LockedEvents, Parked};
use uuid::Uuid;

use crate::rig::Rig;

fn ids(locked: &LockedEvents) -> Vec<Uuid> {
    locked.events.iter().map(|event| event.id).collect()
}

#[tokio::test]
async fn two_relays_never_hold_the_same_event() {
    let rig = Rig::start().await;
    let mut all = HashSet::new();
    for _ in 0..25 {
        all.insert(rig.event().await);
    }
    let first = rig.store.lock_waiting_events(10).await.unwrap();
    let second = rig.another_store().lock_waiting_events(20).await.unwrap();
    assert_eq!((first.events.len(), second.events.len()), (10, 15));
    let held: HashSet<Uuid> = ids(&first).into_iter().chain(ids(&second)).collect();
    assert_eq!(held, all);
}

#[tokio::test]
async fn an_event_committed_after_a_younger_one_is_not_skipped() {
    let rig = Rig::start().await;
    let insert = "SELECT kurier.enqueue('a', '1')";
    let mut slow = rig.pool.begin().await.unwrap();
    let late: Uuid = sqlx::query_scalar(insert)
        .fetch_one(&mut *slow)
        .await
        .unwrap();
    let young = rig.event().await;

    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    assert_eq!(ids(&turn), [young]);
    turn.finish(&[young], &[]).await.unwrap();
    slow.commit().await.unwrap();

    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    assert_eq!(ids(&turn), [late]);
}

#[tokio::test]
async fn what_is_dropped_is_free_again() {
    let rig = Rig::start().await;
    let id = rig.event().await;
    drop(rig.store.lock_waiting_events(10).await.unwrap());
    rig.until("SELECT NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in %')")
        .await;
    let again = rig.another_store().lock_waiting_events(10).await.unwrap();
    assert_eq!(ids(&again), [id]);
}

#[tokio::test]
async fn the_oldest_come_first_and_no_more_than_asked_for() {
    let rig = Rig::start().await;
    let mut written = Vec::new();
    for age_seconds in [1, 3, 2] {
        let id: Uuid = rig
            .value(&format!(
                "INSERT INTO kurier.outbox_events (event_type, payload, created_at)
                VALUES ('a', '1', now() - {age_seconds} * interval '1 second') RETURNING id"
            ))
            .await;
        written.push(id);
    }
    let locked = rig.store.lock_waiting_events(2).await.unwrap();
    assert_eq!(ids(&locked), [written[1], written[2]]);
}

#[tokio::test]
async fn what_is_processed_or_parked_does_not_come_again_and_the_rest_does() {
    let rig = Rig::start().await;
    let (done, unsendable, rest) = (rig.event().await, rig.event().await, rig.event().await);
    let parked = Parked {
        id: unsendable,
        reason: "too large".to_owned(),
    };
    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    turn.finish(&[done], &[parked]).await.unwrap();

    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    assert_eq!(ids(&turn), [rest]);
    drop(turn);
    let event = rig.store.event(unsendable).await.unwrap().unwrap();
    assert_eq!(event.parked_reason.as_deref(), Some("too large"));
    assert_eq!(event.processed_at, None);
}

#[tokio::test]
async fn a_parked_event_can_be_tried_again() {
    let rig = Rig::start().await;
    let id = rig.event().await;
    assert!(!rig.store.unpark_event(id).await.unwrap());
    let parked = Parked {
        id,
        reason: "too large".to_owned(),
    };
    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    turn.finish(&[], &[parked]).await.unwrap();
    assert!(rig.store.unpark_event(id).await.unwrap());
    let turn = rig.store.lock_waiting_events(10).await.unwrap();
    assert_eq!(ids(&turn), [id]);
}
