//! A start on a disk without free space: changes that remove state still find room.

use std::collections::VecDeque;

use thrum_storage::disk::sim::{Faults, SimDisk, SimStorage};
use thrum_storage::{Health, LogReport, Options, Recovered, Store};

use crate::space::{acknowledge, publish, session};

/// A message is a small part of a segment, and its acknowledgement a small part of a message.
const SEGMENT_BYTES: u64 = 32 * 1024;
const PAYLOAD_BYTES: usize = 1000;

fn open(storage: &SimStorage) -> (Store<SimDisk>, Recovered, LogReport) {
    let options = Options {
        segment_bytes: SEGMENT_BYTES,
        disk_bytes_max: 256 * SEGMENT_BYTES,
        ..Options::default()
    };
    Store::open(storage.open().unwrap(), options).unwrap()
}

/// Fills the space that the store does not use.
fn fill_up(storage: &SimStorage) {
    let used: usize = storage.files().values().map(Vec::len).sum();
    storage.set_faults(Faults {
        space_bytes: used as u64,
        ..Faults::default()
    });
}

/// A full disk, with all messages that were accepted before the store reported it as full.
fn filled(seed: u64) -> SimStorage {
    let storage = SimStorage::new(seed);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    store.commit().unwrap();
    while store.tidy().unwrap() {}
    storage.set_faults(Faults {
        space_bytes: (6 + storage.random(20)) * SEGMENT_BYTES + storage.random(SEGMENT_BYTES),
        ..Faults::default()
    });
    let mut next = 1;
    while store.health() == Health::Healthy {
        store.apply(&publish(next, &[7; PAYLOAD_BYTES])).unwrap();
        store.commit().unwrap();
        if storage.random(3) == 0 {
            store.tidy().unwrap();
        }
        next += 1;
    }
    assert_eq!(store.health(), Health::Full);
    // The last unit is not on the disk, or only a part of it.
    if storage.random(2) == 0 {
        store.apply(&publish(next, &[8; PAYLOAD_BYTES])).unwrap();
        storage.set_faults(Faults {
            crash_at: Some(1),
            ..Faults::default()
        });
        store.commit().unwrap_err();
        storage.crash();
    } else {
        storage.kill();
    }
    drop(store);
    storage
}

/// Ends the process and starts the next one while the disk stays full.
fn again(storage: &SimStorage, store: Store<SimDisk>) -> (Store<SimDisk>, Recovered) {
    match storage.random(3) {
        0 => storage.crash(),
        1 => storage.kill(),
        _ => {
            store.close().unwrap();
            fill_up(storage);
            let (store, recovered, _) = open(storage);
            return (store, recovered);
        }
    }
    drop(store);
    fill_up(storage);
    let (store, recovered, report) = open(storage);
    assert!(!report.is_damaged(), "{report:?}");
    (store, recovered)
}

fn waiting(recovered: &Recovered) -> Vec<u64> {
    let deliveries = recovered.sessions[0].deliveries.iter();
    deliveries.map(|one| one.seq).collect()
}

#[test]
fn after_restarts_on_a_full_disk_a_queue_can_be_emptied() {
    for seed in 0..200 {
        let storage = filled(seed);
        fill_up(&storage);
        let (mut store, recovered, report) = open(&storage);
        assert!(!report.is_damaged(), "seed {seed}: {report:?}");
        assert_eq!(store.health(), Health::Full, "seed {seed}");
        let mut left = VecDeque::from(waiting(&recovered));
        let all = left.len();
        while let Some(seq) = left.pop_front() {
            store.apply(&acknowledge(seq)).unwrap();
            let committed = store.commit();
            assert!(
                committed.is_ok(),
                "seed {seed}, {} of {all} left: {committed:?} {:?}",
                left.len(),
                store.usage()
            );
            if storage.random(20) == 0 {
                let recovered;
                (store, recovered) = again(&storage, store);
                assert_eq!(left, waiting(&recovered), "seed {seed}");
            }
        }
        storage.set_faults(Faults::default());
        while store.tidy().unwrap() {}
        assert_eq!(store.health(), Health::Healthy, "seed {seed}");
        store.apply(&publish(1_000_000, b"next")).unwrap();
        store.commit().unwrap();
    }
}
