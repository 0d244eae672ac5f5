//! What the answers to the doctor's questions mean. Pure functions: nothing is asked here.

use chrono::TimeDelta;
use domain::delivery::Status;
use process::config::ConfigFaults;
use store::SchemaState;

use super::{Answer, check::Check};

/// Clocks further apart make times hard to compare; much further, signatures are refused.
const CLOCK_WARN: TimeDelta = TimeDelta::seconds(1);
const CLOCK_FAIL: TimeDelta = TimeDelta::seconds(30);

/// An event waits some milliseconds for a running relay.
const OUTBOX_WARN_SECONDS: f64 = 60.0;
const OUTBOX_FAIL_SECONDS: f64 = 1800.0;

/// Some ten seconds of work for one dispatcher.
const WORK_QUEUE_WARN: u32 = 100_000;

const DATABASE_FIRST: &str = "mend the database first";
const BROKER_FIRST: &str = "mend the broker first";

/// What the broker said of the work queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct WorkQueue {
    /// Messages ready to be taken.
    pub(super) backlog: u32,
    /// Whether it had to be declared.
    pub(super) created: bool,
}

/// One check for each faulty variable, or one that all are well.
pub(super) fn configuration(read: Result<(), ConfigFaults>) -> Vec<Check> {
    const NAME: &str = "configuration";
    match read {
        Ok(()) => vec![Check::ok(NAME, "every variable can be read")],
        Err(faults) => faults
            .iter()
            .map(|fault| Check::fail(NAME, fault.to_string(), "correct the variable"))
            .collect(),
    }
}

pub(super) fn database(ping: Answer<()>) -> Check {
    const NAME: &str = "database";
    match ping {
        Ok(()) => Check::ok(NAME, "answers"),
        Err(problem) => Check::fail(NAME, problem, "start PostgreSQL, or correct DATABASE_URL"),
    }
}

pub(super) fn schema(state: Answer<SchemaState>) -> Check {
    const NAME: &str = "schema";
    const MEND: &str = "run `kurier migrate`";
    match state {
        Ok(SchemaState::Ready { found }) => Check::ok(NAME, format!("version {found}")),
        Ok(SchemaState::Behind { found, needed }) => {
            let versions = format!("version {found}, this program needs {needed}");
            Check::fail(NAME, versions, MEND)
        }
        Ok(SchemaState::Missing) => Check::fail(NAME, "nothing is installed", MEND),
        Err(problem) => Check::fail(NAME, problem, DATABASE_FIRST),
    }
}

pub(super) fn partitions(created: Answer<i32>) -> Check {
    const NAME: &str = "partitions";
    match created {
        Ok(0) => Check::ok(NAME, "exist for today and the coming days"),
        Ok(count) => Check::warn(
            NAME,
            format!("{count} were missing and have been created"),
            "run a relay: it creates them ahead",
        ),
        Err(problem) => Check::fail(NAME, problem, DATABASE_FIRST),
    }
}

/// `difference` is how far the database's clock is ahead of this machine's.
pub(super) fn clock(difference: Answer<TimeDelta>) -> Check {
    const NAME: &str = "clock";
    const MEND: &str = "synchronise the clocks of this machine and the database's (NTP)";
    let difference = match difference {
        Ok(difference) => difference,
        Err(problem) => return Check::fail(NAME, problem, DATABASE_FIRST),
    };
    let milliseconds = difference.num_milliseconds();
    let found = format!("the database is {milliseconds} ms ahead of this machine");
    match difference.abs() {
        apart if apart > CLOCK_FAIL => Check::fail(NAME, found, MEND),
        apart if apart > CLOCK_WARN => Check::warn(NAME, found, MEND),
        _ => Check::ok(NAME, found),
    }
}

/// Events waiting, the age of the oldest in seconds, and events parked.
pub(super) fn outbox(backlog: &Answer<(i64, f64, i64)>) -> Check {
    const NAME: &str = "outbox";
    const MEND: &str = "see that a relay runs, and what it logs";
    match backlog {
        Ok((waiting, oldest_seconds, _)) => {
            let found = format!("{waiting} events waiting, the oldest for {oldest_seconds:.0} s");
            match *oldest_seconds {
                age if age > OUTBOX_FAIL_SECONDS => Check::fail(NAME, found, MEND),
                age if age > OUTBOX_WARN_SECONDS => Check::warn(NAME, found, MEND),
                _ => Check::ok(NAME, found),
            }
        }
        Err(problem) => Check::fail(NAME, problem, DATABASE_FIRST),
    }
}

pub(super) fn parked_events(backlog: &Answer<(i64, f64, i64)>) -> Check {
    const NAME: &str = "parked_events";
    match backlog {
        Ok((_, _, 0)) => Check::ok(NAME, "none"),
        Ok((_, _, parked)) => Check::warn(
            NAME,
            format!("{parked} events cannot be published"),
            "see them with `kurier event parked`, then `kurier event retry ID`",
        ),
        Err(problem) => Check::fail(NAME, problem, DATABASE_FIRST),
    }
}

