//! Segments that were removed, truncated or overwritten by others: the start reports them and reads
//! the rest.

use proptest::prelude::*;
use thrum_storage::disk::sim::SimStorage;
use thrum_storage::{LogReport, Loss, read_state};

use crate::script::Script;
use crate::{open, segments};

/// A log of several segments that was closed, and whose first segments were removed by the store.
fn written(seed: u64) -> SimStorage {
    let storage = SimStorage::new(seed);
    let (mut store, ..) = open(&storage);
    let mut script = Script::new(&storage);
    while store.usage().reclaimed_segments < 2 || segments(&storage).len() < 4 {
        for _ in 0..4 {
            store.apply(&script.unit()).unwrap();
        }
        store.commit().unwrap();
    }
    store.close().unwrap();
    storage
}

/// The length recorded in the separate file.
fn end_of(storage: &SimStorage) -> u64 {
    let bytes = &storage.files()["end"];
    u64::from_le_bytes(*bytes[20..28].first_chunk().unwrap())
}

fn number_of(name: &str) -> u64 {
    name.strip_suffix(".log").unwrap().parse().unwrap()
}

/// Reports of the start and of a reader from outside; the reader comes first, because the start
/// changes the log.
fn reports(storage: &SimStorage) -> [LogReport; 2] {
    let (_, outside) = read_state(&storage.reader()).unwrap();
    let (_, _, inside) = open(storage);
    [outside, inside]
}

#[test]
fn a_complete_log_has_no_losses() {
    for seed in 0..20 {
        let storage = written(seed);
        for report in reports(&storage) {
            assert_eq!(report.gone, [], "seed {seed}");
            assert!(!report.is_damaged(), "seed {seed}: {report:?}");
        }
    }
}

#[test]
fn a_missing_segment_is_reported_at_any_position() {
    for seed in 0..40 {
        let storage = written(seed);
        let logs = segments(&storage);
        let place = usize::try_from(storage.random(logs.len() as u64)).unwrap();
        storage.lose(&logs[place].0);
        for report in reports(&storage) {
            let [gone] = report.gone[..] else {
                panic!("seed {seed}, place {place} of {}: {report:?}", logs.len());
            };
            assert_eq!(gone.segment, number_of(&logs[place].0), "seed {seed}");
            assert_eq!(gone.what, Loss::Missing, "seed {seed}");
            assert!(gone.bytes > 40, "seed {seed}: {gone:?}");
        }
    }
}

#[test]
fn the_number_of_lost_records_of_the_newest_segment_is_known() {
    let storage = written(1);
    let (newest, bytes) = segments(&storage).pop().unwrap();
    storage.put(&newest, &bytes[..60]);
    let (_, _, report) = open(&storage);
    let [gone] = report.gone[..] else {
        panic!("{report:?}");
    };
    assert_eq!(gone.what, Loss::Shortened);
    assert!(gone.records > 0, "{gone:?}");
}

#[test]
fn zeros_in_place_of_acknowledged_records_are_reported() {
    for seed in 0..40 {
        let storage = written(seed);
        let (newest, mut bytes) = segments(&storage).pop().unwrap();
        // The recorded end, without the group written at the close.
        let len = usize::try_from(end_of(&storage)).unwrap() - 16;
        let from = 40 + usize::try_from(storage.random(len as u64 - 40)).unwrap();
        bytes[from..].fill(0);
        storage.put(&newest, &bytes);
        for report in reports(&storage) {
            let told = report
                .gone
                .iter()
                .any(|gone| gone.segment == number_of(&newest) && gone.bytes > 0);
            assert!(told, "seed {seed}: {report:?}");
        }
    }
}

#[test]
fn a_missing_newest_segment_is_reported_after_a_kill() {
    let storage = SimStorage::new(3);
    let (mut store, ..) = open(&storage);
    let mut script = Script::new(&storage);
    for _ in 0..30 {
        store.apply(&script.unit()).unwrap();
        store.commit().unwrap();
        store.tidy().unwrap();
    }
    storage.kill();
    drop(store);
    let (newest, _) = segments(&storage).pop().unwrap();
    storage.put(&newest, &[]);
    let (_, _, report) = open(&storage);
    assert_eq!(report.gone_count, 1, "{report:?}");
    assert!(report.gone[0].records > 10, "{report:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// The loss of any part of the end is reported, and nothing is invented or counted twice.
    #[test]
    fn a_shortened_segment_is_reported(
        seed in 0_u64..8,
        at in any::<prop::sample::Index>(),
        len in 0_usize..100,
    ) {
        let storage = written(seed);
        let logs = segments(&storage);
        let (name, bytes) = &logs[at.index(logs.len())];
        storage.put(name, &bytes[..len]);
        for report in reports(&storage) {
            prop_assert!(report.is_damaged(), "{:?}", report);
        }
        // The next start has no new loss to report.
        let (mut store, recovered, _) = open(&storage);
        let mut script = Script::new(&storage);
        script.resume(crate::model::Model::from(&recovered), &recovered);
        for _ in 0..5 {
            store.apply(&script.unit()).unwrap();
        }
        store.close().unwrap();
        let (_, recovered, _) = open(&storage);
        prop_assert_eq!(crate::model::Model::from(&recovered), script.model.settled());
    }
}
