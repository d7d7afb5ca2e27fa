//! Compares what clients saw with what the specification and the contract of the data directory
//! allow.
//!
//! ```text
//!   Observed --> presence (session present)   session_record (subscriptions, deliveries)
//!                wills    retained            groups (shared subscriptions)          --> Violation
//! ```
//!
//! Invariant: the checker allows everything that a correct broker may do after a crash, so each
//! violation is an error of the broker.

mod client;
mod copies;
mod delivery;
mod filter;
mod groups;
mod identifiers;
mod messages;
mod presence;
mod retained;
mod session_record;
mod wills;

use std::collections::BTreeMap;
use std::collections::VecDeque;
use std::fmt;

use crate::event::{ClientEvent, ClientIndex, Event, MessageNumber, Millis, Observed};
use client::Client;
use groups::Groups;
use messages::Messages;
use retained::Retained;

pub use filter::matches;
pub use session_record::FENCE;

/// Behaviour of no correct broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// When it was noticed.
    pub at: Millis,
    /// Which client saw it.
    pub client: Option<ClientIndex>,
    /// Which message it is about.
    pub message: Option<MessageNumber>,
    /// The error.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at {} ms", self.at)?;
        if let Some(client) = self.client {
            write!(formatter, ", client {client}")?;
        }
        if let Some(message) = self.message {
            write!(formatter, ", message {message}")?;
        }
        write!(formatter, ": {}", self.text)
    }
}

/// Numbers of checks: a run that checked nothing proves nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kills.
    pub kills: u64,
    /// Messages acknowledged to their publishers.
    pub accepted: u64,
    /// Required deliveries that arrived.
    pub paid: u64,
    /// Sessions that were found again after a kill.
    pub resumed: u64,
    /// Repeated `QoS` 1 messages.
    pub repeated: u64,
    /// PUBLISH of `QoS` 2 repeated under its packet identifier.
    pub resent: u64,
    /// Repeated PUBREL.
    pub released_again: u64,
    /// Wills that had to be published.
    pub wills: u64,
    /// Wills that must not be published.
    pub wills_discarded: u64,
    /// Retained topics that were looked at.
    pub retained: u64,
    /// Acknowledgements of clients that a fence made certain.
    pub fenced: u64,
    /// Times that the disk failed.
    pub faults: u64,
    /// Requests refused because of that.
    pub refused: u64,
}

/// The checker; it takes every event of the clients in order.
#[derive(Clone, Debug)]
pub struct Checker {
    clock: Clock,
    clients: Vec<Client>,
    messages: Messages,
    groups: Groups,
    retained: Retained,
    violations: Vec<Violation>,
    /// The disk failed at some time: wills of sessions without expiry were perhaps kept in memory
    /// only.
    has_faulted: bool,
    /// The broker was asked to stop.
    is_stopping: bool,
    counts: Counts,
    /// Times and events of the last [`PASSING_MILLIS`], oldest first, one for each time.
    recent: VecDeque<(Millis, u64)>,
}

/// A safe message is acknowledged before all workers have seen it: for this long it may reach a
/// subscription that was requested after that.
const PASSING_MILLIS: Millis = 500;

/// Position of an event in the run.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// Number of the event.
    event: u64,
    at: Millis,
    /// Number of starts of the broker.
    run: u32,
    last_started: Millis,
    /// Event since which the disk fails.
    faulty_since: Option<u64>,
    /// The disk failed since the last quiet moment: the broker may refuse and close.
    is_tolerant: bool,
}

impl Checker {
    /// A checker for this many clients, none of which was ever connected.
    pub fn new(clients: usize) -> Self {
        Self {
            clock: Clock::default(),
            clients: vec![Client::default(); clients],
            messages: Messages::default(),
            groups: Groups::default(),
            retained: Retained::default(),
            violations: Vec::new(),
            has_faulted: false,
            is_stopping: false,
            counts: Counts::default(),
            recent: VecDeque::new(),
        }
    }

