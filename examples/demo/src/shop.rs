//! The application: a shop that writes each order and its event in one transaction of its own, with
//! plain SQL. It knows nothing of endpoints.

use sqlx::PgPool;
use uuid::Uuid;

const ORDERS: i32 = 20;

/// This one's card is declined after everything was written: its transaction is rolled back.
const DECLINED: i32 = 7;

/// Every so many orders are refunds.
const REFUND_EVERY: i32 = 5;

/// The shop and what it remembers.
pub(crate) struct Shop {
    pool: PgPool,
    /// What was written, in order.
    pub(crate) orders: Vec<Order>,
}

/// One order as the shop wrote it.
#[derive(Clone)]
pub(crate) struct Order {
    pub(crate) number: i32,
    pub(crate) event_id: Uuid,
    pub(crate) event_type: &'static str,
    pub(crate) payload: String,
    /// Whether its transaction was committed; rolled back otherwise.
    pub(crate) committed: bool,
}

impl Shop {
    /// With an empty table of orders.
    pub(crate) async fn open(pool: PgPool) -> anyhow::Result<Shop> {
        sqlx::query("CREATE TABLE orders (number integer PRIMARY KEY, cents integer NOT NULL)")
            .execute(&pool)
            .await?;
        let orders = Vec::new();
        Ok(Shop { pool, orders })
    }

    /// Whether all orders are written.
    pub(crate) fn is_closed(&self) -> bool {
        self.orders
            .last()
            .is_some_and(|order| order.number == ORDERS)
    }

    /// Writes the next order, if there is one.
    pub(crate) async fn write_next_order(&mut self) -> anyhow::Result<()> {
        if self.is_closed() {
            return Ok(());
        }
        let number = 1 + self.orders.last().map_or(0, |order| order.number);
        let cents = 1250 + 735 * number;
        let event_type = if number % REFUND_EVERY == 0 {
            "order.refunded"
        } else {
            "order.placed"
        };
        // Kurier sends these very bytes: order of keys, spaces and the number's zero included.
        let payload = format!("{{ \"order\": {number}, \"cents\": {cents}.0 }}");
        let mut transaction = self.pool.begin().await?;
        sqlx::query("INSERT INTO orders (number, cents) VALUES ($1, $2)")
            .bind(number)
            .bind(cents)
            .execute(&mut *transaction)
            .await?;
        let event_id = sqlx::query_scalar(
            "INSERT INTO kurier.outbox_events (event_type, payload) VALUES ($1, $2::text::json) RETURNING id",
        )
        .bind(event_type)
        .bind(&payload)
        .fetch_one(&mut *transaction)
        .await?;
        let committed = number != DECLINED;
        if committed {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        self.orders.push(Order {
            number,
            event_id,
            event_type,
            payload,
            committed,
        });
        Ok(())
    }

    /// How many orders were committed, and how many rolled back.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let committed = self.orders.iter().filter(|order| order.committed).count();
        (committed, self.orders.len() - committed)
    }
}
