//! The node's gates as far as one worker has needed them.

use std::sync::Arc;

use super::{Gate, Gates};

/// Gates by their numbers, so that no lock is taken for a connection.
#[derive(Debug)]
pub(crate) struct KnownGates {
    gates: Arc<Gates>,
    known: Vec<Option<Arc<Gate>>>,
}

impl KnownGates {
    pub(crate) const fn new(gates: Arc<Gates>) -> Self {
        Self {
            gates,
            known: Vec::new(),
        }
    }

    /// The gate of that number.
    pub(crate) fn get(&mut self, number: u16) -> &Arc<Gate> {
        let place = usize::from(number);
        if place >= self.known.len() {
            self.known.resize(place + 1, None);
        }
        let known = &mut self.known[place];
        known.get_or_insert_with(|| {
            let gate = self.gates.get(number);
            gate.expect("a gate is there for as long as a connection names it")
        })
    }

    /// The gate of that number, if it was needed before.
    pub(crate) fn find(&self, number: u16) -> Option<&Arc<Gate>> {
        self.known.get(usize::from(number))?.as_ref()
    }

    /// No connection refers to these gates any longer.
    pub(crate) fn forget(&mut self, numbers: &[u16]) {
        for number in numbers {
            if let Some(known) = self.known.get_mut(usize::from(*number)) {
                *known = None;
            }
        }
    }

    /// Counts a new connection; false if its listener is full.
    #[must_use]
    pub(crate) fn enter(&mut self, number: u16) -> bool {
        self.get(number);
        let known = self.known[usize::from(number)].as_ref();
        known.is_some_and(|gate| self.gates.enter(gate))
    }

    /// Counts the end of a connection.
    pub(crate) fn leave(&mut self, number: u16) {
        self.get(number);
        if let Some(gate) = &self.known[usize::from(number)] {
            self.gates.leave(gate);
        }
    }
}
