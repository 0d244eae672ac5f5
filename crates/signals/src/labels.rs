//! The closed sets of values that metric labels may take.
//!
//! A label is an enum, so that a series can neither be misspelt nor multiply with the traffic. Ids,
//! addresses and error texts belong on spans and in rows, not here.

use crate::names::Label;

/// Declares one label: its key, its values, and the enum that stands for them in code.
macro_rules! label {
    ($(#[$about:meta])* $name:ident, $key:literal, { $($(#[$what:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$what])* $variant,)+
        }

        impl $name {
            /// Every value, in the order of the catalogue.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The label as the catalogue lists it.
            pub const LABEL: Label = Label { key: $key, values: &[$($text,)+] };

            /// The value as it is exported.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

label! {
    /// What became of an outbox event in a relay's turn.
    EventOutcome, "outcome", {
        /// It has its deliveries and they are published.
        Expanded = "expanded",
        /// It cannot be published and was set aside with its error.
        Parked = "parked",
        /// No endpoint subscribes to it.
        Unrouted = "unrouted",
    }
}

label! {
    /// Why a hint was published.
    HintOrigin, "origin", {
        /// A new delivery, from the outbox.
        Relay = "relay",
        /// A failed attempt that is tried again later.
        Retry = "retry",
        /// A delivery that should have been moving and was not.
        Sweep = "sweep",
        /// A held delivery whose gate has opened.
        Release = "release",
    }
}

label! {
    /// What the broker said to a published hint.
    HintOutcome, "outcome", {
        /// Confirmed and not returned.
        Confirmed = "confirmed",
        /// Refused, returned, or not confirmed in time.
        Failed = "failed",
    }
}

label! {
    /// What became of an attempt to claim a delivery.
    ClaimOutcome, "outcome", {
        /// Leased to this dispatcher.
        Claimed = "claimed",
        /// Its endpoint's gate is closed: it waits.
        Held = "held",
        /// Not to be sent now: finished, leased to another, or not yet due.
        Refused = "refused",
    }
}

label! {
    /// What was decided after an attempt.
    AttemptOutcome, "outcome", {
        /// The receiver accepted it.
        Delivered = "delivered",
        /// It is tried again.
        Retry = "retry",
        /// It is given up.
        DeadLetter = "dead_letter",
    }
}

label! {
    /// What kind of failure an attempt met.
    ErrorClass, "error_class", {
        /// None: it was accepted.
        None = "none",
        /// The host's name could not be resolved.
        Dns = "dns",
        /// The address is one that must not be called.
        ForbiddenAddress = "forbidden_address",
        /// No connection came about.
        Connect = "connect",
        /// The TLS handshake or the certificate failed.
        Tls = "tls",
        /// The attempt's time was up.
        Timeout = "timeout",
        /// The connection was closed before the status line arrived.
        ConnectionClosed = "connection_closed",
        /// The answer was not HTTP.
        Protocol = "protocol",
        /// A status from 300 to 399, which is never followed.
        Redirect = "redirect",
        /// A status from 400 to 499 other than 429.
        ClientError = "client_error",
        /// Status 429.
        RateLimited = "rate_limited",
        /// A status from 500 to 599.
        ServerError = "server_error",
        /// Any other status that is not a success.
        UnexpectedStatus = "unexpected_status",
        /// The request could not be built from the endpoint's configuration.
        Configuration = "configuration",
    }
}

label! {
    /// Why a delivery was given up.
    DeadLetterReason, "reason", {
        /// Every attempt that was allowed has failed.
        AttemptsExhausted = "attempts_exhausted",
        /// The receiver answered with a status that repeating does not change.
        Rejected = "rejected",
        /// The receiver said 410: the endpoint is gone.
        EndpointGone = "endpoint_gone",
        /// The endpoint leads to an address that must not be called.
        ForbiddenAddress = "forbidden_address",
        /// The endpoint cannot be called as it is configured.
        Configuration = "configuration",
        /// It waited longer than a delivery may.
        WaitExpired = "wait_expired",
    }
}

label! {
    /// The state a breaker moved to.
    BreakerState, "to", {
        /// Nothing is sent until the cooldown is over.
        Open = "open",
        /// One probe is out.
        HalfOpen = "half_open",
        /// Everything is sent.
        Closed = "closed",
    }
}

label! {
    /// What the sweep found standing still.
    SweepKind, "kind", {
        /// A lease past its deadline.
        LeaseExpired = "lease_expired",
        /// Due for a while, and nobody claimed it.
        Overdue = "overdue",
        /// Held though its gate is open.
        Released = "released",
        /// Waiting longer than a delivery may.
        Expired = "expired",
    }
}
