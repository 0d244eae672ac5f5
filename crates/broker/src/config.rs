//! How to reach the broker and how much to take from it. Reads no environment.

use std::{fmt, time::Duration};

use lapin::uri::AMQPUri;

use crate::BrokerError;

/// A silent peer is given up after twice this time.
const HEARTBEAT_SECONDS: u16 = 10;

/// How to reach the broker, under which names, and how much to take at once.
#[derive(Clone)]
pub struct BrokerConfig {
    /// `amqp://` or `amqps://` address with credentials; never logged.
    pub amqp_url: String,
    /// First part of every exchange and queue name.
    pub namespace: String,
    /// The smallest delay; every delay is rounded up to a multiple. At least one millisecond.
    pub delay_unit: Duration,
    /// How many messages may be out unacknowledged at once; at least one.
    pub prefetch: u16,
    /// Longest time one call of [`Publisher::publish`](crate::Publisher::publish) may take.
    pub confirm_timeout: Duration,
    /// Shown by the broker's own tools.
    pub connection_name: String,
}

impl BrokerConfig {
    /// The defaults: namespace `kurier`, delays in seconds, prefetch 500, 10 s for a confirmation.
    pub fn new(amqp_url: impl Into<String>) -> Self {
        Self {
            amqp_url: amqp_url.into(),
            namespace: "kurier".to_owned(),
            delay_unit: Duration::from_secs(1),
            prefetch: 500,
            confirm_timeout: Duration::from_secs(10),
            connection_name: "kurier".to_owned(),
        }
    }

    /// Finds what can never work. [`BrokerError::Configuration`] is the only error.
    pub fn check(&self) -> Result<(), BrokerError> {
        self.uri()?;
        if self.delay_unit < Duration::from_millis(1) {
            return fault("the delay unit must be at least one millisecond");
        }
        if self.prefetch == 0 {
            return fault("the prefetch must be at least one message");
        }
        Ok(())
    }

    /// The parsed address. The parser's own error text may repeat the address, so it is dropped.
    pub(crate) fn uri(&self) -> Result<AMQPUri, BrokerError> {
        let Ok(mut uri) = self.amqp_url.parse::<AMQPUri>() else {
            return fault("the AMQP address is not valid");
        };
        if let Some(host) = ipv6_host(&self.amqp_url) {
            host.clone_into(&mut uri.authority.host);
        }
        uri.query.heartbeat = Some(HEARTBEAT_SECONDS);
        Ok(uri)
    }
}

fn fault<T>(reason: &'static str) -> Result<T, BrokerError> {
    Err(BrokerError::Configuration(reason))
}

/// The host of an address like `amqp://[::1]:5672`. The AMQP parser does not know this form and
/// would silently connect to localhost instead.
fn ipv6_host(amqp_url: &str) -> Option<&str> {
    let after_scheme = amqp_url.split_once("://")?.1;
    let authority = after_scheme.split(['/', '?', '#']).next()?;
    let host_and_port = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    Some(host_and_port.strip_prefix('[')?.split_once(']')?.0)
}

impl fmt::Debug for BrokerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BrokerConfig")
            .field("amqp_url", &"(not shown)")
            .field("namespace", &self.namespace)
            .field("delay_unit", &self.delay_unit)
            .field("prefetch", &self.prefetch)
            .field("confirm_timeout", &self.confirm_timeout)
            .field("connection_name", &self.connection_name)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_URL: &str = "amqp://someone:hunter2@[::1]:5673/%2f";

    #[test]
    fn credentials_appear_in_no_text() {
        let config = BrokerConfig::new(SECRET_URL);
        assert!(!format!("{config:?}").contains("hunter2"));
        let broken = BrokerConfig::new("amqp:someone:hunter2");
        let error = broken.check().unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"));
    }

    #[test]
    fn an_ipv6_address_is_the_one_connected_to() {
        let uri = BrokerConfig::new(SECRET_URL).uri().unwrap();
        assert_eq!(
            (uri.authority.host.as_str(), uri.authority.port),
            ("::1", 5673)
        );
        let named = BrokerConfig::new("amqp://rabbit.example:1/x")
            .uri()
            .unwrap();
        assert_eq!(named.authority.host, "rabbit.example");
    }

    #[test]
    fn the_limits_are_checked_at_their_edges() {
        let mut config = BrokerConfig::new("amqp://localhost");
        config.delay_unit = Duration::from_millis(1);
        config.prefetch = 1;
        assert!(config.check().is_ok());
        config.prefetch = 0;
        assert!(config.check().is_err());
        config.prefetch = 1;
        config.delay_unit = Duration::from_micros(999);
        assert!(config.check().is_err());
    }
}
