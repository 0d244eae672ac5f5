//! A database of one test's own, with the rows tests begin from.

use std::{thread, time::Duration};

use chrono::{DateTime, Utc};
use domain::delivery::{HoldReason, delivery_id};
use sqlx::{
    AssertSqlSafe, Connection as _, Decode, FromRow, PgConnection, PgPool, Postgres, Type,
    postgres::{PgPoolOptions, PgRow},
};
use store::{LeaseTerms, NewDelivery, NewEndpoint, NewEvent, Store, StoreConfig};
use tokio::{
    runtime,
    time::{sleep, timeout},
};
use uuid::Uuid;

/// What is awaited for longer than this is taken to be missing.
const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(5);

/// Dropping it drops the database.
pub(crate) struct Rig {
    pub(crate) store: Store,
    /// Connections beside the store's own, without its limits.
    pub(crate) pool: PgPool,
    url: String,
    server_url: String,
    name: String,
}

impl Rig {
    /// A migrated database.
    pub(crate) async fn start() -> Rig {
        let rig = Rig::empty().await;
        store::migrate(&rig.store).await.expect("the schema");
        rig
    }

    /// A database without anything in it.
    pub(crate) async fn empty() -> Rig {
        let server_url = server_url();
        let name = format!("kurier_store_{}", Uuid::new_v4().simple());
        on_server(&server_url, format!("CREATE DATABASE {name}")).await;
        let (server, _) = server_url.rsplit_once('/').expect("a URL with a database");
        let url = format!("{server}/{name}");
        let pool = PgPoolOptions::new()
            .max_connections(8)
            .connect_lazy(&url)
            .expect("a URL");
        Rig {
            store: open(&url),
            pool,
            url,
            server_url,
            name,
        }
    }

    /// A store as another process would have it.
    pub(crate) fn another_store(&self) -> Store {
        open(&self.url)
    }

    /// A session of its own, beside the store's and the pool's.
    pub(crate) async fn session(&self) -> PgConnection {
        PgConnection::connect(&self.url).await.expect("a session")
    }

    pub(crate) async fn execute(&self, statement: &str) -> u64 {
        self.try_execute(statement)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
    }

    pub(crate) async fn try_execute(&self, statement: &str) -> Result<u64, sqlx::Error> {
        let done = sqlx::query(AssertSqlSafe(statement.to_owned()))
            .execute(&self.pool)
            .await?;
        Ok(done.rows_affected())
    }

    pub(crate) async fn value<T>(&self, query: &str) -> T
    where
        T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    pub(crate) async fn values<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_all(&self.pool)
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Waits until this query's one boolean is true.
    pub(crate) async fn until(&self, query: &str) {
        let reached = async {
            while !self.value::<bool>(query).await {
                sleep(LOOK).await;
            }
        };
        let in_time = timeout(PATIENCE, reached).await.is_ok();
        assert!(in_time, "not true within {PATIENCE:?}: {query}");
    }

    /// Waits until so many of the store's statements stand behind a lock.
    pub(crate) async fn until_blocked(&self, statements: usize) {
        let query = format!(
            "SELECT count(*) = {statements} FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock'"
        );
        self.until(&query).await;
    }

    pub(crate) async fn endpoint(&self) -> Uuid {
        let endpoint = NewEndpoint {
            url: "https://example.com/hook".to_owned(),
            secret: "whsec_first".to_owned(),
            ..NewEndpoint::default()
        };
        self.store.add_endpoint(&endpoint).await.expect("a row")
    }

    pub(crate) async fn event(&self) -> Uuid {
        let event = NewEvent {
            event_type: "order.paid".to_owned(),
            payload: "{}".to_owned(),
            ..NewEvent::default()
        };
        self.store.add_event(&event).await.expect("a row")
    }

    /// `count` pending deliveries of new events, sorted by id.
    pub(crate) async fn deliveries(&self, endpoint_id: Uuid, count: usize) -> Vec<Uuid> {
        self.insert(endpoint_id, count, None).await
    }

    /// `count` deliveries that were born held, sorted by id.
    pub(crate) async fn held(&self, endpoint_id: Uuid, count: usize) -> Vec<Uuid> {
        self.insert(endpoint_id, count, Some(HoldReason::Paused))
            .await
    }

    pub(crate) async fn delivery(&self) -> Uuid {
        let endpoint_id = self.endpoint().await;
        self.deliveries(endpoint_id, 1).await[0]
    }

    async fn insert(&self, endpoint_id: Uuid, count: usize, held: Option<HoldReason>) -> Vec<Uuid> {
        let mut rows = Vec::with_capacity(count);
        for _ in 0..count {
            let event_id = self.event().await;
            let created_at: DateTime<Utc> = self.created_at(event_id).await;
            rows.push(NewDelivery {
                id: delivery_id(event_id, endpoint_id, created_at),
                event_id,
                endpoint_id,
                held,
                max_attempts: 5,
                traceparent: None,
                created_at,
            });
        }
        self.store.insert_deliveries(&rows).await.expect("rows");
        let mut ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        ids.sort_unstable();
        ids
    }

    async fn created_at(&self, event_id: Uuid) -> DateTime<Utc> {
        let event = self.store.event(event_id).await.expect("an answer");
        event.expect("an event").created_at
    }

    pub(crate) async fn status(&self, id: Uuid) -> String {
        let delivery = self.store.delivery(id).await.expect("an answer");
        delivery.expect("a delivery").status
    }

    /// Claims for a new token, which is returned.
    pub(crate) async fn claim(&self, ids: &[Uuid]) -> Uuid {
        let token = Uuid::new_v4();
        let claim = self.store.claim(ids, &terms(token)).await.expect("a claim");
        assert_eq!(claim.len(), ids.len(), "all of them are due and free");
        token
    }

    /// Makes every lease run out.
    pub(crate) async fn expire_leases(&self) {
        self.execute(
            "UPDATE kurier.deliveries SET lease_until = now() - interval '1 millisecond'
            WHERE lease_until IS NOT NULL",
        )
        .await;
    }
}

/// Terms of ten seconds and two more.
pub(crate) fn terms(token: Uuid) -> LeaseTerms {
    LeaseTerms {
        token,
        attempt_timeout: Duration::from_secs(10),
        margin: Duration::from_secs(2),
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test runner speaks through the environment"
)]
fn server_url() -> String {
    std::env::var("DATABASE_URL")
        .unwrap_or_else(|_| panic!("DATABASE_URL is not set: run these tests by `./run test`"))
}

fn open(url: &str) -> Store {
    Store::new(&StoreConfig {
        database_url: url.to_owned(),
        application_name: "store-test",
        connections_max: 8,
    })
    .expect("a URL")
}

async fn on_server(server_url: &str, statement: String) {
    let mut connection = PgConnection::connect(server_url)
        .await
        .expect("the server that DATABASE_URL names");
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .expect("a database of one's own");
}

/// On a thread of its own, because the test's runtime is at its end here.
impl Drop for Rig {
    fn drop(&mut self) {
        let statement = format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name);
        let server_url = self.server_url.clone();
        let dropping = thread::spawn(move || {
            runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime")
                .block_on(on_server(&server_url, statement));
        });
        // Nothing that goes wrong while cleaning up may hide what the test found.
        let _ = dropping.join();
    }
}
