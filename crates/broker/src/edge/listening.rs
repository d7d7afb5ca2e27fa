//! New connections: accepted in batches, within the connect rate and the limit of connections.

use std::io;
use std::time::Duration;

use mio::{Interest, Token};
use thrum_engine::Engine;
use thrum_engine::node::metrics::Counter;
use thrum_engine::timers::Target;
use thrum_protection::OverloadCause;
use thrum_protocol::Time;

use super::Edge;
use crate::listener::Listener;
use crate::mailbox::Arrived;
use crate::worker::FIRST_LISTENER;

/// Connections accepted from one listener in one turn.
const ACCEPTS_PER_TURN: usize = 256;
/// Connections accepted at each attempt while turns take long or memory is short: this number costs
/// little, and no client waits for the end of the overload.
const ACCEPTS_OVERLOADED: usize = 16;
/// Shortest pause after the connect rate was used up, so that connections are accepted in batches.
const RATE_PAUSE_MIN: Duration = Duration::from_millis(10);
/// Longest pause after a connect rate was used up: a reload may change the rate within it.
const RATE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// Interval at which an overloaded worker checks whether it may accept again.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(100);
/// Pause after the system ran out of descriptors.
const OUT_OF_FILES_PAUSE: Duration = Duration::from_millis(100);

/// Sockets by place; the place is also the socket's token in the poll.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    places: Vec<Option<(u32, Listener)>>,
}

