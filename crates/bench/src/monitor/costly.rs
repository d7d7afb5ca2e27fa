//! Readings that are too costly for every second.

use std::path::PathBuf;

use thrum_figures::SECOND_NS;

use super::tree::{numbered, process_folder};
use crate::clock;

/// Shortest time between two readings.
const REST_NS: u64 = 5 * SECOND_NS;

/// Inverse of the share of time spent on listing open files: a million files take seconds.
const LIST_PART: u64 = 100;

/// A walk of the page tables that takes more CPU time than this (about 1.5 GB resident) is not made
/// in the load: the process cannot map memory meanwhile.
const WALK_NS_MAX: u64 = SECOND_NS / 50;

/// Memory that changed by more than this part of it is read at once.
const CHANGE_PART: u64 = 100;

/// When the page tables are worth a walk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Walks {
    last: Option<Walk>,
}

#[derive(Clone, Copy, Debug)]
struct Walk {
    at_ns: u64,
    rss_bytes: u64,
    took_ns: u64,
}

impl Walks {
    /// Whether a walk now gives new information without disturbing the process.
    pub(super) fn are_due(&self, at_ns: u64, rss_bytes: u64) -> bool {
        let Some(last) = self.last else { return true };
        let changed = rss_bytes.abs_diff(last.rss_bytes) > last.rss_bytes / CHANGE_PART;
        // The duration scales with the memory at that time.
        let took_ns = u128::from(last.took_ns) * u128::from(rss_bytes.max(1))
            / u128::from(last.rss_bytes.max(1));
        took_ns < u128::from(WALK_NS_MAX)
            && (changed || at_ns.saturating_sub(last.at_ns) >= REST_NS)
    }

    /// Notes a walk.
    pub(super) const fn note(&mut self, at_ns: u64, rss_bytes: u64, took_ns: u64) {
        self.last = Some(Walk {
            at_ns,
            rss_bytes,
            took_ns,
        });
    }
}

/// Open files of processes.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    listed: u64,
    next_list_ns: u64,
}

impl OpenFiles {
    /// Their number, now or when they were last listed.
    ///
    /// Since Linux 6.2 the size of the folder is their number; before, they have to be listed, 1 µs
    /// each.
    pub(super) fn count(&mut self, members: &[u32], at_ns: u64) -> u64 {
        let told: u64 = members.iter().map(|pid| size(&folder(*pid))).sum();
        if told > 0 {
            return told;
        }
        if at_ns >= self.next_list_ns {
            let before_ns = clock::monotonic_ns();
            let lists = members.iter().map(|pid| numbered(&folder(*pid)).len());
            self.listed = lists.map(|files| u64::try_from(files).unwrap_or(0)).sum();
            self.rest(at_ns, clock::monotonic_ns().saturating_sub(before_ns));
        }
        self.listed
    }

    /// Notes a list.
    fn rest(&mut self, at_ns: u64, took_ns: u64) {
        self.next_list_ns = at_ns + took_ns.saturating_mul(LIST_PART).max(REST_NS);
    }
}

fn folder(pid: u32) -> PathBuf {
    process_folder(pid).join("fd")
}

fn size(folder: &std::path::Path) -> u64 {
    std::fs::metadata(folder).map_or(0, |folder| folder.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const MIB: u64 = 1024 * 1024;

    fn walked(took_ns: u64) -> Walks {
        let mut walks = Walks::default();
        assert!(walks.are_due(0, 100 * MIB));
        walks.note(10 * SECOND_NS, 100 * MIB, took_ns);
        walks
    }

    #[test]
    fn memory_that_changes_is_walked_at_once_and_other_memory_after_a_rest() {
        let walks = walked(MS);
        assert!(!walks.are_due(11 * SECOND_NS, 100 * MIB));
        assert!(!walks.are_due(14 * SECOND_NS, 101 * MIB));
        assert!(walks.are_due(11 * SECOND_NS, 102 * MIB));
        assert!(walks.are_due(11 * SECOND_NS, 98 * MIB));
        assert!(walks.are_due(15 * SECOND_NS, 100 * MIB));
    }

    #[test]
    fn a_walk_that_takes_long_is_not_repeated_until_memory_shrinks() {
        let walks = walked(WALK_NS_MAX);
        assert!(!walks.are_due(60 * SECOND_NS, 100 * MIB));
        assert!(!walks.are_due(60 * SECOND_NS, 200 * MIB));
        assert!(walks.are_due(60 * SECOND_NS, 50 * MIB));
        assert!(!walked(WALK_NS_MAX / 2).are_due(60 * SECOND_NS, 250 * MIB));
    }

    #[test]
    fn open_files_of_this_process_are_counted() {
        let mut open = OpenFiles::default();
        let files: Vec<_> = (0..50)
            .map(|_| std::fs::File::open("/dev/null").unwrap())
            .collect();
        let count = open.count(&[std::process::id()], 1);
        assert!(count > 50, "{count}");
        drop(files);
    }

    #[test]
    fn a_list_is_kept_for_a_while() {
        let mut open = OpenFiles {
            listed: 18_000,
            next_list_ns: SECOND_NS + REST_NS,
        };
        // A process that is not there has no size, as on an older kernel.
        assert_eq!(open.count(&[u32::MAX], 2 * SECOND_NS), 18_000);
        assert_eq!(open.count(&[u32::MAX], SECOND_NS + REST_NS), 0);
    }

    #[test]
    fn a_long_list_is_made_less_often() {
        let mut open = OpenFiles::default();
        open.rest(10 * SECOND_NS, 20 * MS);
        assert_eq!(open.next_list_ns, 15 * SECOND_NS);
        open.rest(10 * SECOND_NS, 2 * SECOND_NS);
        assert_eq!(open.next_list_ns, 210 * SECOND_NS);
    }
}
