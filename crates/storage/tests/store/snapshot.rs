//! Reading a log from outside, in particular while a broker writes to it.

use std::io;
use std::ops::Range;

use thrum_storage::disk::ReadDisk;
use thrum_storage::disk::sim::{Faults, SimDisk, SimFile, SimStorage};
use thrum_storage::{
    Contents, Durability, OpenError, Options, Orphans, SnapshotError, SnapshotTarget, Store,
    read_state, snapshot,
};

use crate::crash::{Life, find, seeds};
use crate::model::Model;
use crate::script::Script;
use crate::turns::{Present, Side, Taking, Turns};
use crate::{open, options, segments};

/// Runs of the simulation. For a long test: as in the crash tests, with `snapshot` instead of
/// `crash`.
const SEEDS: Range<u64> = 0..300;

/// The segments of a snapshot.
#[derive(Debug, Default)]
struct Copy {
    segments: Vec<(String, Vec<u8>)>,
    starts_over: u32,
}

impl SnapshotTarget for Copy {
    fn start_over(&mut self) -> io::Result<()> {
        self.segments.clear();
        self.starts_over += 1;
        Ok(())
    }

    fn segment(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.segments.push((name.to_owned(), bytes.to_vec()));
        Ok(())
    }
}

impl Copy {
    /// A disk with exactly these segments.
    fn restored(&self) -> SimStorage {
        let storage = SimStorage::new(0);
        for (name, bytes) in &self.segments {
            storage.put(name, bytes);
        }
        storage
    }

    fn contents(&self, mut contents: Contents) -> (thrum_storage::Recovered, u64) {
        for (name, bytes) in &self.segments {
            contents.read(name, bytes).unwrap();
        }
        let (recovered, report) = contents.finish();
        (recovered, report.damaged_count)
    }
}

fn copy(storage: &SimStorage) -> Copy {
    let mut copy = Copy::default();
    snapshot(&storage.reader(), &mut copy).unwrap();
    copy
}

/// Applies some units and commits, or does maintenance.
fn write(script: &mut Script<'_>, store: &mut Store<Taking<SimDisk>>, life: &mut Life) {
    for _ in 0..script.random.random(6) {
        let unit = script.unit();
        store.apply(&unit).unwrap();
        life.units.push(unit);
    }
    if script.random.random(8) == 0 {
        // A failed write is repeated with the next commit.
        store.tidy().ok();
    }
    if script.random.random(3) > 0 && store.commit().is_ok() {
        life.acknowledged = life.units.len();
    }
}

/// Takes a snapshot while a writer continues, with a random interleaving of their calls. Returns
/// the number of restarts; `None` if the reader gave up.
fn run(seed: u64) -> Option<u32> {
    let storage = SimStorage::new(seed);
    let turns = Turns::new(&storage);
    let disk = Taking {
        disk: storage.open().unwrap(),
        side: Side::Writer,
        turns: turns.clone(),
    };
    let options = Options {
        durability: [Durability::Fsync, Durability::Os][usize::from(seed.is_multiple_of(5))],
        ..options()
    };
    let (mut store, ..) = Store::open(disk, options).unwrap();
    let mut script = Script::new(&storage);
    script.deliveries_max = 10 + usize::try_from(storage.random(150)).unwrap();
    let mut life = Life::default();
    for _ in 0..storage.random(400) {
        write(&mut script, &mut store, &mut life);
    }
    storage.set_faults(Faults {
        short: [300, 900][usize::from(storage.random(3) == 0)],
        write_errors: [0, 30][usize::from(storage.random(3) == 0)],
        sync_errors: [0, 50][usize::from(storage.random(3) == 0)],
        ..Faults::default()
    });
    let reader = Taking {
        disk: storage.reader(),
        side: Side::Reader,
        turns: turns.clone(),
    };
    let durable = life.acknowledged;
    let mut copy = Copy::default();
    let result = std::thread::scope(|scope| {
        let _writer = Present(turns.clone());
        let present = Present(turns.clone());
        turns.begin();
        let result = scope.spawn(|| {
            let _reader = present;
            snapshot(&reader, &mut copy)
        });
        turns.expect_reader();
        while !turns.are_over() {
            write(&mut script, &mut store, &mut life);
        }
        result.join().unwrap()
    });
    match result {
        Err(SnapshotError::Outrun) => return None,
        result => result.unwrap(),
    }
    life.acknowledged = durable;
    let (store, recovered, report) = open(&copy.restored());
    drop(store);
    let found = Model::from(&recovered);
    assert!(
        find(&found, &Model::default(), &life).is_some(),
        "seed {seed}: {report:?}, {durable} of {} units durable before\nagainst the last applied state: {}",
        life.units.len(),
        found.differences(&script.model.settled()),
    );
    assert_eq!(report.damaged_count, 0, "seed {seed}: {report:?}");
    assert_eq!(report.torn_bytes, 0, "seed {seed}: {report:?}");
    assert_eq!(recovered.orphans, Orphans::default(), "seed {seed}");
    let (same, damaged) = copy.contents(Contents::default());
    assert_eq!((same, damaged), (recovered, 0), "seed {seed}");
    Some(copy.starts_over)
}

