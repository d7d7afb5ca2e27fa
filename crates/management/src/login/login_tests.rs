//! Logins of MQTT clients that an administrator tries: each tells whether a password is right, so
//! they are slowed like the logins of administrators, and slow none of those.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use super::attempts::{Attempt, Attempts};
use super::refusal::Refusal;
use super::service::held;

/// The tried logins of late. Its lock is held for less than a millisecond.
#[derive(Debug, Default)]
pub(crate) struct LoginTests(Mutex<Attempts>);

/// One that was charged.
#[derive(Clone, Debug)]
pub(crate) struct TestAttempt(Attempt);

impl LoginTests {
    /// Charges one.
    ///
    /// # Errors
    /// There were too many wrong ones.
    pub(crate) fn begin(
        &self,
        username: &str,
        from: Option<IpAddr>,
        now: Duration,
    ) -> Result<TestAttempt, Refusal> {
        let begun = held(&self.0).begin(username, from, now);
        begun.map(TestAttempt).map_err(Refusal::Slowed)
    }

    /// Takes the charge back: the password was right, or nobody said that it is wrong.
    pub(crate) fn refund(&self, attempt: &TestAttempt, now: Duration) {
        held(&self.0).refund(&attempt.0, now);
    }

    /// Entries that have made room for others.
    pub(super) fn forgotten(&self) -> u64 {
        held(&self.0).forgotten()
    }
}
