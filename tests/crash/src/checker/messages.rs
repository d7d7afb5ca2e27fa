//! Every message in flight: its publisher, the number of sends, and its known fate.

use std::collections::BTreeMap;

use super::filter::{matches, split_shared};
use crate::event::{ClientIndex, MessageNumber, Millis, Publish};

/// One message.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) number: MessageNumber,
    pub(super) publisher: ClientIndex,
    pub(super) publish: Publish,
    /// Event of the first PUBLISH; of a will that after which it may be published.
    pub(super) first_sent: u64,
    /// A will that its connection no longer holds back.
    has_left: bool,
    /// How often it was sent; 0 for a will.
    pub(super) sends: u32,
    /// Event from which on it has to be delivered.
    pub(super) accepted: Option<u64>,
    /// Start of the broker in which it was accepted.
    pub(super) accepted_in: Option<u32>,
    /// Why it must not be delivered, if so.
    pub(super) forbidden: Option<&'static str>,
    /// Earliest time of a delivery.
    pub(super) not_before: Millis,
}

impl Message {
    /// The broker may publish a will from now on, and not before: current subscribers get it.
    pub(super) fn leaves(&mut self, event: u64) {
        if !std::mem::replace(&mut self.has_left, true) {
            self.first_sent = event;
        }
    }
}

/// All messages that may still be delivered.
#[derive(Clone, Debug, Default)]
pub(super) struct Messages {
    open: BTreeMap<MessageNumber, Message>,
    /// Above all numbers that were ever used.
    next: MessageNumber,
    /// Event of the last quiet moment.
    settled: u64,
}

impl Messages {
    /// A PUBLISH is sent, perhaps again.
    pub(super) fn publishing(
        &mut self,
        publisher: ClientIndex,
        number: MessageNumber,
        publish: &Publish,
        event: u64,
    ) {
        self.add(publisher, number, publish, event).sends += 1;
    }

    /// A CONNECT with a will is sent.
    pub(super) fn add(
        &mut self,
        publisher: ClientIndex,
        number: MessageNumber,
        publish: &Publish,
        event: u64,
    ) -> &mut Message {
        self.next = self.next.max(number + 1);
        self.open.entry(number).or_insert_with(|| Message {
            number,
            publisher,
            publish: publish.clone(),
            first_sent: event,
            has_left: false,
            sends: 0,
            accepted: None,
            accepted_in: None,
            forbidden: None,
            not_before: 0,
        })
    }

    /// The message, if it may still be delivered.
    pub(super) fn find(&mut self, number: MessageNumber) -> Option<&mut Message> {
        self.open.get_mut(&number)
    }

    /// Whether the number was ever sent.
    pub(super) fn was_sent(&self, number: MessageNumber) -> bool {
        number < self.next
    }

    /// Marks it as acknowledged; none if it was before.
    pub(super) fn accept(
        &mut self,
        number: MessageNumber,
        event: u64,
        run: u32,
    ) -> Option<&Message> {
        let message = self.open.get_mut(&number)?;
        if message.accepted.is_some() {
            return None;
        }
        message.accepted = Some(event);
        message.accepted_in = Some(run);
        Some(message)
    }

    /// Whether it matches a filter; shared or not.
    pub(super) fn is_for(&self, number: MessageNumber, filter: &str) -> bool {
        let filter = split_shared(filter).map_or(filter, |(_, filter)| filter);
        let message = self.open.get(&number);
        message.is_some_and(|message| matches(filter, &message.publish.topic))
    }

    /// Words for a report.
    pub(super) fn describe(&self, number: MessageNumber) -> String {
        self.open.get(&number).map_or_else(String::new, |message| {
            let Publish { topic, qos, retain, .. } = &message.publish;
            format!(
                "QoS {qos}{} to {topic} by client {}, sent {} times, first as event {}, accepted as event {:?}",
                if *retain { " retained" } else { "" },
                message.publisher,
                message.sends,
                message.first_sent,
                message.accepted,
            )
        })
    }

    /// Everything that is owed was delivered. Messages that are not owed but possible, such as
    /// wills of unknown fate and messages to a session whose SUBACK was lost, have until the next
    /// quiet moment; `pending` has no limit.
    pub(super) fn settle(&mut self, pending: &[MessageNumber], event: u64) {
        let since = std::mem::replace(&mut self.settled, event);
        self.open
            .retain(|number, message| pending.contains(number) || message.first_sent > since);
    }

    /// Whether it may still be delivered.
    pub(super) fn is_open(&self, number: MessageNumber) -> bool {
        self.open.contains_key(&number)
    }
}
