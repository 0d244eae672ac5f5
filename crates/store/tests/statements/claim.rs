//! Claiming, holding and giving back.

use std::collections::HashSet;

use domain::delivery::HoldReason;
use store::{Claim, NewEndpoint};
use uuid::Uuid;

use crate::rig::{Rig, terms};

fn ids(claim: &Claim) -> HashSet<Uuid> {
    claim.iter().map(|claimed| claimed.id).collect()
}

#[tokio::test]
async fn only_what_is_due_and_free_is_claimed() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 5).await;
    let held = rig.held(endpoint, 1).await[0];
    let [due, retry_due, early, leased, finished] = all[..] else {
        unreachable!()
    };
    for (id, change) in [
        (
            retry_due,
            "status = 'failed', attempt_count = 1, next_attempt_at = now()",
        ),
        (
            early,
            "status = 'failed', next_attempt_at = now() + interval '1 minute'",
        ),
        (
            finished,
            "status = 'delivered', delivered_at = now(), hint_at = NULL",
        ),
    ] {
        rig.execute(&format!(
            "UPDATE kurier.deliveries SET {change} WHERE id = '{id}'"
        ))
        .await;
    }
    rig.claim(&[leased]).await;

    let unknown = Uuid::now_v7();
    let asked = [due, retry_due, early, leased, finished, held, unknown];
    let token = Uuid::new_v4();
    let claim = rig.store.claim(&asked, &terms(token)).await.unwrap();
    assert_eq!(ids(&claim), HashSet::from([due, retry_due]));
}

#[tokio::test]
async fn a_claim_of_nothing_is_nothing() {
    let rig = Rig::start().await;
    let claim = rig.store.claim(&[], &terms(Uuid::new_v4())).await.unwrap();
    assert!(claim.is_empty());
}

#[tokio::test]
async fn a_lease_lasts_the_attempt_limit_and_the_margin() {
    let rig = Rig::start().await;
    let default_limit = rig.endpoint().await;
    let own_limit = NewEndpoint {
        url: "https://example.com".to_owned(),
        secret: "whsec_x".to_owned(),
        attempt_timeout: Some(std::time::Duration::from_millis(1500)),
        ..NewEndpoint::default()
    };
    let own_limit = rig.store.add_endpoint(&own_limit).await.unwrap();
    for (endpoint, lease_seconds) in [(default_limit, 12.0), (own_limit, 3.5)] {
        let id = rig.deliveries(endpoint, 1).await[0];
        let claim = rig
            .store
            .claim(&[id], &terms(Uuid::new_v4()))
            .await
            .unwrap();
        let lasts: f64 = rig
            .value(&format!(
                "SELECT extract(epoch FROM lease_until - '{}')::double precision
                FROM kurier.deliveries WHERE id = '{id}'",
                claim[0].now
            ))
            .await;
        assert!((lasts - lease_seconds).abs() < 0.000_5, "{lasts}");
    }
}

#[tokio::test]
async fn a_lease_that_ran_out_can_be_taken_over_and_one_that_runs_cannot() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.claim(&[id]).await;
    let second = rig
        .store
        .claim(&[id], &terms(Uuid::new_v4()))
        .await
        .unwrap();
    assert!(second.is_empty());
    rig.expire_leases().await;
    let token = rig.claim(&[id]).await;
    let holder: Uuid = rig.value("SELECT lease_token FROM kurier.deliveries").await;
    assert_eq!(holder, token);
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_can_be_repeated_under_its_token() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 3).await;
    let token = rig.claim(&all).await;
    let again = rig.store.claim(&all, &terms(token)).await.unwrap();
    assert_eq!(ids(&again), all.into_iter().collect());
}

