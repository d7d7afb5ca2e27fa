//! Timelines by themselves: what is counted together, and what is forgotten.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use proptest::prelude::*;
use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::server::DropReason;

use super::*;
use crate::peer::Peer;

const ROOM: usize = 1 << 20;

fn at(millis: u64) -> Time {
    Time::from_millis(1_000_000 + millis)
}

fn subscribed(filter: &str) -> ClientEvent {
    ClientEvent::Subscribed {
        filter: filter.into(),
        qos: QoS::AtMostOnce,
        in_part: false,
    }
}

fn denied(topic: &str) -> ClientEvent {
    ClientEvent::PublishRefused {
        topic: topic.into(),
        why: RefusalCause::Rule("a rule".into()),
    }
}

fn refused(port: u16) -> ClientEvent {
    ClientEvent::Refused {
        peer: Peer::Address {
            ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port,
        },
        reason: ReasonCode::Banned,
        what: "banned",
    }
}

const LOST: ClientEvent = ClientEvent::Disconnected {
    cause: EndCause::Lost,
    connected_secs: 1,
    session_ended: false,
};

impl Timelines {
    fn told(&mut self, client_id: &str, event: ClientEvent, now: Time) -> u64 {
        self.record_within(client_id, event, now, ROOM)
    }

    fn record_within(&mut self, name: &str, event: ClientEvent, now: Time, room: usize) -> u64 {
        self.record(name, TimelineEntry::new(event, now, 0), room)
    }

    fn events(&self, client_id: &str) -> Vec<(u64, u32)> {
        let Some(number) = self.find(client_id) else {
            return Vec::new();
        };
        let events = self.stories[number as usize].events.iter();
        events.map(|entry| (entry.count, entry.others)).collect()
    }

    /// The bytes of all stories, counted one by one.
    fn counted_bytes(&self) -> usize {
        self.stories.iter().map(|(_, story)| story.bytes()).sum()
    }
}

#[test]
fn an_entry_stays_small() {
    assert!(
        size_of::<TimelineEntry>() <= 96,
        "{}",
        size_of::<TimelineEntry>()
    );
    assert!(size_of::<Story>() <= 88, "{}", size_of::<Story>());
}

#[test]
fn a_repetition_is_counted_with_the_event_that_it_repeats() {
    let mut timelines = Timelines::default();
    for (millis, topic) in [(0, "a"), (10, "b"), (20, "a"), (30, "a")] {
        timelines.told("client", denied(topic), at(millis));
    }
    assert_eq!(timelines.events("client"), [(3, 0), (1, 0)]);
    let story = &timelines.stories[0];
    assert_eq!((story.events[0].at, story.events[0].last), (at(0), at(30)));
    timelines.told("client", denied("a"), at(30).plus(REPEAT_TIME));
    assert_eq!(timelines.events("client"), [(4, 0), (1, 0)]);
    let later = at(31).plus(REPEAT_TIME).plus(REPEAT_TIME);
    timelines.told("client", denied("a"), later);
    assert_eq!(
        timelines.events("client"),
        [(4, 0), (1, 0), (1, 0)],
        "a minute has passed"
    );
    for port in [1, 2, 3] {
        timelines.told("client", refused(port), later);
    }
    assert_eq!(
        timelines.events("client")[3..],
        [(3, 0)],
        "only the port differs"
    );
}

#[test]
fn connections_are_never_counted_together() {
    let mut timelines = Timelines::default();
    for millis in 0..20 {
        timelines.told("client", LOST, at(millis));
    }
    assert_eq!(timelines.events("client"), [(1, 0); 20]);
}

#[test]
fn a_series_of_subscriptions_takes_eight_entries() {
    let mut timelines = Timelines::default();
    timelines.told("client", LOST, at(0));
    for number in 0..100 {
        timelines.told(
            "client",
            subscribed(&format!("filter/{number}")),
            at(number),
        );
    }
    let events = timelines.events("client");
    assert_eq!((events.len(), events.last()), (9, Some(&(1, 92))));
    timelines.told("client", LOST, at(200));
    timelines.told("client", subscribed("other"), at(201));
    assert_eq!(timelines.events("client").len(), 11, "the series is over");
}

