//! The log on the disk and in memory.

use std::fs;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::super::entry::Outcome;
use super::*;
use crate::login::Role;

/// A log in a folder of its own, with a clock.
struct TestLog {
    folder: PathBuf,
    clock: Clock,
    millis: Arc<AtomicU64>,
    audit: Audit,
}

impl TestLog {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-audit-{name}-{}", std::process::id()));
        fs::remove_dir_all(&folder).ok();
        fs::create_dir_all(&folder).unwrap();
        let (clock, millis) = Clock::manual();
        let audit = Audit::open(Some(&folder), clock.clone()).unwrap();
        Self {
            folder,
            clock,
            millis,
            audit,
        }
    }

    fn restart(&mut self) {
        self.audit = Audit::open(Some(&self.folder), self.clock.clone()).unwrap();
    }

    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.join("audit")).unwrap();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths
    }

    fn kick(&self, client_id: &str) -> Pending {
        self.audit.begin(&alice(), kick(client_id)).unwrap()
    }

    /// Targets and outcomes, the newest first.
    fn all(&self) -> Vec<(String, Outcome)> {
        let found = self.audit.page(&query(1000)).unwrap();
        assert_eq!(found.next, None);
        let entries = found.entries.into_iter();
        entries.map(|entry| (entry.target, entry.outcome)).collect()
    }
}

impl Drop for TestLog {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.folder).ok();
    }
}

fn alice() -> Caller {
    let from: IpAddr = "::ffff:192.0.2.1".parse().unwrap();
    Caller::session("alice", Role::Operator, Some(from))
}

fn kick(client_id: &str) -> Change {
    Change::new("client.kick", client_id).after(json!({ "session": true, "password": "hunter2" }))
}

fn query(limit: usize) -> AuditQuery {
    AuditQuery {
        limit,
        ..AuditQuery::default()
    }
}

fn owned(rows: &[(&str, Outcome)]) -> Vec<(String, Outcome)> {
    rows.iter()
        .map(|(target, outcome)| ((*target).to_owned(), *outcome))
        .collect()
}

#[test]
fn a_change_is_there_with_its_end_also_after_a_restart() {
    let mut log = TestLog::new("restart");
    log.millis.store(1500, Ordering::SeqCst);
    let (one, two) = (log.kick("one"), log.kick("two"));
    log.audit.finish(&two, Ended::failed("not there"));
    log.audit.finish(&one, Ended::done());
    let _under_way = log.kick("three");
    let expected = owned(&[
        ("three", Outcome::Unknown),
        ("two", Outcome::Failed),
        ("one", Outcome::Done),
    ]);
    assert_eq!(log.all(), expected);
    log.restart();
    assert_eq!(log.all(), expected);
    let page = log.audit.page(&query(10)).unwrap();
    let entry = &page.entries[1];
    assert_eq!((entry.number, entry.at), (2, 2_000_000_001_500));
    assert_eq!((&*entry.who, &*entry.means), ("alice", "session"));
    assert_eq!(entry.from.as_deref(), Some("192.0.2.1"));
    assert_eq!(
        entry.after,
        Some(json!({ "session": true, "password": "***" }))
    );
    assert_eq!(entry.detail.as_deref(), Some("not there"));
    let _next = log.kick("four");
    assert_eq!(log.audit.page(&query(1)).unwrap().entries[0].number, 4);
}

#[test]
fn a_torn_last_line_is_left_out_and_the_log_goes_on_behind_it() {
    let mut log = TestLog::new("torn");
    let one = log.kick("one");
    log.audit.finish(&one, Ended::done());
    let whole = fs::read(&log.files()[0]).unwrap();
    let _torn = log.kick("torn");
    let with_torn = fs::read(&log.files()[0]).unwrap();
    for len in whole.len() + 1..with_torn.len() {
        fs::write(&log.files()[0], &with_torn[..len]).unwrap();
        log.restart();
        let two = log.kick("two");
        log.audit.finish(&two, Ended::done());
        let found = log.audit.page(&query(10)).unwrap();
        let rows: Vec<_> = found
            .entries
            .iter()
            .map(|one| (&*one.target, one.outcome))
            .collect();
        let is_whole_line = len + 1 == with_torn.len();
        if is_whole_line {
            // Only its line feed was missing.
            assert_eq!(rows[1], ("torn", Outcome::Unknown));
        } else {
            assert_eq!(
                rows,
                [("two", Outcome::Done), ("one", Outcome::Done)],
                "{len}"
            );
            assert_eq!(found.damaged, 1);
        }
        let numbers: Vec<u64> = found.entries.iter().map(|one| one.number).collect();
        assert!(
            numbers.is_sorted_by(|newer, older| newer > older),
            "{numbers:?}"
        );
    }
}

#[test]
fn only_the_owner_may_read_the_files() {
    let log = TestLog::new("mode");
    let _pending = log.kick("one");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&log.files()[0]), 0o600);
    assert_eq!(mode(&log.folder.join("audit")), 0o700);
}

