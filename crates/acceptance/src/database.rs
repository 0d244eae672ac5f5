//! A database that one test has for itself.

use anyhow::{Context as _, Result};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, PgPool, postgres::PgPoolOptions};
use url::Url;
use uuid::Uuid;

/// Connections a test has itself, beside those of the programs.
const CONNECTIONS_MAX: u32 = 8;

/// A new database on the server that `server_url` names.
pub(crate) struct Database {
    server_url: String,
    name: String,
    pub(crate) url: Url,
    pub(crate) pool: PgPool,
}

impl Database {
    pub(crate) async fn create(server_url: String) -> Result<Self> {
        let name = format!("kurier_test_{}", Uuid::new_v4().simple());
        let mut url = Url::parse(&server_url).context("DATABASE_URL is not a URL")?;
        url.set_path(&name);
        execute(&server_url, format!("CREATE DATABASE {name}")).await?;
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_lazy(url.as_str())?;
        Ok(Self {
            server_url,
            name,
            url,
            pool,
        })
    }

    /// Drops it, whoever is still connected.
    pub(crate) async fn drop_it(server_url: &str, name: &str) -> Result<()> {
        let statement = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        execute(server_url, statement).await
    }

    /// What is needed to drop it later.
    pub(crate) fn server_and_name(&self) -> (String, String) {
        (self.server_url.clone(), self.name.clone())
    }
}

async fn execute(server_url: &str, statement: String) -> Result<()> {
    let mut connection = PgConnection::connect(server_url)
        .await
        .context("cannot reach the server that DATABASE_URL names")?;
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    Ok(connection.close().await?)
}
