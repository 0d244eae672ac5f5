//! `kurier endpoint` from registration to resumption.

use anyhow::Result;
use serde_json::json;

use crate::rig::{EXIT_USAGE, text, with_database};

const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test]
async fn what_is_registered_is_shown_as_it_was_given() -> Result<()> {
    with_database(async |rig| {
        let url = "https://hooks.example/in?key=s3cret";
        let arguments = [
            "endpoint add --event-type order.* --event-type ping --tenant acme --max-attempts 7",
            "--attempt-timeout-ms 2000 --retry-schedule-ms 60000,300000 --retry-statuses 404,409",
            "--reject-statuses 501-503 --breaker-threshold 3 --description Orders",
        ]
        .join(" ");
        let arguments: Vec<&str> = arguments.split(' ').chain(["--url", url]).collect();
        let added = rig.json(&arguments).await?;
        assert!(text(&added["secret"])?.starts_with("whsec_"));
        let shown = rig
            .json(&["endpoint", "show", &text(&added["id"])?])
            .await?;
        for (column, expected) in [
            ("id", added["id"].clone()),
            ("url", json!(url)),
            ("event_types", json!(["order.*", "ping"])),
            ("tenant", json!("acme")),
            ("description", json!("Orders")),
            ("max_attempts", json!(7)),
            ("attempt_timeout_ms", json!(2000)),
            ("retry_schedule_ms", json!([60_000, 300_000])),
            ("retry_statuses", json!("404,409")),
            ("reject_statuses", json!("501-503")),
            ("state", json!("closed")),
        ] {
            assert_eq!(shown[column], expected, "{column}");
        }
        assert!(shown.get("secret").is_none());
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_given_secret_is_kept_and_ed25519_tells_its_public_key() -> Result<()> {
    with_database(async |rig| {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let base = ["endpoint", "add", "--url", "https://hooks.example/"];
        let added = rig
            .json(&[&base[..], &["--secret", secret]].concat())
            .await?;
        assert_eq!(added["secret"], secret);
        assert!(added.get("public_key").is_none());
        let added = rig
            .json(&[&base[..], &["--signing", "ed25519"]].concat())
            .await?;
        assert!(text(&added["secret"])?.starts_with("whsk_"));
        assert!(text(&added["public_key"])?.starts_with("whpk_"));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn no_two_endpoints_get_the_same_secret() -> Result<()> {
    with_database(async |rig| {
        let add = ["endpoint", "add", "--url", "https://hooks.example/"];
        let (first, second) = (rig.json(&add).await?, rig.json(&add).await?);
        assert_ne!(first["secret"], second["secret"]);
        assert_ne!(first["id"], second["id"]);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_query_is_only_shown_by_show_as_json() -> Result<()> {
    with_database(async |rig| {
        let id = rig.endpoint().await?;
        let listed = rig.json(&["endpoint", "list"]).await?;
        assert_eq!(listed[0]["url"], "https://hooks.example/in?...");
        for arguments in [&["endpoint", "list"][..], &["endpoint", "show", &id]] {
            let table = rig.run(arguments).await?;
            assert!(
                table.stdout.contains("https://hooks.example/in?..."),
                "{table:?}"
            );
            assert!(!table.stdout.contains("s3cret"), "{table:?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn pausing_and_resuming_can_be_seen_and_repeated() -> Result<()> {
    with_database(async |rig| {
        let id = rig.endpoint().await?;
        let paused = rig.json(&["endpoint", "pause", &id]).await?;
        assert!(paused["paused_at"].is_string(), "{paused}");
        let again = rig.json(&["endpoint", "pause", &id]).await?;
        assert_eq!(again["paused_at"], paused["paused_at"]);
        let resumed = rig.json(&["endpoint", "resume", &id]).await?;
        assert!(resumed["paused_at"].is_null(), "{resumed}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn an_endpoint_that_does_not_exist_is_a_failure_and_a_malformed_id_is_misuse() -> Result<()> {
    with_database(async |rig| {
        for verb in ["show", "pause", "resume"] {
            let run = rig.run(&["endpoint", verb, NOBODY]).await?;
            assert_eq!(run.code, Some(1), "{verb}: {run:?}");
            assert!(
                run.stderr.contains("there is no endpoint"),
                "{verb}: {run:?}"
            );
            let run = rig.run(&["endpoint", verb, "7"]).await?;
            assert_eq!(run.code, Some(EXIT_USAGE), "{verb}: {run:?}");
        }
        Ok(())
    })
    .await
}

#[tokio::test]
async fn a_forbidden_destination_is_refused_and_nothing_is_stored() -> Result<()> {
    with_database(async |rig| {
        for url in [
            "http://hooks.example/",
            "https://169.254.169.254/",
            "https://u:s3cret@hooks.example/",
        ] {
            let run = rig.run(&["endpoint", "add", "--url", url]).await?;
            assert_eq!(run.code, Some(EXIT_USAGE), "{url}: {run:?}");
            assert!(
                run.stderr.contains("--url") && !run.stderr.contains("s3cret"),
                "{run:?}"
            );
        }
        assert_eq!(rig.json(&["endpoint", "list"]).await?, json!([]));
        Ok(())
    })
    .await
}