#[test]
fn a_series_of_subscriptions_does_not_hide_the_next_refusal() {
    let mut timelines = Timelines::default();
    for number in 0..50 {
        timelines.told("client", subscribed(&format!("f/{number}")), at(number));
    }
    timelines.told("client", denied("a"), at(60));
    let story = &timelines.stories[0];
    let last = story.events.back().unwrap();
    assert_eq!(last.event, denied("a"));
    assert_eq!(timelines.events("client").len(), 9);
    // The series goes on, in the entry of its last one.
    timelines.told("client", subscribed("f/50"), at(61));
    assert_eq!(timelines.events("client")[7..], [(1, 43), (1, 0)]);
}

#[test]
fn series_of_several_kinds_that_take_turns_do_not_fill_a_timeline() {
    let mut timelines = Timelines::default();
    for number in 0..1000 {
        timelines.told("client", subscribed(&format!("f/{number}")), at(number));
        timelines.told("client", denied(&format!("t/{number}")), at(number));
    }
    let events = timelines.events("client");
    assert_eq!(events.len(), 16);
    let all: u64 = events
        .iter()
        .map(|(count, others)| count + u64::from(*others))
        .sum();
    assert_eq!(all, 2000);
}

#[test]
fn an_event_that_is_counted_keeps_its_timeline_from_being_forgotten() {
    let mut timelines = Timelines::default();
    timelines.told("one", denied("a"), at(0));
    timelines.told("two", LOST, at(1));
    timelines.told("one", denied("a"), at(2));
    assert_eq!(timelines.events("one"), [(2, 0)]);
    let room = timelines.orders.bytes() * 8 / 7;
    timelines.record_within("six", LOST, at(3), room);
    let known = ["one", "two", "six"].map(|name| timelines.find(name).is_some());
    assert_eq!(known, [true, false, true]);
}

#[test]
fn the_tables_around_timelines_take_no_more_memory_than_is_counted() {
    let mut timelines = Timelines::default();
    for number in 0..20_000 {
        timelines.told(&format!("client-{number}"), LOST, at(number));
        // Of the texts of the client identifiers and the events nothing is known here.
        let stories = timelines.stories.capacity() * size_of::<Story>();
        let index = timelines.by_id.allocation_size();
        let least = timelines.stories.len() * PLACE_BYTES;
        assert!(
            number < 100 || stories + index <= least,
            "{number}: {stories} {index} {least}"
        );
    }
}

#[test]
fn a_smaller_limit_forgets_timelines_in_portions() {
    let mut timelines = Timelines::default();
    for number in 0..100 {
        timelines.told(&format!("client-{number}"), LOST, at(number));
    }
    let room = timelines.orders.bytes() / 2;
    let first = timelines.fit(room, 10);
    assert_eq!((first.stories, first.events), (10, 10));
    assert!(!timelines.fits(room));
    timelines.fit(room, 1000);
    assert!(timelines.fits(room) && !timelines.stories.is_empty());
    assert!(timelines.find("client-99").is_some() && timelines.find("client-0").is_none());
    timelines.fit(0, 1000);
    assert_eq!(
        (timelines.stories.capacity(), timelines.orders.bytes()),
        (0, 0)
    );
}

#[test]
fn a_client_has_its_last_200_events() {
    let mut timelines = Timelines::default();
    let mut forgotten = 0;
    for millis in 0..250 {
        forgotten += timelines.told("client", LOST, at(millis));
    }
    let story = &timelines.stories[0];
    assert_eq!(
        (story.events.len(), story.forgotten, forgotten),
        (EVENTS_MAX, 50, 50)
    );
    assert_eq!(story.events[0].at, at(50));
}

#[test]
fn the_timeline_that_has_not_changed_for_longest_is_forgotten_first() {
    let mut timelines = Timelines::default();
    for name in ["one", "two", "three"] {
        timelines.told(name, LOST, at(0));
    }
    timelines.told("one", LOST, at(1));
    // A refused CONNECT of someone else with its identifier does not count as a change.
    timelines.told("two", refused(1), at(2));
    let bytes = timelines.orders.bytes();
    // An eighth is for strangers.
    let room = bytes * 8 / 7;
    let forgotten = timelines.record_within("four", LOST, at(3), room);
    assert_eq!(forgotten, 2, "the two events of the second client");
    let known = ["one", "two", "three", "four"].map(|name| timelines.find(name).is_some());
    assert_eq!(known, [true, false, true, true]);
    assert_eq!(timelines.orders.bytes(), timelines.counted_bytes());
}

