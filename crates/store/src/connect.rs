//! The pool, with the limits every connection carries.

use std::{str::FromStr, time::Duration};

use sqlx::{
    Connection as _, Executor, PgPool,
    postgres::{PgConnectOptions, PgPoolOptions},
};

use crate::StoreError;
use crate::answered::Answered as _;

/// How to reach the database.
pub struct StoreConfig {
    /// A `postgres://` URL. Holds a password: never printed.
    pub database_url: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: &'static str,
    /// Connections at the most.
    pub connections_max: u32,
}

/// Handle to the database; clones share one pool.
#[derive(Clone)]
pub struct Store {
    pub(crate) pool: PgPool,
}

/// How long a caller waits for a free connection before it hears that the database is away.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// No statement, lock or forgotten transaction outlives these, and a dead peer is noticed.
const SESSION_LIMITS: &str = "
    SET statement_timeout = '15s';
    SET lock_timeout = '10s';
    SET idle_in_transaction_session_timeout = '60s';
    SET tcp_keepalives_idle = 15;
    SET tcp_keepalives_interval = 5;
    SET tcp_keepalives_count = 3;
    SET timezone = 'UTC'";

/// Every statement here looks up a bounded number of rows by their keys, and only tables of a few
/// rows are read as a whole. Of a new day's partition the server knows nothing yet and would like to
/// read all of it for every batch, so it is told how. One plan for each statement is good for all its calls: planning over the partitions
/// costs more than a small batch itself, and so would compiling.
const PLANS: &str = "
    SET enable_seqscan = off;
    SET enable_hashjoin = off;
    SET enable_mergejoin = off;
    SET plan_cache_mode = force_generic_plan;
    SET jit = off";

impl Store {
    /// Prepares the pool. Connects on first use, so a database that is away is no error here;
    /// an unusable URL is.
    pub fn new(config: &StoreConfig) -> Result<Store, StoreError> {
        let options = PgConnectOptions::from_str(&config.database_url)
            .map_err(|_| {
                StoreError::Refused("the database URL is not a valid postgres:// URL".into())
            })?
            .application_name(config.application_name);
        // A connection given back in the middle of something is tried out: without a limit to that, a
        // server that fell silent would keep its place in the pool for ever.
        let pool = PgPoolOptions::new()
            .max_connections(config.connections_max)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(|connection, _| {
                Box::pin(async move {
                    connection.execute(SESSION_LIMITS).answered().await?;
                    connection.execute(PLANS).answered().await?;
                    Ok(())
                })
            })
            .after_release(|connection, _| {
                Box::pin(async move {
                    connection.ping().answered().await?;
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        Ok(Store { pool })
    }

    /// One round trip, to see that the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("/* kurier.ping */ SELECT 1")
            .execute(&self.pool)
            .answered()
            .await?;
        Ok(())
    }

    /// Closes every connection, waiting for those in use.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}
