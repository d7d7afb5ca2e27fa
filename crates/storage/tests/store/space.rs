//! Limited space, reclaiming, and the behaviour at the limits of the disk and of the configuration.

use thrum_codec::{QoS, Version};
use thrum_storage::disk::sim::{Faults, SimDisk, SimStorage};
use thrum_storage::{
    Batch, Change, Health, Identifiers, Message, Options, Owner, Queued, Session, Store, WriteError,
};

use crate::model::Model;
use crate::script::Script;
use crate::{SEGMENT_BYTES, open, options};

pub(crate) fn session(id: u64) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::Session(Session {
        id,
        client_id: "client-1",
        version: Version::V5,
        expiry_secs: 60,
        away_since: None,
        packet_id_hint: 0,
        owner: Owner::Unknown,
    }));
    batch
}

pub(crate) fn publish(number: u64, payload: &[u8]) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::Message(Message {
        id: number,
        publisher: 0,
        published_at: 0,
        expires_at: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "t",
        properties: &[],
        payload,
    }));
    batch.push(&Change::Queued(Queued {
        session: 1,
        seq: number,
        message: number,
        qos: QoS::AtLeastOnce,
        retain: false,
        identifiers: Identifiers::NONE,
        group: "",
    }));
    batch
}

pub(crate) fn acknowledge(number: u64) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::DeliveryRemoved {
        session: 1,
        seq: number,
    });
    batch
}

fn fill(store: &mut Store<SimDisk>, first: u64) -> u64 {
    let mut number = first;
    while store.health() == Health::Healthy {
        store.apply(&publish(number, &[7; 200])).unwrap();
        store.commit().unwrap();
        number += 1;
    }
    number
}

#[test]
fn endless_traffic_stays_within_the_limit_and_close_to_the_current_data() {
    let storage = SimStorage::new(1);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    for number in 1..20_000 {
        store.apply(&publish(number, &[7; 100])).unwrap();
        if number > 50 {
            store.apply(&acknowledge(number - 50)).unwrap();
        }
        let before = store.usage().moved_records;
        store.commit().unwrap();
        let usage = store.usage();
        assert!(usage.used_bytes <= 10 * SEGMENT_BYTES, "{usage:?}");
        assert!(
            usage.moved_records - before < 2 * SEGMENT_BYTES / 40,
            "one step moved too much"
        );
    }
    let usage = store.usage();
    assert!(usage.reclaimed_segments > 100, "{usage:?}");
    let files: u64 = storage
        .files()
        .values()
        .map(|bytes| bytes.len() as u64)
        .sum();
    assert!(files <= usage.used_bytes, "{files} {usage:?}");
    drop(store);
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.sessions[0].deliveries.len(), 50);
}

#[test]
fn long_lived_records_are_moved_and_never_lost() {
    let storage = SimStorage::new(2);
    let mut script = Script::new(&storage);
    let (mut store, ..) = open(&storage);
    script.deliveries_max = 200;
    for _ in 0..4000 {
        store.apply(&script.unit()).unwrap();
        store.commit().unwrap();
    }
    let usage = store.usage();
    assert!(
        usage.reclaimed_segments > 20 && usage.moved_records > 100,
        "{usage:?}"
    );
    storage.crash();
    let (store, recovered, _) = open(&storage);
    assert_eq!(Model::from(&recovered), script.model.settled());
    let (after, slack) = (store.usage().live_bytes, usage.live_bytes / 10);
    assert!(
        after.abs_diff(usage.live_bytes) <= slack,
        "{after} {usage:?}"
    );
}

#[test]
fn the_limit_is_announced_in_time_and_ends_with_removals() {
    let storage = SimStorage::new(3);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    let end = fill(&mut store, 1);
    let usage = store.usage();
    assert!(usage.used_bytes <= usage.disk_bytes_max, "{usage:?}");
    assert!(usage.live_bytes > usage.disk_bytes_max / 2, "{usage:?}");
    for number in 1..end {
        store.apply(&acknowledge(number)).unwrap();
        store.commit().unwrap();
    }
    assert_eq!(store.health(), Health::Healthy);
    while store.tidy().unwrap() {}
    assert!(
        store.usage().used_bytes <= 8 * SEGMENT_BYTES,
        "{:?}",
        store.usage()
    );
}