impl Listeners {
    /// Places, used or not.
    pub(crate) fn count(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn at(&self, place: usize) -> Option<&Listener> {
        self.places
            .get(place)?
            .as_ref()
            .map(|(_, listener)| listener)
    }

    pub(crate) fn clear(&mut self) {
        self.places.clear();
    }

    pub(crate) fn find(&self, number: u32) -> Option<usize> {
        let is_it = |place: &Option<(u32, Listener)>| {
            place.as_ref().is_some_and(|(known, _)| *known == number)
        };
        self.places.iter().position(is_it)
    }

    pub(crate) fn regate(&mut self, number: u32, gate: u16) {
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

/// The sockets that a worker accepts from, and the times.
#[derive(Debug, Default)]
pub(crate) struct Accepting {
    pub(crate) listeners: Listeners,
    /// Time to continue accepting, after a connect rate was used up.
    accept_at: Option<Time>,
    /// Time from which some new connections are accepted under overload.
    overload_accept_at: Time,
    /// The listener that is tried first when accepting continues.
    first_listener: usize,
    /// A listener had at least as many connections as one turn accepts.
    again: bool,
}

/// The limit of one attempt at a listener.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    place: usize,
    left: usize,
    is_overloaded: bool,
}

impl Accepting {
    /// Ends the pause between accepted connections under overload; some connections wait.
    #[cfg(test)]
    pub(crate) const fn accept_under_overload_now(&mut self, now: Time) {
        self.overload_accept_at = now;
        self.again = true;
    }

    /// More connections may wait, and their edge-triggered event has been consumed.
    pub(crate) const fn is_again(&self) -> bool {
        self.again
    }

    /// The listener is readable: returns the number that may be accepted; none under overload,
    /// except from time to time.
    pub(crate) fn begin(
        &mut self,
        edge: &mut Edge,
        engine: &mut Engine,
        place: usize,
    ) -> Option<Batch> {
        let is_overloaded = edge.overload.defers_connections();
        if is_overloaded && !self.may_accept_under_overload(edge, engine) {
            return None;
        }
        Some(Batch {
            place,
            left: if is_overloaded {
                ACCEPTS_OVERLOADED
            } else {
                ACCEPTS_PER_TURN
            },
            is_overloaded,
        })
    }

    /// The next connection from the backlog.
    pub(crate) fn next(
        &mut self,
        edge: &mut Edge,
        engine: &mut Engine,
        batch: &mut Batch,
    ) -> Option<Arrived> {
        while batch.left > 0 && !engine.core.turn.is_reading_over() {
            batch.left -= 1;
            if !self.may_accept(edge, engine) {
                return None;
            }
            let gate = self.listeners.at(batch.place)?.gate;
            if !self.may_accept_from(edge, engine, gate) {
                return None;
            }
            match self.listeners.at(batch.place)?.accept() {
                Ok((socket, peer)) => {
                    charge_connect(edge, engine, gate);
                    return Some(Arrived {
                        socket,
                        peer,
                        gate,
                        certificate: None,
                    });
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The peer disconnected while it waited.
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; trying again in 100 ms");
                    self.defer_accept(engine, OUT_OF_FILES_PAUSE);
                    return None;
                }
            }
        }
        // More connections may wait, and their edge-triggered event has been consumed.
        self.again |= !batch.is_overloaded;
        None
    }

    /// Resumes accepting after the pause: all listeners are tried, in this order. Each listener is
    /// first at times: under overload no connections of the others are accepted.
    pub(crate) fn resume(&mut self) -> impl Iterator<Item = usize> + use<> {
        self.accept_at = None;
        self.again = false;
        let count = self.listeners.count();
        self.first_listener = (self.first_listener + 1) % count.max(1);
        let first = self.first_listener;
        (0..count).map(move |number| (first + number) % count)
    }

    /// Watches another socket for new connections.
    pub(crate) fn watch(&mut self, edge: &Edge, number: u32, mut listener: Listener) {
        let place = self.listeners.free_place();
        let token = Token(FIRST_LISTENER - place);
        let registry = edge.poll.registry();
        if let Err(error) = registry.register(&mut listener, token, Interest::READABLE) {
            tracing::error!(%error, "cannot watch a listener; this worker accepts nothing from it");
        }
        self.listeners.places[place] = Some((number, listener));
    }

    /// Stops accepting from a socket; the caller has accepted its backlog before.
    pub(crate) fn close(&mut self, edge: &Edge, place: usize) {
        let closed = self.listeners.places[place].take();
        if let Some((_, mut listener)) = closed
            && let Err(error) = edge.poll.registry().deregister(&mut listener)
        {
            tracing::warn!(%error, "a listener could not be taken from the poll");
        }
    }

    /// Whether some new connections are accepted despite overload. The others wait in the backlog.
    fn may_accept_under_overload(&mut self, edge: &mut Edge, engine: &mut Engine) -> bool {
        engine.core.row().add(Counter::OverloadDeferred, 1);
        self.defer_accept(engine, OVERLOAD_PAUSE);
        let may_enter = engine.core.turn.now >= self.overload_accept_at;
        if may_enter {
            self.overload_accept_at = engine.core.turn.now.plus(OVERLOAD_PAUSE);
        }
        may_enter && !edge.overload.has(OverloadCause::Handshakes)
    }

    fn defer_accept(&mut self, engine: &mut Engine, pause: Duration) {
        let at = engine.core.turn.now.plus(pause);
        if self.accept_at.is_none_or(|known| at < known) {
            self.accept_at = Some(at);
            engine.core.timers.insert(at, Target::Accept);
        }
    }

    /// Whether the listener's own rate allows another connection; otherwise connections stay in the
    /// backlog.
    fn may_accept_from(&mut self, edge: &mut Edge, engine: &mut Engine, gate: u16) -> bool {
        let now = engine.core.turn.now;
        let gate = edge.gates.get(gate);
        let Some(pace) = &gate.paces.connects else {
            return true;
        };
        let wait = gate.account.connects.wait(pace, now);
        if wait.is_zero() {
            return true;
        }
        engine.core.row().add(Counter::LimitListenerConnects, 1);
        self.defer_accept(engine, wait.min(RATE_PAUSE_MAX));
        false
    }

    /// Whether the node's connect rate allows another connection; otherwise connections stay in the
    /// backlog.
    pub(crate) fn may_accept(&mut self, edge: &Edge, engine: &mut Engine) -> bool {
        let Some(pace) = &edge.settings.connect_pace else {
            return true;
        };
        let wait = edge.node.connects.wait(pace, engine.core.turn.now);
        if wait.is_zero() {
            return true;
        }
        engine.core.row().add(Counter::ConnectRateDeferred, 1);
        self.defer_accept(engine, wait.clamp(RATE_PAUSE_MIN, RATE_PAUSE_MAX));
        false
    }
}

/// Charges a connection from the backlog. Workers that check at the same moment may accept one too
/// many, which later connections then wait for.
pub(crate) fn charge_connect(edge: &mut Edge, engine: &mut Engine, gate: u16) {
    let now = engine.core.turn.now;
    if let Some(pace) = &edge.settings.connect_pace {
        edge.node.connects.charge(pace, now, 1);
    }
    let gate = edge.gates.get(gate);
    if let Some(pace) = &gate.paces.connects {
        gate.account.connects.charge(pace, now, 1);
    }
}