#[test]
fn invented_client_identifiers_do_not_displace_those_of_clients() {
    let mut timelines = Timelines::default();
    timelines.record_within("client", LOST, at(0), ROOM);
    for number in 0..100_000 {
        timelines.record_within(&format!("invented-{number}"), refused(1), at(number), ROOM);
    }
    assert_eq!(timelines.events("client"), [(1, 0)]);
    assert!(timelines.orders.bytes() <= ROOM / 8 + 1000);
    assert!(timelines.find("invented-99999").is_some());
    assert!(timelines.find("invented-0").is_none());
    // Once admitted, a client is a stranger no more.
    timelines.record_within("invented-99999", LOST, at(0), ROOM);
    for number in 0..100_000 {
        timelines.record_within(&format!("other-{number}"), refused(1), at(number), ROOM);
    }
    assert_eq!(timelines.events("invented-99999"), [(1, 0); 2]);
    assert_eq!(timelines.orders.bytes(), timelines.counted_bytes());
}

#[test]
fn without_memory_nothing_is_recorded_and_what_was_is_forgotten() {
    let mut timelines = Timelines::default();
    timelines.told("client", LOST, at(0));
    timelines.told("client", LOST, at(0));
    assert_eq!(timelines.record_within("other", LOST, at(1), 0), 0);
    assert!(timelines.find("other").is_none());
    assert_eq!(timelines.fit(0, 10).events, 2);
    assert_eq!((timelines.stories.len(), timelines.orders.bytes()), (0, 0));
}

#[test]
fn drops_with_less_than_a_minute_between_them_are_one_entry() {
    let episode = crate::client::DropEpisode {
        reason: DropReason::QueueFull,
        first: at(0),
        last: at(51_000),
        count: 412,
    };
    let entry = TimelineEntry::from(episode);
    assert_eq!(
        (entry.at, entry.last, entry.count),
        (at(0), at(51_000), 412)
    );
    assert_eq!(entry.event, ClientEvent::Dropped(DropReason::QueueFull));
}

fn any_event() -> impl Strategy<Value = ClientEvent> {
    prop_oneof![
        Just(LOST),
        (0..3_u16).prop_map(refused),
        "[a-c]{1,3}".prop_map(|filter| subscribed(&filter)),
        "[a-c]{1,2}".prop_map(|topic| denied(&topic)),
    ]
}

proptest! {
    /// Whatever happens, the memory is within the limit and counted right, no event is lost
    /// without being counted, and every client has at most 200 entries.
    #[test]
    fn nothing_is_lost_uncounted(
        told in prop::collection::vec((0..12_u8, any_event(), 0..90_000_u64), 0..600),
        room in 2_000..20_000_usize,
    ) {
        let mut timelines = Timelines::default();
        let (mut now, mut recorded, mut forgotten) = (at(0), 0, 0);
        for (client, event, pause) in told {
            now = now.plus(Duration::from_millis(pause));
            let before: u64 = entries(&timelines);
            let name = format!("client-{client}");
            let lost = timelines.record_within(&name, event, now, room);
            forgotten += lost;
            recorded += (entries(&timelines) + lost) - before;
            prop_assert!(timelines.orders.bytes() <= room);
            prop_assert_eq!(timelines.orders.bytes(), timelines.counted_bytes());
            for (_, story) in &timelines.stories {
                prop_assert!(story.events.len() <= EVENTS_MAX);
                let is_of_stranger = story
                    .events
                    .iter()
                    .all(|entry| matches!(entry.event, ClientEvent::Refused { .. }));
                prop_assert!(!story.is_of_stranger || is_of_stranger);
            }
        }
        prop_assert_eq!(entries(&timelines) + forgotten, recorded);
        prop_assert_eq!(timelines.by_id.len(), timelines.stories.len());
    }
}

fn entries(timelines: &Timelines) -> u64 {
    let stories = timelines.stories.iter();
    stories.map(|(_, story)| story.events.len() as u64).sum()
}
