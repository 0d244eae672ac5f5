//! Shows the deliveries as they move: a table drawn again and again on a terminal, a line for each
//! change elsewhere.

use std::{
    io::{IsTerminal as _, Write as _, stdout},
    time::Duration,
};

use comfy_table::{ContentArrangement, Table, presets};

use crate::{
    shop::Shop,
    state::{EndpointState, State},
};

/// Where the story is shown, and what is there already.
pub(crate) struct Screen {
    is_terminal: bool,
    lines_drawn: usize,
    last: Vec<EndpointState>,
}

impl Screen {
    pub(crate) fn new() -> Screen {
        Screen {
            is_terminal: stdout().is_terminal(),
            lines_drawn: 0,
            last: Vec::new(),
        }
    }

    /// Shows the state, if it is a new one.
    pub(crate) fn show(
        &mut self,
        state: &State,
        shop: &Shop,
        elapsed: Duration,
    ) -> std::io::Result<()> {
        if self.is_terminal {
            self.draw(&picture(state, shop, elapsed))
        } else {
            self.tell_changes(state, elapsed)
        }
    }

    /// Draws over what was drawn before.
    fn draw(&mut self, picture: &str) -> std::io::Result<()> {
        let mut out = stdout().lock();
        if self.lines_drawn > 0 {
            // To the start of the picture's first line, then clear all below.
            write!(out, "\x1b[{}F\x1b[J", self.lines_drawn)?;
        }
        writeln!(out, "{picture}")?;
        self.lines_drawn = picture.lines().count();
        out.flush()
    }

    fn tell_changes(&mut self, state: &State, elapsed: Duration) -> std::io::Result<()> {
        let mut out = stdout().lock();
        for endpoint in &state.endpoints {
            let before = self.last.iter().find(|before| before.name == endpoint.name);
            if before.map(line) != Some(line(endpoint)) {
                writeln!(out, "{:5.1} s  {}", elapsed.as_secs_f64(), line(endpoint))?;
            }
        }
        self.last.clone_from(&state.endpoints);
        out.flush()
    }
}

fn picture(state: &State, shop: &Shop, elapsed: Duration) -> String {
    let (committed, rolled_back) = shop.counts();
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_header([
            "endpoint",
            "breaker",
            "moving",
            "to retry",
            "held",
            "delivered",
            "dead letters",
            "retries",
            "last error",
        ]);
    for endpoint in &state.endpoints {
        table.add_row(cells(endpoint));
    }
    format!(
        "{:.1} s: orders committed {committed}, rolled back {rolled_back}; events waiting for the relay {}\n{table}",
        elapsed.as_secs_f64(),
        state.events_waiting
    )
}

fn cells(endpoint: &EndpointState) -> [String; 9] {
    [
        endpoint.name.clone(),
        endpoint.gate(),
        endpoint.moving.to_string(),
        endpoint.awaiting_retry.to_string(),
        endpoint.held.to_string(),
        endpoint.delivered.to_string(),
        endpoint.dead_letters.to_string(),
        endpoint.retries.to_string(),
        endpoint.last_error.clone().unwrap_or_default(),
    ]
}

/// What is worth telling; what is merely on its way is left out.
fn line(endpoint: &EndpointState) -> String {
    format!(
        "{:8} breaker {:21} delivered {:2}  to retry {:2}  held {:2}  dead letters {:2}  {}",
        endpoint.name,
        endpoint.gate(),
        endpoint.delivered,
        endpoint.awaiting_retry,
        endpoint.held,
        endpoint.dead_letters,
        endpoint.last_error.as_deref().unwrap_or_default()
    )
}
