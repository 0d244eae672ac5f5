//! A database of the demo's own. No other database of the server is touched.

use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, PgPool, postgres::PgPoolOptions};

use crate::Services;

const CONNECTIONS_MAX: u32 = 2;

/// Creates it empty. The name is trusted to be an identifier.
pub(crate) async fn create(services: &Services, name: &str) -> anyhow::Result<PgPool> {
    administer(services, format!("CREATE DATABASE {name}")).await?;
    let options = PgPoolOptions::new().max_connections(CONNECTIONS_MAX);
    let database = services.connect_options()?.database(name);
    Ok(options.connect_with(database).await?)
}

/// Drops it, whoever is still connected; one that was never created is no error.
pub(crate) async fn drop(services: &Services, name: &str) -> anyhow::Result<()> {
    administer(
        services,
        format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
    )
    .await
}

async fn administer(services: &Services, statement: String) -> anyhow::Result<()> {
    let mut server = services.connect_options()?.connect().await?;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut server)
        .await?;
    Ok(server.close().await?)
}
