//! Waits until every delivery is finished, or nothing moves any more.

use std::time::{Duration, Instant};

use tokio::time::interval;

use super::database::FreshDatabase;
use super::programs::Program;
use crate::receiver::{ReceiverProcess, Totals};

const POLL: Duration = Duration::from_millis(100);

/// The database is asked only when the receiver has been quiet for so long, or has had everything: counting costs.
const QUIET: Duration = Duration::from_secs(1);

/// The last movement seen.
struct Movement {
    totals: Totals,
    finished: u64,
    seen: Instant,
}

/// Returns what the receiver has got when `expected` deliveries are finished or `patience` is at its end.
pub(crate) async fn await_finished(
    database: &FreshDatabase,
    receiver: &mut ReceiverProcess,
    programs: &mut [Program],
    expected: u64,
    patience: Duration,
) -> anyhow::Result<Totals> {
    let mut last = Movement {
        totals: Totals::default(),
        finished: 0,
        seen: Instant::now(),
    };
    let mut polls = interval(POLL);
    while last.finished < expected && last.seen.elapsed() < patience {
        polls.tick().await;
        programs.iter_mut().try_for_each(Program::ensure_running)?;
        let totals = receiver.totals().await?;
        last.note_totals(totals);
        if totals.ids_accepted >= expected || last.seen.elapsed() > QUIET {
            last.note_finished(database.finished().await?);
        }
    }
    receiver.totals().await
}

impl Movement {
    fn note_totals(&mut self, totals: Totals) {
        if totals != self.totals {
            (self.totals, self.seen) = (totals, Instant::now());
        }
    }

    fn note_finished(&mut self, finished: u64) {
        if finished != self.finished {
            (self.finished, self.seen) = (finished, Instant::now());
        }
    }
}
