//! Reasons to refuse a client.

use thrum_codec::ReasonCode;
use thrum_protocol::Violation;

/// The reason to refuse a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The client identifier is banned.
    BannedClientId,
    /// The user is banned.
    BannedUsername,
    /// The address is banned.
    BannedAddress,
    /// The client, the user or the address connects too often, and is banned from now on.
    Flapping,
    /// The client connects too often, but there are too many temporary bans to add another.
    FlappingForgotten,
    /// Too many logins from the address failed.
    FailedLogins,
    /// The address has used up `limits.address.connects`.
    AddressConnects,
    /// The user has used up `limits.user.connects`.
    UserConnects,
}

impl Refusal {
    /// The reason code of the CONNACK; in 3.x banned is 5 (not authorized) and a rate is 3 (server
    /// unavailable).
    pub(crate) const fn reason(self) -> ReasonCode {
        match self {
            Self::BannedClientId
            | Self::BannedUsername
            | Self::BannedAddress
            | Self::Flapping
            | Self::FlappingForgotten => ReasonCode::Banned,
            Self::FailedLogins | Self::AddressConnects | Self::UserConnects => {
                ReasonCode::ConnectionRateExceeded
            }
        }
    }

    /// A text for the client and for the log.
    pub const fn what(self) -> &'static str {
        match self {
            Self::BannedClientId => "this client identifier is banned",
            Self::BannedUsername => "this user is banned",
            Self::BannedAddress => "this address is banned",
            Self::Flapping | Self::FlappingForgotten => "connects too often (protection.flapping)",
            Self::FailedLogins => {
                "too many failed logins from this address, try again later (protection.logins)"
            }
            Self::AddressConnects => {
                "too many connections from this address (limits.address.connects)"
            }
            Self::UserConnects => "too many connections of this user (limits.user.connects)",
        }
    }
}

impl From<Refusal> for Violation {
    fn from(refusal: Refusal) -> Self {
        Self::new(refusal.reason(), refusal.what())
    }
}
