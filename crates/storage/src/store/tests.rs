//! The store on a simulated disk: sizes, limits, reclaiming, counters.

use thrum_codec::QoS;

use super::*;
use crate::disk::sim::{Faults, SimDisk, SimStorage};
use crate::record::{Message, Retained};

const SEGMENT: u64 = 4096;

fn open(storage: &SimStorage, segments: u64) -> Store<SimDisk> {
    let options = Options {
        segment_bytes: SEGMENT,
        disk_bytes_max: segments * SEGMENT,
        ..Options::default()
    };
    Store::open(storage.open().unwrap(), options).unwrap().0
}

/// A retained message, and in its place another one from the second number of a topic on.
fn retained(number: u64, topic: &str, payload_bytes: usize) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::Message(Message {
        id: number,
        publisher: 0,
        published_at: 0,
        expires_at: None,
        qos: QoS::AtMostOnce,
        retain: true,
        topic,
        properties: &[],
        payload: &vec![7; payload_bytes],
    }));
    batch.push(&Change::Retained(Retained {
        change: number,
        topic,
        message: number,
        source: None,
    }));
    batch
}

fn removed(change: u64, topic: &str) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::RetainedRemoved { change, topic });
    batch
}

fn commit(store: &mut Store<SimDisk>, batch: &Batch) -> Committed {
    store.apply(batch).unwrap();
    store.commit().unwrap()
}

/// Bytes of all files.
fn storage_bytes(storage: &SimStorage) -> u64 {
    storage.files().values().map(Vec::len).sum::<usize>() as u64
}

/// Messages that replace each other, so that segments become garbage.
fn fill(store: &mut Store<SimDisk>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        commit(store, &retained(number, "t", 500));
    }
}

#[test]
fn sizes_stay_within_the_disk_and_the_limit() {
    const MIB: u64 = 1024 * 1024;
    let sizes = |segment_bytes, disk_bytes_max, space_bytes| {
        let storage = SimStorage::new(1);
        storage.set_faults(Faults {
            space_bytes,
            ..Faults::default()
        });
        let options = Options {
            segment_bytes,
            disk_bytes_max,
            ..Options::default()
        };
        let (store, ..) = Store::open(storage.open().unwrap(), options).unwrap();
        (store.options.segment_bytes, store.usage().disk_bytes_max)
    };
    assert_eq!(sizes(2 * MIB, 64 * MIB, 0), (2 * MIB, 64 * MIB));
    assert_eq!(sizes(1, 64 * MIB, 0), (4096, 64 * MIB));
    assert_eq!(sizes(64 * MIB, 64 * MIB, 0), (8 * MIB, 64 * MIB));
    assert_eq!(sizes(1, 1, 0), (4096, 8 * 4096));
    // An eighth of what is free, and a mebibyte at least.
    assert_eq!(sizes(64 * MIB, 1024 * MIB, 40 * MIB).0, 5 * MIB);
    assert_eq!(sizes(64 * MIB, 1024 * MIB, 4 * MIB).0, MIB);
}

#[test]
fn a_commit_reports_its_records_and_bytes_and_leaves_nothing_pending() {
    let mut store = open(&SimStorage::new(2), 64);
    assert!(!store.has_pending());
    let batch = retained(1, "t", 100);
    store.apply(&batch).unwrap();
    assert!(store.has_pending());
    assert_eq!(store.usage().pending_bytes, batch.bytes_len());
    let bytes = batch.bytes_len() as u64;
    assert_eq!(store.commit().unwrap(), Committed { records: 2, bytes });
    assert!(!store.has_pending());
    assert_eq!(store.commit().unwrap(), Committed::default());
    let usage = store.usage();
    assert_eq!((usage.segments, usage.messages, usage.sessions), (1, 1, 0));
    assert_eq!(usage.live_bytes, bytes + 2 * 4, "a frame is twice a word");
    // A change that changes nothing is not written.
    assert_eq!(commit(&mut store, &batch), Committed::default());
}

