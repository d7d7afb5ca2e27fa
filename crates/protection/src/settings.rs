//! The limits in force, in the form that the checks use.

use super::flapping::FlappingLimits;
use super::logins::LoginLimits;
use super::overload::OverloadLimits;
use super::rate_table::Paces;

/// Each worker holds them with its other settings; a reload replaces them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtectionSettings {
    /// `limits.client`: of each connection.
    pub client: Paces,
    /// `limits.user`.
    pub user: Paces,
    /// `limits.address`.
    pub address: Paces,
    /// `protection.flapping`.
    pub flapping: FlappingLimits,
    /// `protection.logins`.
    pub logins: LoginLimits,
    /// `protection.overload` and `limits.handshakes`.
    pub overload: OverloadLimits,
}
