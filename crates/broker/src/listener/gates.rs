//! Gates by number. A connection stores its gate as a number of two bytes, so a number is reused
//! only when no connection refers to the old gate.
//!
//! ```text
//!   in use --no listener accepts connections for it--> retired
//!   --all workers know, and its last connection has ended--> forgotten
//!   (workers receive the change to drop it) --all have--> free
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crossbeam_utils::CachePadded;
use thrum_engine::workers::WorkerId;

use super::Gate;

/// The gates of the node.
#[derive(Debug)]
pub(crate) struct Gates {
    /// Guards the numbers: read when a worker meets an unknown number, written at reloads.
    numbers: RwLock<Vec<Number>>,
    /// Changes of listeners sent to all workers.
    sent: AtomicU64,
    /// Number of these changes that each worker has carried out.
    carried_out: Box<[CachePadded<AtomicU64>]>,
    /// Sockets of clients, in their handshake or after it: written for each connection.
    open: CachePadded<AtomicU64>,
}

/// The state of a number.
#[derive(Debug)]
enum Number {
    Free,
    InUse(Arc<Gate>),
    /// No connection arrives through it once the workers have carried out this number of changes.
    Retired(Arc<Gate>, Option<u64>),
    /// The workers drop it with the change of this number.
    Forgotten(u64),
}

impl Number {
    fn gate(&self) -> Option<&Arc<Gate>> {
        match self {
            Self::InUse(gate) | Self::Retired(gate, _) => Some(gate),
            Self::Free | Self::Forgotten(_) => None,
        }
    }

    /// Advances to the state that the changes carried out by all workers allow; true if the next
    /// change has to make the workers drop the gate.
    fn advance(&mut self, sent: u64, carried_out: u64) -> bool {
        match self {
            Self::Free | Self::InUse(_) => false,
            Self::Forgotten(change) => {
                if *change <= carried_out {
                    *self = Self::Free;
                }
                false
            }
            Self::Retired(gate, change) => {
                let is_known = *change.get_or_insert(sent) <= carried_out;
                if !is_known || !gate.is_unused() {
                    return false;
                }
                *self = Self::Forgotten(sent + 1);
                true
            }
        }
    }
}

/// A gate with its number, for as long as connections may arrive through it. Dropping this retires
/// the number.
#[derive(Debug)]
pub(crate) struct Numbered {
    pub(crate) number: u16,
    pub(crate) gate: Arc<Gate>,
    gates: Arc<Gates>,
}

impl Drop for Numbered {
    fn drop(&mut self) {
        self.gates.retire(self.number);
    }
}

