//! `kurier doctor` on sound and on broken installations.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::rig::{Rig, run, with_database, with_empty_database};

const CHECKS: [&str; 11] = [
    "configuration",
    "database",
    "schema",
    "partitions",
    "clock",
    "outbox",
    "parked_events",
    "dead_letters",
    "broker",
    "topology",
    "work_queue",
];

/// Nobody listens on the discard port of the loopback.
const NO_DATABASE: &str = "postgres://kurier@127.0.0.1:9/kurier";
const NO_BROKER: &str = "amqp://guest:guest@127.0.0.1:9/%2f";

async fn examine(rig: &Rig) -> Result<(Option<i32>, Value)> {
    let run = rig.run(&["doctor", "--json"]).await?;
    let report = serde_json::from_str(&run.stdout).with_context(|| format!("{run:?}"))?;
    Ok((run.code, report))
}

fn names(report: &Value) -> Vec<&str> {
    let checks = report["checks"].as_array().into_iter().flatten();
    checks.filter_map(|check| check["name"].as_str()).collect()
}

fn check<'a>(report: &'a Value, name: &str) -> Result<&'a Value> {
    let mut checks = report["checks"].as_array().into_iter().flatten();
    let check = checks.find(|check| check["name"] == name);
    check.with_context(|| format!("no check {name} in {report}"))
}

fn level<'a>(report: &'a Value, name: &str) -> Result<&'a str> {
    check(report, name)?["level"].as_str().context("no level")
}

#[tokio::test]
async fn a_sound_installation_passes_every_check() -> Result<()> {
    with_database(async |rig| {
        let (code, first) = examine(rig).await?;
        assert_eq!(code, Some(0), "{first}");
        assert_eq!(names(&first), CHECKS);
        let (code, second) = examine(rig).await?;
        assert_eq!(
            (code, &second["level"]),
            (Some(0), &Value::from("ok")),
            "{second}"
        );
        let table = rig.run(&["doctor"]).await?;
        assert_eq!(table.code, Some(0), "{table:?}");
        assert!(
            CHECKS.iter().all(|name| table.stdout.contains(name)),
            "{table:?}"
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_missing_schema_fails_and_names_its_remedy() -> Result<()> {
    with_empty_database(async |rig| {
        let (code, report) = examine(rig).await?;
        assert_eq!(code, Some(1), "{report}");
        assert_eq!(level(&report, "schema")?, "fail");
        assert_eq!(check(&report, "schema")?["mend"], "run `kurier migrate`");
        assert_eq!(level(&report, "database")?, "ok");
        assert_eq!(level(&report, "broker")?, "ok");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_check_runs_while_the_database_is_away() -> Result<()> {
    with_database(async |rig| {
        rig.set("DATABASE_URL", NO_DATABASE);
        let (code, report) = examine(rig).await?;
        assert_eq!(code, Some(1), "{report}");
        assert_eq!(names(&report), CHECKS);
        assert_eq!(level(&report, "database")?, "fail");
        assert_eq!(level(&report, "work_queue")?, "ok");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_check_runs_while_the_broker_is_away() -> Result<()> {
    with_database(async |rig| {
        rig.set("AMQP_URL", NO_BROKER);
        let run = rig.run(&["doctor", "--json"]).await?;
        assert!(run.stderr.contains("no session with the broker"), "{run:?}");
        let report: Value = serde_json::from_str(&run.stdout)?;
        assert_eq!(run.code, Some(1), "{report}");
        assert_eq!(names(&report), CHECKS);
        assert_eq!(level(&report, "broker")?, "fail");
        assert_eq!(level(&report, "outbox")?, "ok");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn every_faulty_variable_is_found_and_no_check_is_left_out() -> Result<()> {
    let variables = [
        ("AMQP_URL", "amqp:guest:s3cret"),
        ("KURIER_MAX_ATTEMPTS", "0"),
        ("KURIER_MAX_ATEMPTS", "5"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let run = run(&variables, &["doctor", "--json"], b"").await?;
    assert_eq!(run.code, Some(1), "{run:?}");
    for named in [
        "DATABASE_URL",
        "AMQP_URL",
        "KURIER_MAX_ATTEMPTS is",
        "KURIER_MAX_ATEMPTS is",
    ] {
        assert!(run.stdout.contains(named), "{named} is missing in {run:?}");
    }
    assert!(!format!("{run:?}").contains("s3cret"), "{run:?}");
    let report: Value = serde_json::from_str(&run.stdout)?;
    assert!(
        CHECKS.iter().all(|name| names(&report).contains(name)),
        "{report}"
    );
    Ok(())
}

#[tokio::test]
async fn events_and_deliveries_that_wait_for_people_are_warned_of() -> Result<()> {
    with_database(async |rig| {
        rig.json(&["event", "send", "--event-type", "t", "--payload", "{}"])
            .await?;
        rig.json(&["event", "send", "--event-type", "t", "--payload", "{}"])
            .await?;
        sqlx::query(
            "UPDATE kurier.outbox_events SET parked_at = now(), parked_reason = 'too large'
            WHERE id = (SELECT min(id::text)::uuid FROM kurier.outbox_events)",
        )
        .execute(&mut rig.database)
        .await?;
        sqlx::query("UPDATE kurier.outbox_events SET created_at = now() - interval '10 minutes'")
            .execute(&mut rig.database)
            .await?;
        let (code, report) = examine(rig).await?;
        assert_eq!(code, Some(0), "{report}");
        assert_eq!(level(&report, "outbox")?, "warn");
        assert_eq!(level(&report, "parked_events")?, "warn");
        Ok(())
    })
    .await
}
