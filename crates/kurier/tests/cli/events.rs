//! `kurier event`: what is written, what is shown of it, and what is not.

use anyhow::Result;
use serde_json::json;
use uuid::Uuid;

use crate::rig::{EXIT_USAGE, Rig, text, with_database};

/// Written so that any rewriting of JSON would change it.
const PAYLOAD: &str = "{ \"b\": 1.0, \"a\": \"\\u00e9\",\t\"a\": s }";

fn payload() -> String {
    PAYLOAD.replace(" s ", " 1e2 ")
}

async fn stored_payload(rig: &mut Rig, id: &str) -> Result<String> {
    let stored = sqlx::query_scalar("SELECT payload::text FROM kurier.outbox_events WHERE id = $1")
        .bind(Uuid::parse_str(id)?)
        .fetch_one(&mut rig.database)
        .await?;
    Ok(stored)
}

async fn send(rig: &Rig) -> Result<String> {
    let send = [
        "event",
        "send",
        "--event-type",
        "order.paid",
        "--payload",
        "{}",
    ];
    text(&rig.json(&send).await?["id"])
}

#[tokio::test]
async fn a_payload_reaches_the_outbox_byte_for_byte() -> Result<()> {
    with_database(async |rig| {
        let payload = payload();
        let given = ["event", "send", "--event-type", "t", "--payload", &payload];
        let id = text(&rig.json(&given).await?["id"])?;
        assert_eq!(stored_payload(rig, &id).await?, payload);
        let with_newline = format!("{payload}\r\n");
        let from_stdin = [
            "event",
            "send",
            "--event-type",
            "t",
            "--payload-file",
            "-",
            "--json",
        ];
        let run = rig
            .run_with_stdin(&from_stdin, with_newline.as_bytes())
            .await?;
        let sent: serde_json::Value = serde_json::from_str(&run.stdout)?;
        assert_eq!(
            stored_payload(rig, &text(&sent["id"])?).await?,
            with_newline
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn what_is_sent_is_shown_without_its_payload() -> Result<()> {
    with_database(async |rig| {
        let id = Uuid::now_v7().to_string();
        let arguments = "event send --event-type order.paid --tenant acme --aggregate-type order --aggregate-id 42";
        let given = ["--id", id.as_str(), "--payload", "{\"card\":\"s3cret\"}"];
        let arguments: Vec<&str> = arguments.split(' ').chain(given).collect();
        assert_eq!(rig.json(&arguments).await?["id"], id.as_str());
        let shown = rig.json(&["event", "show", &id]).await?;
        for (field, expected) in [
            ("event_type", json!("order.paid")),
            ("tenant", json!("acme")),
            ("aggregate_type", json!("order")),
            ("aggregate_id", json!("42")),
            ("payload_bytes", json!(17)),
            ("progress", json!("waiting")),
            ("deliveries", json!([])),
        ] {
            assert_eq!(shown[field], expected, "{field}");
        }
        let table = rig.run(&["event", "show", &id]).await?;
        assert!(table.stdout.contains("waiting for the relay"), "{table:?}");
        assert!(!format!("{shown}{table:?}").contains("s3cret"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_event_nobody_is_subscribed_to_is_written_with_a_warning() -> Result<()> {
    with_database(async |rig| {
        let send = [
            "event",
            "send",
            "--event-type",
            "order.paid",
            "--payload",
            "{}",
            "--json",
        ];
        let unheard = rig.run(&send).await?;
        assert_eq!(unheard.code, Some(0), "{unheard:?}");
        assert!(
            unheard.stderr.contains("no endpoint is subscribed"),
            "{unheard:?}"
        );
        rig.endpoint().await?;
        let heard = rig.run(&send).await?;
        assert_eq!(heard.stderr, "");
        assert!(
            heard.stdout.contains("\"subscribed_endpoints\": 1"),
            "{heard:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_event_the_relay_found_nobody_for_says_so() -> Result<()> {
    with_database(async |rig| {
        let id = send(rig).await?;
        sqlx::query("UPDATE kurier.outbox_events SET processed_at = now()")
            .execute(&mut rig.database)
            .await?;
        assert_eq!(
            rig.json(&["event", "show", &id]).await?["progress"],
            "not_subscribed"
        );
        let table = rig.run(&["event", "show", &id]).await?;
        assert!(
            table.stdout.contains("no endpoint was subscribed"),
            "{table:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_parked_event_tells_its_reason_and_is_let_out_by_a_retry() -> Result<()> {
    with_database(async |rig| {
        let id = send(rig).await?;
        sqlx::query(
            "UPDATE kurier.outbox_events SET parked_at = now(), parked_reason = 'too large'",
        )
        .execute(&mut rig.database)
        .await?;
        let shown = rig.json(&["event", "show", &id]).await?;
        assert_eq!(
            (&shown["progress"], &shown["parked_reason"]),
            (&json!("parked"), &json!("too large"))
        );
        let table = rig.run(&["event", "show", &id]).await?;
        assert!(table.stdout.contains("parked: too large"), "{table:?}");
        assert_eq!(
            rig.json(&["event", "retry", &id]).await?["progress"],
            "waiting"
        );
        let again = rig.run(&["event", "retry", &id]).await?;
        assert_eq!(again.code, Some(1), "{again:?}");
        assert!(again.stderr.contains("is not parked"), "{again:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_event_that_does_not_exist_is_a_failure() -> Result<()> {
    with_database(async |rig| {
        for verb in ["show", "retry"] {
            let run = rig
                .run(&["event", verb, &Uuid::now_v7().to_string()])
                .await?;
            assert_eq!(run.code, Some(1), "{verb}: {run:?}");
            assert!(run.stderr.contains("there is no event"), "{verb}: {run:?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_id_that_is_taken_is_a_failure() -> Result<()> {
    with_database(async |rig| {
        let id = send(rig).await?;
        let again = [
            "event",
            "send",
            "--event-type",
            "t",
            "--payload",
            "{}",
            "--id",
            &id,
        ];
        let run = rig.run(&again).await?;
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("cannot write the event"), "{run:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_payload_one_byte_too_large_is_refused() -> Result<()> {
    with_database(async |rig| {
        rig.set("KURIER_PAYLOAD_BYTES_MAX", "9");
        let send = ["event", "send", "--event-type", "t", "--payload-file", "-"];
        let fits = rig.run_with_stdin(&send, b"\"1234567\"").await?;
        assert_eq!(fits.code, Some(0), "{fits:?}");
        let larger = rig.run_with_stdin(&send, b"\"12345678\"").await?;
        assert_eq!(larger.code, Some(EXIT_USAGE), "{larger:?}");
        assert!(larger.stderr.contains("--payload-file"), "{larger:?}");
        Ok(())
    })
    .await
}
