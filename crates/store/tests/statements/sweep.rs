//! The sweep: what should be moving and is not.

use std::{collections::HashSet, time::Duration};

use domain::delivery::HoldReason;
use store::{LostHint, SweepTerms};
use uuid::Uuid;

use crate::rig::{Rig, terms};

const TERMS: SweepTerms = SweepTerms {
    grace: Duration::from_secs(30),
    queue_is_short: true,
    most: 100,
};
const LONG_QUEUE: SweepTerms = SweepTerms {
    queue_is_short: false,
    ..TERMS
};

fn ids(hints: &[LostHint]) -> HashSet<Uuid> {
    hints.iter().map(|hint| hint.delivery_id).collect()
}

impl Rig {
    /// Makes the message of `id` due so many seconds ago.
    async fn make_overdue(&self, id: Uuid, seconds: u32) {
        self.execute(&format!(
            "UPDATE kurier.deliveries SET hint_at = now() - {seconds} * interval '1 second' WHERE id = '{id}'"
        ))
        .await;
    }
}

#[tokio::test]
async fn a_lease_that_ran_out_is_taken_however_long_the_queue() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 2).await;
    rig.execute(&format!(
        "UPDATE kurier.deliveries SET status = 'failed', attempt_count = 1 WHERE id = '{}'",
        all[1]
    ))
    .await;
    rig.claim(&all).await;
    rig.expire_leases().await;
    let swept = rig.store.sweep(&LONG_QUEUE).await.unwrap();
    assert_eq!(ids(&swept), all.iter().copied().collect());
    assert!(
        swept
            .iter()
            .all(|hint| hint.lease_expired && hint.delay.is_zero())
    );
    assert_eq!(rig.status(all[0]).await, "pending");
    assert_eq!(rig.status(all[1]).await, "failed");
}

#[tokio::test]
async fn a_lease_that_runs_is_left_alone() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.claim(&[id]).await;
    rig.make_overdue(id, 3600).await;
    assert!(rig.store.sweep(&TERMS).await.unwrap().is_empty());
    assert_eq!(rig.status(id).await, "in_flight");
}

#[tokio::test]
async fn what_waits_in_line_counts_as_lost_only_when_the_line_is_short() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.make_overdue(id, 31).await;
    assert!(rig.store.sweep(&LONG_QUEUE).await.unwrap().is_empty());
    let swept = rig.store.sweep(&TERMS).await.unwrap();
    assert_eq!(ids(&swept), HashSet::from([id]));
    assert!(!swept[0].lease_expired);
}

#[tokio::test]
async fn a_message_is_not_lost_before_its_grace_is_over() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.make_overdue(id, 29).await;
    assert!(rig.store.sweep(&TERMS).await.unwrap().is_empty());
}

#[tokio::test]
async fn what_was_swept_counts_as_published_now_and_can_be_claimed() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.make_overdue(id, 31).await;
    rig.store.sweep(&TERMS).await.unwrap();
    assert!(rig.store.sweep(&TERMS).await.unwrap().is_empty());
    rig.claim(&[id]).await;
}

#[tokio::test]
async fn a_retry_whose_message_is_lost_gets_its_rest_of_the_wait() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.execute(
        "UPDATE kurier.deliveries SET status = 'failed', attempt_count = 1,
            next_attempt_at = now() + interval '1 minute'",
    )
    .await;
    rig.make_overdue(id, 31).await;
    let swept = rig.store.sweep(&TERMS).await.unwrap();
    let delay = swept[0].delay;
    assert!(delay > Duration::from_secs(40) && delay <= Duration::from_mins(1));
    let hint_follows: bool = rig
        .value("SELECT hint_at = next_attempt_at FROM kurier.deliveries")
        .await;
    assert!(hint_follows);
}

#[tokio::test]
async fn the_finished_and_the_held_are_never_swept() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    rig.held(endpoint, 1).await;
    rig.deliveries(endpoint, 1).await;
    rig.execute(
        "UPDATE kurier.deliveries SET status = 'delivered', delivered_at = now(), hint_at = NULL
        WHERE status = 'pending'",
    )
    .await;
    let everything = SweepTerms {
        grace: Duration::ZERO,
        ..TERMS
    };
    assert!(rig.store.sweep(&everything).await.unwrap().is_empty());
}

#[tokio::test]
async fn no_more_are_swept_than_asked_for_and_the_longest_overdue_first() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 3).await;
    for (id, seconds) in all.iter().zip([50, 70, 60]) {
        rig.make_overdue(*id, seconds).await;
    }
    let two = SweepTerms { most: 2, ..TERMS };
    let swept = rig.store.sweep(&two).await.unwrap();
    assert_eq!(ids(&swept), HashSet::from([all[1], all[2]]));
}

#[tokio::test]
async fn two_sweeps_at_once_share_nothing() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 20).await;
    for id in &all {
        rig.make_overdue(*id, 60).await;
    }
    let mut blocking = rig.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM kurier.deliveries WHERE id = $1 FOR UPDATE")
        .bind(all[0])
        .execute(&mut *blocking)
        .await
        .unwrap();
    let (first, second, ()) =
        tokio::join!(rig.store.sweep(&TERMS), rig.store.sweep(&TERMS), async {
            rig.until_blocked(2).await;
            blocking.commit().await.unwrap();
        },);
    let (first, second) = (first.unwrap(), second.unwrap());
    assert!(ids(&first).is_disjoint(&ids(&second)));
    assert_eq!(first.len() + second.len(), all.len());
}

#[tokio::test]
async fn what_is_claimed_while_the_sweep_looks_is_left_to_its_claimer() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.make_overdue(id, 60).await;
    let mut claiming = rig.pool.begin().await.unwrap();
    sqlx::query(
        "UPDATE kurier.deliveries SET status = 'in_flight', lease_token = $1,
            lease_until = now() + interval '1 minute'",
    )
    .bind(Uuid::new_v4())
    .execute(&mut *claiming)
    .await
    .unwrap();
    let (swept, ()) = tokio::join!(rig.store.sweep(&TERMS), async {
        rig.until_blocked(1).await;
        claiming.commit().await.unwrap();
    });
    assert!(swept.unwrap().is_empty());
    assert_eq!(rig.status(id).await, "in_flight");
}

#[tokio::test]
async fn a_swept_lease_guards_nothing_any_more() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    rig.expire_leases().await;
    rig.store.sweep(&TERMS).await.unwrap();
    let held = [(id, HoldReason::Paused)];
    assert_eq!(rig.store.hold(token, &held).await.unwrap(), 0);
    let next = rig
        .store
        .claim(&[id], &terms(Uuid::new_v4()))
        .await
        .unwrap();
    assert_eq!(next.len(), 1);
}
