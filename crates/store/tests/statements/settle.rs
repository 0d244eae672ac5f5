//! Settling: guarded by the lease, all or nothing.

use std::{collections::HashSet, time::Duration};

use domain::delivery::DeadLetterReason;
use store::{AttemptRecord, Settled, SettledStatus, StoreError};
use uuid::Uuid;

use crate::rig::Rig;

fn attempt(number: u32) -> AttemptRecord {
    AttemptRecord {
        number,
        started_ago: Duration::from_millis(20),
        duration: Duration::from_millis(15),
        status_code: Some(200),
        error_class: None,
        error: None,
        response_body: None,
    }
}

fn settled(delivery_id: Uuid, lease_token: Uuid, status: SettledStatus) -> Settled {
    Settled {
        delivery_id,
        endpoint_id: Uuid::nil(),
        lease_token,
        status,
        attempt: Some(attempt(1)),
        error: None,
    }
}

const RETRY: SettledStatus = SettledStatus::Failed {
    retry_after: Duration::from_millis(1500),
    hint_after: Duration::from_millis(4500),
};

impl Rig {
    /// Settles and commits; returns the deliveries that were settled.
    async fn settle(&self, batch: &[Settled]) -> HashSet<Uuid> {
        let settlement = self.store.begin_settlement(batch).await.unwrap();
        let settled = settlement.settled.clone();
        settlement.commit().await.unwrap();
        settled
    }

    async fn attempts(&self, id: Uuid) -> usize {
        self.store.attempts(id).await.unwrap().len()
    }
}

#[tokio::test]
async fn a_success_is_final_and_leaves_its_attempt() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    let batch = [settled(id, token, SettledStatus::Delivered)];
    assert_eq!(rig.settle(&batch).await, HashSet::from([id]));

    let delivery = rig.store.delivery(id).await.unwrap().unwrap();
    assert_eq!(
        (delivery.status.as_str(), delivery.attempt_count),
        ("delivered", 1)
    );
    assert!(delivery.delivered_at.is_some());
    let attempts = rig.store.attempts(id).await.unwrap();
    assert_eq!(attempts.len(), 1);
    assert_eq!(
        (attempts[0].attempt_number, attempts[0].duration_ms),
        (1, 15)
    );
    assert!(rig.settle(&batch).await.is_empty(), "only once");
    assert_eq!(rig.attempts(id).await, 1);
}

#[tokio::test]
async fn a_late_result_never_overwrites_a_newer_one() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let late = rig.claim(&[id]).await;
    rig.expire_leases().await;
    let current = rig.claim(&[id]).await;

    let batch = [settled(
        id,
        late,
        SettledStatus::DeadLetter(DeadLetterReason::Rejected),
    )];
    assert!(rig.settle(&batch).await.is_empty());
    assert_eq!(
        (rig.status(id).await.as_str(), rig.attempts(id).await),
        ("in_flight", 0)
    );

    let newer = rig
        .settle(&[settled(id, current, SettledStatus::Delivered)])
        .await;
    assert_eq!(newer, HashSet::from([id]));
    assert!(rig.settle(&batch).await.is_empty());
    assert_eq!(
        (rig.status(id).await.as_str(), rig.attempts(id).await),
        ("delivered", 1)
    );
}

#[tokio::test]
async fn a_result_after_the_leases_end_still_counts_while_nobody_has_taken_over() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    rig.expire_leases().await;
    let batch = [settled(id, token, SettledStatus::Delivered)];
    assert_eq!(rig.settle(&batch).await, HashSet::from([id]));
}

#[tokio::test]
async fn one_lost_lease_does_not_take_its_batch_with_it() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 3).await;
    let token = rig.claim(&all).await;
    let mut batch: Vec<Settled> = all
        .iter()
        .map(|id| settled(*id, token, SettledStatus::Delivered))
        .collect();
    batch[1].lease_token = Uuid::new_v4();
    assert_eq!(rig.settle(&batch).await, HashSet::from([all[0], all[2]]));
    assert_eq!(rig.status(all[1]).await, "in_flight");
}

