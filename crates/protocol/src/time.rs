//! Points in time as the node's clock counts them.

use core::time::Duration;

/// Milliseconds since the node's epoch (its start); monotonic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// From milliseconds since the node's epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the node's epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Later by a duration; saturates.
    #[must_use]
    pub const fn plus(self, duration: Duration) -> Self {
        let millis = duration.as_secs().saturating_mul(1000);
        Self(self.0.saturating_add(millis).saturating_add(duration.subsec_millis() as u64))
    }

    /// Later by whole seconds; saturates.
    #[must_use]
    pub const fn plus_secs(self, seconds: u32) -> Self {
        Self(self.0.saturating_add(seconds as u64 * 1000))
    }

    /// Time passed since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }
}
