//! `kurier delivery` on deliveries that a relay and a dispatcher would have written.

use anyhow::Result;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rig::{EXIT_USAGE, Rig, text, with_database};

/// One dead letter with one attempt, to an endpoint of its own.
async fn dead_letter(rig: &mut Rig) -> Result<(String, String)> {
    let endpoint = rig.endpoint().await?;
    let id = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO kurier.deliveries (
            id, event_id, endpoint_id, status, reason, attempt_count, max_attempts, next_attempt_at,
            dead_lettered_at, last_error, last_status_code, created_at
        ) VALUES ($1, $2, $3, 'dead_letter', 'rejected', 1, 5, now(), now(), 'status 404', 404, now())",
    )
    .bind(id)
    .bind(Uuid::now_v7())
    .bind(Uuid::parse_str(&endpoint)?)
    .execute(&mut rig.database)
    .await?;
    sqlx::query(
        "INSERT INTO kurier.delivery_attempts (
            delivery_id, attempt_number, endpoint_id, started_at, duration_ms, status_code, error_class, error,
            response_body
        ) VALUES ($1, 1, $2, now(), 12, 404, 'status', 'status 404', 'you sent s3cret')",
    )
    .bind(id)
    .bind(Uuid::parse_str(&endpoint)?)
    .execute(&mut rig.database)
    .await?;
    Ok((id.to_string(), endpoint))
}

async fn listed(rig: &Rig, filter: &[&str]) -> Result<Vec<Value>> {
    let arguments = [&["delivery", "list"], filter].concat();
    let deliveries = rig.json(&arguments).await?;
    let ids = deliveries.as_array().into_iter().flatten();
    Ok(ids.map(|delivery| delivery["id"].clone()).collect())
}

#[tokio::test]
async fn deliveries_are_listed_under_the_names_of_their_columns() -> Result<()> {
    with_database(async |rig| {
        let (id, endpoint) = dead_letter(rig).await?;
        let deliveries = rig.json(&["delivery", "list"]).await?;
        let delivery = &deliveries[0];
        assert_eq!(
            (&delivery["id"], &delivery["endpoint_id"]),
            (&json!(id), &json!(endpoint))
        );
        assert_eq!(delivery["status"], "dead_letter");
        assert_eq!(delivery["last_status_code"], 404);
        let table = rig.run(&["delivery", "list"]).await?;
        assert!(
            table.stdout.contains(&id) && table.stdout.contains("last_status_code"),
            "{table:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_list_is_narrowed_by_endpoint_event_status_and_page() -> Result<()> {
    with_database(async |rig| {
        let (older, endpoint) = dead_letter(rig).await?;
        let (newer, _) = dead_letter(rig).await?;
        assert_eq!(listed(rig, &[]).await?, [json!(newer), json!(older)]);
        assert_eq!(
            listed(rig, &["--endpoint", &endpoint]).await?,
            [json!(older)]
        );
        assert_eq!(listed(rig, &["--limit", "1"]).await?, [json!(newer)]);
        assert_eq!(listed(rig, &["--before", &newer]).await?, [json!(older)]);
        assert_eq!(listed(rig, &["--status", "dead_letter"]).await?.len(), 2);
        assert!(listed(rig, &["--status", "held"]).await?.is_empty());
        assert!(
            listed(rig, &["--event", &Uuid::now_v7().to_string()])
                .await?
                .is_empty()
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_expanded_event_is_shown_with_its_deliveries() -> Result<()> {
    with_database(async |rig| {
        let (id, _) = dead_letter(rig).await?;
        let event = rig.json(&["delivery", "show", &id]).await?["event_id"].clone();
        let event = text(&event)?;
        let send = [
            "event",
            "send",
            "--event-type",
            "t",
            "--payload",
            "{}",
            "--id",
            &event,
        ];
        rig.json(&send).await?;
        // A delivery's id begins with its event's time.
        sqlx::query(
            "UPDATE kurier.outbox_events SET processed_at = now(), created_at = to_timestamp(
                ('x' || left(replace($1::text, '-', ''), 12))::bit(48)::bigint / 1000.0
            )",
        )
        .bind(&id)
        .execute(&mut rig.database)
        .await?;
        let shown = rig.json(&["event", "show", &event]).await?;
        assert_eq!(shown["progress"], "expanded");
        assert_eq!(shown["deliveries"][0]["id"], id.as_str());
        let table = rig.run(&["event", "show", &event]).await?;
        assert!(table.stdout.contains("deliveries: 1"), "{table:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_receivers_answer_is_only_shown_when_asked_for() -> Result<()> {
    with_database(async |rig| {
        let (id, _) = dead_letter(rig).await?;
        let shown = rig.json(&["delivery", "show", &id]).await?;
        assert_eq!(shown["attempts"][0]["duration_ms"], 12);
        let table = rig.run(&["delivery", "show", &id]).await?;
        assert!(table.stdout.contains("attempt_number"), "{table:?}");
        assert!(!format!("{shown}{table:?}").contains("s3cret"));
        let asked = rig
            .json(&["delivery", "show", &id, "--response-bodies"])
            .await?;
        assert_eq!(asked["attempts"][0]["response_body"], "you sent s3cret");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_delivery_that_does_not_exist_is_a_failure_and_an_unknown_status_is_misuse() -> Result<()>
{
    with_database(async |rig| {
        let run = rig
            .run(&["delivery", "show", &Uuid::now_v7().to_string()])
            .await?;
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("there is no delivery"), "{run:?}");
        let run = rig.run(&["delivery", "list", "--status", "lost"]).await?;
        assert_eq!(run.code, Some(EXIT_USAGE), "{run:?}");
        assert!(run.stderr.contains("--status"), "{run:?}");
        Ok(())
    })
    .await
}
