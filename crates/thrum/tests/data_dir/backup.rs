//! `thrum backup`.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;
use thrum_storage::disk::RealDisk;
use thrum_storage::{Batch, Change, Store};

use crate::folder::{Folder, message, queued, session};
use crate::server::Server;

#[test]
fn a_restore_equals_the_original() {
    let folder = Folder::filled("backup");
    let inside = |line: &str| {
        let mut found = folder.json(line).remove(0);
        let taken_at = found["taken_at"].take();
        assert!(taken_at.as_str().unwrap().ends_with('Z'), "{taken_at}");
        assert!(found["bytes"].take().as_u64().unwrap() > 500);
        found
    };
    let expected = |file| {
        json!({
            "file": file, "taken_at": null, "bytes": null, "sessions": 3, "subscriptions": 1, "queued": 1, "inflight": 2,
            "messages": 4, "retained": 2, "files": [], "damaged_places": 0, "gone_parts": 0,
        })
    };
    assert_eq!(
        inside("backup create b.tar --data-dir data --json"),
        expected("b.tar")
    );
    assert_eq!(inside("backup check b.tar --json"), expected("b.tar"));
    assert_eq!(
        inside("backup restore b.tar --data-dir new/dir --json"),
        expected("b.tar")
    );
    assert_eq!(folder.state("new/dir"), folder.state("data"));
    // A broker opens it and continues.
    let mut store = folder.open("new/dir");
    let mut batch = Batch::default();
    batch.push(&session(9, "later", None));
    store.apply(&batch).unwrap();
    store.close().unwrap();
    assert_eq!(folder.state("new/dir").sessions.len(), 4);
    let leftovers = ["b.tar.part", "new/dir/state.restore"];
    assert!(leftovers.iter().all(|name| !folder.path(name).exists()));
}

#[test]
fn the_contents_are_printed() {
    let folder = Folder::filled("backup-printed");
    let printed = folder.printed("backup create b.tar --data-dir data");
    assert!(
        printed.starts_with("b.tar was written: taken at 20"),
        "{printed}"
    );
    let counts = "  sessions       3\n  subscriptions  1\n  queued         1\n  inflight       2\n  messages       4\n  \
                  retained       2\n";
    assert!(printed.ends_with(counts), "{printed}");
    let printed = folder.printed("backup check b.tar");
    assert!(
        printed.starts_with("b.tar is whole: taken at 20"),
        "{printed}"
    );
    let printed = folder.printed("backup restore b.tar --data-dir new");
    assert!(
        printed.starts_with("b.tar is now in new: taken at 20"),
        "{printed}"
    );
}