#[tokio::test]
async fn two_claims_at_once_share_nothing_and_do_not_deadlock_whatever_their_order() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let all = rig.deliveries(endpoint, 60).await;
    let mut backwards = all.clone();
    backwards.reverse();
    // Both stand behind this row; in orders of their own each would hold what the other wants.
    let mut blocking = rig.pool.begin().await.unwrap();
    sqlx::query("SELECT FROM kurier.deliveries WHERE id = $1 FOR UPDATE")
        .bind(all[30])
        .execute(&mut *blocking)
        .await
        .unwrap();
    let (first_terms, second_terms) = (terms(Uuid::new_v4()), terms(Uuid::new_v4()));
    let (first, second, ()) = tokio::join!(
        rig.store.claim(&all, &first_terms),
        rig.store.claim(&backwards, &second_terms),
        async {
            rig.until_blocked(2).await;
            blocking.commit().await.unwrap();
        },
    );
    let (first, second) = (ids(&first.unwrap()), ids(&second.unwrap()));
    assert!(first.is_disjoint(&second));
    assert_eq!(first.len() + second.len(), all.len());
}

#[tokio::test]
async fn a_claim_brings_the_very_bytes_and_their_content_type() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let [json, bytes] = rig.deliveries(endpoint, 2).await[..] else {
        unreachable!()
    };
    rig.execute(&format!(
        r#"UPDATE kurier.outbox_events SET payload = '{{ "a":1.0 }}'
        WHERE id = (SELECT event_id FROM kurier.deliveries WHERE id = '{json}')"#
    ))
    .await;
    rig.execute(&format!(
        r"UPDATE kurier.outbox_events SET payload = NULL, payload_bytes = '\x00ff', content_type = 'image/x'
        WHERE id = (SELECT event_id FROM kurier.deliveries WHERE id = '{bytes}')"
    ))
    .await;
    for (id, body, content_type) in [
        (json, br#"{ "a":1.0 }"#.as_slice(), "application/json"),
        (bytes, &[0x00, 0xff], "image/x"),
    ] {
        let claim = rig
            .store
            .claim(&[id], &terms(Uuid::new_v4()))
            .await
            .unwrap();
        let payload = claim[0].payload.as_ref().unwrap();
        assert_eq!(payload.body, body);
        assert_eq!(payload.content_type, content_type);
    }
}

#[tokio::test]
async fn a_delivery_whose_event_is_gone_is_claimed_without_a_payload() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    rig.execute("DELETE FROM kurier.outbox_events").await;
    let claim = rig
        .store
        .claim(&[id], &terms(Uuid::new_v4()))
        .await
        .unwrap();
    assert_eq!(claim[0].payload, None);
    assert_eq!(claim[0].event_type, None);
}

#[tokio::test]
async fn a_claim_tells_what_the_gate_goes_by() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    let id = rig.deliveries(endpoint, 1).await[0];
    assert!(rig.store.pause_endpoint(endpoint).await.unwrap());
    rig.execute("UPDATE kurier.endpoint_health SET state = 'open', opened_at = now()")
        .await;
    let claim = rig
        .store
        .claim(&[id], &terms(Uuid::new_v4()))
        .await
        .unwrap();
    assert!(claim[0].gate.paused && !claim[0].gate.disabled);
    assert_eq!(claim[0].gate.breaker.state.as_str(), "open");
    assert!(claim[0].endpoint_version.is_some());
}

#[tokio::test]
async fn only_the_leases_holder_can_hold() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let token = rig.claim(&[id]).await;
    let held = [(id, HoldReason::BreakerOpen)];
    let strange = rig.store.hold(Uuid::new_v4(), &held).await.unwrap();
    assert_eq!((strange, rig.status(id).await.as_str()), (0, "in_flight"));

    assert_eq!(rig.store.hold(token, &held).await.unwrap(), 1);
    let delivery = rig.store.delivery(id).await.unwrap().unwrap();
    assert_eq!(delivery.status, "held");
    assert_eq!(delivery.reason.as_deref(), Some("breaker_open"));
    assert_eq!(delivery.attempt_count, 0);
    assert_eq!(rig.store.hold(token, &held).await.unwrap(), 0, "only once");
}