impl Gates {
    /// An empty table.
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            numbers: RwLock::default(),
            sent: AtomicU64::new(0),
            carried_out: (0..workers).map(|_| CachePadded::default()).collect(),
            open: CachePadded::default(),
        }
    }

    /// Gives the gate a number; `None` if all numbers are in use.
    pub(crate) fn add(&self, gate: Arc<Gate>) -> Option<u16> {
        let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
        let free = numbers.iter().position(|one| matches!(one, Number::Free));
        let place = free.unwrap_or(numbers.len());
        let number = u16::try_from(place).ok()?;
        if place == numbers.len() {
            numbers.push(Number::Free);
        }
        numbers[place] = Number::InUse(gate);
        Some(number)
    }

    /// Gives the gate a number until the returned value is dropped.
    pub(crate) fn register(self: &Arc<Self>, gate: Arc<Gate>) -> Option<Arc<Numbered>> {
        let number = self.add(Arc::clone(&gate))?;
        Some(Arc::new(Numbered {
            number,
            gate,
            gates: Arc::clone(self),
        }))
    }

    /// The gate of that number.
    pub(crate) fn get(&self, number: u16) -> Option<Arc<Gate>> {
        let numbers = self.numbers.read().unwrap_or_else(PoisonError::into_inner);
        numbers.get(usize::from(number))?.gate().cloned()
    }

    /// The numbers of all gates of a listener, also of its earlier ones that still have clients.
    pub(crate) fn of_listener(&self, name: &str) -> Vec<u16> {
        let numbers = self.numbers.read().unwrap_or_else(PoisonError::into_inner);
        let numbered = (0_u16..=u16::MAX).zip(numbers.iter());
        let its = numbered.filter(|(_, one)| one.gate().is_some_and(|gate| *gate.name == *name));
        its.map(|(number, _)| number).collect()
    }

    fn retire(&self, number: u16) {
        let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(one) = numbers.get_mut(usize::from(number))
            && let Some(gate) = one.gate().cloned()
        {
            *one = Number::Retired(gate, None);
        }
    }

    /// A change of listeners is about to be sent to all workers.
    pub(crate) fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the worker has carried out the next change.
    pub(crate) fn count_carried_out(&self, worker: WorkerId) {
        self.carried_out[worker.index()].fetch_add(1, Ordering::Release);
    }

    /// The numbers that all workers have to drop with their next change. Called only by the thread
    /// that changes listeners, after all retired numbers have been sent.
    pub(crate) fn sweep(&self) -> Vec<u16> {
        let carried_out = self.carried_out.iter();
        let carried_out = carried_out.map(|count| count.load(Ordering::Acquire));
        let carried_out = carried_out.min().unwrap_or(u64::MAX);
        let sent = self.sent.load(Ordering::Relaxed);
        let mut numbers = self.numbers.write().unwrap_or_else(PoisonError::into_inner);
        let numbered = (0_u16..=u16::MAX).zip(numbers.iter_mut());
        let forgotten = numbered.filter_map(|(number, one)| {
            let is_forgotten = one.advance(sent, carried_out);
            is_forgotten.then_some(number)
        });
        forgotten.collect()
    }

    /// Number of sockets of clients, in their handshake or after it.
    pub(crate) fn open_sockets(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Counts a new connection; false if its listener is full.
    #[must_use]
    pub(crate) fn enter(&self, gate: &Gate) -> bool {
        let is_in = gate.enter();
        if is_in {
            self.open.fetch_add(1, Ordering::Relaxed);
        }
        is_in
    }

    /// Counts the end of a connection.
    pub(crate) fn leave(&self, gate: &Gate) {
        gate.leave();
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use thrum_transport::Acceptor;

    use super::*;
    use crate::config::{CertificateName, ListenerConfig};
    use crate::listener::GateParts;

    fn gate(config: &ListenerConfig, before: Option<&Gate>) -> Arc<Gate> {
        let plain = Acceptor::new(None, None).expect("plain TCP needs nothing");
        Arc::new(Gate::new(
            "a",
            GateParts {
                config,
                acceptor: plain,
                username: CertificateName::None,
            },
            before,
        ))
    }

    /// Both workers carry a change out.
    fn carry_out(gates: &Gates) {
        gates.count_sent();
        for worker in [0, 1].map(WorkerId::new) {
            gates.count_carried_out(worker);
        }
    }

    #[test]
    fn a_number_is_used_again_when_all_workers_have_let_it_go() {
        let gates = Arc::new(Gates::new(2));
        let config = ListenerConfig::default();
        let first = gates.register(gate(&config, None)).unwrap();
        let number = first.number;
        assert!(gates.enter(&first.gate));
        let connection = Arc::clone(&first.gate);
        drop(first);
        gates.count_sent();
        assert!(gates.sweep().is_empty(), "its workers do not know yet");
        gates.count_carried_out(WorkerId::new(0));
        assert!(gates.sweep().is_empty(), "one worker does not know yet");
        gates.count_carried_out(WorkerId::new(1));
        carry_out(&gates);
        assert!(gates.sweep().is_empty(), "a connection has it");
        assert!(gates.get(number).is_some());
        gates.leave(&connection);
        assert_eq!(gates.sweep(), [number]);
        assert!(gates.get(number).is_none());
        let other = gates.register(gate(&config, None)).unwrap();
        assert_ne!(other.number, number, "a worker may still know the old one");
        carry_out(&gates);
        assert!(gates.sweep().is_empty());
        assert_eq!(gates.register(gate(&config, None)).unwrap().number, number);
    }

    #[test]
    fn a_connection_on_its_way_keeps_its_gate() {
        let gates = Arc::new(Gates::new(2));
        let first = gates
            .register(gate(&ListenerConfig::default(), None))
            .unwrap();
        let (number, arriving) = (first.number, Arc::clone(&first.gate));
        arriving.hold();
        drop(first);
        gates.sweep();
        carry_out(&gates);
        assert!(gates.sweep().is_empty());
        arriving.release();
        assert_eq!(gates.sweep(), [number]);
    }

    #[test]
    fn connections_are_counted_over_a_reload() {
        let config = ListenerConfig {
            max_connections: 2,
            ..ListenerConfig::default()
        };
        let gates = Arc::new(Gates::new(1));
        let first = gates.register(gate(&config, None)).unwrap();
        assert!(gates.enter(&first.gate));
        let second = gates.register(gate(&config, Some(&first.gate))).unwrap();
        assert!(gates.enter(&second.gate) && !gates.enter(&second.gate));
        assert_eq!((first.gate.over_limit(), second.gate.over_limit()), (1, 1));
        assert_eq!(gates.of_listener("a"), [first.number, second.number]);
        assert!(gates.of_listener("b").is_empty());
        assert_eq!(gates.open_sockets(), 2);
        gates.leave(&first.gate);
        assert_eq!(gates.open_sockets(), 1);
        assert!(gates.enter(&second.gate));
    }
}
