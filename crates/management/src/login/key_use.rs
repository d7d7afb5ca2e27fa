//! When API keys were used last: exactly in memory, to an hour on the disk.

use std::collections::BTreeMap;

/// Milliseconds between two notes on the disk: a program asks many times a second, and people want
/// to know which keys nobody has used for months.
const NOTED_EVERY_MILLIS: u64 = 3_600_000;

#[derive(Clone, Copy, Debug)]
struct Use {
    used_at: u64,
    noted_at: Option<u64>,
}

/// The last use of keys that exist, by identifier.
#[derive(Debug, Default)]
pub(super) struct KeyUses {
    by_id: BTreeMap<Box<str>, Use>,
}

impl KeyUses {
    /// Notes a use; true if it is worth a write. `noted_at` is what the disk has. A write that
    /// fails is not repeated before the next one is due, so a full disk costs nothing.
    pub(super) fn use_at(&mut self, id: &str, noted_at: Option<u64>, wall_millis: u64) -> bool {
        if !self.by_id.contains_key(id) {
            let first = Use {
                used_at: wall_millis,
                noted_at,
            };
            self.by_id.insert(id.into(), first);
        }
        let Some(known) = self.by_id.get_mut(id) else {
            return false;
        };
        known.used_at = wall_millis;
        let since = |at: u64| wall_millis.saturating_sub(at);
        let is_due = known
            .noted_at
            .is_none_or(|at| since(at) >= NOTED_EVERY_MILLIS);
        if is_due {
            known.noted_at = Some(wall_millis);
        }
        is_due
    }

    /// The last use of a key since the start.
    pub(super) fn last(&self, id: &str) -> Option<u64> {
        self.by_id.get(id).map(|known| known.used_at)
    }

    /// Forgets a key that was removed.
    pub(super) fn forget(&mut self, id: &str) {
        self.by_id.remove(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_known_exactly_and_written_once_an_hour() {
        let mut uses = KeyUses::default();
        assert_eq!(uses.last("a"), None);
        assert!(uses.use_at("a", None, 5));
        assert!(!uses.use_at("a", None, 3_600_004));
        assert_eq!(uses.last("a"), Some(3_600_004));
        assert!(uses.use_at("a", None, 3_600_005));
        assert!(
            !uses.use_at("b", Some(100), 200),
            "the disk has one of this hour"
        );
        assert_eq!(uses.last("b"), Some(200));
        uses.forget("a");
        assert_eq!(uses.last("a"), None);
    }
}
