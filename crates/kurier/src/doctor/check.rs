//! One check's result, and all of them together. It judges nothing.

use serde::Serialize;

/// How a check came out, better ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Level {
    /// As it should be.
    Ok,
    /// Works, but somebody should look.
    Warn,
    /// Does not work.
    Fail,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) level: Level,
    pub(super) found: String,
    /// What to do about it; nothing if all is well.
    pub(super) mend: Option<&'static str>,
}

/// All checks, and the worst of their levels.
#[derive(Serialize)]
pub(super) struct Report {
    level: Level,
    pub(super) checks: Vec<Check>,
}

impl Check {
    pub(super) fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self {
            name,
            level: Level::Ok,
            found: found.into(),
            mend: None,
        }
    }

    pub(super) fn warn(name: &'static str, found: impl Into<String>, mend: &'static str) -> Self {
        Self {
            level: Level::Warn,
            mend: Some(mend),
            ..Self::ok(name, found)
        }
    }

    pub(super) fn fail(name: &'static str, found: impl Into<String>, mend: &'static str) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(name, found, mend)
        }
    }
}

impl Report {
    pub(super) fn new(checks: Vec<Check>) -> Self {
        let worst = checks.iter().map(|check| check.level).max();
        Self {
            level: worst.unwrap_or(Level::Ok),
            checks,
        }
    }

    pub(super) fn failed_count(&self) -> usize {
        let failed = |check: &&Check| check.level == Level::Fail;
        self.checks.iter().filter(failed).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_as_bad_as_its_worst_check() {
        let warn = || Check::warn("b", "so so", "look");
        let report = Report::new(vec![Check::ok("a", "fine"), warn()]);
        assert_eq!((report.level, report.failed_count()), (Level::Warn, 0));
        let report = Report::new(vec![Check::fail("c", "broken", "mend"), warn()]);
        assert_eq!((report.level, report.failed_count()), (Level::Fail, 1));
    }
}
