//! The checker reports each kind of violation.

use thrum_codec::{QoS, ReasonCode};

use super::super::history::{Ending, Entry, Event, Message, Millis, SentWill};
use super::{Allowances, check};

const PUBLISHER: usize = 0;
const SUBSCRIBER: usize = 1;
const WILL_OWNER: usize = 2;
const WATCHER: usize = 3;
const START: Millis = 1_000_000;
/// When the will with the number 9 is due.
const WILL_DUE: Millis = START + 2000;

fn connecting(client: usize, will: Option<SentWill>) -> Event {
    Event::Connecting {
        client,
        clean_start: false,
        expiry_secs: 600,
        will,
    }
}

fn connected(client: usize, session_present: bool) -> Event {
    Event::Connected {
        client,
        session_present,
    }
}

fn sent(number: u32, qos: QoS) -> Event {
    let retain = number == 4;
    Event::Sent {
        client: PUBLISHER,
        message: Message {
            number,
            topic: if retain { "r/0" } else { "t/0" },
            qos,
            retain,
            is_empty: false,
            expiry_secs: None,
        },
    }
}

fn accepted(number: u32) -> Event {
    Event::Accepted {
        client: PUBLISHER,
        number,
        outcome: ReasonCode::Success,
    }
}

fn received(number: u32, qos: QoS) -> Event {
    Event::Received {
        client: SUBSCRIBER,
        number,
        topic: "t/0",
        qos,
        dup: false,
        retain: false,
    }
}

fn subscribed(client: usize, filter: &'static str) -> [Event; 2] {
    let qos = QoS::ExactlyOnce;
    [
        Event::Subscribing {
            client,
            filter,
            qos,
        },
        Event::Subscribed {
            client,
            filter,
            granted: Some(qos),
        },
    ]
}

/// A correct history: messages of each quality of service, a will, a retained message.
fn good() -> Vec<Entry> {
    let note = SentWill {
        number: 9,
        delay_secs: 2,
        qos: QoS::AtLeastOnce,
    };
    let will = Event::Received {
        client: WATCHER,
        number: 9,
        topic: "w/2",
        qos: QoS::AtLeastOnce,
        dup: false,
        retain: false,
    };
    let shown = Event::Received {
        client: WATCHER,
        number: 4,
        topic: "r/0",
        qos: QoS::AtLeastOnce,
        dup: false,
        retain: true,
    };
    let mut events = vec![];
    for client in [PUBLISHER, SUBSCRIBER, WATCHER] {
        events.extend([connecting(client, None), connected(client, false)]);
    }
    events.extend([
        connecting(WILL_OWNER, Some(note)),
        connected(WILL_OWNER, false),
    ]);
    events.extend(subscribed(SUBSCRIBER, "t/#"));
    events.extend(subscribed(WATCHER, "w/+"));
    events.extend([sent(1, QoS::AtLeastOnce), sent(2, QoS::AtLeastOnce)]);
    events.extend([sent(3, QoS::ExactlyOnce), sent(4, QoS::AtLeastOnce)]);
    events.extend([1, 2, 3, 4].map(accepted));
    events.extend([1, 2].map(|number| received(number, QoS::AtLeastOnce)));
    events.push(received(3, QoS::ExactlyOnce));
    events.push(Event::Disconnected {
        client: WILL_OWNER,
        how: Ending::Cut,
    });
    events.push(Event::Settled);
    let mut history: Vec<Entry> = events
        .into_iter()
        .map(|event| Entry { at: START, event })
        .collect();
    let mut later = vec![will, Event::Settled];
    later.extend([
        Event::Disconnected {
            client: SUBSCRIBER,
            how: Ending::Cut,
        },
        connecting(SUBSCRIBER, None),
        connected(SUBSCRIBER, true),
        Event::Settled,
    ]);
    later.extend(subscribed(WATCHER, "r/+"));
    later.extend([shown, Event::Settled]);
    later.push(Event::Inspected { client: WATCHER });
    later.push(Event::Drained);
    let at = WILL_DUE + 1000;
    history.extend(later.into_iter().map(|event| Entry { at, event }));
    history
}

fn violation(history: &[Entry]) -> Option<String> {
    check(history, Allowances::default())
        .err()
        .map(|(_, violation)| violation)
}

