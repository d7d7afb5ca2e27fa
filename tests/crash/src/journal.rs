//! The journal of what clients do and see: the checker gets each event at once, and the last events
//! are kept for a report.

use std::collections::{BTreeSet, VecDeque};
use std::time::Instant;

use thrum_conformance::clock;

use crate::checker::{Checker, Violation};
use crate::event::{ClientEvent, ClientIndex, Event, MessageNumber, Millis, Observed, Publish};

/// Events that are kept.
const KEPT_MAX: usize = 1_000_000;

/// The journal of a run.
#[derive(Debug)]
pub struct Journal {
    began: Instant,
    next_number: MessageNumber,
    kept: VecDeque<Observed>,
    checker: Checker,
    /// Messages whose payload tells their number.
    numbered: BTreeSet<MessageNumber>,
    /// Those of them that were accepted.
    accepted: BTreeSet<MessageNumber>,
}

impl Journal {
    /// A journal for this many clients.
    pub fn new(clients: usize) -> Self {
        Self {
            began: clock::now(),
            next_number: 1,
            kept: VecDeque::new(),
            checker: Checker::new(clients),
            numbered: BTreeSet::new(),
            accepted: BTreeSet::new(),
        }
    }

    /// Milliseconds since the run began.
    pub fn now(&self) -> Millis {
        self.at(clock::now())
    }

    /// The time of an instant.
    pub fn at(&self, instant: Instant) -> Millis {
        let elapsed = instant.saturating_duration_since(self.began);
        Millis::try_from(elapsed.as_millis()).unwrap_or(Millis::MAX)
    }

    /// A number for a new message.
    pub fn next_number(&mut self) -> MessageNumber {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Something happened now.
    pub fn note(&mut self, event: Event) {
        self.note_at(self.now(), event);
    }

    /// Something happened at a time.
    pub fn note_at(&mut self, at: Millis, event: Event) {
        match &event {
            Event::Client(_, ClientEvent::Publishing(number, publish)) if !publish.is_empty => {
                self.numbered.insert(*number);
            }
            Event::Client(_, ClientEvent::Accepted(number)) if self.numbered.contains(number) => {
                self.accepted.insert(*number);
            }
            _ => {}
        }
        let observed = Observed { at, event };
        self.checker.observe(&observed);
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(observed);
    }

    /// Something happened to a client.
    pub fn client(&mut self, client: ClientIndex, event: ClientEvent) {
        self.note(Event::Client(client, event));
    }

    /// Messages with a number in their payload that were accepted, from the beginning.
    pub fn accepted(&self) -> &BTreeSet<MessageNumber> {
        &self.accepted
    }

    /// The checker.
    pub fn checker(&self) -> &Checker {
        &self.checker
    }

    /// The checker, to mark a quiet moment.
    pub fn checker_mut(&mut self) -> &mut Checker {
        &mut self.checker
    }

    /// All events that are kept.
    pub fn history(&self) -> impl Iterator<Item = &Observed> {
        self.kept.iter()
    }

    /// A violation with the events around it: those of its message, and the connections of its
    /// client.
    pub fn explain(&self, violation: &Violation) -> String {
        const LINES_MAX: usize = 60;
        let is_related = |observed: &&Observed| match &observed.event {
            Event::Client(client, event) => is_about(violation, *client, event),
            Event::Started | Event::Killed | Event::Faulty | Event::Healed => true,
            Event::Inspecting | Event::NotInspected | Event::Inspected(_) => false,
        };
        let lines: Vec<_> = self
            .kept
            .iter()
            .filter(is_related)
            .map(|observed| format!("    {:>7} ms  {:?}", observed.at, observed.event))
            .collect();
        let skipped = lines.len().saturating_sub(LINES_MAX);
        format!(
            "{violation}\n{}",
            lines.get(skipped..).unwrap_or_default().join("\n")
        )
    }
}

fn is_about(violation: &Violation, client: ClientIndex, event: &ClientEvent) -> bool {
    let message = match event {
        ClientEvent::Publishing(number, Publish { .. })
        | ClientEvent::Accepted(number)
        | ClientEvent::Refused(number, _) => Some(*number),
        ClientEvent::Received(delivery) => delivery.number,
        ClientEvent::Connecting(connect) => connect.will.as_ref().map(|will| will.number),
        _ => None,
    };
    let is_message = message.is_some() && message == violation.message;
    let is_connection = matches!(
        event,
        ClientEvent::Connecting(_)
            | ClientEvent::Connected(_)
            | ClientEvent::Disconnecting(_)
            | ClientEvent::Disconnected
            | ClientEvent::Vanished
            | ClientEvent::Dropped
            | ClientEvent::Nonsense(_)
            | ClientEvent::Subscribing(..)
            | ClientEvent::Subscribed(_)
            | ClientEvent::Unsubscribing(_)
            | ClientEvent::Unsubscribed(_)
    );
    is_message || (is_connection && violation.client == Some(client))
}
