//! Tasks: none ends unnoticed, all work is waited for, and an abort waits for nobody.

use std::future::pending;

use process::lifecycle::TaskFault;
use process::{Shutdown, Tasks};
use tokio::sync::oneshot;

fn tasks() -> (Shutdown, Tasks) {
    let shutdown = Shutdown::new();
    (shutdown.clone(), Tasks::new(shutdown))
}

#[tokio::test]
async fn work_that_ends_while_draining_is_no_fault() {
    let (shutdown, mut tasks) = tasks();
    let asked = shutdown.clone();
    tasks.spawn("worker", async move {
        asked.draining().await;
        Ok(())
    });
    shutdown.drain();
    assert!(tasks.supervise().await.is_ok());
}

#[tokio::test]
async fn a_task_that_ends_early_makes_the_others_drain() {
    let (shutdown, mut tasks) = tasks();
    let asked = shutdown.clone();
    tasks.spawn("steady", async move {
        asked.draining().await;
        Ok(())
    });
    tasks.spawn("fleeting", async { Ok(()) });
    let ended = tasks.supervise().await;
    assert!(
        matches!(ended, Err(TaskFault::Ended("fleeting"))),
        "{ended:?}"
    );
    assert!(shutdown.is_draining() && !shutdown.is_aborted());
}

#[tokio::test]
async fn a_background_task_that_ends_early_is_a_fault_too() {
    let (shutdown, mut tasks) = tasks();
    tasks.spawn_background("server", async { Ok(()) });
    tasks.spawn("worker", async move {
        shutdown.draining().await;
        Ok(())
    });
    let ended = tasks.supervise().await;
    assert!(
        matches!(ended, Err(TaskFault::Ended("server"))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_failure_is_a_fault_even_while_draining() {
    let (shutdown, mut tasks) = tasks();
    shutdown.drain();
    tasks.spawn("worker", async {
        anyhow::bail!("could not give its work back")
    });
    let ended = tasks.supervise().await;
    assert!(
        matches!(ended, Err(TaskFault::Failed("worker", _))),
        "{ended:?}"
    );
}

#[tokio::test]
async fn a_panic_is_a_fault_and_says_which_task() {
    let (_shutdown, mut tasks) = tasks();
    tasks.spawn("worker", async { panic!("at number {}", 7) });
    let told = tasks.supervise().await.map_err(|fault| fault.to_string());
    assert_eq!(told, Err("task worker panicked: at number 7".to_owned()));
}

#[tokio::test]
async fn background_tasks_are_cancelled_once_the_work_is_done() {
    let (shutdown, mut tasks) = tasks();
    let (alive, cancelled) = oneshot::channel::<()>();
    tasks.spawn_background("server", async move {
        let _alive = alive;
        pending().await
    });
    shutdown.drain();
    tasks.spawn("worker", async { Ok(()) });
    assert!(tasks.supervise().await.is_ok());
    assert!(
        cancelled.await.is_err(),
        "the sender is dropped with its task"
    );
}

#[tokio::test]
async fn an_abort_names_the_work_it_gave_up() {
    let (shutdown, mut tasks) = tasks();
    tasks.spawn("second", pending());
    tasks.spawn("first", pending());
    tasks.spawn_background("server", pending());
    shutdown.abort();
    let told = tasks.supervise().await.map_err(|fault| fault.to_string());
    let expected = "aborted before these tasks had finished: first, second";
    assert_eq!(told, Err(expected.to_owned()));
    assert!(shutdown.is_draining());
}
