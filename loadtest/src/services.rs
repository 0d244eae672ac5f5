//! The two servers under load: their addresses, and their processes when they run on this machine.

use anyhow::Context;
use sqlx::postgres::PgConnectOptions;
use url::Url;

use crate::cli::ServiceOptions;
use crate::cpu::Party;
use crate::listening::local_pid;

pub(crate) struct Services {
    pub(crate) database_url: Url,
    pub(crate) amqp_url: String,
    postgres_pid: Option<u32>,
    rabbitmq_pid: Option<u32>,
}

impl Services {
    pub(crate) fn find(options: &ServiceOptions) -> anyhow::Result<Self> {
        let database_url = Url::parse(&options.database_url).context("DATABASE_URL is no URL")?;
        let amqp_url = Url::parse(&options.amqp_url).context("AMQP_URL is no URL")?;
        Ok(Self {
            postgres_pid: options
                .postgres_pid
                .or_else(|| local_pid(&database_url, 5432)),
            rabbitmq_pid: options.rabbitmq_pid.or_else(|| local_pid(&amqp_url, 5672)),
            database_url,
            amqp_url: options.amqp_url.clone(),
        })
    }

    /// The servers as parties whose CPU time is read.
    pub(crate) fn parties(&self) -> [Party; 2] {
        let party = |name, pid: Option<u32>| Party {
            name,
            roots: pid.map(|pid| vec![pid]),
        };
        [
            party("PostgreSQL", self.postgres_pid),
            party("RabbitMQ", self.rabbitmq_pid),
        ]
    }

    /// Connection options for the database the URL names.
    pub(crate) fn connect_options(&self) -> anyhow::Result<PgConnectOptions> {
        self.database_url
            .as_str()
            .parse()
            .context("DATABASE_URL is no PostgreSQL URL")
    }
}
