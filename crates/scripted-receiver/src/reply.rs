//! What a receiver does with one request, as data. Nothing here touches a socket.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use tokio::sync::watch;

/// What happens to one request: first an optional wait, then an ending.
#[derive(Clone, Debug)]
pub struct Reply {
    pub(crate) latency: Duration,
    pub(crate) gate: Option<Gate>,
    pub(crate) ending: Ending,
}

#[derive(Clone, Debug)]
pub(crate) enum Ending {
    Answer {
        head: Head,
        body: Bytes,
    },
    Drip {
        head: Head,
        piece: Bytes,
        interval: Duration,
    },
    Raw {
        bytes: Bytes,
        stays_open: bool,
    },
    Hang,
    Close,
    Reset,
}

#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl Reply {
    /// 200 with an empty body.
    pub fn ok() -> Self {
        Self::status(200)
    }

    /// Any status from 100 to 999 with an empty body.
    ///
    /// # Panics
    /// When `code` is not a status code.
    pub fn status(code: u16) -> Self {
        Self::ending(Ending::Answer {
            head: Head::of(code),
            body: Bytes::new(),
        })
    }

    /// Reads the request and never answers it; the connection stays open until the sender gives up.
    pub fn hang() -> Self {
        Self::ending(Ending::Hang)
    }

    /// Reads the request and closes the connection in the ordinary way, without an answer.
    pub fn close() -> Self {
        Self::ending(Ending::Close)
    }

    /// Reads the request and resets the connection (TCP RST).
    pub fn reset() -> Self {
        Self::ending(Ending::Reset)
    }

    /// Answers 200 and then sends `piece` once every `interval`, without end. A zero interval floods.
    pub fn drip(piece: impl Into<Bytes>, interval: Duration) -> Self {
        Self::ending(Ending::Drip {
            head: Head::of(200),
            piece: piece.into(),
            interval,
        })
    }

    /// Sends these bytes instead of an HTTP answer, then closes: broken status lines, cut bodies and the like.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self::ending(Ending::Raw {
            bytes: bytes.into(),
            stays_open: false,
        })
    }

    /// Sends these bytes instead of an HTTP answer, then says nothing more and leaves the connection open.
    pub fn raw_then_hang(bytes: impl Into<Bytes>) -> Self {
        Self::ending(Ending::Raw {
            bytes: bytes.into(),
            stays_open: true,
        })
    }

    /// Waits this long between the request's last byte and the ending.
    #[must_use]
    pub fn after(mut self, latency: Duration) -> Self {
        self.latency = latency;
        self
    }

    /// Waits until `gate` is open before the ending: for tests that decide themselves when an answer leaves.
    #[must_use]
    pub fn behind(mut self, gate: &Gate) -> Self {
        self.gate = Some(gate.clone());
        self
    }

    /// Adds a response header. Without effect on replies that have no head.
    ///
    /// # Panics
    /// When name or value cannot stand in a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        if let Ending::Answer { head, .. } | Ending::Drip { head, .. } = &mut self.ending {
            let name = HeaderName::try_from(name).expect("a valid header name");
            head.headers.append(
                name,
                HeaderValue::try_from(value).expect("a valid header value"),
            );
        }
        self
    }

    /// Sets the body. Without effect on replies that are no whole answer.
    #[must_use]
    pub fn body(mut self, bytes: impl Into<Bytes>) -> Self {
        if let Ending::Answer { body, .. } = &mut self.ending {
            *body = bytes.into();
        }
        self
    }

    /// Whether a sender that waits for it is told 2xx in an intact answer.
    pub(crate) fn accepts(&self) -> bool {
        matches!(&self.ending, Ending::Answer { head, .. } if head.status.is_success())
    }

    /// The wait before the ending.
    pub(crate) async fn wait(&self) {
        if !self.latency.is_zero() {
            tokio::time::sleep(self.latency).await;
        }
        if let Some(gate) = &self.gate {
            gate.passed().await;
        }
    }

    fn ending(ending: Ending) -> Self {
        Self {
            latency: Duration::ZERO,
            gate: None,
            ending,
        }
    }
}

impl Head {
    fn of(code: u16) -> Self {
        let status = StatusCode::from_u16(code).expect("a status code from 100 to 999");
        Self {
            status,
            headers: HeaderMap::new(),
        }
    }
}

/// Holds replies back until the test opens it; clones are the same gate.
#[derive(Clone, Debug)]
pub struct Gate(watch::Sender<bool>);

impl Gate {
    /// A gate that nothing passes yet.
    pub fn closed() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Lets every waiting and every later reply through.
    pub fn open(&self) {
        self.0.send_replace(true);
    }

    /// Holds back the replies that come from now on.
    pub fn close(&self) {
        self.0.send_replace(false);
    }

    async fn passed(&self) {
        let mut state = self.0.subscribe();
        // The sender lives in `self`, so the wait cannot fail.
        let _ = state.wait_for(|open| *open).await;
    }
}
