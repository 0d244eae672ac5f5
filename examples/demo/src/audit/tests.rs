//! The audit finds what it is there to find.

use super::*;

fn order(number: i32, committed: bool) -> Order {
    Order {
        number,
        event_id: Uuid::from_u128(number.unsigned_abs().into()),
        event_type: "order.refunded",
        payload: format!("{{\"order\":{number}}}"),
        committed,
    }
}

fn row(number: i32, endpoint: &str, status: &str) -> DeliveryRow {
    DeliveryRow {
        event_id: order(number, true).event_id,
        endpoint: endpoint.to_owned(),
        status: status.to_owned(),
    }
}

fn arrival(number: i32, endpoint: &'static str, accepted: bool) -> Arrival {
    let order = order(number, true);
    Arrival {
        endpoint,
        event_id: order.event_id.to_string(),
        body: order.payload.into(),
        accepted,
    }
}

/// One order delivered to one endpoint and dead at another, and one that was rolled back.
fn sound() -> Facts {
    Facts {
        orders: vec![order(1, true), order(2, false)],
        order_numbers_stored: vec![1],
        rows: vec![
            row(1, "healthy", "delivered"),
            row(1, "misled", "dead_letter"),
        ],
        arrivals: vec![arrival(1, "healthy", true), arrival(1, "misled", false)],
    }
}

#[test]
fn sound_books_are_found_sound() {
    let audit = audit(&sound());
    assert!(audit.nothing_is_wrong(), "{audit:?}");
    assert_eq!(
        (
            audit.expected,
            audit.delivered,
            audit.dead_letters,
            audit.waiting
        ),
        (2, 1, 1, 0)
    );
}

#[test]
fn what_waits_is_not_lost() {
    let mut facts = sound();
    facts.rows[1].status = "held".to_owned();
    assert_eq!(audit(&facts).waiting, 1);
}

#[test]
fn a_missing_row_is_a_loss() {
    let mut facts = sound();
    facts.rows.pop();
    assert_eq!(audit(&facts).lost, 1);
}

#[test]
fn a_delivery_that_the_receiver_never_accepted_is_a_loss_whatever_its_row_says() {
    let mut facts = sound();
    facts.arrivals[0].accepted = false;
    assert_eq!(audit(&facts).lost, 1);
}

#[test]
fn a_rolled_back_order_must_reach_nobody() {
    let mut facts = sound();
    facts.arrivals.push(arrival(2, "healthy", true));
    facts.rows.push(row(2, "healthy", "delivered"));
    assert_eq!(audit(&facts).faults.len(), 2);
}

#[test]
fn a_byte_that_changed_on_the_way_is_found() {
    let mut facts = sound();
    facts.arrivals[1].body = Bytes::from_static(b"{\"order\": 1}");
    assert_eq!(audit(&facts).faults, ["order 1 arrived altered at misled"]);
}

#[test]
fn an_order_that_is_missing_from_the_shops_own_table_is_found() {
    let mut facts = sound();
    facts.order_numbers_stored.clear();
    assert!(!audit(&facts).nothing_is_wrong());
}
