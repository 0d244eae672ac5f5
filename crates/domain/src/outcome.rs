//! What one attempt observed: a fact. What to do about it is decided in [`crate::judge`].

use crate::names::names;

names! {
    /// Why an attempt ended without a usable response.
    pub enum FailureClass: "failure class" {
        /// The name could not be resolved.
        Dns = "dns",
        /// The name or literal leads to an address that must not be called.
        ForbiddenAddress = "forbidden_address",
        /// No connection could be made.
        Connect = "connect",
        /// The TLS handshake failed.
        Tls = "tls",
        /// The attempt limit passed before the status line arrived.
        Timeout = "timeout",
        /// The connection was closed before the status line arrived.
        ConnectionClosed = "connection_closed",
        /// What arrived is not an HTTP response.
        Protocol = "protocol",
        /// The request could not be built from the endpoint's configuration.
        Configuration = "configuration",
    }
}

/// What one attempt observed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A status line arrived. Whatever happens to the body afterwards changes nothing.
    Response {
        /// HTTP status, 100 to 599; see [`Outcome::response`].
        status: u16,
        /// The `Retry-After` field as received.
        retry_after: Option<String>,
    },
    /// No usable response.
    Failure(FailureClass),
}

impl Outcome {
    /// A response; a status outside 100 to 599 is no HTTP and becomes a protocol failure.
    pub fn response(status: u16, retry_after: Option<String>) -> Outcome {
        match status {
            100..=599 => Outcome::Response {
                status,
                retry_after,
            },
            _ => Outcome::Failure(FailureClass::Protocol),
        }
    }

    /// The kind of error for records and metrics, `None` for a success.
    pub fn error_class(&self) -> Option<&'static str> {
        match self {
            Outcome::Failure(class) => Some(class.as_str()),
            Outcome::Response { status, .. } => match status {
                200..=299 => None,
                100..=199 => Some("http_1xx"),
                300..=399 => Some("http_3xx"),
                400..=499 => Some("http_4xx"),
                500..=599 => Some("http_5xx"),
                _ => Some(FailureClass::Protocol.as_str()),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_that_http_does_not_have_is_a_protocol_failure() {
        for status in [0, 99, 600, 999, u16::MAX] {
            let outcome = Outcome::response(status, None);
            assert_eq!(
                outcome,
                Outcome::Failure(FailureClass::Protocol),
                "{status}"
            );
        }
        for status in [100, 599] {
            let outcome = Outcome::response(status, None);
            assert!(matches!(outcome, Outcome::Response { .. }), "{status}");
        }
    }

    #[test]
    fn every_failure_has_a_class_and_a_success_has_none() {
        let class = |status| Outcome::response(status, None).error_class();
        assert_eq!(class(199), Some("http_1xx"));
        assert_eq!(class(200), None);
        assert_eq!(class(299), None);
        assert_eq!(class(300), Some("http_3xx"));
        assert_eq!(class(404), Some("http_4xx"));
        assert_eq!(class(500), Some("http_5xx"));
        assert_eq!(class(600), Some("protocol"));
        for failure in FailureClass::ALL {
            let outcome = Outcome::Failure(*failure);
            assert_eq!(outcome.error_class(), Some(failure.as_str()));
            assert_eq!(failure.as_str().parse(), Ok(*failure));
        }
    }
}