fn place(history: &[Entry], wanted: Event) -> usize {
    let found = history.iter().position(|entry| entry.event == wanted);
    found.unwrap_or_else(|| panic!("there is no {wanted:?}"))
}

/// Asserts that the changed history has a violation with those words.
fn check_changed(words: &str, change: impl FnOnce(&mut Vec<Entry>)) {
    let mut history = good();
    change(&mut history);
    let violation = violation(&history).unwrap_or_else(|| panic!("no violation of {words:?}"));
    assert!(violation.contains(words), "{violation}");
}

fn replace(history: &mut [Entry], old: Event, new: Event) {
    let place = place(history, old);
    history[place].event = new;
}

#[test]
fn a_correct_history_has_no_violation() {
    assert_eq!(violation(&good()), None);
}

#[test]
fn a_lost_message_is_reported() {
    for lost in [
        received(1, QoS::AtLeastOnce),
        received(2, QoS::AtLeastOnce),
        received(3, QoS::ExactlyOnce),
    ] {
        check_changed("has not arrived", |history| {
            history.remove(place(history, lost));
        });
    }
}

#[test]
fn a_duplicate_message_is_reported() {
    let doubled = |once: Event| {
        move |history: &mut Vec<Entry>| {
            let place = place(history, once);
            history.insert(place, history[place]);
        }
    };
    check_changed("it arrived twice", doubled(received(3, QoS::ExactlyOnce)));
    check_changed(
        "more often than it was sent",
        doubled(received(1, QoS::AtLeastOnce)),
    );
}

#[test]
fn messages_out_of_order_are_reported() {
    check_changed("arrived after the later message", |history| {
        let first = place(history, received(1, QoS::AtLeastOnce));
        history.swap(first, first + 1);
    });
}

#[test]
fn a_message_for_another_client_is_reported() {
    let foreign = |change: fn(&mut Event)| {
        move |history: &mut Vec<Entry>| {
            let place = place(history, received(1, QoS::AtLeastOnce));
            change(&mut history[place].event);
        }
    };
    check_changed(
        "no subscription",
        foreign(|event| {
            if let Event::Received { client, .. } = event {
                *client = WATCHER;
            }
        }),
    );
    check_changed(
        "another topic",
        foreign(|event| {
            if let Event::Received { topic, .. } = event {
                *topic = "t/1";
            }
        }),
    );
    check_changed(
        "a lower quality of service",
        foreign(|event| {
            if let Event::Received { qos, .. } = event {
                *qos = QoS::ExactlyOnce;
            }
        }),
    );
    check_changed(
        "there was no earlier connection",
        foreign(|event| {
            if let Event::Received { dup, .. } = event {
                *dup = true;
            }
        }),
    );
    check_changed(
        "no client sent",
        foreign(|event| {
            if let Event::Received { number, .. } = event {
                *number = 77;
            }
        }),
    );
}

#[test]
fn session_present_must_be_true() {
    check_changed("there can be none", |history| {
        replace(
            history,
            connected(PUBLISHER, false),
            connected(PUBLISHER, true),
        );
    });
    check_changed("there must be one", |history| {
        let last = history
            .iter()
            .rposition(|entry| entry.event == connected(SUBSCRIBER, true));
        history[last.unwrap()].event = connected(SUBSCRIBER, false);
    });
    check_changed("after a clean start", |history| {
        let last = history
            .iter()
            .rposition(|entry| entry.event == connecting(SUBSCRIBER, None));
        history[last.unwrap()].event = Event::Connecting {
            client: SUBSCRIBER,
            clean_start: true,
            expiry_secs: 600,
            will: None,
        };
    });
}

#[test]
fn a_session_present_after_its_expiry_is_reported() {
    check_changed("there can be none", |history| {
        let back = history
            .iter()
            .rposition(|entry| entry.event == connecting(SUBSCRIBER, None));
        let settled = Entry {
            event: Event::Settled,
            ..history[back.unwrap()]
        };
        history.insert(back.unwrap(), settled);
        for entry in &mut history[back.unwrap() + 1..] {
            entry.at += 601_000;
        }
    });
}

