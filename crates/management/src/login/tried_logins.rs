//! Logins of MQTT clients that an administrator tries: each tells whether a password is right, so
//! they are slowed like the logins of administrators, and slow none of those.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use super::attempts::{Attempt, Attempts};
use super::digest::Digest;
use super::refusal::Refusal;
use super::service::held;

/// Names up to this length are kept as they are, and of others a digest: a user name of a client
/// may have 64 KiB, and the table has 2,048 of them.
const NAME_BYTES_MAX: usize = 64;

/// The tried logins of late. Its lock is held for less than a millisecond.
#[derive(Debug, Default)]
pub(crate) struct TriedLogins(Mutex<Attempts>);

/// One that was charged.
#[derive(Clone, Debug)]
pub(crate) struct TestAttempt(Attempt);

impl TriedLogins {
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
        let begun = held(&self.0).begin(&kept(username), from, now);
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

/// What stands for a name in the table.
fn kept(username: &str) -> Cow<'_, str> {
    if username.len() <= NAME_BYTES_MAX {
        return username.into();
    }
    Digest::of(username.as_bytes()).to_hex().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_costs_as_much_as_a_short_one_and_is_slowed_on_its_own() {
        let long = ["a", "b"].map(|end| "x".repeat(65_534) + end);
        let tests = TriedLogins::default();
        let now = Duration::from_secs(1);
        // Each guess comes from another network.
        let guess = |name: &str, network: u8| {
            let from = IpAddr::from([10, network, 0, 1]);
            tests.begin(name, Some(from), now)
        };
        let guesses = (0..100).filter(|network| guess(&long[0], *network).is_ok());
        assert_eq!(guesses.count(), 20);
        let other = guess(&long[1], 200).expect("it is another name");
        assert_eq!(other.0.name.len(), NAME_BYTES_MAX);
        let short = guess("alice", 201).expect("it is another name");
        assert_eq!(&*short.0.name, "alice");
    }
}
