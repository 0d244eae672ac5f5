//! The one kind of message there is, and its form on the wire. Knows no queue and no connection.

use std::time::Duration;

use lapin::{
    BasicProperties,
    types::{AMQPValue, FieldTable},
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const PERSISTENT: u8 = 2;
const TRACEPARENT: &str = "traceparent";
/// A W3C `traceparent` of version 00 has exactly this length; later versions may append to it.
const TRACEPARENT_BYTES_MIN: usize = 55;
const TRACEPARENT_BYTES_MAX: usize = 128;

/// "Look at this delivery after this delay."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hint {
    /// The delivery to look at.
    pub delivery_id: Uuid,
    /// W3C trace context to continue, if there is one.
    pub traceparent: Option<String>,
    /// How long the broker keeps the hint, rounded up to the delay unit; zero for at once.
    pub delay: Duration,
}

/// The JSON body. Unknown members are ignored, so that a newer publisher may add some.
#[derive(Deserialize, Serialize)]
struct Body {
    delivery_id: Uuid,
}

/// The message body of a hint: `{"delivery_id":"..."}`.
pub(crate) fn body(hint: &Hint) -> Vec<u8> {
    format!("{{\"delivery_id\":\"{}\"}}", hint.delivery_id).into_bytes()
}

/// The message properties of a hint. Made afresh for each publication, so nothing the broker
/// added on an earlier way round (`x-death`) is ever sent back to it.
pub(crate) fn properties(hint: &Hint) -> BasicProperties {
    let properties = BasicProperties::default()
        .with_content_type("application/json".into())
        .with_delivery_mode(PERSISTENT)
        .with_message_id(hint.delivery_id.to_string().into());
    let Some(traceparent) = &hint.traceparent else {
        return properties;
    };
    let mut headers = FieldTable::default();
    let value = AMQPValue::LongString(traceparent.as_str().into());
    headers.insert(TRACEPARENT.into(), value);
    properties.with_headers(headers)
}

/// The delivery id in a message body; `None` when the body is not one of ours.
pub(crate) fn delivery_id(body: &[u8]) -> Option<Uuid> {
    let body: Body = serde_json::from_slice(body).ok()?;
    Some(body.delivery_id)
}

/// The trace context of a message, if it has one of a plausible shape.
pub(crate) fn traceparent(properties: &BasicProperties) -> Option<String> {
    let headers = properties.headers().as_ref()?;
    let AMQPValue::LongString(value) = headers.inner().get(TRACEPARENT)? else {
        return None;
    };
    let value = std::str::from_utf8(value.as_bytes()).ok()?;
    is_plausible(value).then(|| value.to_owned())
}

fn is_plausible(traceparent: &str) -> bool {
    (TRACEPARENT_BYTES_MIN..=TRACEPARENT_BYTES_MAX).contains(&traceparent.len())
        && traceparent.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(traceparent: Option<&str>) -> Hint {
        Hint {
            delivery_id: Uuid::from_u128(7),
            traceparent: traceparent.map(str::to_owned),
            delay: Duration::ZERO,
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let hint = hint(Some(context));
        assert_eq!(delivery_id(&body(&hint)), Some(hint.delivery_id));
        assert_eq!(traceparent(&properties(&hint)).as_deref(), Some(context));
    }

    #[test]
    fn the_body_is_the_json_the_reader_expects() {
        let written: serde_json::Value = serde_json::from_slice(&body(&hint(None))).unwrap();
        let expected = Body {
            delivery_id: Uuid::from_u128(7),
        };
        assert_eq!(written, serde_json::to_value(expected).unwrap());
    }

    #[test]
    fn a_body_of_another_kind_is_refused() {
        for body in [
            &b""[..],
            b"{}",
            b"[1]",
            b"{\"delivery_id\":\"7\"}",
            b"\xff\x00",
        ] {
            assert_eq!(delivery_id(body), None);
        }
    }

    #[test]
    fn an_implausible_traceparent_is_dropped_and_the_message_kept() {
        for context in [
            "",
            "00-short",
            &"0".repeat(54),
            &"0".repeat(129),
            &"é".repeat(30),
        ] {
            assert_eq!(traceparent(&properties(&hint(Some(context)))), None);
        }
        let longest = "0".repeat(128);
        assert_eq!(
            traceparent(&properties(&hint(Some(&longest)))),
            Some(longest)
        );
        assert_eq!(traceparent(&properties(&hint(None))), None);
    }
}