#[test]
fn the_oldest_file_makes_room_and_pages_go_over_files() {
    let mut log = TestLog::new("rotated");
    // Files as full ones, so that the test writes a hundred entries only.
    for _ in 0..FILES_MAX + 5 {
        let one = log.kick("full");
        let last = log.files().pop().unwrap();
        let mut file = fs::File::options().append(true).open(last).unwrap();
        let rest = usize::try_from(FILE_BYTES_MAX - file.metadata().unwrap().len()).unwrap();
        file.write_all(" ".repeat(rest - 1).as_bytes()).unwrap();
        file.write_all(b"\n").unwrap();
        log.restart();
        // In the next file, but for the number.
        let two = log.kick("next");
        log.audit.finish(&one, Ended::done());
        log.audit.finish(&two, Ended::done());
    }
    let files = log.files();
    assert_eq!(files.len(), FILES_MAX);
    let bytes: u64 = files
        .iter()
        .map(|path| fs::metadata(path).unwrap().len())
        .sum();
    assert!(
        bytes <= (FILE_BYTES_MAX + 1024) * FILES_MAX as u64,
        "{bytes}"
    );
    let mut numbers = Vec::new();
    let mut pages = 0;
    let mut wanted = query(7);
    loop {
        let found = log.audit.page(&wanted).unwrap();
        assert!(found.entries.len() <= 7);
        numbers.extend(found.entries.iter().map(|entry| entry.number));
        let ended = found
            .entries
            .iter()
            .all(|entry| entry.outcome == Outcome::Done);
        assert!(ended, "{:?}", found.entries);
        pages += 1;
        wanted.before = found.next;
        if found.next.is_none() {
            break;
        }
    }
    let newest = numbers[0];
    let expected: Vec<u64> = (newest + 1 - numbers.len() as u64..=newest).rev().collect();
    assert_eq!(numbers, expected, "each once, in order");
    assert!(
        numbers.len() >= FILES_MAX && pages > FILES_MAX / 7,
        "{pages} pages"
    );
}

#[test]
fn a_smaller_log_keeps_its_newest_files() {
    let mut log = TestLog::new("smaller");
    for _ in 0..6 {
        let _pending = log.kick("full");
        let last = log.files().pop().unwrap();
        let mut file = fs::File::options().append(true).open(last).unwrap();
        let rest = usize::try_from(FILE_BYTES_MAX - file.metadata().unwrap().len()).unwrap();
        file.write_all("\n".repeat(rest).as_bytes()).unwrap();
        log.restart();
    }
    let before = log.files();
    log.audit.set_bytes_max(3 * FILE_BYTES_MAX);
    assert_eq!(log.files(), before[3..]);
    log.audit.set_bytes_max(0);
    assert_eq!(log.files(), before[4..], "never less than two");
    assert_eq!(log.all().len(), 2);
}

#[test]
fn a_filter_that_matches_little_reads_a_few_files_for_a_page() {
    let mut log = TestLog::new("filtered");
    for number in 0..20 {
        log.millis.store(number * 1000, Ordering::SeqCst);
        let _pending = log.kick(&format!("client-{number}"));
        let last = log.files().pop().unwrap();
        let mut file = fs::File::options().append(true).open(last).unwrap();
        let rest = usize::try_from(FILE_BYTES_MAX - file.metadata().unwrap().len()).unwrap();
        file.write_all("\n".repeat(rest).as_bytes()).unwrap();
        log.restart();
    }
    let bob = Caller::key("bob", Role::Viewer.scopes(), None);
    let logins = Change::new("login", "bob");
    log.audit.record(&bob, logins, Ended::done()).unwrap();
    let mut wanted = AuditQuery {
        action: Some("none.*".to_owned()),
        ..query(10)
    };
    let first = log.audit.page(&wanted).unwrap();
    assert!(first.entries.is_empty() && first.next.is_some());
    wanted.before = first.next;
    let second = log.audit.page(&wanted).unwrap();
    wanted.before = second.next;
    assert_eq!(log.audit.page(&wanted).unwrap().next, None);
    for (who, action, since, expected) in [
        (Some("key:bob"), None, None, 1),
        (None, Some("login"), None, 1),
        (None, Some("client.*"), None, 7),
        (None, Some("client"), None, 0),
        (None, None, Some(2_000_000_018_000), 3),
        (Some("alice"), None, Some(2_000_000_018_000), 2),
    ] {
        let wanted = AuditQuery {
            who: who.map(ToOwned::to_owned),
            action: action.map(ToOwned::to_owned),
            since,
            ..query(10)
        };
        let found = log.audit.page(&wanted).unwrap();
        assert_eq!(
            found.entries.len(),
            expected,
            "{who:?} {action:?} {since:?}"
        );
    }
}

#[test]
fn a_change_on_a_full_disk_is_refused_and_the_log_goes_on_afterwards() {
    let mut log = TestLog::new("full");
    let before = log.kick("before");
    let healthy = log.audit.break_disk();
    let refused = log.audit.begin(&alice(), kick("refused")).unwrap_err();
    assert!(refused.to_string().contains("No space left"), "{refused}");
    log.audit.finish(&before, Ended::done());
    assert_eq!(
        log.audit.failures(),
        2,
        "the change, and the end of another"
    );
    log.audit.mend_disk(healthy);
    let after = log.kick("after");
    log.audit.finish(&after, Ended::done());
    let expected = owned(&[("after", Outcome::Done), ("before", Outcome::Unknown)]);
    assert_eq!(log.all(), expected);
    log.restart();
    assert_eq!(log.all(), expected);
}

#[test]
fn without_a_data_directory_the_newest_entries_are_in_memory() {
    let (clock, _) = Clock::manual();
    let audit = Audit::open(None, clock).unwrap();
    for number in 0..3000 {
        let pending = audit.begin(&alice(), kick(&number.to_string())).unwrap();
        audit.finish(&pending, Ended::done());
    }
    let found = audit.page(&query(1000)).unwrap();
    assert_eq!(found.entries[0].target, "2999");
    assert_eq!(found.entries[0].outcome, Outcome::Done);
    let wanted = AuditQuery {
        before: found.next,
        ..query(10_000)
    };
    let found = audit.page(&wanted).unwrap();
    assert_eq!((found.entries.len(), found.next), (1000, None));
    assert_eq!(found.entries[999].target, "1000");
}
