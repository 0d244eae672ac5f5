//! CPU time of process trees, read from `/proc`. Knows no service.

use std::collections::HashMap;
use std::fs;

use serde::Serialize;

use crate::measurement::as_f64;

/// User and system time of one process, in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Usage {
    parent: u32,
    /// Its own, with that of its children that have ended.
    ticks: u64,
}

/// Whose CPU time is read: a name, and the root of its process tree when it runs on this machine.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    pub(crate) name: &'static str,
    pub(crate) roots: Option<Vec<u32>>,
}

/// CPU seconds of one party; `None` when it is not on this machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CpuSeconds {
    pub(crate) party: &'static str,
    pub(crate) seconds: Option<f64>,
}

/// Reads the CPU time that parties use from its start on.
pub(crate) struct CpuMeter {
    parties: Vec<Party>,
    begin: Vec<Option<f64>>,
}

impl CpuMeter {
    pub(crate) fn start(parties: Vec<Party>) -> Self {
        let begin = read(&parties);
        Self { parties, begin }
    }

    /// Adds a party that has only just been started: it counts from its own beginning.
    pub(crate) fn add_new(&mut self, party: Party) {
        self.parties.push(party);
        self.begin.push(Some(0.0));
    }

    /// What each party has used since the start, in the order given.
    pub(crate) fn used(&self) -> Vec<CpuSeconds> {
        let now = read(&self.parties);
        let spans = self.begin.iter().zip(now);
        let used = self
            .parties
            .iter()
            .zip(spans)
            .map(|(party, (begin, end))| CpuSeconds {
                party: party.name,
                seconds: begin.zip(end).map(|(begin, end)| end - begin),
            });
        used.collect()
    }
}

/// Each process counts for the party whose root is its nearest ancestor, so that a party started by another is not
/// counted twice.
fn read(parties: &[Party]) -> Vec<Option<f64>> {
    let usages = usages();
    let all_roots: Vec<u32> = parties
        .iter()
        .flat_map(|p| p.roots.iter().flatten())
        .copied()
        .collect();
    let seconds = |roots: &Vec<u32>| {
        let ticks = tree_ticks(roots, &all_roots, &usages)?;
        Some(as_f64(ticks) / as_f64(rustix::param::clock_ticks_per_second()))
    };
    parties
        .iter()
        .map(|party| party.roots.as_ref().and_then(seconds))
        .collect()
}

/// What these processes have used and all descendants that no other root is nearer to; `None` when a root is gone.
fn tree_ticks(roots: &[u32], all_roots: &[u32], usages: &HashMap<u32, Usage>) -> Option<u64> {
    if roots.iter().any(|root| !usages.contains_key(root)) {
        return None;
    }
    let is_ours = |pid: &u32| nearest(*pid, all_roots, usages).is_some_and(|r| roots.contains(&r));
    Some(
        usages
            .iter()
            .filter(|(pid, _)| is_ours(pid))
            .map(|(_, usage)| usage.ticks)
            .sum(),
    )
}

fn nearest(pid: u32, roots: &[u32], usages: &HashMap<u32, Usage>) -> Option<u32> {
    let mut line = std::iter::successors(Some(pid), |pid| Some(usages.get(pid)?.parent));
    line.find(|pid| roots.contains(pid))
}

fn usages() -> HashMap<u32, Usage> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, usage(pid)?))).collect()
}

fn usage(pid: u32) -> Option<Usage> {
    parse_usage(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// Fields are counted from behind the name, which may hold spaces and brackets of its own.
fn parse_usage(stat: &str) -> Option<Usage> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split(' ').collect();
    let parent = fields.get(1)?.parse().ok()?;
    let ticks = fields
        .get(11..15)?
        .iter()
        .map(|field| field.parse::<u64>().ok());
    Some(Usage {
        parent,
        ticks: ticks.sum::<Option<u64>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "42 (a) b) c) S 7 42 42 0 -1 4194304 1 2 3 4 10 20 300 4000 20 0 1 0 99 0 0";

    #[test]
    fn a_process_name_may_look_like_fields() {
        assert_eq!(
            parse_usage(STAT),
            Some(Usage {
                parent: 7,
                ticks: 4_330
            })
        );
        assert_eq!(parse_usage("42 (cut) S 7 42"), None);
    }

    #[test]
    fn a_tree_counts_every_descendant_once_and_no_stranger() {
        let usages = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 4)]
            .map(|(pid, parent)| {
                (
                    pid,
                    Usage {
                        parent,
                        ticks: 100 * u64::from(pid),
                    },
                )
            })
            .into();
        let ticks = |roots: &[u32], all_roots: &[u32]| tree_ticks(roots, all_roots, &usages);
        assert_eq!(ticks(&[2, 3], &[2, 3]), Some(500));
        assert_eq!(
            ticks(&[1], &[1, 4]),
            Some(600),
            "what another party started is its own"
        );
        assert_eq!(ticks(&[6], &[6]), None);
    }
}
