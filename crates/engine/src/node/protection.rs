//! Counters of rate limits, refusals and overload.

use thrum_protection::{OverloadCause, RateLimit, Refusal};

use super::metrics::Counter;

impl From<RateLimit> for Counter {
    fn from(limit: RateLimit) -> Self {
        match limit {
            RateLimit::ClientMessages => Self::LimitClientMessages,
            RateLimit::ClientBytes => Self::LimitClientBytes,
            RateLimit::UserMessages => Self::LimitUserMessages,
            RateLimit::UserBytes => Self::LimitUserBytes,
            RateLimit::AddressMessages => Self::LimitAddressMessages,
            RateLimit::AddressBytes => Self::LimitAddressBytes,
            RateLimit::ListenerMessages => Self::LimitListenerMessages,
            RateLimit::ListenerBytes => Self::LimitListenerBytes,
        }
    }
}

impl From<Refusal> for Counter {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BannedClientId => Self::BannedClientIds,
            Refusal::BannedUsername => Self::BannedUsernames,
            Refusal::BannedAddress => Self::BannedAddresses,
            Refusal::Flapping => Self::FlappingBans,
            Refusal::FlappingForgotten => Self::FlappingForgotten,
            Refusal::FailedLogins => Self::LoginsRefused,
            Refusal::AddressConnects => Self::LimitAddressConnects,
            Refusal::UserConnects => Self::LimitUserConnects,
        }
    }
}

/// The counter of the times that an overload began.
impl From<OverloadCause> for Counter {
    fn from(cause: OverloadCause) -> Self {
        match cause {
            OverloadCause::Lag => Self::OverloadLag,
            OverloadCause::LongLag => Self::OverloadLongLag,
            OverloadCause::Handshakes => Self::OverloadHandshakes,
        }
    }
}
