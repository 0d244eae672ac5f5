//! The schema's versions: compiled in, run forward only, one runner at a time.

use sqlx::{
    Executor as _,
    migrate::{Migrate, MigrateError, Migrator},
};

use crate::{Store, StoreError};

const MIGRATIONS_TABLE: &str = "kurier.schema_migrations";

fn migrator() -> Migrator {
    let mut migrator = sqlx::migrate!("../../migrations");
    migrator.create_schema("kurier");
    migrator.dangerous_set_table_name(MIGRATIONS_TABLE);
    migrator
}

/// How the database's schema compares with the one this program was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// Nothing was ever migrated.
    Missing,
    /// Older than this program: `kurier migrate` brings it up.
    Behind {
        /// Version found.
        found: i64,
        /// Version this program needs.
        needed: i64,
    },
    /// As needed, or newer: migrations only ever add until all programs have moved on.
    Ready {
        /// Version found.
        found: i64,
    },
}

/// Brings the schema up to this program's version and creates the coming days' partitions.
/// Runs of several processes at once wait for each other, and a migration may take its time.
pub async fn migrate(store: &Store) -> Result<i64, StoreError> {
    let mut connection = store.pool.acquire().await?;
    connection.execute("SET statement_timeout = 0").await?;
    migrator()
        .set_ignore_missing(true)
        .run(&mut *connection)
        .await
        .map_err(refused)?;
    connection.close().await?;
    store.create_partitions().await?;
    Ok(needed())
}

fn needed() -> i64 {
    migrator()
        .iter()
        .map(|migration| migration.version)
        .max()
        .unwrap_or(0)
}

fn refused(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => error.into(),
        other => StoreError::Schema(other.to_string()),
    }
}

impl Store {
    /// Compares the schema with the one this program needs.
    pub async fn schema_state(&self) -> Result<SchemaState, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let table: Option<String> =
            sqlx::query_scalar("/* kurier.schema_state */ SELECT to_regclass($1)::text")
                .bind(MIGRATIONS_TABLE)
                .fetch_one(&mut *connection)
                .await?;
        if table.is_none() {
            return Ok(SchemaState::Missing);
        }
        let applied = connection
            .list_applied_migrations(MIGRATIONS_TABLE)
            .await
            .map_err(refused)?;
        let found = applied
            .iter()
            .map(|migration| migration.version)
            .max()
            .unwrap_or(0);
        let needed = needed();
        Ok(if found < needed {
            SchemaState::Behind { found, needed }
        } else {
            SchemaState::Ready { found }
        })
    }
}