pub(super) fn dead_letters(open: Answer<Vec<(String, i64)>>) -> Check {
    const NAME: &str = "dead_letters";
    let open = match open {
        Ok(open) => open,
        Err(problem) => return Check::fail(NAME, problem, DATABASE_FIRST),
    };
    let dead = |(status, _): &&(String, i64)| status == Status::DeadLetter.as_str();
    match open.iter().find(dead) {
        None => Check::ok(NAME, "none"),
        Some((_, count)) => Check::warn(
            NAME,
            format!("{count} deliveries were given up"),
            "see them with `kurier delivery list --status dead_letter`",
        ),
    }
}

pub(super) fn broker(answer: &Answer<WorkQueue>) -> Check {
    const NAME: &str = "broker";
    match answer {
        Ok(_) => Check::ok(NAME, "answers"),
        Err(problem) => Check::fail(
            NAME,
            problem,
            "start RabbitMQ, or correct AMQP_URL; standard error says what the broker refused",
        ),
    }
}

pub(super) fn topology(answer: &Answer<WorkQueue>) -> Check {
    const NAME: &str = "topology";
    match answer {
        Ok(queue) if queue.created => Check::warn(
            NAME,
            "the queues were missing and have been declared",
            "nothing on a new broker; otherwise ask who removed them: the sweep repeats what was lost",
        ),
        Ok(_) => Check::ok(NAME, "declared"),
        Err(problem) => Check::fail(NAME, problem, BROKER_FIRST),
    }
}

pub(super) fn work_queue(answer: &Answer<WorkQueue>) -> Check {
    const NAME: &str = "work_queue";
    match answer {
        Ok(queue) => {
            let found = format!("{} messages ready", queue.backlog);
            if queue.backlog > WORK_QUEUE_WARN {
                Check::warn(NAME, found, "run more dispatchers, and see what they log")
            } else {
                Check::ok(NAME, found)
            }
        }
        Err(problem) => Check::fail(NAME, problem, BROKER_FIRST),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::Level, *};

    #[test]
    fn clocks_may_be_a_second_apart_and_fail_beyond_thirty() {
        let level = |ms| clock(Ok(TimeDelta::milliseconds(ms))).level;
        for (ms, expected) in [
            (1000, Level::Ok),
            (-1000, Level::Ok),
            (1001, Level::Warn),
            (-1001, Level::Warn),
            (30_000, Level::Warn),
            (30_001, Level::Fail),
            (-30_001, Level::Fail),
        ] {
            assert_eq!(level(ms), expected, "{ms} ms");
        }
    }

    #[test]
    fn an_outbox_is_judged_by_the_age_of_its_oldest_event() {
        let level = |age| outbox(&Ok((1_000_000, age, 0))).level;
        assert_eq!(level(60.0), Level::Ok);
        assert_eq!(level(60.1), Level::Warn);
        assert_eq!(level(1800.0), Level::Warn);
        assert_eq!(level(1800.1), Level::Fail);
    }

    #[test]
    fn a_work_queue_is_long_beyond_a_hundred_thousand() {
        let level = |backlog| {
            let created = false;
            work_queue(&Ok(WorkQueue { backlog, created })).level
        };
        assert_eq!(level(100_000), Level::Ok);
        assert_eq!(level(100_001), Level::Warn);
    }

    #[test]
    fn a_topology_that_had_to_be_declared_is_a_warning() {
        let level = |created| {
            let backlog = 0;
            topology(&Ok(WorkQueue { backlog, created })).level
        };
        assert_eq!(level(false), Level::Ok);
        assert_eq!(level(true), Level::Warn);
    }

    #[test]
    fn partitions_that_had_to_be_created_are_a_warning() {
        assert_eq!(partitions(Ok(0)).level, Level::Ok);
        assert_eq!(partitions(Ok(1)).level, Level::Warn);
    }

    #[test]
    fn what_waits_for_people_is_a_warning() {
        assert_eq!(parked_events(&Ok((5, 0.0, 0))).level, Level::Ok);
        assert_eq!(parked_events(&Ok((0, 0.0, 1))).level, Level::Warn);
        let open = |status: &str| dead_letters(Ok(vec![(status.to_owned(), 1)])).level;
        assert_eq!(open("failed"), Level::Ok);
        assert_eq!(open("dead_letter"), Level::Warn);
    }

    #[test]
    fn a_schema_that_is_behind_fails_and_a_newer_one_does_not() {
        let behind = SchemaState::Behind {
            found: 1,
            needed: 2,
        };
        assert_eq!(schema(Ok(behind)).level, Level::Fail);
        assert_eq!(schema(Ok(SchemaState::Missing)).level, Level::Fail);
        assert_eq!(schema(Ok(SchemaState::Ready { found: 3 })).level, Level::Ok);
    }

    #[test]
    fn every_faulty_variable_is_a_check_of_its_own() {
        let mut env = process::Environment::default();
        env.text("DATABASE_URL");
        env.text("AMQP_URL");
        let checks = configuration(env.finish());
        let levels: Vec<Level> = checks.iter().map(|check| check.level).collect();
        assert_eq!(levels, [Level::Fail, Level::Fail]);
        assert_eq!(configuration(Ok(()))[0].level, Level::Ok);
    }
}