#[test]
fn administrators_users_bans_settings_and_the_audit_log_come_back() {
    let folder = Folder::filled("backup-files");
    let audit = "audit/00000000000000000001.jsonl";
    let version = "managed.versions/7.toml";
    let names = [
        "administrators.jsonl",
        "users.jsonl",
        "bans.jsonl",
        "managed.toml",
        "topic-metrics.txt",
        version,
        audit,
    ];
    for below in ["data/audit", "data/managed.versions"] {
        std::fs::create_dir(folder.path(below)).unwrap();
    }
    for name in names {
        std::fs::write(folder.path(&format!("data/{name}")), format!("{name}\n")).unwrap();
    }
    std::fs::write(folder.path("data/audit/other"), "not of the log").unwrap();
    let created = folder
        .json("backup create b.tar --data-dir data --json")
        .remove(0);
    assert_eq!(created["files"], json!(names));
    let printed = folder.printed("backup restore b.tar --data-dir new");
    let files = "  files          administrators.jsonl, users.jsonl, bans.jsonl, managed.toml, topic-metrics.txt, 1 \
                 version of managed.toml, 1 file of the audit log\n";
    assert!(printed.ends_with(files), "{printed}");
    for name in names {
        let path = folder.path(&format!("new/{name}"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{name}\n"));
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    assert!(!folder.path("new/restore").exists());
    // What happened to a directory stays in its log.
    std::fs::write(folder.path(&format!("new/{audit}")), "later\n").unwrap();
    std::fs::write(folder.path("new/users.jsonl"), "later\n").unwrap();
    folder.printed("backup restore b.tar --data-dir new --force");
    let read = |name: &str| std::fs::read_to_string(folder.path(&format!("new/{name}"))).unwrap();
    assert_eq!(
        (&*read(audit), &*read("users.jsonl")),
        ("later\n", "users.jsonl\n")
    );
    // A changed file does not pass.
    let mut bytes = std::fs::read(folder.path("b.tar")).unwrap();
    let text = b"bans.jsonl\n";
    let at = bytes
        .windows(text.len())
        .position(|found| found == text)
        .unwrap();
    bytes[at] ^= 1;
    std::fs::write(folder.path("c.tar"), bytes).unwrap();
    let output = folder.thrum("backup check c.tar");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("the files beside the log do not pass"),
        "{said}"
    );
}

#[test]
fn a_directory_with_files_of_a_broker_is_not_empty_and_loses_those_that_a_backup_has_not() {
    let folder = Folder::filled("backup-other-files");
    folder.printed("backup create b.tar --data-dir data");
    let names = ["users.jsonl", "managed.toml", "managed.versions/1.toml"];
    std::fs::create_dir_all(folder.path("new/managed.versions")).unwrap();
    // Each of them alone.
    for name in names {
        let path = folder.path("new").join(name);
        std::fs::write(&path, "old").unwrap();
        folder.check_fails(
            "backup restore b.tar --data-dir new",
            2,
            "error: new is not empty; name another directory, or add --force, which removes its contents\n",
        );
        std::fs::remove_file(path).unwrap();
    }
    for name in names {
        std::fs::write(folder.path("new").join(name), "old").unwrap();
    }
    assert!(!folder.path("new/state").exists() && !folder.path("new/restore").exists());
    folder.printed("backup restore b.tar --data-dir new --force");
    for name in names {
        assert!(!folder.path("new").join(name).exists(), "{name}");
    }
    assert_eq!(folder.state("new"), folder.state("data"));
}

/// A data directory whose restore was cut off when all was unpacked.
fn cut_off(name: &str) -> Folder {
    let folder = Folder::filled(name);
    folder.printed("backup create b.tar --data-dir data");
    folder.printed("backup restore b.tar --data-dir other");
    folder.printed("sessions purge --all -y --data-dir data");
    std::fs::write(folder.path("data/users.jsonl"), "old").unwrap();
    std::fs::create_dir_all(folder.path("data/restore/files")).unwrap();
    std::fs::write(folder.path("data/restore/files/users.jsonl"), "new").unwrap();
    std::fs::write(folder.path("data/restore/files/managed.toml"), "").unwrap();
    std::fs::rename(
        folder.path("other/state"),
        folder.path("data/state.restore"),
    )
    .unwrap();
    std::fs::write(folder.path("data/state.restore/restored"), "").unwrap();
    std::fs::write(folder.path("data/restore/whole"), "").unwrap();
    folder
}

fn check_nothing_is_left(folder: &Folder) {
    for gone in ["restore", "state.restore", "state/restored"] {
        assert!(!folder.path("data").join(gone).exists(), "{gone}");
    }
}

#[test]
fn a_start_removes_what_a_restore_left_that_was_cut_off_at_its_end() {
    let folder = Folder::filled("backup-cut-off-end");
    // All is in its place, and the old log is not removed yet.
    std::fs::create_dir_all(folder.path("data/state.restore")).unwrap();
    std::fs::create_dir_all(folder.path("data/restore")).unwrap();
    let old = folder.path("data/state.restore/00000000000000000001.log");
    std::fs::write(old, "messages of long ago").unwrap();
    let server = Server::start(&folder, "data");
    assert!(!server.port.is_empty());
    check_nothing_is_left(&folder);
}

#[test]
fn a_restore_that_was_cut_off_is_finished_wherever_it_was() {
    // Nothing was in its place yet, or all of it was.
    for exchanged in [false, true] {
        let folder = cut_off(&format!("backup-cut-off-{exchanged}"));
        if exchanged {
            std::fs::rename(folder.path("data/state"), folder.path("x")).unwrap();
            std::fs::rename(folder.path("data/state.restore"), folder.path("data/state")).unwrap();
            std::fs::rename(folder.path("x"), folder.path("data/state.restore")).unwrap();
        }
        let output = folder.thrum("backup restore b.tar --data-dir data");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(
            said,
            "note: a restore of data was cut off when all was unpacked; it is finished now\n\
             error: data is not empty; name another directory, or add --force, which removes its contents\n"
        );
        assert_eq!(folder.state("data").sessions.len(), 3, "{exchanged}");
        let users = std::fs::read_to_string(folder.path("data/users.jsonl")).unwrap();
        assert_eq!(users, "new");
        check_nothing_is_left(&folder);
    }
}

#[test]
fn a_start_finishes_a_restore_though_the_settings_before_it_are_damaged() {
    let folder = cut_off("backup-cut-off-damaged");
    // A text that is no store of users.
    std::fs::remove_file(folder.path("data/restore/files/users.jsonl")).unwrap();
    std::fs::write(folder.path("data/managed.toml"), b"limits = \xff\n").unwrap();
    let server = Server::start(&folder, "data");
    assert!(!server.port.is_empty());
    drop(server);
    let settings = std::fs::read(folder.path("data/managed.toml")).unwrap();
    assert_eq!(settings, b"");
    // There was none before; the broker has ended those that had expired.
    assert!(!folder.state("data").sessions.is_empty());
    assert!(!folder.path("data/restore").exists());
}

#[test]
fn what_a_restore_left_before_all_was_unpacked_changes_nothing() {
    let folder = cut_off("backup-not-whole");
    std::fs::remove_file(folder.path("data/restore/whole")).unwrap();
    let before = folder.state("data");
    folder.check_fails(
        "backup restore b.tar --data-dir data",
        2,
        "note: a restore of data was cut off; what it left is removed\n\
         error: data is not empty; name another directory, or add --force, which removes its contents\n",
    );
    assert_eq!(folder.state("data"), before);
    let users = std::fs::read_to_string(folder.path("data/users.jsonl")).unwrap();
    assert_eq!(users, "old");
    check_nothing_is_left(&folder);
}

#[test]
fn files_and_directories_that_exist_are_replaced_only_by_force() {
    let folder = Folder::filled("backup-force");
    folder.printed("backup create b.tar --data-dir data");
    folder.check_fails(
        "backup create b.tar --data-dir data",
        2,
        "error: cannot write b.tar: it exists; choose another name, or add --force\n",
    );
    folder.printed("backup create b.tar --data-dir data --force");
    let before = folder.state("data");
    folder.printed("sessions purge --all -y --data-dir data");
    folder.check_fails(
        "backup restore b.tar --data-dir data",
        2,
        "error: data is not empty; name another directory, or add --force, which removes its contents\n",
    );
    assert_eq!(folder.state("data").sessions, []);
    // The remains of a killed restore block no later one.
    std::fs::create_dir_all(folder.path("data/state.restore")).unwrap();
    std::fs::write(
        folder.path("data/state.restore/00000000000000000099.log"),
        b"half",
    )
    .unwrap();
    folder.printed("backup restore b.tar --data-dir data --force");
    assert_eq!(folder.state("data"), before);
    assert!(!folder.path("data/state.restore").exists());
    folder.check_fails(
        "backup create no/b.tar --data-dir data",
        2,
        "error: cannot write no/b.tar.part: there is no such directory; make it with mkdir -p\n",
    );
}

#[test]
fn an_incomplete_backup_is_not_restored() {
    let folder = Folder::filled("backup-damaged");
    folder.printed("backup create b.tar --data-dir data");
    let whole = std::fs::read(folder.path("b.tar")).unwrap();
    let at = whole.windows(4).position(|text| text == b"desk").unwrap();
    let mut flipped = whole.clone();
    flipped[at] ^= 1;
    let text = "the backup is damaged or was never finished; use another copy of it";
    for (bytes, why) in [
        (&flipped[..], "does not pass its check; "),
        (&whole[..at], ""),
        (&whole[..whole.len() / 1024 * 512], ""),
        (&whole[..0], ""),
    ] {
        std::fs::write(folder.path("c.tar"), bytes).unwrap();
        let output = folder.thrum("backup check c.tar");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let why = format!("{why}{text}");
        assert!(
            said.contains("c.tar: ") && said.contains(&why),
            "{said} instead of {why}"
        );
        assert_eq!(output.status.code(), Some(1), "{said}");
        let output = folder.thrum("backup restore c.tar --data-dir new");
        assert_eq!(String::from_utf8_lossy(&output.stderr), said);
        assert!(!folder.path("new/state").exists() && !folder.path("new/state.restore").exists());
    }
    let before = folder.state("data");
    let output = folder.thrum("backup restore c.tar --data-dir data --force");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(folder.state("data"), before);
    folder.check_fails(
        "backup restore d.tar --data-dir other",
        2,
        "error: cannot read d.tar: No such file or directory (os error 2)\n",
    );
    assert!(!folder.path("other").exists());
}

/// A message and its delivery, and the end of one 50 before it.
fn publish(number: u64) -> Batch {
    let mut batch = Batch::default();
    batch.push(&message(number, "t", &[7; 300]));
    batch.push(&queued(1, number, number));
    if number > 50 {
        batch.push(&Change::DeliveryRemoved {
            session: 1,
            seq: number - 50,
        });
    }
    batch
}

/// Commits 20 at a time until it is told to stop, and reports its progress.
fn write_on(store: &mut Store<RealDisk>, durable: &AtomicU64, stop: &AtomicBool) {
    let mut number = 0;
    while !stop.load(Ordering::Acquire) {
        for _ in 0..20 {
            number += 1;
            store.apply(&publish(number)).unwrap();
        }
        store.commit().unwrap();
        durable.store(number, Ordering::Release);
    }
}

#[test]
fn a_backup_beside_a_broker_at_full_speed_has_all_that_was_durable_and_nothing_by_halves() {
    let folder = Folder::empty("backup-online");
    let mut store = folder.open("data");
    let mut first = Batch::default();
    first.push(&session(1, "c", None));
    store.apply(&first).unwrap();
    store.commit().unwrap();
    let (durable, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| write_on(&mut store, &durable, &stop));
        for round in 0..5 {
            let before = durable.load(Ordering::Acquire);
            folder.printed(&format!("backup create b{round}.tar --data-dir data"));
            folder.printed(&format!("backup restore b{round}.tar --data-dir r{round}"));
            let after = durable.load(Ordering::Acquire);
            let state = folder.state(&format!("r{round}"));
            let seqs: Vec<u64> = state.sessions[0]
                .deliveries
                .iter()
                .map(|one| one.seq)
                .collect();
            let last = seqs.last().copied().unwrap_or(0);
            // The unit of each delivery ends another one, so a half of one would show.
            let expected: Vec<u64> = (last.saturating_sub(49).max(1)..=last).collect();
            assert_eq!(seqs, expected);
            assert!(
                before <= last && last <= after + 20,
                "{before} {last} {after}"
            );
        }
        stop.store(true, Ordering::Release);
    });
}

