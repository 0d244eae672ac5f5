//! The last words: what became of everything, and whether the books are sound.

use std::fmt::Write as _;

use crate::{audit::Audit, shop::Shop, state::State};

/// The summary for people.
pub(crate) fn text(shop: &Shop, state: &State, audit: &Audit) -> String {
    let (committed, rolled_back) = shop.counts();
    let retries: i64 = state
        .endpoints
        .iter()
        .map(|endpoint| endpoint.retries)
        .sum();
    let mut text = format!(
        "orders committed       {committed:4}   each with its event, in one transaction
orders rolled back     {rolled_back:4}   their events reached nobody
deliveries expected    {:4}   one for each event and endpoint subscribed to it
  delivered            {:4}   accepted by the receiver, byte for byte as written
  held                 {:4}   waiting for an endpoint that is down or disabled
  dead letters         {:4}   kept, with their reasons
retries                {retries:4}
{} lost\n",
        audit.expected, audit.delivered, audit.waiting, audit.dead_letters, audit.lost
    );
    for fault in &audit.faults {
        let _ = writeln!(text, "WRONG: {fault}");
    }
    text
}
