//! Events, messages, secrets, variables and addresses that are wrong, and what stands beside them.

use acceptance::{DISPATCHER, Event, RELAY, World};

/// A JSON text of exactly this many bytes.
fn json_of(bytes: usize) -> String {
    format!("\"{}\"", "x".repeat(bytes - 2))
}

#[tokio::test]
async fn a_payload_over_the_cap_is_set_aside_and_one_at_the_cap_is_sent() {
    let world = World::with(&[("KURIER_PAYLOAD_BYTES_MAX", "1000")]).await;
    world.endpoint("/in").await;
    let mut transaction = world.pool().begin().await.expect("a transaction");
    let mut ids = Vec::new();
    for bytes in [10, 1_001, 1_000, 20] {
        let event = Event::json("order.paid", json_of(bytes));
        ids.push(event.write(&mut *transaction).await);
    }
    transaction.commit().await.expect("a commit");
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.until_status("delivered", 3).await;
    world.assert_no_leftovers().await;

    let too_large = ids[1].to_string();
    assert_eq!(world.receiver.tally("/in").arrived, 3);
    assert_eq!(world.receiver.tally_of("/in", &too_large).arrived, 0);
    let shown = world.kurier(&["event", "show", &too_large]).await;
    assert_eq!(shown["progress"], "parked");
    let reason = shown["parked_reason"].as_str().expect("a reason");
    assert!(
        reason.contains("1001") && reason.contains("1000"),
        "{reason}"
    );
}

#[tokio::test]
async fn a_message_nobody_can_read_goes_to_quarantine_and_holds_nobody_up() {
    let world = World::start().await;
    world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let unreadable: [&[u8]; 4] = [b"", b"garbage", b"{}", br#"{"delivery_id":"7"}"#];
    for body in unreadable {
        world.broker.publish_to_work(body).await;
    }
    world.commit_many("order.paid", 20).await;
    world.until_status("delivered", 20).await;

    world.broker.wait_quarantined(4).await;
    assert_eq!(world.broker.work_ready().await, 0);
    assert_eq!(world.receiver.tally("/in").arrived, 20);
}

#[tokio::test]
async fn a_message_for_a_delivery_that_does_not_exist_is_dropped() {
    let world = World::start().await;
    world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let stranger = br#"{"delivery_id":"00000000-0000-7000-8000-000000000000"}"#;
    world.broker.publish_to_work(stranger).await;
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_stops_its_own_endpoint_only() {
    let world = World::start().await;
    let broken = world.endpoint("/broken").await;
    let sound = world.endpoint("/sound").await;
    let id = broken.id;
    let spoil = format!(
        "UPDATE kurier.endpoint_secrets SET secret = 'whsec_s3cret!' WHERE endpoint_id = '{id}'"
    );
    world.execute(&spoil).await;
    let (_relay, dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit_many("order.paid", 5).await;
    world.assert_no_leftovers().await;

    assert_eq!(world.receiver.tally(&sound.path).ids_accepted, 5);
    assert_eq!(world.receiver.tally(&broken.path).arrived, 0);
    let deliveries = world.deliveries_to(&broken).await;
    for delivery in &deliveries {
        assert_eq!(delivery.reason.as_deref(), Some("configuration"));
        assert_eq!(delivery.attempt_count, 0);
        let error = delivery.last_error.as_deref().expect("an explanation");
        assert!(
            error.contains("secret") && !error.contains("s3cret"),
            "{error}"
        );
    }
    assert_eq!(deliveries.len(), 5);
    assert!(!dispatcher.log().contains("s3cret"));
}

#[tokio::test]
async fn an_address_forbidden_at_run_time_is_never_called() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let _relay = world.relay().await;
    let strict = world.launch(DISPATCHER).without("KURIER_ALLOWED_NETWORKS");
    let _dispatcher = strict.start().await;
    world.commit(&Event::json("order.paid", "{}")).await;
    world.assert_no_leftovers().await;

    let deliveries = world.deliveries_to(&endpoint).await;
    assert_eq!(deliveries[0].reason.as_deref(), Some("forbidden_address"));
    assert_eq!(deliveries[0].attempt_count, 0);
    assert_eq!(world.receiver.tally("/in").arrived, 0);
}

#[tokio::test]
async fn all_that_is_wrong_in_the_configuration_is_told_at_once() {
    let world = World::start().await;
    for program in [RELAY, DISPATCHER] {
        let ended = world
            .launch(program)
            .without("DATABASE_URL")
            .env("AMQP_URL", "amqp:someone:hunter2")
            .env("KURIER_DELAY_UNIT_MS", "0")
            .env("KURIER_BROKER_NAMESPACE", "a b")
            .env("KURIER_MAX_ATEMPTS", "7")
            .env("KURIER_CONFIRM_TIMEOUT_MS", "soon")
            .run()
            .await;
        assert_eq!(ended.code, Some(64), "{program}: {}", ended.stderr);
        let named = [
            "DATABASE_URL",
            "AMQP_URL",
            "KURIER_DELAY_UNIT_MS",
            "KURIER_BROKER_NAMESPACE",
            "KURIER_CONFIRM_TIMEOUT_MS",
            "KURIER_MAX_ATEMPTS",
        ];
        for name in named {
            assert!(ended.stderr.contains(name), "{name}: {}", ended.stderr);
        }
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
}
