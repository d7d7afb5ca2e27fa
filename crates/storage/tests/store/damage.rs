//! Bit rot and garbage: only the damaged records are lost, the damage is reported, and the start
//! succeeds.

use proptest::prelude::*;
use thrum_storage::disk::sim::{Faults, SimStorage};
use thrum_storage::{Recovered, Store};

use crate::model::Model;
use crate::script::Script;
use crate::{open, options, segments};

/// A log that was closed, its content, and its number of records.
fn written(seed: u64) -> (SimStorage, Model, u64) {
    let storage = SimStorage::new(seed);
    let (mut store, ..) = open(&storage);
    let mut script = Script::new(&storage);
    for _ in 0..60 {
        for _ in 0..4 {
            store.apply(&script.unit()).unwrap();
        }
        store.commit().unwrap();
    }
    store.close().unwrap();
    let model = script.model;
    let (store, recovered, report) = open(&storage);
    assert_eq!(Model::from(&recovered), model.settled());
    drop(store);
    (storage, model, report.records)
}

/// Checks that everything recovered was once written: no text and no name is invented.
fn check_nothing_is_invented(recovered: &Recovered, model: &Model) {
    for message in &recovered.messages {
        if let Some(text) = model.messages.get(&message.id) {
            assert_eq!(text.5, message.content.topic());
            assert_eq!(text.7, message.content.payload());
        }
    }
    for session in &recovered.sessions {
        assert_eq!(*session.client_id, format!("client-{}", session.id));
    }
}

#[test]
fn a_flipped_bit_costs_one_record_at_most() {
    for seed in 0..300 {
        let (storage, model, records) = written(seed);
        let logs = segments(&storage);
        let (name, bytes) = &logs[usize::try_from(storage.random(logs.len() as u64)).unwrap()];
        let offset = usize::try_from(storage.random(bytes.len() as u64)).unwrap();
        storage.rot(name, offset, 1 << storage.random(8));
        let (_, recovered, report) = open(&storage);
        assert!(
            report.records + 1 >= records,
            "seed {seed}: {report:?} of {records}"
        );
        assert_eq!(report.torn_bytes, 0, "seed {seed}: {report:?}");
        if report.damaged_count == 0 || report.records == records {
            assert_eq!(
                Model::from(&recovered),
                model.settled(),
                "seed {seed}: {report:?}"
            );
        } else {
            assert_eq!(report.damaged_count, 1, "seed {seed}: {report:?}");
        }
        check_nothing_is_invented(&recovered, &model);
    }
}

#[test]
fn a_damaged_record_is_saved_in_quarantine_and_the_rest_is_read() {
    let (storage, model, _) = written(7);
    let place_of = |(name, bytes): (String, Vec<u8>)| {
        let at = bytes.windows(7).position(|text| text == b"client-")?;
        Some((name, at))
    };
    let (name, at) = segments(&storage).into_iter().find_map(place_of).unwrap();
    storage.rot(&name, at, 0x20);
    let (_, recovered, report) = open(&storage);
    let [damage] = report.damaged[..] else {
        panic!("{report:?}")
    };
    let range = damage.offset..damage.offset + damage.len;
    assert!(range.contains(&(at as u64)), "{damage:?} {at}");
    let saved = storage
        .files()
        .into_iter()
        .find(|(name, _)| name.starts_with("quarantine/"))
        .unwrap();
    assert_eq!(saved.1.len() as u64, damage.len);
    check_nothing_is_invented(&recovered, &model);
}

#[test]
fn the_start_succeeds_with_damage_everywhere() {
    for seed in 0..200 {
        let (storage, model, _) = written(seed);
        for (name, bytes) in storage.files() {
            for _ in 0..storage.random(30) {
                let offset = usize::try_from(storage.random(bytes.len() as u64 + 1)).unwrap();
                storage.rot(
                    &name,
                    offset,
                    u8::try_from(storage.random(255) + 1).unwrap(),
                );
            }
        }
        let (mut store, recovered, _) = open(&storage);
        check_nothing_is_invented(&recovered, &model);
        let mut script = Script::new(&storage);
        script.resume(Model::from(&recovered), &recovered);
        for _ in 0..50 {
            store.apply(&script.unit()).unwrap();
            store.commit().unwrap();
        }
        store.close().unwrap();
        let (_, recovered, _) = open(&storage);
        assert_eq!(
            Model::from(&recovered),
            script.model.settled(),
            "seed {seed}"
        );
    }
}

#[test]
fn occasional_read_errors_lose_nothing() {
    for seed in 0..50 {
        let (storage, model, _) = written(seed);
        storage.set_faults(Faults {
            read_errors: 50,
            ..Faults::default()
        });
        let (_, recovered, report) = open(&storage);
        assert_eq!(report.unreadable_bytes, 0, "seed {seed}");
        assert_eq!(Model::from(&recovered), model.settled(), "seed {seed}");
    }
}

#[test]
fn a_damaged_message_takes_its_deliveries_with_it_and_is_counted() {
    let (storage, ..) = written(3);
    let (store, before, _) = open(&storage);
    drop(store);
    let message = before
        .messages
        .iter()
        .find(|message| message.content.payload().len() > 20);
    let payload = message.unwrap().content.payload();
    for (name, bytes) in storage.files() {
        if let Some(at) = bytes
            .windows(payload.len())
            .position(|window| window == payload)
        {
            storage.rot(&name, at, 1);
        }
    }
    let (_, after, report) = open(&storage);
    assert!(report.damaged_count >= 1);
    assert!(
        after.orphans.deliveries + after.orphans.retained >= 1,
        "{:?}",
        after.orphans
    );
    assert_eq!(after.messages.len() + 1, before.messages.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn arbitrary_bytes_are_read_as_an_empty_log(
        bytes in prop::collection::vec(any::<u8>(), 0..5000),
        number in 0_u64..3,
    ) {
        let storage = SimStorage::new(1);
        storage.put(&format!("{number:020}.log"), &bytes);
        let opened = Store::open(storage.open().unwrap(), options());
        let (mut store, recovered, _) = opened.unwrap();
        prop_assert!(recovered.sessions.is_empty());
        let mut script = Script::new(&storage);
        for _ in 0..20 {
            store.apply(&script.unit()).unwrap();
        }
        store.close().unwrap();
        let (_, recovered, _) = open(&storage);
        prop_assert_eq!(Model::from(&recovered), script.model.settled());
    }

    #[test]
    fn a_log_with_a_piece_replaced_is_read(
        seed in 0_u64..20,
        piece in prop::collection::vec(any::<u8>(), 1..600),
        at in any::<prop::sample::Index>(),
    ) {
        let (storage, model, _) = written(seed);
        let logs = segments(&storage);
        let (name, mut bytes) = logs[at.index(logs.len())].clone();
        let start = at.index(bytes.len());
        for (place, byte) in bytes[start..].iter_mut().zip(&piece) {
            *place = *byte;
        }
        storage.put(&name, &bytes);
        let (_, recovered, _) = open(&storage);
        check_nothing_is_invented(&recovered, &model);
    }
}