#[tokio::test]
async fn a_settlement_that_is_not_committed_never_was() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    let batch = [settled(id, token, SettledStatus::Delivered)];
    drop(rig.store.begin_settlement(&batch).await.unwrap());
    assert_eq!(rig.settle(&batch).await, HashSet::from([id]));
    assert_eq!(rig.attempts(id).await, 1);
}

#[tokio::test]
async fn a_failed_delivery_is_due_when_the_verdict_says_and_not_before() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    rig.settle(&[settled(id, token, RETRY)]).await;
    let (due, hint): (f64, f64) = sqlx::query_as(
        "SELECT extract(epoch FROM next_attempt_at - waiting_since)::double precision,
            extract(epoch FROM hint_at - waiting_since)::double precision
        FROM kurier.deliveries",
    )
    .fetch_one(&rig.pool)
    .await
    .unwrap();
    assert!((due - 1.5).abs() < f64::EPSILON && (hint - 4.5).abs() < f64::EPSILON);
    assert_eq!(rig.status(id).await, "failed");
    let early = crate::rig::terms(Uuid::new_v4());
    assert!(rig.store.claim(&[id], &early).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_dead_letter_says_why() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    let mut row = settled(
        id,
        token,
        SettledStatus::DeadLetter(DeadLetterReason::Rejected),
    );
    row.attempt = Some(AttemptRecord {
        status_code: Some(400),
        error_class: Some("status"),
        error: Some("answered 400".to_owned()),
        response_body: Some("no".to_owned()),
        ..attempt(1)
    });
    rig.settle(&[row]).await;
    let delivery = rig.store.delivery(id).await.unwrap().unwrap();
    assert_eq!(delivery.status, "dead_letter");
    assert_eq!(delivery.reason.as_deref(), Some("rejected"));
    assert_eq!(delivery.last_status_code, Some(400));
    assert_eq!(delivery.last_error.as_deref(), Some("answered 400"));
    assert!(delivery.dead_lettered_at.is_some());
}

#[tokio::test]
async fn nothing_tried_is_nothing_charged() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    let mut row = settled(
        id,
        token,
        SettledStatus::DeadLetter(DeadLetterReason::Configuration),
    );
    row.attempt = None;
    row.error = Some("no secret".to_owned());
    rig.settle(&[row]).await;
    let delivery = rig.store.delivery(id).await.unwrap().unwrap();
    assert_eq!(delivery.attempt_count, 0);
    assert_eq!(delivery.last_error.as_deref(), Some("no secret"));
    assert_eq!(rig.attempts(id).await, 0);
}

#[tokio::test]
async fn an_attempts_number_is_never_used_twice() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    rig.settle(&[settled(id, token, RETRY)]).await;
    rig.execute("UPDATE kurier.deliveries SET next_attempt_at = now()")
        .await;
    let token = rig.claim(&[id]).await;
    let same_number = [settled(id, token, SettledStatus::Delivered)];
    let refused = rig.store.begin_settlement(&same_number).await.err();
    assert!(matches!(refused, Some(StoreError::Refused(_))));
    assert_eq!(rig.status(id).await, "in_flight");
}

#[tokio::test]
async fn an_error_text_fits_up_to_its_200th_character() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 2).await;
    let token = rig.claim(&all).await;
    let with_error = |id, length| Settled {
        attempt: Some(AttemptRecord {
            error: Some("é".repeat(length)),
            ..attempt(1)
        }),
        ..settled(id, token, RETRY)
    };
    assert_eq!(rig.settle(&[with_error(all[0], 200)]).await.len(), 1);
    let refused = rig.store.begin_settlement(&[with_error(all[1], 201)]).await;
    assert!(matches!(refused.err(), Some(StoreError::Refused(_))));
}