#[test]
fn a_snapshot_during_writes_is_a_consistent_state_with_all_durable_changes() {
    let (mut runs, mut outrun, mut started_over) = (0, 0, 0);
    for seed in seeds(SEEDS) {
        runs += 1;
        match run(seed) {
            Some(0) => {}
            Some(_) => started_over += 1,
            None => outrun += 1,
        }
    }
    assert!(started_over > 0, "no run started over, so none tested it");
    assert!(outrun * 20 <= runs, "{outrun} of {runs} gave up");
}

/// A log that was closed or crashed, and the model of its content.
fn written(storage: &SimStorage) -> Model {
    let (mut store, ..) = open(storage);
    let mut script = Script::new(storage);
    for _ in 0..300 {
        store.apply(&script.unit()).unwrap();
        store.commit().unwrap();
    }
    script.model.settled()
}

#[test]
fn the_state_of_a_log_without_a_broker_is_read_without_changes() {
    let storage = SimStorage::new(1);
    let model = written(&storage);
    let before = storage.files();
    let (recovered, report) = read_state(&storage.reader()).unwrap();
    assert_eq!(Model::from(&recovered), model);
    assert_eq!(report.damaged_count, 0);
    assert_eq!(storage.files(), before);
    let (empty, _) = read_state(&SimStorage::new(1).reader()).unwrap();
    assert_eq!(empty, thrum_storage::Recovered::default());
}

#[test]
fn the_end_of_a_torn_commit_is_omitted() {
    let storage = SimStorage::new(2);
    written(&storage);
    let (_, whole) = read_state(&storage.reader()).unwrap();
    let (name, bytes) = copy(&storage).segments.pop().unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    storage.rot(&name, end, 1);
    let copy = copy(&storage);
    let (state, damaged) = copy.contents(Contents::default());
    assert_eq!(damaged, 0);
    let (_, cut) = read_state(&storage.reader()).unwrap();
    assert!(cut.records < whole.records, "{cut:?} {whole:?}");
    let (_, recovered, report) = open(&storage);
    assert_eq!(recovered, state);
    assert!(report.torn_bytes > 0);
}

#[test]
fn damage_is_counted_and_copied_unchanged() {
    for seed in 0..50 {
        let storage = SimStorage::new(seed);
        written(&storage);
        for (name, bytes) in segments(&storage) {
            let offset = usize::try_from(storage.random(bytes.len() as u64)).unwrap();
            storage.rot(&name, offset, 4);
        }
        let copy = copy(&storage);
        let (state, damaged) = copy.contents(Contents::default());
        let (store, recovered, report) = open(&copy.restored());
        drop(store);
        assert_eq!(recovered, state, "seed {seed}");
        assert_eq!(report.damaged_count, damaged, "seed {seed}");
        let (_, recovered, report) = open(&storage);
        assert_eq!(recovered, state, "seed {seed}");
        assert_eq!(report.damaged_count, damaged, "seed {seed}");
    }
}

#[test]
fn counting_finds_the_same_numbers_as_reading() {
    let storage = SimStorage::new(3);
    written(&storage);
    let copy = copy(&storage);
    let (whole, _) = copy.contents(Contents::default());
    let (counted, _) = copy.contents(Contents::counted());
    assert_eq!(counted.sessions.len(), whole.sessions.len());
    assert_eq!(counted.messages.len(), whole.messages.len());
    assert_eq!(counted.retained, whole.retained);
    let text = counted
        .messages
        .iter()
        .map(|message| message.content.payload().len());
    assert_eq!(text.sum::<usize>(), 0);
}

#[test]
fn a_name_that_is_not_of_a_segment_is_refused() {
    let error = Contents::default().read("1.log", &[]).unwrap_err();
    assert!(matches!(error, OpenError::Io(_)), "{error}");
}

#[test]
fn a_log_of_a_later_format_is_not_copied() {
    let storage = SimStorage::new(4);
    written(&storage);
    let (name, mut bytes) = segments(&storage).remove(0);
    bytes[8] = 2;
    bytes[12..16].fill(0);
    let check = crc32c::crc32c(&bytes[..40]);
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
    storage.put(&name, &bytes);
    let error = snapshot(&storage.reader(), &mut Copy::default()).unwrap_err();
    let is_newer = matches!(error, SnapshotError::Open(OpenError::Newer { found: 2 }));
    assert!(is_newer, "{error}");
    let read = Contents::default().read(&name, &bytes);
    assert!(matches!(read, Err(OpenError::Newer { found: 2 })));
}

/// Lists files that no longer exist when they are opened.
struct Vanishing;

impl ReadDisk for Vanishing {
    type File = SimFile;

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(vec!["00000000000000000001.log".to_owned()])
    }

    fn open(&self, _: &str) -> io::Result<SimFile> {
        Err(io::ErrorKind::NotFound.into())
    }
}

#[test]
fn a_reader_that_is_always_too_late_gives_up() {
    let error = snapshot(&Vanishing, &mut Copy::default()).unwrap_err();
    assert!(matches!(error, SnapshotError::Outrun), "{error}");
}

#[test]
fn a_target_that_fails_ends_the_snapshot() {
    struct Full;
    impl SnapshotTarget for Full {
        fn start_over(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn segment(&mut self, _: &str, _: &[u8]) -> io::Result<()> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }
    let storage = SimStorage::new(5);
    written(&storage);
    let error = snapshot(&storage.reader(), &mut Full).unwrap_err();
    assert!(matches!(error, SnapshotError::Target(_)), "{error}");
}