    /// Takes the next event.
    pub fn observe(&mut self, observed: &Observed) {
        self.clock.event += 1;
        self.clock.at = observed.at;
        self.remember();
        match &observed.event {
            Event::Started => {
                self.clock.run += 1;
                self.clock.last_started = observed.at;
                for client in &mut self.clients {
                    client.presence.started(observed.at);
                }
            }
            Event::Killed => self.killed(),
            Event::Faulty => {
                self.has_faulted = true;
                self.counts.faults += 1;
                self.clock.faulty_since = Some(self.clock.event);
                self.clock.is_tolerant = true;
            }
            Event::Healed => self.clock.faulty_since = None,
            Event::Inspecting => self.retained.inspecting(),
            Event::NotInspected => self.retained.not_inspected(),
            Event::Inspected(found) => {
                let (looked_at, wrong) = self.retained.inspected(found);
                self.counts.retained += looked_at;
                for text in wrong {
                    self.blame(None, None, text);
                }
            }
            Event::Client(client, event) => self.client_event(*client, event),
        }
    }

    /// Whether a look at what is retained finds what it should.
    pub fn is_retained_right(&self, found: &BTreeMap<String, MessageNumber>) -> bool {
        self.retained.wrong(found).is_empty()
    }

    /// The errors found so far.
    pub fn violations(&self) -> &[Violation] {
        &self.violations
    }

    /// The numbers of checks.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether the disk failed since the last quiet moment, so that refusals are to be expected.
    pub fn is_tolerant(&self) -> bool {
        self.clock.is_tolerant || self.is_stopping
    }

    /// Required deliveries that have not arrived yet.
    pub fn outstanding(&self) -> usize {
        let owed: usize = self
            .clients
            .iter()
            .map(|client| client.session.owed.len())
            .sum();
        owed + self.groups.outstanding()
    }

    /// Whether all acknowledgements that a client sent are certain.
    pub fn is_fenced(&self, client: ClientIndex) -> bool {
        let session = &self.clients[client].session;
        session.unsettled.is_empty() && session.fence.is_empty()
    }

    /// Ends a quiet moment: every delivery that is still owed is lost, and delivered messages are
    /// not repeated.
    pub fn close_epoch(&mut self) {
        for client in 0..self.clients.len() {
            for number in std::mem::take(&mut self.clients[client].session.owed) {
                let text = format!("lost: {}", self.messages.describe(number));
                self.blame(Some(client), Some(number), text);
            }
        }
        for (group, number) in self.groups.close_epoch() {
            let text = format!("lost by group {group}: {}", self.messages.describe(number));
            self.blame(None, Some(number), text);
        }
        let pending: Vec<_> = self
            .clients
            .iter()
            .flat_map(|client| client.wills.pending())
            .collect();
        self.messages.settle(&pending, self.clock.event);
        self.groups.forget(&self.messages);
        self.clock.is_tolerant = self.clock.faulty_since.is_some();
        for client in &mut self.clients {
            let messages = &self.messages;
            client
                .session
                .seen
                .retain(|number, _| messages.is_open(*number));
        }
    }

    fn killed(&mut self) {
        self.counts.kills += 1;
        for client in 0..self.clients.len() {
            self.connection_ended(client, client::End::Crash);
            let client = &mut self.clients[client];
            client.presence.killed();
            client.wills.killed();
        }
    }

