//! Response bodies: a whole one, or one that drips without end.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Interval, interval};

use crate::ledger::InFlight;

pub(crate) enum ReplyBody {
    Whole(Full<Bytes>),
    Drip(Drip),
}

/// One piece for every tick; a request that is dripped on counts as in flight until the sender leaves.
pub(crate) struct Drip {
    piece: Bytes,
    ticks: Option<Interval>,
    _in_flight: InFlight,
}

impl Drip {
    pub(crate) fn new(piece: Bytes, every: Duration, in_flight: InFlight) -> Self {
        // A zero interval is a flood, and no `Interval`.
        let ticks = (!every.is_zero()).then(|| interval(every));
        Self {
            piece,
            ticks,
            _in_flight: in_flight,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if let Some(ticks) = &mut self.ticks {
            ready!(ticks.poll_tick(cx));
        }
        Poll::Ready(self.piece.clone())
    }
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(body) => Pin::new(body).poll_frame(cx),
            Self::Drip(drip) => drip
                .poll_piece(cx)
                .map(|piece| Some(Ok(Frame::data(piece)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(body) => body.is_end_stream(),
            Self::Drip(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(body) => body.size_hint(),
            Self::Drip(_) => SizeHint::default(),
        }
    }
}
