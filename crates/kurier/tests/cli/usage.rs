//! Exit codes and what is said when the command line or the environment is wrong.

use anyhow::Result;

use crate::rig::{EXIT_USAGE, Run, run, with_empty_database};

async fn without_environment(arguments: &[&str]) -> Result<Run> {
    run(&[], arguments, b"").await
}

#[tokio::test]
async fn help_and_version_succeed_and_anything_unknown_exits_64() -> Result<()> {
    assert_eq!(without_environment(&["--help"]).await?.code, Some(0));
    let version = without_environment(&["--version"]).await?;
    assert_eq!(
        version.stdout,
        format!("kurier {}\n", env!("CARGO_PKG_VERSION"))
    );
    for wrong in [&["endpiont"][..], &["delivery", "list", "--limt", "1"], &[]] {
        let run = without_environment(wrong).await?;
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(EXIT_USAGE), ""),
            "{wrong:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_completion_script_is_printed_for_every_shell() -> Result<()> {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = without_environment(&["completions", shell]).await?;
        assert_eq!(run.code, Some(0), "{shell}: {run:?}");
        assert!(run.stdout.contains("doctor"), "{shell}");
    }
    Ok(())
}

#[tokio::test]
async fn faults_of_arguments_and_variables_are_told_at_once_with_exit_64() -> Result<()> {
    let arguments = [
        "endpoint",
        "add",
        "--max-attempts",
        "0",
        "--event-type",
        "a*b",
    ];
    let run = without_environment(&arguments).await?;
    assert_eq!((run.code, run.stdout.as_str()), (Some(EXIT_USAGE), ""));
    for named in ["--url", "--max-attempts", "--event-type", "DATABASE_URL"] {
        assert!(
            run.stderr.contains(named),
            "{named} is missing in:\n{}",
            run.stderr
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_database_url_that_cannot_be_read_exits_64_and_is_not_repeated() -> Result<()> {
    let variables = [(
        "DATABASE_URL".to_owned(),
        "postgres://kurier:s3cret@db:port/".to_owned(),
    )];
    let run = run(&variables, &["endpoint", "list"], b"").await?;
    assert_eq!(run.code, Some(EXIT_USAGE), "{run:?}");
    assert!(!run.stderr.contains("s3cret"), "{run:?}");
    Ok(())
}

#[tokio::test]
async fn a_missing_schema_is_a_failure_that_names_its_remedy() -> Result<()> {
    with_empty_database(async |rig| {
        let run = rig.run(&["endpoint", "list"]).await?;
        assert_eq!(run.code, Some(1), "{run:?}");
        assert!(run.stderr.contains("kurier migrate"), "{run:?}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn migrating_twice_reaches_the_same_version() -> Result<()> {
    with_empty_database(async |rig| {
        let first = rig.json(&["migrate"]).await?;
        assert!(first["version"].as_i64() >= Some(1), "{first}");
        assert_eq!(rig.json(&["migrate"]).await?, first);
        let table = rig.run(&["migrate"]).await?;
        assert!(
            table.stdout.contains(&first["version"].to_string()),
            "{table:?}"
        );
        Ok(())
    })
    .await
}