#[test]
fn a_restore_that_is_killed_leaves_the_old_state_or_the_new_one() {
    let folder = Folder::filled("backup-killed");
    let users = folder.path("data/users.jsonl");
    std::fs::write(&users, "old").unwrap();
    folder.printed("backup create old.tar --data-dir data");
    let old = folder.state("data");
    let mut store = folder.open("data");
    for number in 100..2000 {
        store.apply(&publish(number)).unwrap();
    }
    store.close().unwrap();
    std::fs::write(&users, "new").unwrap();
    folder.printed("backup create new.tar --data-dir data");
    let new = folder.state("data");
    let mut seen = [0, 0];
    for round in 0..30_u64 {
        folder.printed("backup restore old.tar --data-dir data --force");
        let mut child = folder.start("backup restore new.tar --data-dir data --force");
        std::thread::park_timeout(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        // It finishes what was cut off, and refuses the rest.
        let output = folder.thrum("backup restore old.tar --data-dir data");
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        check_nothing_is_left(&folder);
        let state = folder.state("data");
        let users = std::fs::read_to_string(&users).unwrap();
        assert!(
            (state == old && users == "old") || (state == new && users == "new"),
            "neither the old state nor the new one, with {users}"
        );
        seen[usize::from(state == new)] += 1;
    }
    assert!(seen[0] > 0, "never killed before the end");
}