#[test]
fn a_unit_ends_with_its_last_record_that_is_written() {
    let mut store = open(&SimStorage::new(3), 64);
    commit(&mut store, &retained(1, "t", 10));
    let mut batch = Batch::default();
    batch.push(&Change::WillRemoved { session: 1 });
    batch.end_unit();
    batch.push(&Change::RetainedRemoved {
        change: 2,
        topic: "u",
    });
    // There is no such session, so the record before is the last of the unit.
    batch.push(&Change::SessionRemoved { session: 9 });
    batch.end_unit();
    batch.push(&Change::RetainedRemoved {
        change: 3,
        topic: "v",
    });
    batch.push(&Change::RetainedRemoved {
        change: 4,
        topic: "w",
    });
    store.apply(&batch).unwrap();
    let ends: Vec<bool> = crate::record::Units(&store.pending)
        .map(|(_, is_end)| is_end)
        .collect();
    assert_eq!(ends, [true, false, true]);
}

#[test]
fn a_store_is_full_above_the_limit_until_it_is_well_below() {
    let mut store = open(&SimStorage::new(4), 64);
    let limit = (64 - 3) * SEGMENT / 4 * 3;
    let well_below = limit / 20 * 19;
    let mut number = 0;
    let mut before = 0;
    while store.health() == Health::Healthy {
        assert!(before <= limit);
        before = store.usage().live_bytes;
        number += 1;
        commit(&mut store, &retained(number, &format!("t{number}"), 300));
    }
    assert_eq!(store.health(), Health::Full);
    assert!(before <= limit && store.usage().live_bytes > limit);
    let mut change = number;
    while store.health() == Health::Full {
        before = store.usage().live_bytes;
        change += 1;
        let topic = format!("t{}", change - number);
        commit(&mut store, &removed(change, &topic));
    }
    assert!(before > well_below && store.usage().live_bytes <= well_below);
}

#[test]
fn segments_of_garbage_are_reclaimed_and_their_current_records_move() {
    let storage = SimStorage::new(5);
    let mut store = open(&storage, 64);
    commit(&mut store, &retained(1, "kept", 300));
    fill(&mut store, 2..200);
    let usage = store.usage();
    assert!(usage.reclaimed_segments > 5, "{usage:?}");
    assert!(usage.moved_records >= 2, "{usage:?}");
    assert!(usage.used_bytes <= 8 * SEGMENT, "{usage:?}");
    assert_eq!((usage.damaged_places, usage.reclaim_failures), (0, 0));
    drop(store);
    let options = Options {
        segment_bytes: SEGMENT,
        disk_bytes_max: 64 * SEGMENT,
        ..Options::default()
    };
    let (store, recovered, _) = Store::open(storage.open().unwrap(), options).unwrap();
    let topics: Vec<_> = recovered.retained.iter().map(|one| &*one.topic).collect();
    assert_eq!(topics, ["kept", "t"]);
    assert_eq!(store.usage().messages, 2);
}

#[test]
fn a_segment_that_cannot_be_read_is_tried_again_and_counted() {
    let storage = SimStorage::new(6);
    let mut store = open(&storage, 64);
    fill(&mut store, 1..20);
    storage.set_faults(Faults {
        read_errors: 1000,
        ..Faults::default()
    });
    let mut number = 20;
    while store.usage().reclaim_failures < 3 {
        assert!(number < 200, "the segment is reclaimed");
        fill(&mut store, number..number + 1);
        number += 1;
    }
    assert_eq!(store.health(), Health::Healthy);
    let reclaimed = store.usage().reclaimed_segments;
    storage.set_faults(Faults::default());
    fill(&mut store, number..number + 20);
    assert!(store.usage().reclaimed_segments > reclaimed);
    assert_eq!(store.usage().reclaim_failures, 3);
}

#[test]
fn places_that_are_damaged_are_counted_when_their_segment_is_reclaimed() {
    let storage = SimStorage::new(7);
    let mut store = open(&storage, 64);
    fill(&mut store, 1..20);
    let names: Vec<String> = storage.files().into_keys().collect();
    let oldest = names.iter().find(|name| name.contains(".log")).unwrap();
    assert!(storage.rot(oldest, 200, 1) && storage.rot(oldest, 900, 1));
    fill(&mut store, 20..100);
    let usage = store.usage();
    assert_eq!(usage.damaged_places, 2, "{usage:?}");
    assert!(usage.reclaimed_segments > 0, "{usage:?}");
}

