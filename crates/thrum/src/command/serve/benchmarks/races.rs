//! Runs that begin, end, change and are removed at the same time.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::channel;
use std::time::Duration;

use thrum_management::ProgramError;
use thrum_management::api::BenchmarkRunInFull;

use super::store::{RUNS_MAX, Store};
use super::watch::Current;

/// Much longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);
/// Looks at a run: they take longer than the start of a thread.
const LOOKS: usize = 5_000;

fn run() -> BenchmarkRunInFull {
    let mut run = BenchmarkRunInFull::default();
    run.run.state = "running".to_owned();
    run
}

#[test]
fn a_run_that_has_just_begun_makes_no_room_for_itself() {
    let store = Store::open(Path::new(""));
    let make_baseline = |id: &str| store.change(id, |run| run.run.baseline = true).unwrap();
    let ids: Vec<String> = (0..RUNS_MAX)
        .map(|_| {
            let mut run = run();
            store.create(&mut run).unwrap().keep();
            run.run.id
        })
        .collect();
    ids[1..].iter().for_each(|id| make_baseline(id));
    let mut begun = run();
    let folder = store.create(&mut begun).unwrap();
    // The one that would have made room becomes a baseline meanwhile.
    make_baseline(&ids[0]);
    folder.keep();
    store.make_room(&begun.run.id);
    assert!(store.read(&begun.run.id).is_ok());
    assert_eq!(store.list().len(), RUNS_MAX + 1);
}

#[test]
fn a_run_that_is_about_to_begin_is_not_listed_and_cannot_be_removed() {
    let store = Store::open(Path::new(""));
    let mut begins = run();
    let folder = store.create(&mut begins).unwrap();
    let id = &begins.run.id;
    assert!(store.list().is_empty());
    assert!(matches!(
        store.remove(id),
        Err(ProgramError::Missing { .. })
    ));
    assert!(folder.path().join("run.json").is_file());
    folder.keep();
    assert_eq!(store.list().len(), 1);
    store.remove(id).unwrap();
}

#[test]
fn a_run_is_shown_and_its_samples_are_read_while_its_end_is_written_down() {
    let store = Store::open(Path::new(""));
    let mut begun = run();
    let folder = store.create(&mut begun).unwrap();
    let part = folder.path().join("run.json.part");
    folder.keep();
    // Whoever opens it to write waits for somebody who reads: a disk that hangs.
    let made = Command::new("mkfifo").arg(&part).status().unwrap();
    assert!(made.success());
    let current = Current::new(begun);
    std::thread::scope(|scope| {
        let change = || current.change(&store, |run| run.run.baseline = true);
        let writes = scope.spawn(change);
        let (answers, answered) = channel();
        let (current, store) = (&current, &store);
        scope.spawn(move || {
            // The other thread writes when this one lists.
            while !writes.is_finished() && answers.send(()).is_ok() {
                current.run();
                current.samples(0, 1);
                store.list();
                std::thread::yield_now();
            }
        });
        let looks = (0..LOOKS).map(|_| answered.recv_timeout(LONG));
        let looks = looks.take_while(Result::is_ok).count();
        drop(fs::File::open(&part).unwrap());
        drop(answered);
        assert_eq!(looks, LOOKS, "they wait for the disk");
    });
}