#[test]
fn commits_beyond_the_limit_fail() {
    let storage = SimStorage::new(4);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    let mut number = fill(&mut store, 1);
    let error = loop {
        store.apply(&publish(number, &[7; 200])).unwrap();
        match store.commit() {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WriteError::LimitReached), "{error}");
    assert_eq!(store.health(), Health::Failing);
    let usage = store.usage();
    assert!(usage.used_bytes <= usage.disk_bytes_max, "{usage:?}");
    drop(store);
    let (store, recovered, _) = open(&storage);
    // A commit without acknowledgement may be recovered nevertheless.
    let found = recovered.sessions[0].deliveries.len() as u64;
    assert!((number - 1..=number).contains(&found), "{found} {number}");
    drop(store);
    let larger = Options {
        disk_bytes_max: 2 * options().disk_bytes_max,
        ..options()
    };
    let (mut store, ..) = Store::open(storage.open().unwrap(), larger).unwrap();
    assert_eq!(store.health(), Health::Healthy);
    store.apply(&publish(number, &[7; 200])).unwrap();
    store.commit().unwrap();
}

#[test]
fn a_full_disk_stops_commits_until_there_is_space() {
    let storage = SimStorage::new(5);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    store.commit().unwrap();
    storage.set_faults(Faults {
        space_bytes: 6 * SEGMENT_BYTES,
        ..Faults::default()
    });
    let mut number = 1;
    let mut warned = false;
    let error = loop {
        store.apply(&publish(number, &[7; 200])).unwrap();
        warned |= store.health() == Health::Full;
        match store.commit() {
            Ok(_) => number += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, WriteError::NoSpace(_)), "{error}");
    assert!(warned, "full is shown before a commit fails");
    assert_eq!(store.health(), Health::Failing);
    assert!(store.commit().is_err());
    storage.set_faults(Faults::default());
    store.commit().unwrap();
    while store.tidy().unwrap() {}
    assert_eq!(store.health(), Health::Healthy);
    storage.crash();
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.sessions[0].deliveries.len() as u64, number);
}

#[test]
fn after_a_failed_sync_the_commit_is_written_again_and_only_then_acknowledged() {
    for seed in 0..100 {
        let storage = SimStorage::new(seed);
        let (mut store, ..) = open(&storage);
        store.apply(&session(1)).unwrap();
        store.commit().unwrap();
        storage.set_faults(Faults {
            sync_errors: 1000,
            ..Faults::default()
        });
        for number in 1..4 {
            store.apply(&publish(number, b"x")).unwrap();
            assert!(matches!(store.commit(), Err(WriteError::Io(_))));
        }
        storage.set_faults(Faults::default());
        assert_eq!(store.commit().unwrap().records, 6);
        assert_eq!(store.health(), Health::Healthy);
        storage.crash();
        let (_, recovered, report) = open(&storage);
        assert_eq!(recovered.sessions[0].deliveries.len(), 3, "seed {seed}");
        assert_eq!(report.damaged_count, 0, "seed {seed}: {report:?}");
    }
}

#[test]
fn a_message_larger_than_a_segment_gets_one_of_its_own() {
    let storage = SimStorage::new(6);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    let payload = vec![3; 10 * 4096];
    store.apply(&publish(1, &payload)).unwrap();
    store.apply(&publish(2, b"small")).unwrap();
    store.commit().unwrap();
    storage.crash();
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.messages[0].content.payload(), payload);
    assert_eq!(recovered.messages[1].content.payload(), b"small");
}

#[test]
fn a_message_may_be_written_before_its_first_reference() {
    let storage = SimStorage::new(7);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    let both = publish(1, b"early");
    let mut parts = both.changes().map(|change| change.unwrap().0);
    for part in [parts.next().unwrap(), parts.next().unwrap()] {
        let mut batch = Batch::default();
        batch.push(&part);
        store.apply(&batch).unwrap();
        store.commit().unwrap();
        // Filling one segment is well within the allowed delay.
        for number in 100..110 {
            store.apply(&publish(number, &[1; 200])).unwrap();
            store.apply(&acknowledge(number)).unwrap();
            store.commit().unwrap();
        }
    }
    storage.crash();
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.messages[0].content.payload(), b"early");
}

#[test]
fn a_change_that_changes_nothing_is_not_written() {
    let storage = SimStorage::new(8);
    let (mut store, ..) = open(&storage);
    store.apply(&session(1)).unwrap();
    store.commit().unwrap();
    store.apply(&session(1)).unwrap();
    store.apply(&acknowledge(77)).unwrap();
    assert!(!store.has_pending());
}
