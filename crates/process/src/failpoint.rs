//! Deaths at exact places, for tests of what a crash leaves behind.
//!
//! `KURIER_FAILPOINT=name` makes the process kill itself with SIGKILL where `reach("name")` stands;
//! `name:3` does so the third time. It stands in for `kill -9` from outside, which cannot hit the
//! moment between two hand-overs: no destructor runs, nothing is flushed, no connection is closed.
//! A build without debug assertions contains none of it.

/// Names the failpoint that a debug build dies at.
#[cfg(debug_assertions)]
pub(crate) const VARIABLE: &str = "KURIER_FAILPOINT";

/// The process dies here if it was asked to.
#[cfg(debug_assertions)]
pub fn reach(name: &'static str) {
    if armed::failpoint().is_some_and(|failpoint| failpoint.is_reached_at(name)) {
        armed::kill_self();
    }
}

/// Nothing, in a build without debug assertions.
#[cfg(not(debug_assertions))]
#[inline(always)]
pub fn reach(_name: &'static str) {}

#[cfg(debug_assertions)]
pub(crate) use armed::Failpoint;

#[cfg(debug_assertions)]
mod armed {
    use std::str::FromStr;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::VARIABLE;

    /// A place to die at, and how often it is still to be passed before.
    #[derive(Debug)]
    pub(crate) struct Failpoint {
        name: String,
        times_left: AtomicU64,
    }

    impl Failpoint {
        /// Whether this is the place, and this the time.
        pub(super) fn is_reached_at(&self, name: &str) -> bool {
            self.name == name && self.times_left.fetch_sub(1, Ordering::Relaxed) == 1
        }
    }

    impl FromStr for Failpoint {
        type Err = &'static str;

        fn from_str(text: &str) -> Result<Self, Self::Err> {
            let (name, times) = text.split_once(':').unwrap_or((text, "1"));
            let times = times.parse().ok().filter(|times| *times > 0);
            match times {
                Some(times) if !name.is_empty() => Ok(Self {
                    name: name.to_owned(),
                    times_left: AtomicU64::new(times),
                }),
                _ => Err("neither a name nor a name and how often it is to be reached"),
            }
        }
    }

    /// The failpoint of this process; the environment is looked at once.
    pub(super) fn failpoint() -> Option<&'static Failpoint> {
        static ARMED: OnceLock<Option<Failpoint>> = OnceLock::new();
        ARMED
            .get_or_init(|| crate::config::process_variable(VARIABLE)?.parse().ok())
            .as_ref()
    }

    pub(super) fn kill_self() -> ! {
        use rustix::process::{Signal, getpid, kill_process};

        let killed = kill_process(getpid(), Signal::KILL);
        unreachable!("survived its own SIGKILL: {killed:?}");
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_failpoint_strikes_the_given_time_and_no_other() {
            let failpoint: Failpoint = "between:2".parse().expect("a failpoint");
            let strikes = [(); 3].map(|()| failpoint.is_reached_at("between"));
            assert_eq!(strikes, [false, true, false]);
        }

        #[test]
        fn passing_other_places_does_not_count() {
            let failpoint: Failpoint = "between".parse().expect("a failpoint");
            assert!(!failpoint.is_reached_at("elsewhere"));
            assert!(failpoint.is_reached_at("between"));
        }

        #[test]
        fn a_failpoint_without_name_or_with_a_wrong_count_is_refused() {
            for text in [
                "",
                ":",
                ":1",
                "between:",
                "between:0",
                "between:-1",
                "between:x",
            ] {
                assert!(text.parse::<Failpoint>().is_err(), "{text}");
            }
        }
    }
}