fn will_place(history: &[Entry]) -> usize {
    let is_it = |entry: &Entry| matches!(entry.event, Event::Received { number: 9, .. });
    history.iter().position(is_it).unwrap()
}

#[test]
fn a_will_that_is_not_published_when_it_is_due_is_reported() {
    check_changed("has not arrived", |history| {
        history.remove(will_place(history));
    });
    check_changed("too early", |history| {
        let place = will_place(history);
        history[place].at = WILL_DUE - 1;
    });
    check_changed("it arrived twice", |history| {
        let place = will_place(history);
        history.insert(place, history[place]);
    });
    check_changed("after its time", |history| {
        let cut = Event::Disconnected {
            client: WILL_OWNER,
            how: Ending::Cut,
        };
        let disconnect = Event::Disconnected {
            client: WILL_OWNER,
            how: Ending::Disconnect {
                with_will: false,
                expiry_secs: None,
            },
        };
        replace(history, cut, disconnect);
    });
    check_changed("the connection is up", |history| {
        let cut = Event::Disconnected {
            client: WILL_OWNER,
            how: Ending::Cut,
        };
        history.remove(place(history, cut));
    });
}

#[test]
fn a_lost_or_old_retained_message_is_reported() {
    let is_shown = |entry: &Entry| matches!(entry.event, Event::Received { retain: true, .. });
    check_changed("nothing is retained", |history| {
        history.retain(|entry| !is_shown(entry));
        // The client has no promise of it.
        let acknowledged =
            |entry: &Entry| matches!(entry.event, Event::Subscribed { filter: "r/+", .. });
        history.retain(|entry| !acknowledged(entry));
    });
    check_changed("a later one was accepted", |history| {
        let mut newer = sent(5, QoS::AtLeastOnce);
        if let Event::Sent { message, .. } = &mut newer {
            message.topic = "r/0";
            message.retain = true;
        }
        let at = history[0].at;
        let before = place(history, Event::Settled);
        for event in [accepted(5), newer] {
            history.insert(before, Entry { at, event });
        }
    });
}

/// A message on the topic of the retained one.
fn on_retained(number: u32, retain: bool) -> [Event; 2] {
    let mut newer = sent(number, QoS::AtLeastOnce);
    if let Event::Sent { message, .. } = &mut newer {
        message.topic = "r/0";
        message.retain = true;
    }
    let arrived = Event::Received {
        client: WATCHER,
        number,
        topic: "r/0",
        qos: QoS::AtLeastOnce,
        dup: false,
        retain,
    };
    [newer, arrived]
}

#[test]
fn a_retained_message_after_a_newer_one_is_reported() {
    let shown = |entry: &Entry| matches!(entry.event, Event::Received { retain: true, .. });
    for retain in [false, true] {
        check_changed("after the newer one", |history| {
            let before = history.iter().position(shown).unwrap();
            let at = history[before].at;
            let events = on_retained(5, retain).map(|event| Entry { at, event });
            history.splice(before..before, events);
        });
    }
}

#[test]
fn a_missing_retained_message_of_an_acknowledged_subscription_is_reported() {
    check_changed("is due since an acknowledged subscription", |history| {
        history.retain(|entry| !matches!(entry.event, Event::Received { retain: true, .. }));
    });
    // A newer message that arrived live suffices.
    let mut history = good();
    let shown = |entry: &Entry| matches!(entry.event, Event::Received { retain: true, .. });
    let before = history.iter().position(shown).unwrap();
    let at = history[before].at;
    let events = on_retained(5, false).map(|event| Entry { at, event });
    history.splice(before..=before, events);
    let violation = violation(&history).unwrap_or_default();
    assert!(!violation.contains("is due since"), "{violation}");
}

#[test]
fn a_refusal_without_reason_is_reported() {
    check_changed("was refused", |history| {
        let refused = Event::Accepted {
            client: PUBLISHER,
            number: 2,
            outcome: ReasonCode::QuotaExceeded,
        };
        replace(history, accepted(2), refused);
    });
    check_changed("found no subscribers", |history| {
        let without_subscribers = Event::Accepted {
            client: PUBLISHER,
            number: 2,
            outcome: ReasonCode::NoMatchingSubscribers,
        };
        replace(history, accepted(2), without_subscribers);
    });
}
