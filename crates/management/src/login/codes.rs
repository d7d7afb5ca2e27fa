//! One-time codes that were used, and secrets that an administrator has not confirmed yet.

use std::collections::BTreeMap;
use std::time::Duration;

use super::totp::Totp;
use crate::clock::Now;

/// Time to enter the first code of a new secret.
const CONFIRM_TIME: Duration = Duration::from_mins(10);

/// Codes by administrator: no more entries than administrators, because each has logged in.
///
/// In memory alone: after a restart a code may work again within its 90 s.
#[derive(Debug, Default)]
pub(super) struct Codes {
    used: BTreeMap<Box<str>, u64>,
    unconfirmed: BTreeMap<Box<str>, Unconfirmed>,
}

#[derive(Debug)]
struct Unconfirmed {
    totp: Totp,
    until: Duration,
}

impl Codes {
    /// Whether it is a code of now that was not used; it is used by this.
    pub(super) fn take(&mut self, name: &str, totp: &Totp, code: &str, now: Now) -> bool {
        let used = self.used.get(name).copied();
        let Some(step) = totp.step_of(code, now.wall_millis, used) else {
            return false;
        };
        self.used.insert(name.into(), step);
        true
    }

    /// Keeps a secret until its first code is there.
    pub(super) fn begin(&mut self, name: &str, totp: Totp, now: Now) {
        self.unconfirmed.retain(|_, one| one.until > now.uptime);
        let until = now.uptime + CONFIRM_TIME;
        self.unconfirmed
            .insert(name.into(), Unconfirmed { totp, until });
    }

    /// The secret that a first code confirms.
    pub(super) fn confirm(&mut self, name: &str, code: &str, now: Now) -> Option<Totp> {
        let one = self.unconfirmed.get(name)?;
        let totp = (one.until > now.uptime).then(|| one.totp.clone())?;
        let step = totp.step_of(code, now.wall_millis, None)?;
        self.used.insert(name.into(), step);
        self.unconfirmed.remove(name);
        Some(totp)
    }

    /// Forgets an administrator.
    pub(super) fn forget(&mut self, name: &str) {
        self.used.remove(name);
        self.unconfirmed.remove(name);
    }
}
