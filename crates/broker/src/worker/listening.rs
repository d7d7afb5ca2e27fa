//! The sockets that a worker accepts from: they come and go while it runs.

use mio::{Interest, Token};

use super::rounds::Errand;
use super::{FIRST_LISTENER, Worker};
use crate::listener::{Change, Listener};

/// Sockets in places of their own, so that a place is also what the poll calls a socket by.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    places: Vec<Option<(u32, Listener)>>,
    /// The first ones came: sessions of the time before are here.
    has_begun: bool,
}

impl Listeners {
    /// Places, used or not.
    pub(super) fn count(&self) -> usize {
        self.places.len()
    }

    pub(super) fn at(&self, place: usize) -> Option<&Listener> {
        self.places
            .get(place)?
            .as_ref()
            .map(|(_, listener)| listener)
    }

    pub(super) fn clear(&mut self) {
        self.places.clear();
    }

    fn find(&self, number: u32) -> Option<usize> {
        let is_it = |place: &Option<(u32, Listener)>| {
            place.as_ref().is_some_and(|(known, _)| *known == number)
        };
        self.places.iter().position(is_it)
    }

    fn regate(&mut self, number: u32, gate: u16) {
        let place = self.find(number);
        let listener = place.and_then(|place| self.places[place].as_mut());
        if let Some((_, listener)) = listener {
            listener.gate = gate;
        }
    }

    fn free_place(&mut self) -> usize {
        let free = self.places.iter().position(Option::is_none);
        free.unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        })
    }
}

impl Worker {
    /// Other sockets to accept from.
    pub(super) fn listen(&mut self, changes: Vec<Change>) {
        if !std::mem::replace(&mut self.listeners.has_begun, true) {
            self.begin();
        }
        for change in changes {
            match change {
                Change::Open(number, listener) => self.watch_listener(number, listener),
                Change::Regate(number, gate) => self.listeners.regate(number, gate),
                Change::Close(number) => self.close_listener(number),
                Change::Part(gates) => self.go_round(Errand::Part(gates)),
                Change::Forget(gates) => {
                    self.rounds.forget_gates(&gates);
                    self.local.forget_gates(&gates);
                }
            }
        }
        self.node.gates.count_carried_out(self.local.id);
    }

    fn watch_listener(&mut self, number: u32, mut listener: Listener) {
        let place = self.listeners.free_place();
        let token = Token(FIRST_LISTENER - place);
        let registry = self.poll.registry();
        if let Err(error) = registry.register(&mut listener, token, Interest::READABLE) {
            tracing::error!(%error, "cannot watch a listener; this worker accepts nothing from it");
        }
        self.listeners.places[place] = Some((number, listener));
    }

    /// Those who wait there already are let in.
    fn close_listener(&mut self, number: u32) {
        let Some(place) = self.listeners.find(number) else {
            return;
        };
        self.accept(place);
        let closed = self.listeners.places[place].take();
        if let Some((_, mut listener)) = closed
            && let Err(error) = self.poll.registry().deregister(&mut listener)
        {
            tracing::warn!(%error, "a listener could not be taken from the poll");
        }
    }
}