#[test]
fn tidying_continues_while_there_is_garbage_or_an_incomplete_spare() {
    let storage = SimStorage::new(8);
    let mut store = open(&storage, 64);
    fill(&mut store, 1..3);
    let mut steps = 0;
    while store.tidy().unwrap() {
        steps += 1;
        assert!(steps < 1000, "tidying ends");
    }
    assert!(storage.files().contains_key("spare"));
    assert!(storage.files().contains_key("end"));
    // A failure that repeats itself is left for later.
    let mut number = 3;
    while !store.wants_reclaim() {
        store.apply(&retained(number, "t", 500)).unwrap();
        let (done, result) = store.log.write(&store.pending);
        result.unwrap();
        store.pending.drain(..done);
        number += 1;
    }
    storage.set_faults(Faults {
        read_errors: 1000,
        ..Faults::default()
    });
    assert!(!store.tidy().unwrap());
    assert_eq!(store.usage().reclaim_failures, 1);
    storage.set_faults(Faults::default());
    assert!(store.tidy().unwrap());
    let mut steps = 0;
    while store.tidy().unwrap() {
        steps += 1;
        assert!(steps < 1000, "tidying ends");
    }
    assert!(!store.wants_reclaim());
}

#[test]
fn a_full_disk_examines_its_oldest_segment_again_when_less_of_it_is_current() {
    const TOPICS: u64 = 8;
    let storage = SimStorage::new(10);
    let mut store = open(&storage, 64);
    for number in 1..=TOPICS {
        commit(&mut store, &retained(number, &format!("t{number}"), 300));
    }
    let mut number = TOPICS;
    let mut append = |store: &mut Store<SimDisk>| {
        number += 1;
        commit(store, &retained(number, "t", 300));
        number
    };
    while store.usage().segments < 4 {
        append(&mut store);
    }
    let full = Faults {
        space_bytes: storage_bytes(&storage),
        ..Faults::default()
    };
    storage.set_faults(full);
    while store.reclaim_below.is_none() {
        append(&mut store);
    }
    assert_eq!(store.health(), Health::Full);
    // As long as as much of it is current, it is not even read.
    storage.set_faults(Faults {
        read_errors: 1000,
        ..full
    });
    let change = append(&mut store);
    assert_eq!(store.usage().reclaim_failures, 0);
    storage.set_faults(full);
    let mut removals = 0;
    while store.usage().reclaimed_segments == 0 {
        removals += 1;
        assert!(removals < 4 * TOPICS, "the segment is reclaimed");
        let topic = format!("t{removals}");
        commit(&mut store, &removed(change + removals, &topic));
    }
}

#[test]
fn a_spare_that_cannot_be_written_makes_a_store_full_only_below_two_free_segments() {
    for (missing_bytes, health) in [(0, Health::Healthy), (1, Health::Full)] {
        let storage = SimStorage::new(11);
        let mut store = open(&storage, 64);
        commit(&mut store, &retained(1, "t", 100));
        storage.set_faults(Faults {
            sync_errors: 1000,
            space_bytes: storage_bytes(&storage) + 2 * SEGMENT - missing_bytes,
            ..Faults::default()
        });
        assert!(store.prepare(0), "nothing can be done now");
        assert_eq!(store.health(), health);
    }
}

#[test]
fn a_moved_directory_fails_every_commit_until_it_returns() {
    let storage = SimStorage::new(9);
    let mut store = open(&storage, 64);
    store.look().unwrap();
    assert_eq!(store.health(), Health::Healthy);
    storage.set_moved(true);
    commit(&mut store, &retained(1, "t", 10));
    assert!(matches!(store.look(), Err(WriteError::Misplaced(_))));
    assert_eq!(store.health(), Health::Failing);
    store.apply(&retained(2, "t", 10)).unwrap();
    assert!(matches!(store.commit(), Err(WriteError::Misplaced(_))));
    assert!(store.has_pending());
    storage.set_moved(false);
    assert_eq!(store.commit().unwrap().records, 2);
    assert_eq!(store.health(), Health::Healthy);
}
