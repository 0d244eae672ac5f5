//! `kurier migrate`. The migrations themselves are the store's.

use anyhow::Context as _;
use serde::Serialize;

use crate::{input::Input, output::Output};

#[derive(Serialize)]
struct Migrated {
    version: i64,
}

/// Brings the schema up to date and prints the version reached.
pub(crate) async fn migrate(input: Input, output: Output) -> anyhow::Result<()> {
    let store = input.into_store()?;
    let version = store::migrate(&store)
        .await
        .context("cannot migrate the schema")?;
    output.record(&Migrated { version }, &["version"])
}
