//! The books: what the shop wrote, against what Kurier recorded, against what the receiver saw.
//!
//! Nothing here trusts Kurier's own counts. An order is accounted for at an endpoint when the receiver
//! accepted its very bytes, or when a row says where it waits or why it was given up.

use std::collections::HashMap;

use anyhow::Context as _;
use bytes::Bytes;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{
    Stage,
    endpoints::PARTS,
    shop::{Order, Shop},
};

/// What is compared.
pub(crate) struct Facts {
    orders: Vec<Order>,
    order_numbers_stored: Vec<i32>,
    rows: Vec<DeliveryRow>,
    arrivals: Vec<Arrival>,
}

#[derive(sqlx::FromRow)]
struct DeliveryRow {
    event_id: Uuid,
    endpoint: String,
    status: String,
}

/// One request at the receiver.
struct Arrival {
    endpoint: &'static str,
    event_id: String,
    body: Bytes,
    accepted: bool,
}

/// The result: one count for each way things can be, one line for each thing that is wrong.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Audit {
    pub(crate) expected: usize,
    pub(crate) delivered: usize,
    pub(crate) waiting: usize,
    pub(crate) dead_letters: usize,
    pub(crate) lost: usize,
    pub(crate) faults: Vec<String>,
}

impl Audit {
    pub(crate) fn nothing_is_wrong(&self) -> bool {
        self.lost == 0 && self.faults.is_empty()
    }
}

/// Collects the facts.
pub(crate) async fn facts(stage: &Stage, pool: &PgPool, shop: &Shop) -> anyhow::Result<Facts> {
    let rows = sqlx::query_as(
        "SELECT d.event_id, e.description AS endpoint, d.status
        FROM kurier.deliveries AS d INNER JOIN kurier.endpoints AS e ON e.id = d.endpoint_id",
    );
    Ok(Facts {
        orders: shop.orders.clone(),
        order_numbers_stored: sqlx::query_scalar("SELECT number FROM orders ORDER BY number")
            .fetch_all(pool)
            .await?,
        rows: rows.fetch_all(pool).await?,
        arrivals: arrivals(stage)?,
    })
}

fn arrivals(stage: &Stage) -> anyhow::Result<Vec<Arrival>> {
    let receiver = stage.started_receiver().context("there is no receiver")?;
    let at = |part: &'static crate::endpoints::Part| {
        let requests = receiver.requests(&part.path()).into_iter();
        requests.map(move |request| {
            let event_id = request.webhook_id().to_owned();
            let tally = receiver.tally_of(&part.path(), &event_id);
            Arrival {
                endpoint: part.name,
                event_id,
                body: request.body,
                accepted: tally.accepted > 0,
            }
        })
    };
    Ok(PARTS.iter().flat_map(at).collect())
}

/// Compares them.
pub(crate) fn audit(facts: &Facts) -> Audit {
    let mut audit = Audit::default();
    let committed: HashMap<Uuid, &Order> = facts
        .orders
        .iter()
        .filter(|order| order.committed)
        .map(|order| (order.event_id, order))
        .collect();
    for order in committed.values() {
        for part in PARTS.iter().filter(|part| part.wants(order.event_type)) {
            account_for(order, part.name, facts, &mut audit);
        }
    }
    refuse_strangers(&committed, facts, &mut audit);
    refuse_altered(&committed, facts, &mut audit);
    let numbers: Vec<i32> = facts
        .orders
        .iter()
        .filter(|order| order.committed)
        .map(|order| order.number)
        .collect();
    if numbers != facts.order_numbers_stored {
        audit
            .faults
            .push("the stored orders are not the committed ones".to_owned());
    }
    audit
}

/// One order at one endpoint.
fn account_for(order: &Order, endpoint: &str, facts: &Facts, audit: &mut Audit) {
    let row = facts
        .rows
        .iter()
        .find(|row| row.event_id == order.event_id && row.endpoint == endpoint);
    let accepted = || {
        let id = order.event_id.to_string();
        facts.arrivals.iter().any(|arrival| {
            arrival.accepted && arrival.endpoint == endpoint && arrival.event_id == id
        })
    };
    audit.expected += 1;
    match row.map(|row| row.status.as_str()) {
        Some("delivered") if accepted() => audit.delivered += 1,
        Some("dead_letter") => audit.dead_letters += 1,
        Some("pending" | "in_flight" | "failed" | "held") => audit.waiting += 1,
        _ => {
            audit.lost += 1;
            audit
                .faults
                .push(format!("order {} is lost at {endpoint}", order.number));
        }
    }
}

/// Nothing was recorded or sent that was not committed.
fn refuse_strangers(committed: &HashMap<Uuid, &Order>, facts: &Facts, audit: &mut Audit) {
    let recorded = facts
        .rows
        .iter()
        .filter(|row| !committed.contains_key(&row.event_id))
        .map(|row| format!("{} was recorded for {}", row.event_id, row.endpoint));
    let sent = facts
        .arrivals
        .iter()
        .filter(|arrival| order_of(arrival, committed).is_none())
        .map(|arrival| format!("{} was sent to {}", arrival.event_id, arrival.endpoint));
    audit.faults.extend(
        recorded
            .chain(sent)
            .map(|fault| format!("event {fault} though it was never committed")),
    );
}

/// The bytes that arrived are the bytes the shop wrote, on every attempt.
fn refuse_altered(committed: &HashMap<Uuid, &Order>, facts: &Facts, audit: &mut Audit) {
    let altered = facts.arrivals.iter().filter_map(|arrival| {
        let order = order_of(arrival, committed)?;
        (arrival.body != order.payload.as_bytes()).then(|| {
            format!(
                "order {} arrived altered at {}",
                order.number, arrival.endpoint
            )
        })
    });
    audit.faults.extend(altered);
}

fn order_of<'a>(arrival: &Arrival, committed: &HashMap<Uuid, &'a Order>) -> Option<&'a Order> {
    committed.get(&arrival.event_id.parse().ok()?).copied()
}

#[cfg(test)]
mod tests;
