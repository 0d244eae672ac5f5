//! Where PostgreSQL and RabbitMQ are. Neither is started here.

use std::str::FromStr;

use anyhow::Context as _;
use process::Environment;
use sqlx::postgres::PgConnectOptions;
use url::Url;

/// The two services. Both URLs may hold a password and are not printed.
pub struct Services {
    database_url: Url,
    pub(crate) amqp_url: String,
}

impl Services {
    /// Takes them from `DATABASE_URL` and `AMQP_URL`.
    pub fn from_environment() -> anyhow::Result<Services> {
        let mut env = Environment::from_process();
        let (database_url, amqp_url) = (env.text("DATABASE_URL"), env.text("AMQP_URL"));
        env.finish()?;
        let database_url = Url::parse(&database_url).context("DATABASE_URL is not a URL")?;
        Ok(Services {
            database_url,
            amqp_url,
        })
    }

    /// The URL of another database of the same server.
    pub(crate) fn url_of(&self, database: &str) -> Url {
        let mut url = self.database_url.clone();
        url.set_path(database);
        url
    }

    pub(crate) fn connect_options(&self) -> anyhow::Result<PgConnectOptions> {
        PgConnectOptions::from_str(self.database_url.as_str())
            .map_err(|_| anyhow::anyhow!("DATABASE_URL is not a postgres:// URL"))
    }
}
