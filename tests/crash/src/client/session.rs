//! A client's state between connections.

use std::collections::BTreeMap;

use super::role::Role;
use crate::event::{MessageNumber, Publish};

/// The client's side of a session.
#[derive(Debug)]
pub(super) struct Session {
    /// PUBLISH packets whose handshake is under way, in the order of their sending.
    pub(super) outgoing: Vec<Outgoing>,
    /// SUBSCRIBE and UNSUBSCRIBE packets without an answer, by packet identifier.
    pub(super) requests: BTreeMap<u16, Request>,
    /// Filters and what the broker knows of them.
    pub(super) filters: BTreeMap<String, Filter>,
    /// A CONNECT with clean start has no answer yet: the broker's state is unknown until then.
    pub(super) must_be_clean: bool,
}

/// A PUBLISH whose handshake is under way.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) id: u16,
    pub(super) number: MessageNumber,
    pub(super) publish: Publish,
    pub(super) payload_bytes: usize,
    /// PUBREC was received.
    pub(super) is_released: bool,
}

/// A request without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    Subscribe(String),
    Unsubscribe(String),
}

/// A filter.
#[derive(Clone, Debug)]
pub(super) struct Filter {
    pub(super) qos: u8,
    /// The requested state; the opposite may still hold.
    pub(super) is_wanted: bool,
    /// The broker acknowledged the requested state.
    pub(super) is_settled: bool,
}

impl Session {
    pub(super) fn new(role: &Role) -> Self {
        let filter = |(name, qos): &(String, u8)| {
            let filter = Filter {
                qos: *qos,
                is_wanted: true,
                is_settled: false,
            };
            (name.clone(), filter)
        };
        Self {
            outgoing: Vec::new(),
            requests: BTreeMap::new(),
            filters: role.filters.iter().map(filter).collect(),
            must_be_clean: false,
        }
    }

    /// The session ended, or a new one began: the broker knows nothing.
    pub(super) fn forget(&mut self) {
        self.outgoing.clear();
        self.doubt();
        self.filters.retain(|_, filter| filter.is_wanted);
    }

    /// The broker's filters are unknown.
    pub(super) fn doubt(&mut self) {
        self.requests.clear();
        self.filters
            .values_mut()
            .for_each(|filter| filter.is_settled = false);
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
            && self.requests.is_empty()
            && self.filters.values().all(|filter| filter.is_settled)
    }

    pub(super) fn is_id_free(&self, id: u16) -> bool {
        id != 0
            && !self.requests.contains_key(&id)
            && self.outgoing.iter().all(|sent| sent.id != id)
    }
}
