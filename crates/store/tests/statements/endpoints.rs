//! Endpoints, their secrets, and the versions that tell caches to read again.

use uuid::Uuid;

use crate::rig::Rig;

impl Rig {
    async fn version(&self, endpoint_id: Uuid) -> i64 {
        let configs = self.store.endpoint_configs(&[endpoint_id]).await.unwrap();
        configs[0].version
    }

    async fn add_secret(&self, endpoint_id: Uuid, secret: &str, expires_at: &str) {
        self.execute(&format!(
            "INSERT INTO kurier.endpoint_secrets (endpoint_id, secret, expires_at)
            VALUES ('{endpoint_id}', '{secret}', {expires_at})"
        ))
        .await;
    }
}

#[tokio::test]
async fn every_change_of_an_endpoint_or_its_secrets_moves_its_version() {
    let rig = Rig::start().await;
    let (changed, untouched) = (rig.endpoint().await, rig.endpoint().await);
    let before = rig.version(untouched).await;
    let mut last = (
        rig.version(changed).await,
        rig.store.configuration_version().await.unwrap(),
    );
    for change in [
        "INSERT INTO kurier.endpoint_secrets (endpoint_id, secret) VALUES ($1, 'whsec_second')",
        "UPDATE kurier.endpoint_secrets SET expires_at = now() WHERE endpoint_id = $1",
        "DELETE FROM kurier.endpoint_secrets WHERE endpoint_id = $1 AND secret = 'whsec_first'",
        "UPDATE kurier.endpoints SET url = 'https://example.org' WHERE id = $1",
        "UPDATE kurier.endpoints SET paused_at = now() WHERE id = $1",
    ] {
        sqlx::query(change)
            .bind(changed)
            .execute(&rig.pool)
            .await
            .unwrap();
        let now = (
            rig.version(changed).await,
            rig.store.configuration_version().await.unwrap(),
        );
        assert!(now.0 > last.0 && now.1 > last.1, "{change}");
        last = now;
    }
    assert_eq!(rig.version(untouched).await, before);
}

#[tokio::test]
async fn valid_secrets_come_newest_first_and_expired_ones_not_at_all() {
    let rig = Rig::start().await;
    let endpoint = rig.endpoint().await;
    rig.add_secret(endpoint, "whsec_old", "now() - interval '1 second'")
        .await;
    rig.add_secret(endpoint, "whsec_second", "now() + interval '1 hour'")
        .await;
    let configs = rig.store.endpoint_configs(&[endpoint]).await.unwrap();
    let secrets: Vec<&str> = configs[0]
        .secrets
        .iter()
        .map(|secret| secret.0.as_str())
        .collect();
    assert_eq!(secrets, ["whsec_second", "whsec_first"]);
    assert!(!format!("{configs:?}").contains("whsec"));
}

#[tokio::test]
async fn a_new_endpoint_is_healthy() {
    let rig = Rig::start().await;
    let id = rig.endpoint().await;
    let endpoint = &rig.store.endpoints(Some(id)).await.unwrap()[0];
    assert_eq!(
        (endpoint.state.as_str(), endpoint.consecutive_failures),
        ("closed", 0)
    );
    assert!(rig.store.breakers_not_closed().await.unwrap().is_empty());
}

#[tokio::test]
async fn pausing_and_resuming_say_whether_there_is_such_an_endpoint() {
    let rig = Rig::start().await;
    let id = rig.endpoint().await;
    assert!(rig.store.pause_endpoint(id).await.unwrap());
    let paused = rig.store.endpoints(Some(id)).await.unwrap()[0].paused_at;
    assert!(rig.store.pause_endpoint(id).await.unwrap());
    let still = rig.store.endpoints(Some(id)).await.unwrap()[0].paused_at;
    assert!(
        paused.is_some() && paused == still,
        "paused since the first time"
    );
    assert!(rig.store.resume_endpoint(id).await.unwrap());
    assert_eq!(
        rig.store.endpoints(Some(id)).await.unwrap()[0].paused_at,
        None
    );
    let unknown = Uuid::new_v4();
    assert!(!rig.store.pause_endpoint(unknown).await.unwrap());
    assert!(!rig.store.resume_endpoint(unknown).await.unwrap());
}

#[tokio::test]
async fn a_repeated_expansion_finds_its_rows_as_they_stand() {
    let rig = Rig::start().await;
    let id = rig.delivery().await;
    let delivery = rig.store.delivery(id).await.unwrap().unwrap();
    rig.claim(&[id]).await;
    let again = store::NewDelivery {
        id,
        event_id: delivery.event_id,
        endpoint_id: delivery.endpoint_id,
        held: None,
        max_attempts: 9,
        traceparent: None,
        created_at: delivery.created_at,
    };
    rig.store.insert_deliveries(&[again]).await.unwrap();
    assert_eq!(rig.status(id).await, "in_flight");
    let kept = rig.store.delivery(id).await.unwrap().unwrap();
    assert_eq!(kept.max_attempts, 5);
}
