//! Whether the process lives and is ready, by component, and the HTTP server that tells it.
//!
//! `/livez` fails when only a restart can help; `/readyz` fails while the process cannot do its work
//! or no longer wants to. The components say so themselves: nothing is probed here.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::net::TcpListener;

use crate::lifecycle::{Shutdown, Tasks};

/// The state of the process's components. Clones share it.
#[derive(Debug, Clone)]
pub struct Health {
    shutdown: Shutdown,
    components: Arc<Mutex<Components>>,
}

#[derive(Debug, Default)]
struct Components {
    live: BTreeMap<&'static str, Component>,
    ready: BTreeMap<&'static str, Component>,
}

/// One component as the server tells it.
#[derive(Debug, Clone, Serialize)]
struct Component {
    ok: bool,
    detail: String,
}

/// The answer of both endpoints.
#[derive(Debug, Serialize)]
struct Report {
    status: &'static str,
    components: BTreeMap<&'static str, Component>,
}

/// The health server cannot listen.
#[derive(Debug, thiserror::Error)]
#[error("cannot serve health checks on {addr}")]
pub struct BindError {
    addr: SocketAddr,
    source: io::Error,
}

impl Health {
    /// Alive, and ready until `shutdown` drains or a component says otherwise.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            components: Arc::default(),
        }
    }

    /// Whether `component` can do its work; `detail` is shown to operators and holds no secrets.
    pub fn set_ready(&self, component: &'static str, ready: bool, detail: impl Into<String>) {
        let detail = detail.into();
        self.lock()
            .ready
            .insert(component, Component { ok: ready, detail });
    }

    /// Whether `component` still works at all; once it does not, the process is to be restarted.
    pub fn set_live(&self, component: &'static str, live: bool, detail: impl Into<String>) {
        let detail = detail.into();
        self.lock()
            .live
            .insert(component, Component { ok: live, detail });
    }

    /// Whether `/readyz` answers 200.
    pub fn is_ready(&self) -> bool {
        !self.shutdown.is_draining() && self.lock().ready.values().all(|component| component.ok)
    }

    /// Whether `/livez` answers 200.
    pub fn is_live(&self) -> bool {
        self.lock().live.values().all(|component| component.ok)
    }

    /// Serves `/livez` and `/readyz` on `addr` for as long as there is work in `tasks`.
    ///
    /// Returns the address it listens on, whose port is a free one if `addr` asks for port 0.
    pub async fn serve(
        &self,
        addr: SocketAddr,
        tasks: &mut Tasks,
    ) -> Result<SocketAddr, BindError> {
        let failed = |source| BindError { addr, source };
        let listener = TcpListener::bind(addr).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        let router = self.router();
        tasks.spawn_background("health server", async move {
            axum::serve(listener, router).await?;
            Ok(())
        });
        tracing::info!(addr = %bound, "serving health checks");
        Ok(bound)
    }

    fn router(&self) -> Router {
        Router::new()
            .route("/livez", get(livez))
            .route("/readyz", get(readyz))
            .with_state(self.clone())
    }

    /// A panic elsewhere leaves whole entries only, so a poisoned lock still holds the truth.
    fn lock(&self) -> MutexGuard<'_, Components> {
        self.components
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

async fn livez(State(health): State<Health>) -> (StatusCode, Json<Report>) {
    let status = if health.is_live() { "live" } else { "not_live" };
    let components = health.lock().live.clone();
    answer(health.is_live(), status, components)
}

async fn readyz(State(health): State<Health>) -> (StatusCode, Json<Report>) {
    let ready = health.is_ready();
    let status = match ready {
        true => "ready",
        false if health.shutdown.is_draining() => "draining",
        false => "not_ready",
    };
    let components = health.lock().ready.clone();
    answer(ready, status, components)
}

fn answer(
    ok: bool,
    status: &'static str,
    components: BTreeMap<&'static str, Component>,
) -> (StatusCode, Json<Report>) {
    let code = if ok {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (code, Json(Report { status, components }))
}
