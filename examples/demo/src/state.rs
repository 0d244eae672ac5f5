//! How the endpoints and their deliveries stand, read from Kurier's tables. Changes nothing.

use sqlx::PgPool;

/// One moment.
pub(crate) struct State {
    /// Committed events that the relay has not finished with.
    pub(crate) events_waiting: i64,
    /// In the order of registration.
    pub(crate) endpoints: Vec<EndpointState>,
}

/// One endpoint and its deliveries, counted by where they stand.
#[derive(Clone, PartialEq, sqlx::FromRow)]
pub(crate) struct EndpointState {
    pub(crate) name: String,
    pub(crate) breaker: String,
    pub(crate) cooldown_seconds: f64,
    pub(crate) disabled: bool,
    /// Pending or in flight.
    pub(crate) moving: i64,
    pub(crate) awaiting_retry: i64,
    pub(crate) held: i64,
    pub(crate) delivered: i64,
    pub(crate) dead_letters: i64,
    /// Attempts beyond the first.
    pub(crate) retries: i64,
    pub(crate) last_error: Option<String>,
}

const ENDPOINTS: &str = "
    SELECT e.description AS name, h.state AS breaker, h.cooldown_seconds, e.disabled_at IS NOT NULL AS disabled,
        count(*) FILTER (WHERE d.status IN ('pending', 'in_flight')) AS moving,
        count(*) FILTER (WHERE d.status = 'failed') AS awaiting_retry,
        count(*) FILTER (WHERE d.status = 'held') AS held,
        count(*) FILTER (WHERE d.status = 'delivered') AS delivered,
        count(*) FILTER (WHERE d.status = 'dead_letter') AS dead_letters,
        coalesce(sum(greatest(d.attempt_count - 1, 0)), 0) AS retries,
        (array_agg(d.last_error ORDER BY d.id DESC) FILTER (WHERE d.last_error IS NOT NULL))[1] AS last_error
    FROM kurier.endpoints AS e
    INNER JOIN kurier.endpoint_health AS h ON h.endpoint_id = e.id
    LEFT JOIN kurier.deliveries AS d ON d.endpoint_id = e.id
    GROUP BY e.id, h.endpoint_id
    ORDER BY e.created_at, e.id";

const EVENTS_WAITING: &str = "SELECT count(*) FROM kurier.outbox_events WHERE processed_at IS NULL";

/// Reads it. The events are counted first: what the relay moves on meanwhile is seen as a delivery.
pub(crate) async fn read(pool: &PgPool) -> Result<State, sqlx::Error> {
    let events_waiting = sqlx::query_scalar(EVENTS_WAITING).fetch_one(pool).await?;
    let endpoints = sqlx::query_as(ENDPOINTS).fetch_all(pool).await?;
    Ok(State {
        events_waiting,
        endpoints,
    })
}

impl State {
    /// Whether nothing is to happen any more, but for what waits at a closed gate.
    pub(crate) fn is_at_rest(&self) -> bool {
        let at_rest = |endpoint: &EndpointState| endpoint.moving + endpoint.awaiting_retry == 0;
        self.events_waiting == 0 && self.endpoints.iter().all(at_rest)
    }
}

impl EndpointState {
    /// The gate's state in a few words.
    pub(crate) fn gate(&self) -> String {
        match self.breaker.as_str() {
            _ if self.disabled => "disabled".to_owned(),
            "closed" => "closed".to_owned(),
            state => format!("{state}, cooldown {:.0} s", self.cooldown_seconds),
        }
    }
}
