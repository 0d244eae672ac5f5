//! What a program promises to whoever starts and stops it: exit codes, signals, and plain faults.

use std::future::pending;
use std::net::TcpListener;
use std::time::Duration;

use crate::support::{Running, is_program, leave, program, run_program};
use process::{Environment, ProgramInfo};
use rustix::process::Signal;

#[test]
fn a_wrong_configuration_is_told_whole_and_exits_64() {
    if is_program() {
        let info = ProgramInfo {
            name: "example",
            version: "1.2.3",
        };
        let read = |env: &mut Environment| {
            env.text("DATABASE_URL");
            env.integer("KURIER_MAX_ATTEMPTS", 5, 1..=100);
        };
        leave(process::run(info, read, |(), _| async {
            unreachable!("not started")
        }));
    }
    let variables = [
        ("KURIER_MAX_ATTEMPTS", "0"),
        ("KURIER_HEALTH_ADDR", "nowhere"),
    ];
    let name = "life::a_wrong_configuration_is_told_whole_and_exits_64";
    let (code, stderr) = Running::start(program(name, &variables)).wait();
    assert_eq!(code, Some(64));
    let names = ["KURIER_HEALTH_ADDR", "DATABASE_URL", "KURIER_MAX_ATTEMPTS"];
    let starts: Vec<_> = stderr
        .lines()
        .skip(1)
        .map(|line| line.split(' ').next())
        .collect();
    assert_eq!(starts, names.map(Some));
}

#[test]
fn a_program_whose_body_ends_well_exits_0() {
    if is_program() {
        run_program(|_| async {
            println!("ran");
            Ok(())
        });
    }
    let name = "life::a_program_whose_body_ends_well_exits_0";
    let mut running = Running::start(program(name, &[]));
    running.await_line("ran");
    assert_eq!(running.wait().0, Some(0));
}

#[test]
fn a_failure_exits_1_and_its_causes_are_told_once() {
    if is_program() {
        run_program(|_| async { Err(anyhow::anyhow!("the cause").context("the failure")) });
    }
    let name = "life::a_failure_exits_1_and_its_causes_are_told_once";
    let (code, stderr) = Running::start(program(name, &[])).wait();
    assert_eq!(code, Some(1));
    assert_eq!(stderr.matches("the failure: the cause").count(), 1);
    assert_eq!(stderr.matches("the cause").count(), 1);
}

#[test]
fn sigterm_lets_work_finish_and_exits_0() {
    if is_program() {
        run_program(|mut context| async move {
            let shutdown = context.shutdown.clone();
            context.tasks.spawn("worker", async move {
                println!("working");
                shutdown.draining().await;
                println!("finished");
                Ok(())
            });
            Ok(context.tasks.supervise().await?)
        });
    }
    let mut running = Running::start(program("life::sigterm_lets_work_finish_and_exits_0", &[]));
    running.await_line("working");
    running.signal(Signal::TERM);
    running.await_line("finished");
    assert_eq!(running.wait().0, Some(0));
}

/// A program with one task that never ends, which says so when it is asked to.
fn run_stubborn_program() {
    run_program(|mut context| async move {
        let shutdown = context.shutdown.clone();
        context.tasks.spawn("stubborn", async move {
            println!("working");
            shutdown.draining().await;
            println!("draining");
            pending().await
        });
        Ok(context.tasks.supervise().await?)
    });
}

#[test]
fn a_second_signal_gives_up_what_still_runs_and_exits_1() {
    if is_program() {
        run_stubborn_program();
    }
    let name = "life::a_second_signal_gives_up_what_still_runs_and_exits_1";
    let mut running = Running::start(program(name, &[]));
    running.await_line("working");
    running.signal(Signal::INT);
    running.await_line("draining");
    running.signal(Signal::TERM);
    let (code, stderr) = running.wait();
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains("before these tasks had finished: stubborn"),
        "{stderr}"
    );
}

#[test]
fn the_end_of_the_grace_period_gives_up_what_still_runs() {
    if is_program() {
        run_stubborn_program();
    }
    let name = "life::the_end_of_the_grace_period_gives_up_what_still_runs";
    let mut running = Running::start(program(name, &[("KURIER_SHUTDOWN_GRACE_MS", "1")]));
    running.await_line("working");
    running.signal(Signal::TERM);
    let (code, stderr) = running.wait();
    assert_eq!(code, Some(1));
    assert!(stderr.contains("end of the grace period"), "{stderr}");
}

#[test]
fn a_health_address_in_use_is_told_and_exits_1() {
    if is_program() {
        run_program(|_| async { unreachable!("not started") });
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let addr = taken.local_addr().expect("its address").to_string();
    let name = "life::a_health_address_in_use_is_told_and_exits_1";
    let (code, stderr) = Running::start(program(name, &[("KURIER_HEALTH_ADDR", &addr)])).wait();
    assert_eq!(code, Some(1));
    assert!(
        stderr.contains(&format!("cannot serve health checks on {addr}")),
        "{stderr}"
    );
}

#[cfg(debug_assertions)]
#[test]
fn a_failpoint_kills_the_process_the_time_it_names() {
    use std::os::unix::process::ExitStatusExt;

    if is_program() {
        for time in 1..=3 {
            process::failpoint::reach("elsewhere");
            process::failpoint::reach("between");
            println!("passed {time}");
        }
        leave(std::process::ExitCode::SUCCESS);
    }
    let name = "life::a_failpoint_kills_the_process_the_time_it_names";
    let output = program(name, &[("KURIER_FAILPOINT", "between:3")])
        .output()
        .expect("it runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.signal(), Some(Signal::KILL.as_raw()));
    assert!(
        stdout.contains("passed 2") && !stdout.contains("passed 3"),
        "{stdout}"
    );
}

#[cfg(debug_assertions)]
#[test]
fn a_misspelt_failpoint_is_refused_instead_of_never_striking() {
    if is_program() {
        run_program(|_| async { Ok(()) });
    }
    let name = "life::a_misspelt_failpoint_is_refused_instead_of_never_striking";
    let variables = [("KURIER_FAILPOINT", "between:soon")];
    assert_eq!(Running::start(program(name, &variables)).wait().0, Some(64));
}

#[test]
fn draining_without_a_signal_is_bounded_by_the_grace_period_too() {
    if is_program() {
        run_program(|mut context| async move {
            context.tasks.spawn("stubborn", pending());
            context.shutdown.drain();
            Ok(context.tasks.supervise().await?)
        });
    }
    let name = "life::draining_without_a_signal_is_bounded_by_the_grace_period_too";
    let grace_ms = Duration::from_millis(1).as_millis().to_string();
    let variables = [("KURIER_SHUTDOWN_GRACE_MS", grace_ms.as_str())];
    assert_eq!(Running::start(program(name, &variables)).wait().0, Some(1));
}
