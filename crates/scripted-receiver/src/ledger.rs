//! What has arrived, path by path and id by id, and the signal that tells of every change.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::{Reply, Request, Script};

/// The counts of one path or of one webhook-id on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests that arrived whole.
    pub arrived: u64,
    /// Of these, the ones told 2xx in an intact answer.
    pub accepted: u64,
    /// Different webhook-ids among the arrived.
    pub ids: u64,
    /// Different webhook-ids among the accepted.
    pub ids_accepted: u64,
    /// Requests being received or answered right now.
    pub in_flight: u64,
    /// The most there have been in flight at one time.
    pub in_flight_max: u64,
}

impl Tally {
    /// Answers of 2xx beyond the first for an id: what a receiver that ignores repeats would have ignored.
    pub fn duplicates(&self) -> u64 {
        self.accepted - self.ids_accepted
    }

    fn enter(&mut self) {
        self.in_flight += 1;
        self.in_flight_max = self.in_flight_max.max(self.in_flight);
    }
}

#[derive(Default)]
struct PathRecord {
    script: Option<Script>,
    tally: Tally,
    by_id: HashMap<Box<str>, Tally>,
    requests: Vec<Request>,
}

/// The shared record of one receiver.
pub(crate) struct Ledger {
    keeps_requests: bool,
    paths: Mutex<HashMap<String, PathRecord>>,
    changes: watch::Sender<()>,
}

impl Ledger {
    pub(crate) fn new(keeps_requests: bool) -> Arc<Self> {
        let paths = Mutex::default();
        Arc::new(Self {
            keeps_requests,
            paths,
            changes: watch::Sender::new(()),
        })
    }

    /// Whether bodies and headers are kept, or only counts.
    pub(crate) fn keeps_requests(&self) -> bool {
        self.keeps_requests
    }

    pub(crate) fn set_script(&self, path: &str, script: Script) {
        self.with(path, |record| record.script = Some(script));
    }

    /// Counts a request as in flight from now until the guard is dropped.
    pub(crate) fn enter(self: &Arc<Self>, path: &str, id: &str) -> InFlight {
        self.with(path, |record| {
            record.tally.enter();
            record.tally_of(id).enter();
        });
        InFlight {
            ledger: Arc::clone(self),
            path: path.to_owned(),
            id: id.into(),
        }
    }

    /// Notes an arrival and draws its reply, in one step: the n-th request on record got the n-th reply.
    pub(crate) fn arrive(&self, in_flight: &InFlight, request: Request) -> Reply {
        let reply = self.with(&in_flight.path, |record| {
            record.note_arrival(&in_flight.id);
            if self.keeps_requests {
                record.requests.push(request);
            }
            record.script.as_mut().map_or_else(Reply::ok, Script::draw)
        });
        self.changes.send_replace(());
        reply
    }

    pub(crate) fn accept(&self, in_flight: &InFlight) {
        self.with(&in_flight.path, |record| {
            record.note_acceptance(&in_flight.id);
        });
    }

    pub(crate) fn tally(&self, path: &str) -> Tally {
        self.lock()
            .get(path)
            .map_or_else(Tally::default, |record| record.tally)
    }

    pub(crate) fn tally_of(&self, path: &str, id: &str) -> Tally {
        let paths = self.lock();
        paths
            .get(path)
            .and_then(|record| record.by_id.get(id))
            .copied()
            .unwrap_or_default()
    }

    pub(crate) fn tallies(&self) -> Vec<(String, Tally)> {
        self.lock()
            .iter()
            .map(|(path, record)| (path.clone(), record.tally))
            .collect()
    }

    pub(crate) fn requests(&self, path: &str) -> Vec<Request> {
        self.lock()
            .get(path)
            .map_or_else(Vec::new, |record| record.requests.clone())
    }

    /// Marks every change from now on.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.changes.subscribe()
    }

    fn leave(&self, path: &str, id: &str) {
        self.with(path, |record| {
            record.tally.in_flight -= 1;
            record.tally_of(id).in_flight -= 1;
        });
        self.changes.send_replace(());
    }

    fn with<T>(&self, path: &str, change: impl FnOnce(&mut PathRecord) -> T) -> T {
        let mut paths = self.lock();
        if let Some(record) = paths.get_mut(path) {
            return change(record);
        }
        change(paths.entry(path.to_owned()).or_default())
    }

    /// A test that panicked under the lock has left whole numbers behind, so the record stays readable.
    fn lock(&self) -> MutexGuard<'_, HashMap<String, PathRecord>> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PathRecord {
    fn tally_of(&mut self, id: &str) -> &mut Tally {
        if !self.by_id.contains_key(id) {
            self.by_id.insert(id.into(), Tally::default());
        }
        self.by_id.get_mut(id).expect("inserted above")
    }

    fn note_arrival(&mut self, id: &str) {
        let of_id = self.tally_of(id);
        of_id.arrived += 1;
        of_id.ids = 1;
        let is_new = of_id.arrived == 1;
        self.tally.arrived += 1;
        self.tally.ids += u64::from(is_new);
    }

    fn note_acceptance(&mut self, id: &str) {
        let of_id = self.tally_of(id);
        of_id.accepted += 1;
        of_id.ids_accepted = 1;
        let is_new = of_id.accepted == 1;
        self.tally.accepted += 1;
        self.tally.ids_accepted += u64::from(is_new);
    }
}

/// One request in flight; it is over when this is dropped.
pub(crate) struct InFlight {
    ledger: Arc<Ledger>,
    path: String,
    id: Box<str>,
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.ledger.leave(&self.path, &self.id);
    }
}
