//! Checks that the sink writes every acknowledged message that matches its filter, at least once
//! and in the order of its publisher.

use std::collections::{BTreeMap, BTreeSet};

use thrum_codec::{QoS, ReasonCode};

use super::super::history::{ClientNumber, Event, Message, MessageNumber};
use super::super::sink::SinkPromise;
use super::{Allowances, Violation};

#[derive(Debug)]
pub(super) struct Sinks {
    promise: Option<SinkPromise>,
    may_come_late: bool,
    sent: BTreeMap<MessageNumber, Sent>,
    written: BTreeSet<MessageNumber>,
    newest: BTreeMap<OrderKey, MessageNumber>,
    restarts: u32,
}

#[derive(Debug)]
struct Sent {
    publisher: ClientNumber,
    message: Message,
    copies: u32,
    is_accepted: bool,
    /// Number of restarts before it was first sent: a message repeated after a restart may be
    /// acknowledged as a duplicate.
    restarts: u32,
}

/// A sequence of messages that must be written in order.
type OrderKey = (ClientNumber, &'static str, QoS);

impl Sinks {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            promise: allowances.sink,
            may_come_late: allowances.queues_overflow || allowances.publish_refused,
            sent: BTreeMap::new(),
            written: BTreeSet::new(),
            newest: BTreeMap::new(),
            restarts: 0,
        }
    }

    pub(super) fn observe(&mut self, event: &Event) -> Result<(), Violation> {
        let Some(promise) = self.promise else {
            return Ok(());
        };
        match *event {
            Event::Sent { client, message } => self.sent(client, message),
            Event::Accepted {
                number, outcome, ..
            } => return self.accepted(promise, number, outcome),
            Event::Written { number, topic, qos } => {
                return self.written(promise, number, (topic, qos));
            }
            Event::Restarted => self.restarts += 1,
            Event::SinkRemoved => self.promise = None,
            Event::Settled | Event::Drained => return self.check_arrivals(promise),
            _ => {}
        }
        Ok(())
    }

    fn sent(&mut self, publisher: ClientNumber, message: Message) {
        let sent = self.sent.entry(message.number).or_insert(Sent {
            publisher,
            message,
            copies: 0,
            is_accepted: false,
            restarts: self.restarts,
        });
        sent.copies += 1;
    }

    fn accepted(
        &mut self,
        promise: SinkPromise,
        number: MessageNumber,
        outcome: ReasonCode,
    ) -> Result<(), Violation> {
        let Some(sent) = self.sent.get_mut(&number) else {
            return Ok(());
        };
        if outcome == ReasonCode::NoMatchingSubscribers && promise.includes(sent.message.topic) {
            return Err(format!(
                "message {number} reached no receiver, but matches the sink"
            ));
        }
        // A message that skipped a full queue is acknowledged if it has a subscriber.
        sent.is_accepted = !outcome.is_error() && !promise.drops;
        Ok(())
    }

    fn written(
        &mut self,
        promise: SinkPromise,
        number: MessageNumber,
        (topic, qos): (&'static str, QoS),
    ) -> Result<(), Violation> {
        if !promise.includes(topic) {
            return Err(format!("the sink received message {number} on {topic}"));
        }
        let is_new = self.written.insert(number);
        let Some(sent) = self.sent.get(&number) else {
            // A will.
            return Ok(());
        };
        if (sent.message.topic, sent.message.qos) != (topic, qos) {
            return Err(format!(
                "the sink received message {number} as {topic} {qos:?}: {sent:?}"
            ));
        }
        let newest = self.newest.entry((sent.publisher, topic, qos)).or_default();
        let previous = std::mem::replace(newest, number.max(*newest));
        // A refused or lost message may be accepted when it is repeated, after later ones.
        let may_be_late = sent.copies > 1 && (self.may_come_late || self.restarts > 0);
        if is_new && number < previous && !may_be_late {
            return Err(format!(
                "the sink received message {number} after {previous} of the same publisher: {sent:?}"
            ));
        }
        Ok(())
    }

    fn check_arrivals(&self, promise: SinkPromise) -> Result<(), Violation> {
        let is_lost = |(number, sent): &(&MessageNumber, &Sent)| {
            let is_certain = promise.survives_restarts || sent.restarts == self.restarts;
            sent.is_accepted
                && is_certain
                && !sent.message.is_empty
                && promise.includes(sent.message.topic)
                && !self.written.contains(*number)
        };
        match self.sent.iter().find(is_lost) {
            None => Ok(()),
            Some((number, sent)) => Err(format!(
                "message {number} was accepted, and the sink has not written it: {sent:?}"
            )),
        }
    }
}
