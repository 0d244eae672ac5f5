//! What applications write: plain inserts and the two functions.

use store::{NewEvent, StoreError};
use uuid::Uuid;

use crate::rig::Rig;

/// JSON that a parser would write differently.
const ODD_JSON: &str = r#"{ "b":1.10,  "a" : "\u00e9\/", "b":2 }"#;

#[tokio::test]
async fn a_plain_insert_of_type_and_payload_is_enough() {
    let rig = Rig::start().await;
    rig.execute("INSERT INTO kurier.outbox_events (event_type, payload) VALUES ('a.b', '{}')")
        .await;
    let locked = rig.store.lock_waiting_events(10).await.unwrap();
    assert_eq!(locked.events.len(), 1);
    assert_eq!(locked.events[0].id.get_version_num(), 7);
    assert_eq!(locked.events[0].event_type, "a.b");
    assert_eq!(locked.events[0].payload_bytes, 2);
}

#[tokio::test]
async fn json_keeps_its_text_to_the_byte() {
    let rig = Rig::start().await;
    let insert = format!(
        "INSERT INTO kurier.outbox_events (event_type, payload) VALUES ('a', $json${ODD_JSON}$json$)"
    );
    rig.execute(&insert).await;
    let enqueue = format!("SELECT kurier.enqueue('a', $json${ODD_JSON}$json$::json)");
    rig.execute(&enqueue).await;
    let stored: Vec<String> = rig
        .values("SELECT payload::text FROM kurier.outbox_events")
        .await;
    assert_eq!(stored, [ODD_JSON, ODD_JSON]);
}

#[tokio::test]
async fn enqueue_bytes_keeps_bytes_that_are_no_text() {
    let rig = Rig::start().await;
    let id: Uuid = rig
        .value(r"SELECT kurier.enqueue_bytes('a', '\x00ff0a00'::bytea, 'application/octet-stream')")
        .await;
    let stored: Vec<u8> = rig
        .value(&format!(
            "SELECT payload_bytes FROM kurier.outbox_events WHERE id = '{id}'"
        ))
        .await;
    assert_eq!(stored, [0x00, 0xff, 0x0a, 0x00]);
    let event = rig.store.event(id).await.unwrap().unwrap();
    assert_eq!(event.content_type, "application/octet-stream");
    assert_eq!(event.payload_bytes, 4);
}

#[tokio::test]
async fn the_same_id_is_refused_the_second_time_in_every_partition() {
    let rig = Rig::start().await;
    for id in [Uuid::now_v7(), Uuid::new_v4()] {
        let event = NewEvent {
            id: Some(id),
            event_type: "a".to_owned(),
            payload: "1".to_owned(),
            ..NewEvent::default()
        };
        assert_eq!(rig.store.add_event(&event).await.unwrap(), id);
        let again = rig.store.add_event(&event).await;
        assert!(matches!(again, Err(StoreError::Refused(_))));
    }
}

#[tokio::test]
async fn ids_of_both_versions_find_their_partition() {
    let rig = Rig::start().await;
    let today: String = rig
        .value("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")
        .await;
    let version_7 = (Uuid::now_v7(), format!("outbox_events_{today}"));
    let version_4 = (
        "f47ac10b-58cc-4372-a567-0e02b2c3d479".parse().unwrap(),
        "outbox_events_random".to_owned(),
    );
    let low_version_4 = (
        "03ffffff-58cc-4372-a567-0e02b2c3d479".parse().unwrap(),
        "outbox_events_default".to_owned(),
    );
    for (id, partition) in [version_7, version_4, low_version_4] {
        let found: String = rig
            .value(&format!(
                "INSERT INTO kurier.outbox_events (id, event_type, payload) VALUES ('{id}', 'a', '1')
                RETURNING (SELECT relname::text FROM pg_class AS c WHERE c.oid = outbox_events.tableoid)"
            ))
            .await;
        assert_eq!(found, partition);
    }
}

#[tokio::test]
async fn illegal_events_are_refused() {
    let rig = Rig::start().await;
    let longest = "x".repeat(128);
    let too_long = "x".repeat(129);
    let insert = |columns: &str, values: &str| {
        format!("INSERT INTO kurier.outbox_events ({columns}) VALUES ({values})")
    };
    let legal = insert("event_type, payload", &format!("'{longest}', '1'"));
    rig.execute(&legal).await;
    for illegal in [
        insert("event_type, payload", &format!("'{too_long}', '1'")),
        insert("event_type, payload", "'', '1'"),
        insert("event_type, payload", "'with space', '1'"),
        insert("event_type, payload", "'café', '1'"),
        insert("event_type, payload", "E'line\\n', '1'"),
        insert("event_type, payload", "NULL, '1'"),
        insert("event_type, payload", "'a', '{not json'"),
        insert("event_type", "'a'"),
        insert("event_type, payload, payload_bytes", "'a', '1', '1'"),
        insert("event_type, payload, content_type", "'a', '1', E'a\\r\\nb'"),
        insert("event_type, payload, content_type", "'a', '1', ''"),
        insert("event_type, payload, created_at", "'a', '1', '1999-12-31'"),
        insert("event_type, payload, created_at", "'a', '1', '2200-01-01Z'"),
        insert("event_type, payload, parked_at", "'a', '1', now()"),
    ] {
        let error = rig.try_execute(&illegal).await.expect_err(&illegal);
        let refused = matches!(StoreError::from(error), StoreError::Refused(_));
        assert!(refused, "{illegal}");
    }
}

#[tokio::test]
async fn a_rolled_back_event_reaches_nobody() {
    let rig = Rig::start().await;
    let mut transaction = rig.pool.begin().await.unwrap();
    sqlx::query("SELECT kurier.enqueue('a', '1')")
        .execute(&mut *transaction)
        .await
        .unwrap();
    transaction.rollback().await.unwrap();
    let locked = rig.store.lock_waiting_events(10).await.unwrap();
    assert!(locked.events.is_empty());
}

#[tokio::test]
async fn a_refusal_never_repeats_the_payload() {
    let rig = Rig::start().await;
    let event = NewEvent {
        event_type: "not allowed".to_owned(),
        payload: r#"{"card":"4111"}"#.to_owned(),
        ..NewEvent::default()
    };
    let error = rig.store.add_event(&event).await.unwrap_err();
    assert!(!format!("{error} {error:?}").contains("4111"), "{error:?}");
}
