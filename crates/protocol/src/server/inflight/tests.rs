//! Tests of the window alone: identifiers that wrap around, and bounded memory.

use super::*;

fn id(value: u16) -> PacketId {
    PacketId::new(value).unwrap()
}

/// Number of entries with allocated memory.
fn capacity(inflight: &Inflight) -> Option<usize> {
    let lists = inflight.lists.as_ref()?;
    Some(lists.entries.capacity())
}

fn acknowledge(inflight: &mut Inflight, value: u16) {
    let place = inflight.find(id(value)).unwrap();
    inflight.finish(place);
    inflight.trim();
}

#[test]
fn an_entry_of_a_clean_session_is_four_bytes() {
    assert_eq!(size_of::<Entry>(), 4);
}

#[test]
fn acknowledgements_in_any_order_find_their_message() {
    let mut inflight = Inflight::default();
    let ids: Vec<u16> = (65_000..=65_535).chain(1..500).collect();
    for &value in &ids {
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
    }
    // Every third identifier in descending order, then the rest from the middle outwards.
    let (third, rest): (Vec<u16>, Vec<u16>) = ids.iter().partition(|&&value| value % 3 == 0);
    for &value in third.iter().rev() {
        acknowledge(&mut inflight, value);
        assert_eq!(inflight.find(id(value)), None);
    }
    let (front, back) = rest.split_at(rest.len() / 2);
    for &value in back.iter().chain(front.iter().rev()) {
        acknowledge(&mut inflight, value);
    }
    assert_eq!((inflight.len(), inflight.places()), (0, 0));
}

#[test]
fn a_message_that_stays_unacknowledged_does_not_grow_the_memory() {
    let mut inflight = Inflight::default();
    inflight.push_unkept(id(5), QoS::AtLeastOnce);
    for round in 0..200_000_u32 {
        let value = 6 + u16::try_from(round % 60_000).unwrap();
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
        acknowledge(&mut inflight, value);
    }
    assert!(capacity(&inflight).is_some_and(|entries| entries < 256));
    assert_eq!(inflight.len(), 1);
    acknowledge(&mut inflight, 5);
    assert_eq!(inflight.len(), 0);
}

#[test]
fn identifiers_that_wrapped_around_an_old_one_are_found() {
    let mut inflight = Inflight::default();
    for value in [10, 65_534, 65_535, 1, 9, 11, 12] {
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
    }
    for value in [12, 65_535, 11, 1, 9, 65_534, 10] {
        acknowledge(&mut inflight, value);
    }
    assert_eq!(inflight.len(), 0);
}

#[test]
fn memory_of_a_burst_is_freed() {
    let mut inflight = Inflight::default();
    for value in 1..=1000 {
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
    }
    for value in 1..=1000 {
        acknowledge(&mut inflight, value);
    }
    assert_eq!(capacity(&inflight), None);
    for value in 1..=10 {
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
    }
    for value in 1..=10 {
        acknowledge(&mut inflight, value);
    }
    let kept = capacity(&inflight);
    assert!(
        kept.is_some_and(|entries| entries >= 10),
        "{kept:?}: steady traffic keeps its memory"
    );
}

#[test]
fn the_room_is_the_receive_maximum_less_the_unacknowledged_messages() {
    let mut inflight = Inflight {
        window: SendWindow::new(3, u32::MAX),
        ..Inflight::default()
    };
    for (value, room) in [(1, 3), (2, 2), (3, 1)] {
        assert_eq!((inflight.room(), inflight.is_open()), (room, true));
        inflight.push_unkept(id(value), QoS::AtLeastOnce);
    }
    assert_eq!((inflight.room(), inflight.is_open()), (0, false));
    acknowledge(&mut inflight, 2);
    assert_eq!((inflight.room(), inflight.is_open()), (1, true));
    // The next message may exhaust limited bytes.
    inflight.window = SendWindow::new(9, 1000);
    assert_eq!(inflight.room(), 1);
}
