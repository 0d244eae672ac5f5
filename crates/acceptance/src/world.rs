//! One test's world: database, broker namespace, receiver, and the waits and looks a test needs.

use std::{
    collections::BTreeMap,
    env, fs,
    path::PathBuf,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::{Duration, Instant},
};

use broker::topology::Topology;
use scripted_receiver::Receiver;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Decode, FromRow, PgPool, Postgres, Type, postgres::PgRow};
use tokio::{runtime, time::sleep};
use uuid::Uuid;

use crate::{
    AttemptRow, BrokerOperator, DISPATCHER, DeliveryRow, Endpoint, Event, KURIER, Launch,
    PrivateService, Program, RELAY,
    database::Database,
    environment::{delay_unit, required, settings},
    record,
};

/// What is awaited for longer than this is taken to be missing.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// How often a condition in the database is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// See the crate's documentation.
pub struct World {
    /// Where deliveries go.
    pub receiver: Receiver,
    /// The operator's view of the broker.
    pub broker: BrokerOperator,
    database: Database,
    settings: BTreeMap<String, String>,
    amqp_url: String,
    topology: Topology,
    folder: PathBuf,
    launches: AtomicU32,
}

impl World {
    /// A world with settings that make everything quick.
    ///
    /// # Panics
    /// When `DATABASE_URL` or `AMQP_URL` is missing, or the services do not work.
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    /// The same with these variables for every program.
    pub async fn with(changes: &[(&str, &str)]) -> Self {
        Self::on(required("DATABASE_URL"), required("AMQP_URL"), changes).await
    }

    /// The same on services of the test's own.
    pub async fn on_services(
        postgres: Option<&PrivateService>,
        rabbitmq: Option<&PrivateService>,
        changes: &[(&str, &str)],
    ) -> Self {
        let url = |service: Option<&PrivateService>, variable| {
            service.map_or_else(|| required(variable), |service| service.url().to_owned())
        };
        let (database_url, amqp_url) = (url(postgres, "DATABASE_URL"), url(rabbitmq, "AMQP_URL"));
        Self::on(database_url, amqp_url, changes).await
    }

    async fn on(database_url: String, amqp_url: String, changes: &[(&str, &str)]) -> Self {
        let database = Database::create(database_url)
            .await
            .expect("a database of one's own");
        let namespace = format!("test-{}", Uuid::new_v4().simple());
        let folder = env::temp_dir().join(&namespace);
        fs::create_dir(&folder).expect("a folder for logs");
        let mut settings = settings(changes);
        let topology = Topology::new(&namespace, delay_unit(&settings));
        let own = [
            ("DATABASE_URL", database.url.to_string()),
            ("AMQP_URL", amqp_url.clone()),
            ("KURIER_BROKER_NAMESPACE", namespace),
        ];
        settings.extend(own.map(|(name, value)| (name.to_owned(), value)));
        let world = Self {
            receiver: Receiver::start().await.expect("a receiver"),
            broker: BrokerOperator::new(amqp_url.clone(), topology.clone()),
            database,
            settings,
            amqp_url,
            topology,
            folder,
            launches: AtomicU32::new(0),
        };
        world.kurier(&["migrate"]).await;
        world
    }

    /// The test's own connections to the database, for an application's transactions.
    pub fn pool(&self) -> &PgPool {
        &self.database.pool
    }

    /// The database as the programs reach it.
    pub fn database_url(&self) -> &str {
        self.database.url.as_str()
    }

    /// The broker as the programs reach it.
    pub fn amqp_url(&self) -> &str {
        &self.amqp_url
    }

    /// A program about to be started, [`RELAY`], [`DISPATCHER`] or [`KURIER`].
    pub fn launch(&self, program: &'static str) -> Launch {
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let log = self.folder.join(format!("{number}-{program}.log"));
        Launch::new(program, self.settings.clone(), log)
    }

    /// A relay that is ready.
    pub async fn relay(&self) -> Program {
        self.launch(RELAY).start().await
    }

    /// A dispatcher that is ready.
    pub async fn dispatcher(&self) -> Program {
        self.launch(DISPATCHER).start().await
    }

    /// Runs `kurier ... --json` and returns what it prints.
    ///
    /// # Panics
    /// When it fails.
    pub async fn kurier(&self, arguments: &[&str]) -> Value {
        let ended = self
            .launch(KURIER)
            .args(arguments)
            .args(&["--json"])
            .run()
            .await;
        assert_eq!(
            ended.code,
            Some(0),
            "kurier {arguments:?}: {}",
            ended.stderr
        );
        serde_json::from_str(&ended.stdout).expect("one JSON document")
    }

    /// Registers an endpoint at this path of the receiver.
    pub async fn endpoint(&self, path: &str) -> Endpoint {
        self.endpoint_with(path, &[]).await
    }

    /// The same with further arguments for `kurier endpoint add`.
    pub async fn endpoint_with(&self, path: &str, arguments: &[&str]) -> Endpoint {
        self.endpoint_at(&self.receiver.url(path), path, arguments)
            .await
    }

    /// Registers an endpoint whose URL is not just the receiver's.
    pub async fn endpoint_at(&self, url: &str, path: &str, arguments: &[&str]) -> Endpoint {
        let add = [&["endpoint", "add", "--url", url], arguments].concat();
        Endpoint::from_answer(&self.kurier(&add).await, path)
    }

