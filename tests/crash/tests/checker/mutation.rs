//! Histories of a real run in which one thing is changed: the checker must notice.

use std::collections::BTreeMap;

use thrum_crash::checker::{Checker, Violation};
use thrum_crash::event::{ClientEvent, ClientIndex, Delivery, Event, Observed};
use thrum_crash::random::Random;
use thrum_crash::roles::all_roles;
use thrum_crash::run::{Plan, run_without_kills};

/// Mutations of each kind.
const MUTATIONS: usize = 12;

#[test]
fn lost_doubled_and_swapped_messages_of_a_real_run_are_noticed() {
    let history = run_without_kills(Plan::new("mutation", 1, false), 1).history;
    assert_eq!(violations(&history), []);
    let mut random = Random::new(7);
    let deliveries = steady_deliveries(&history);
    for _ in 0..MUTATIONS {
        let at = random.pick(&deliveries);
        check(&history, &without(&history, at), at, "lost");
        check(&history, &doubled(&history, at), at, "doubled");
        if let Some(other) = next_of_order(&history, &deliveries, at) {
            let mut swapped = history.clone();
            swapped.swap(at, other);
            check(&history, &swapped, at, "swapped");
        }
    }
}

fn check(history: &[Observed], mutant: &[Observed], at: usize, what: &str) {
    let found = violations(mutant);
    assert!(!found.is_empty(), "{what}: {:?}", history[at]);
}

fn violations(history: &[Observed]) -> Vec<Violation> {
    let mut checker = Checker::new(all_roles().len());
    for observed in history {
        checker.observe(observed);
    }
    checker.close_epoch();
    checker.violations().to_vec()
}

/// Places of deliveries with `QoS` 2 to clients that stay, of messages that they are owed: those
/// sent after the subscription was acknowledged.
fn steady_deliveries(history: &[Observed]) -> Vec<usize> {
    let roles = all_roles();
    let mut subscribed_at = vec![None; roles.len()];
    let mut sent_at = BTreeMap::new();
    let mut steady = Vec::new();
    for (at, observed) in history.iter().enumerate() {
        match &observed.event {
            Event::Client(client, ClientEvent::Subscribed(_)) => subscribed_at[*client] = Some(at),
            Event::Client(_, ClientEvent::Publishing(number, _)) => {
                sent_at.entry(*number).or_insert(at);
            }
            Event::Client(client, ClientEvent::Received(delivery)) => {
                let sent = delivery.number.and_then(|number| sent_at.get(&number));
                let is_owed = subscribed_at[*client]
                    .zip(sent)
                    .is_some_and(|(at, sent)| at < *sent);
                let is_message = !delivery.retain && delivery.topic.starts_with("t/");
                let is_there = roles[*client].name.starts_with("present");
                if is_owed && is_message && is_there && delivery.qos == 2 {
                    steady.push(at);
                }
            }
            _ => {}
        }
    }
    steady
}

/// The next delivery of the same publisher, topic and receiver.
fn next_of_order(history: &[Observed], deliveries: &[usize], at: usize) -> Option<usize> {
    let (client, delivery) = received(&history[at])?;
    let is_next = |other: &&usize| {
        let next = received(&history[**other]);
        **other > at && next.is_some_and(|(to, next)| to == client && next.topic == delivery.topic)
    };
    deliveries.iter().find(is_next).copied()
}

/// Without a delivery and its handshake.
fn without(history: &[Observed], at: usize) -> Vec<Observed> {
    let Some((client, delivery)) = received(&history[at]) else {
        panic!("not a delivery");
    };
    let id = delivery.packet_id;
    let parts = [ClientEvent::Recorded(id), ClientEvent::Released(id)];
    let mut kept = history[..at].to_vec();
    let mut is_over = false;
    for observed in &history[at + 1..] {
        let is_part = parts
            .iter()
            .any(|part| observed.event == Event::Client(client, part.clone()));
        if is_part && !is_over {
            is_over = observed.event == Event::Client(client, ClientEvent::Released(id));
        } else {
            kept.push(observed.clone());
        }
    }
    kept
}

/// With a second handshake at the end.
fn doubled(history: &[Observed], at: usize) -> Vec<Observed> {
    let Some((client, delivery)) = received(&history[at]) else {
        panic!("not a delivery");
    };
    let mut doubled = history.to_vec();
    let again = Delivery {
        packet_id: 60_000,
        ..delivery.clone()
    };
    doubled.push(Observed {
        at: history.last().map_or(0, |last| last.at),
        event: Event::Client(client, ClientEvent::Received(again)),
    });
    doubled
}

fn received(observed: &Observed) -> Option<(ClientIndex, &Delivery)> {
    match &observed.event {
        Event::Client(client, ClientEvent::Received(delivery)) => Some((*client, delivery)),
        _ => None,
    }
}
