//! The listener and its connections: reads requests whole, and ends each as its reply says.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::request::Parts;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::body::{Drip, ReplyBody};
use crate::ledger::{InFlight, Ledger};
use crate::reply::{Ending, Head};
use crate::request::webhook_id;
use crate::{Reply, Request};

/// Longer request bodies are not recorded and get no answer.
pub const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The pause after a failed accept, so that a shortage of file descriptors does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Accepts until it is aborted; its connections end with it.
pub(crate) async fn accept_all(listener: TcpListener, ledger: Arc<Ledger>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(connection) => {
                    connections.spawn(serve(connection, Arc::clone(&ledger)));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

/// One connection, kept alive until either side ends it.
async fn serve((stream, peer): (TcpStream, SocketAddr), ledger: Arc<Ledger>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| Box::pin(answer(request, Arc::clone(&ledger))));
    let mut connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    let Err(error) = poll_fn(|cx| connection.poll_without_shutdown(cx)).await else {
        return;
    };
    if let Some(cut) = error
        .source()
        .and_then(|source| source.downcast_ref::<Cut>())
    {
        cut.end(connection.into_parts().io.into_inner()).await;
    } else {
        tracing::debug!(%error, %peer, "the sender left");
    }
}

/// Records one request and follows its reply.
async fn answer(
    request: hyper::Request<Incoming>,
    ledger: Arc<Ledger>,
) -> Result<hyper::Response<ReplyBody>, Cut> {
    let (head, body) = request.into_parts();
    let in_flight = ledger.enter(head.uri.path(), webhook_id(&head.headers));
    let body = read(body, ledger.keeps_requests())
        .await
        .ok_or(Cut::Close)?;
    let reply = ledger.arrive(&in_flight, record(head, body));
    reply.wait().await;
    if reply.accepts() {
        ledger.accept(&in_flight);
    }
    end(reply, in_flight).await
}

/// The whole body, or nothing of it when only counts are kept; `None` when it broke off.
async fn read(body: Incoming, keep: bool) -> Option<Bytes> {
    let mut body = Limited::new(body, BODY_BYTES_MAX);
    if keep {
        return body
            .collect()
            .await
            .ok()
            .map(http_body_util::Collected::to_bytes);
    }
    while let Some(frame) = body.frame().await {
        frame.ok()?;
    }
    Some(Bytes::new())
}

fn record(head: Parts, body: Bytes) -> Request {
    Request {
        at: Instant::now(),
        method: head.method,
        path: head.uri.path().to_owned(),
        query: head.uri.query().map(str::to_owned),
        headers: head.headers,
        body,
    }
}

/// A request stops being in flight before its sender can know, so that an honest sender's next one never overlaps.
async fn end(reply: Reply, in_flight: InFlight) -> Result<hyper::Response<ReplyBody>, Cut> {
    match reply.ending {
        Ending::Answer { head, body } => Ok(response(head, ReplyBody::Whole(Full::new(body)))),
        Ending::Drip {
            head,
            piece,
            interval,
        } => Ok(response(
            head,
            ReplyBody::Drip(Drip::new(piece, interval, in_flight)),
        )),
        Ending::Raw {
            bytes,
            stays_open: false,
        } => Err(Cut::Raw(bytes)),
        Ending::Raw {
            bytes,
            stays_open: true,
        } => Err(Cut::RawThenHang {
            bytes,
            _in_flight: in_flight,
        }),
        Ending::Hang => std::future::pending().await,
        Ending::Close => Err(Cut::Close),
        Ending::Reset => Err(Cut::Reset),
    }
}

fn response(head: Head, body: ReplyBody) -> hyper::Response<ReplyBody> {
    let mut response = hyper::Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    response
}

/// An end that HTTP has no words for; it leaves the protocol as the service's error and is done on the bare stream.
enum Cut {
    Close,
    Reset,
    Raw(Bytes),
    RawThenHang { bytes: Bytes, _in_flight: InFlight },
}

impl Cut {
    async fn end(&self, mut stream: TcpStream) {
        let ended = match self {
            Self::Close => stream.shutdown().await,
            Self::Reset => stream.set_zero_linger(),
            Self::Raw(bytes) => stream.write_all(bytes).await,
            Self::RawThenHang { bytes, .. } => hang_after(&mut stream, bytes).await,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "the sender left before its reply");
        }
    }
}

/// Writes, then waits until the other side closes.
async fn hang_after(stream: &mut TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    stream.write_all(bytes).await?;
    tokio::io::copy(stream, &mut tokio::io::sink())
        .await
        .map(drop)
}

impl fmt::Debug for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the script ends this connection")
    }
}

impl Error for Cut {}