    fn client_event(&mut self, client: ClientIndex, event: &ClientEvent) {
        match event {
            ClientEvent::Connecting(connect) => self.connecting(client, connect),
            ClientEvent::Connected(present) => self.connected(client, *present),
            ClientEvent::Disconnecting(disconnect) => self.disconnecting(client, *disconnect),
            ClientEvent::Disconnected => self.disconnected(client),
            ClientEvent::Vanished => self.connection_ended(client, client::End::Vanished),
            ClientEvent::Rejected(code) => {
                let text = format!("CONNECT refused with {code:#04x}");
                self.refused(client, None, text);
                self.connection_ended(client, client::End::Vanished);
            }
            ClientEvent::Dropped => {
                let text = "closed by the broker for no reason".to_owned();
                self.refused(client, None, text);
                self.connection_ended(client, client::End::Vanished);
            }
            ClientEvent::NotSubscribed(filter, code) => {
                let text = format!("{filter} refused with {code:#04x}");
                self.refused(client, None, text);
            }
            ClientEvent::Subscribing(filter, qos) => {
                let passing = self.recent.front().map_or(0, |(_, event)| *event);
                self.clients[client]
                    .session
                    .subscribing(filter, *qos, passing);
            }
            ClientEvent::Subscribed(filter) => {
                let session = &mut self.clients[client].session;
                self.counts.fenced += session.subscribed(filter, self.clock.event);
            }
            ClientEvent::Unsubscribing(filter) => {
                let session = &mut self.clients[client].session;
                let group = session.unsubscribing(filter);
                if let Some(group) = group {
                    self.groups.member_leaves(&group, self.clock.event);
                }
                let messages = &self.messages;
                session
                    .owed
                    .retain(|number| !messages.is_for(*number, filter));
            }
            ClientEvent::Unsubscribed(filter) => {
                self.clients[client]
                    .session
                    .unsubscribed(filter, self.clock.event);
            }
            ClientEvent::Publishing(number, publish) => {
                self.messages
                    .publishing(client, *number, publish, self.clock.event);
                self.retained.publishing(*number, publish);
            }
            ClientEvent::Accepted(number) => {
                self.counts.accepted += 1;
                let message = self.messages.find(*number);
                let sent = message.map(|message| message.first_sent);
                self.blame_if_faulty(client, sent);
                self.accepted(*number);
            }
            ClientEvent::Refused(number, code) => {
                self.refused(client, Some(*number), format!("refused with {code:#04x}"));
            }
            ClientEvent::Received(delivery) => self.received(client, delivery),
            ClientEvent::Acknowledged(id) => self.acknowledged(client, *id),
            ClientEvent::Recorded(id) => self.recorded(client, *id),
            ClientEvent::Released(id) => self.released(client, *id),
            ClientEvent::Nonsense(text) => self.blame(Some(client), None, text.clone()),
        }
    }

    /// From here on the message must reach every client whose subscription was acknowledged before
    /// it was sent.
    fn accepted(&mut self, number: MessageNumber) {
        let clock = self.clock;
        let Some(message) = self.messages.accept(number, clock.event, clock.run) else {
            return;
        };
        self.counts.wills += u64::from(message.sends == 0);
        // A will is retained when it is published, which may be later than when it is owed.
        if message.sends > 0 {
            self.retained.accepted(number, &message.publish);
        }
        for client in &mut self.clients {
            if client.session.owes(message) && !client.session.seen.contains_key(&number) {
                client.session.owed.insert(number);
            }
            for group in client.session.groups_for(message) {
                self.groups.owe(group, message);
            }
        }
    }

    /// The broker may refuse while its disk fails, and only then.
    fn refused(&mut self, client: ClientIndex, message: Option<MessageNumber>, text: String) {
        if self.is_tolerant() {
            self.counts.refused += 1;
        } else {
            self.blame(Some(client), message, text);
        }
    }

    fn remember(&mut self) {
        let Clock { at, event, .. } = self.clock;
        if self.recent.back().is_none_or(|(last, _)| *last < at) {
            self.recent.push_back((at, event));
        }
        while self
            .recent
            .front()
            .is_some_and(|(first, _)| first + PASSING_MILLIS < at)
        {
            self.recent.pop_front();
        }
    }

    /// Requests since the disk fails cannot be safe, and must not be acknowledged.
    fn blame_if_faulty(&mut self, client: ClientIndex, asked: Option<u64>) {
        if let (Some(asked), Some(since)) = (asked, self.clock.faulty_since)
            && asked > since
        {
            let text = "acknowledged while the disk fails".to_owned();
            self.blame(Some(client), None, text);
        }
    }

    fn blame(&mut self, client: Option<ClientIndex>, message: Option<MessageNumber>, text: String) {
        self.violations.push(Violation {
            at: self.clock.at,
            client,
            message,
            text,
        });
    }
}