    /// Writes one event in a transaction of its own and returns its id.
    pub async fn commit(&self, event: &Event) -> Uuid {
        let mut transaction = self.pool().begin().await.expect("a transaction");
        let id = event.write(&mut *transaction).await;
        transaction.commit().await.expect("a commit");
        id
    }

    /// Writes `count` small events of this type in one transaction and returns their ids.
    pub async fn commit_many(&self, event_type: &str, count: u32) -> Vec<Uuid> {
        sqlx::query_scalar(
            "INSERT INTO kurier.outbox_events (event_type, payload)
            SELECT $1, json_build_object('n', n) FROM generate_series(1, $2::bigint) AS n
            RETURNING id",
        )
        .bind(event_type)
        .bind(i64::from(count))
        .fetch_all(self.pool())
        .await
        .expect("the outbox takes the events")
    }

    /// One value from the database.
    ///
    /// # Panics
    /// When the query fails or has no row.
    pub async fn value<T>(&self, query: &str) -> T
    where
        T: for<'r> Decode<'r, Postgres> + Type<Postgres> + Send + Unpin,
        (T,): for<'r> FromRow<'r, PgRow>,
    {
        sqlx::query_scalar(AssertSqlSafe(query.to_owned()))
            .fetch_one(self.pool())
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// Every row of a query.
    ///
    /// # Panics
    /// When the query fails.
    pub async fn rows<T>(&self, query: &str) -> Vec<T>
    where
        T: for<'r> FromRow<'r, PgRow> + Send + Unpin,
    {
        sqlx::query_as(AssertSqlSafe(query.to_owned()))
            .fetch_all(self.pool())
            .await
            .unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    /// The deliveries to an endpoint in the order of their ids.
    pub async fn deliveries_to(&self, endpoint: &Endpoint) -> Vec<DeliveryRow> {
        record::deliveries(self.pool(), endpoint.id).await
    }

    /// The attempts at an endpoint in the order of their deliveries and numbers.
    pub async fn attempts_at(&self, endpoint: &Endpoint) -> Vec<AttemptRow> {
        record::attempts(self.pool(), endpoint.id).await
    }

    /// Changes something behind the programs' backs.
    ///
    /// # Panics
    /// When the statement fails.
    pub async fn execute(&self, statement: &str) -> u64 {
        sqlx::query(AssertSqlSafe(statement.to_owned()))
            .execute(self.pool())
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"))
            .rows_affected()
    }

    /// Waits until this query's one boolean is true.
    ///
    /// # Panics
    /// When it is not in time; the message shows how the deliveries stand.
    pub async fn until(&self, what: &str, query: &str) {
        let started = Instant::now();
        while !self.value::<bool>(query).await {
            assert!(
                started.elapsed() < PATIENCE,
                "waited {PATIENCE:?} for {what}; there is {}",
                self.standing().await
            );
            sleep(LOOK).await;
        }
    }

    /// Waits until `count` deliveries have this status.
    pub async fn until_status(&self, status: &str, count: usize) {
        let query =
            format!("SELECT count(*) = {count} FROM kurier.deliveries WHERE status = '{status}'");
        self.until(&format!("{count} {status}"), &query).await;
    }

    /// How many deliveries there are of each status, as text.
    pub async fn standing(&self) -> String {
        self.value(
            "SELECT format(
                '%s deliveries, %s of %s events not processed',
                coalesce((
                    SELECT json_object_agg(status, n) FROM (
                        SELECT concat_ws(' ', status, reason) AS status, count(*) AS n
                        FROM kurier.deliveries GROUP BY 1 ORDER BY 1
                    ) AS counted
                )::text, 'no'),
                count(*) FILTER (WHERE processed_at IS NULL AND parked_at IS NULL),
                count(*)
            ) FROM kurier.outbox_events",
        )
        .await
    }

    /// Asserts that all work is done: every event processed or parked, every delivery delivered or a
    /// dead letter, no lease, and no message in the work queue or the quarantine.
    ///
    /// Waits for it, since the last acknowledgements follow the last record.
    pub async fn assert_no_leftovers(&self) {
        self.until(
            "all work to be done",
            "SELECT NOT EXISTS (
                SELECT FROM kurier.deliveries WHERE status NOT IN ('delivered', 'dead_letter')
            ) AND NOT EXISTS (
                SELECT FROM kurier.outbox_events WHERE processed_at IS NULL AND parked_at IS NULL
            )",
        )
        .await;
        self.broker.wait_work_empty().await;
        assert_eq!(
            self.broker.quarantine_ready().await,
            0,
            "messages in the quarantine"
        );
    }
}

/// On a thread of its own, because the test's runtime is at its end here.
impl Drop for World {
    fn drop(&mut self) {
        let (server_url, name) = self.database.server_and_name();
        let (amqp_url, topology) = (self.amqp_url.clone(), self.topology.clone());
        let cleaning = thread::spawn(move || {
            let runtime = runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(async {
                let database = Database::drop_it(&server_url, &name).await;
                let broker = BrokerOperator::clean_up(&amqp_url, &topology).await;
                for fault in [database, broker].into_iter().filter_map(Result::err) {
                    eprintln!("not cleaned up: {fault:#}");
                }
            });
        });
        // Nothing that goes wrong while cleaning up may hide what the test found.
        let _ = cleaning.join();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
