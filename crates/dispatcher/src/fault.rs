//! From the HTTP client's errors to what an attempt observed.
//!
//! The client's own error texts print the URL with its query, so only the class and, where it is
//! known to be harmless, the innermost cause are kept.

use std::{error::Error, io};

use domain::{
    destination::DestinationRefused,
    outcome::FailureClass,
    text::{ERROR_TEXT_CHARS_MAX, safe_text},
};

use crate::resolver::ResolveError;

/// What kind of failure it was, with a text for operators.
pub(crate) fn classify(error: &reqwest::Error) -> (FailureClass, String) {
    let class = class_of(error);
    let detail = innermost_io(error).map(ToString::to_string);
    let text = match (describe(class), detail) {
        (description, Some(detail)) if class != FailureClass::Timeout => {
            format!("{description}: {detail}")
        }
        (description, _) => description.to_owned(),
    };
    (class, safe_text(text.as_bytes(), ERROR_TEXT_CHARS_MAX))
}

fn class_of(error: &reqwest::Error) -> FailureClass {
    if let Some(resolve) = cause::<ResolveError>(error) {
        return match resolve {
            ResolveError::Refused(DestinationRefused::ForbiddenAddress) => {
                FailureClass::ForbiddenAddress
            }
            ResolveError::Refused(_) | ResolveError::Lookup(_) => FailureClass::Dns,
        };
    }
    if error.is_timeout() {
        return FailureClass::Timeout;
    }
    if tls_fault(error) {
        return FailureClass::Tls;
    }
    if error.is_connect() {
        return FailureClass::Connect;
    }
    if error.is_builder() {
        return FailureClass::Configuration;
    }
    match cause::<hyper::Error>(error) {
        Some(error) if error.is_parse() => FailureClass::Protocol,
        _ => FailureClass::ConnectionClosed,
    }
}

fn describe(class: FailureClass) -> &'static str {
    match class {
        FailureClass::Dns => "the name cannot be resolved",
        FailureClass::ForbiddenAddress => "the address is not a permitted destination",
        FailureClass::Connect => "no connection",
        FailureClass::Tls => "the TLS handshake failed",
        FailureClass::Timeout => "no answer within the attempt limit",
        FailureClass::ConnectionClosed => "the connection was closed before an answer",
        FailureClass::Protocol => "the answer is not valid HTTP",
        FailureClass::Configuration => "the request cannot be built",
    }
}

/// rustls reports inside an `io::Error`.
fn tls_fault(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| {
        cause.is::<rustls::Error>()
            || cause
                .downcast_ref::<io::Error>()
                .and_then(io::Error::get_ref)
                .is_some_and(<dyn Error + Send + Sync>::is::<rustls::Error>)
    })
}

fn cause<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    causes(error).find_map(|cause| cause.downcast_ref::<T>())
}

fn innermost_io(error: &reqwest::Error) -> Option<&io::Error> {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .last()
}

fn causes(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}
