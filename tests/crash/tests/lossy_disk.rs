//! The lossy disk: synced data stays, other data may be lost, and faults occur as requested.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output};

use thrum_crash::disk::{Control, KillWhen, LossyDisk, Memory};
use thrum_crash::random::Random;

const EIO: u64 = 5;
const ENOSPC: u64 = 28;

struct Bench {
    root: PathBuf,
    data: PathBuf,
    disk: LossyDisk,
}

impl Bench {
    fn new(name: &str) -> Self {
        let root = std::env::temp_dir().join(format!("thrum-lossy-{}-{name}", std::process::id()));
        let data = root.join("data");
        fs::create_dir_all(&data).expect("the temporary folder works");
        let disk = LossyDisk::new(&data, &root.join("side"));
        Self { root, data, disk }
    }

    fn run(&self, script: &str) -> Output {
        Command::new(env!("CARGO_BIN_EXE_disk_actor"))
            .args(lines(script))
            .current_dir(&self.data)
            .envs(self.disk.environment())
            .output()
            .expect("the temporary folder works")
    }

    /// Runs a script of which every line succeeds.
    fn succeeds(&self, script: &str) {
        let output = self.run(script);
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            printed.lines().all(|line| line == "ok"),
            "{printed}{output:?}"
        );
        assert_eq!(printed.lines().count(), lines(script).len(), "{output:?}");
    }

    fn check(&self, expected: &[(&str, &str)]) {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.data).expect("the temporary folder works") {
            let path = entry.expect("the temporary folder works").path();
            let name = path
                .file_name()
                .expect("an entry has a name")
                .to_string_lossy()
                .into_owned();
            found.push((
                name,
                fs::read_to_string(&path).unwrap_or_else(|_| "folder".to_owned()),
            ));
        }
        found.sort();
        let expected: Vec<_> = expected
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(found, expected);
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.root).expect("the temporary folder works");
    }
}

fn lines(script: &str) -> Vec<&str> {
    script.split(';').map(str::trim).collect()
}

/// Runs the script, takes all back that was not synced, and compares files and their content.
fn check(name: &str, script: &str, expected: &[(&str, &str)]) {
    let bench = Bench::new(name);
    bench.succeeds(script);
    bench.disk.lose_power(Memory::OnlySynced);
    bench.check(expected);
}

#[test]
fn synced_bytes_and_names_stay() {
    check(
        "stay",
        "create a; write a 0 3 x; sync a; sync-folder .; append a 1 y; sync a",
        &[("a", "yxx")],
    );
}

#[test]
fn unsynced_bytes_revert_to_the_synced_ones() {
    check(
        "bytes",
        "create a; write a 0 4 x; sync a; sync-folder .; write a 1 2 y; write a 2 9 z; size a 3",
        &[("a", "xxxx")],
    );
}

#[test]
fn unsynced_names_go() {
    check(
        "names",
        "create a; write a 0 1 x; sync a; folder f; sync-folder .; create b; write b 0 1 y; sync b; folder g",
        &[("a", "x"), ("f", "folder")],
    );
}

#[test]
fn unsynced_rename_and_removal_are_taken_back() {
    check(
        "rename",
        "create a; write a 0 1 a; sync a; create b; write b 0 1 b; sync b; create c; write c 0 1 c; sync c; \
         sync-folder .; rename a b; remove c; create c; write c 0 1 d; sync c",
        &[("a", "a"), ("b", "b"), ("c", "c")],
    );
}

#[test]
fn emptied_file_has_its_old_bytes_again() {
    check(
        "emptied",
        "create a; write a 0 5 x; sync a; sync-folder .; create a; write a 0 2 y",
        &[("a", "xxxxx")],
    );
}

#[test]
fn bytes_of_a_failed_sync_are_not_made_safe_by_the_next_one() {
    let bench = Bench::new("failed");
    bench.succeeds("create a; write a 0 6 x; sync a; sync-folder .");
    let faulty = Control {
        sync_errno: EIO,
        ..Control::default()
    };
    bench.disk.control(faulty);
    let output = bench.run("open a; write a 0 2 y; sync a");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\nok\n5\n");
    bench.disk.control(Control::default());
    bench.succeeds("open a; write a 4 2 z; sync a; write a 1 1 z; sync a");
    bench.disk.lose_power(Memory::OnlySynced);
    bench.check(&[("a", "xzxxzz")]);
}

#[test]
fn unsynced_bytes_stay_unsafe_when_only_the_process_ends() {
    let bench = Bench::new("process");
    bench.succeeds("create a; write a 0 2 x; sync a; sync-folder .; write a 0 1 y");
    bench.check(&[("a", "yx")]);
    bench.succeeds("open a; write a 1 1 z");
    bench.disk.lose_power(Memory::OnlySynced);
    bench.check(&[("a", "xx")]);
}

#[test]
fn any_blocks_may_survive() {
    let mut shown = BTreeSet::new();
    let bench = Bench::new("blocks");
    bench.succeeds("create a; write a 0 1536 x; sync a; sync-folder .");
    for seed in 0..40 {
        bench.succeeds("open a; write a 0 1536 y");
        bench.disk.lose_power(Memory::Some(&mut Random::new(seed)));
        let text = fs::read_to_string(bench.data.join("a")).expect("the temporary folder works");
        let blocks: Vec<_> = text.as_bytes().chunks(512).collect();
        assert!(
            blocks
                .iter()
                .all(|block| *block == [b'x'; 512] || *block == [b'y'; 512])
        );
        shown.insert(
            blocks
                .iter()
                .map(|block| char::from(block[0]))
                .collect::<String>(),
        );
        bench.succeeds("open a; write a 0 1536 x; sync a");
    }
    assert!(shown.len() > 4, "{shown:?}");
}

#[test]
fn process_ends_before_within_or_after_an_operation() {
    for (when, expected) in [
        (KillWhen::Before, "xxxx"),
        (KillWhen::Middle, "yyxx"),
        (KillWhen::After, "yyyy"),
    ] {
        let bench = Bench::new(&format!("kill-{when:?}"));
        bench.succeeds("create a; write a 0 4 x; sync a; sync-folder .");
        let kill = Some((1, when));
        bench.disk.control(Control {
            kill,
            ..Control::default()
        });
        let output = bench.run("open a; write a 0 4 y; sync a");
        assert_eq!(output.status.signal(), Some(9), "{output:?}");
        bench.check(&[("a", expected)]);
        bench.disk.lose_power(Memory::OnlySynced);
        bench.check(&[("a", "xxxx")]);
    }
}

#[test]
fn full_disk_takes_only_bytes_that_fit() {
    let bench = Bench::new("full");
    bench.disk.control(Control {
        write_errno: (ENOSPC, 3),
        ..Control::default()
    });
    let output = bench.run("create a; write a 0 5 x; write a 3 1 x");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok\n28\n28\n");
    assert_eq!(bench.disk.seen().write_bytes, 3);
    assert_eq!(bench.disk.seen().failures, 2);
    bench.check(&[("a", "xxx")]);
}
