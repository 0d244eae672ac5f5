//! The health endpoints as a probe sees them: over HTTP.

use std::net::SocketAddr;

use process::{Health, Shutdown, Tasks};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What serves, for as long as the test keeps it.
struct Served {
    shutdown: Shutdown,
    health: Health,
    addr: SocketAddr,
    _tasks: Tasks,
}

async fn serve() -> Served {
    let shutdown = Shutdown::new();
    let health = Health::new(shutdown.clone());
    let mut tasks = Tasks::new(shutdown.clone());
    let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
    let addr = health
        .serve(any_port, &mut tasks)
        .await
        .expect("a free port");
    Served {
        shutdown,
        health,
        addr,
        _tasks: tasks,
    }
}

impl Served {
    /// The status code and the answer to a GET of `path`.
    async fn get(&self, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.addr).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n");
        stream
            .write_all(request.as_bytes())
            .await
            .expect("it reads");
        let mut response = String::new();
        stream
            .read_to_string(&mut response)
            .await
            .expect("it answers");
        let (head, body) = response.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (
            status.expect("a status"),
            serde_json::from_str(body).unwrap_or_default(),
        )
    }
}

#[tokio::test]
async fn a_program_without_complaints_is_live_and_ready() {
    let served = serve().await;
    assert_ne!(served.addr.port(), 0);
    assert_eq!(
        served.get("/livez").await,
        (200, json!({"status": "live", "components": {}}))
    );
    assert_eq!(
        served.get("/readyz").await,
        (200, json!({"status": "ready", "components": {}}))
    );
}

#[tokio::test]
async fn one_component_that_is_not_ready_is_enough_and_is_named() {
    let served = serve().await;
    served.health.set_ready("database", true, "connected");
    served.health.set_ready("broker", false, "reconnecting");
    let components = json!({
        "broker": {"ok": false, "detail": "reconnecting"},
        "database": {"ok": true, "detail": "connected"},
    });
    let expected = json!({"status": "not_ready", "components": components});
    assert_eq!(served.get("/readyz").await, (503, expected));
    assert_eq!(served.get("/livez").await.0, 200);

    served.health.set_ready("broker", true, "connected");
    assert_eq!(served.get("/readyz").await.0, 200);
}

#[tokio::test]
async fn a_component_that_only_a_restart_helps_fails_liveness_alone() {
    let served = serve().await;
    served
        .health
        .set_live("database pool", false, "no connection ten times in a row");
    let (status, told) = served.get("/livez").await;
    assert_eq!((status, &told["status"]), (503, &json!("not_live")));
    assert_eq!(served.get("/readyz").await.0, 200);
}

#[tokio::test]
async fn a_draining_program_is_live_but_not_ready() {
    let served = serve().await;
    served.shutdown.drain();
    let (status, told) = served.get("/readyz").await;
    assert_eq!((status, &told["status"]), (503, &json!("draining")));
    assert_eq!(served.get("/livez").await.0, 200);
}

#[tokio::test]
async fn an_address_in_use_is_an_error_that_names_it() {
    let served = serve().await;
    let mut tasks = Tasks::new(served.shutdown.clone());
    let error = served
        .health
        .serve(served.addr, &mut tasks)
        .await
        .expect_err("it is in use");
    assert_eq!(
        error.to_string(),
        format!("cannot serve health checks on {}", served.addr)
    );
}

#[tokio::test]
async fn anything_else_is_not_found() {
    assert_eq!(serve().await.get("/").await.0, 404);
}
