//! Faults that the scenario applies to its clients.

use std::time::Duration;

use socket2::SockRef;
use thrum_figures::nanos;
use thrum_load::plan::Plan;
use thrum_load::scenario::{FaultKind, Victims};

use super::Swarm;
use super::outbox::slot;
use super::peer::{Impairment, Step};
use super::session::End;

/// The beginning or the end of a fault that this thread carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultStep {
    /// From the start of the hold.
    at_ns: u64,
    is_end: bool,
    /// Number of the fault in the scenario.
    fault: usize,
}

/// All steps in order of time.
pub(super) fn fault_steps(plan: &Plan) -> Vec<FaultStep> {
    let mut steps = Vec::new();
    for (fault, spec) in plan.scenario.faults.iter().enumerate() {
        let at_ns = nanos(spec.at);
        match spec.kind {
            FaultKind::Hook { .. } => continue,
            FaultKind::Disconnect { .. } => {}
            FaultKind::StopReading { .. } | FaultKind::Freeze { .. } => steps.push(FaultStep {
                at_ns: at_ns + nanos(spec.lasts),
                is_end: true,
                fault,
            }),
        }
        steps.push(FaultStep {
            at_ns,
            is_end: false,
            fault,
        });
    }
    steps.sort_unstable_by(|left, right| right.cmp(left));
    steps
}

impl Swarm {
    /// When the next fault begins or ends.
    pub(super) fn next_fault_ns(&self) -> u64 {
        let step = self.timeline.zip(self.faults.last());
        step.map_or(u64::MAX, |(timeline, step)| {
            timeline.hold_start_ns + step.at_ns
        })
    }

    /// Carries out the faults that are due.
    pub(super) fn suffer(&mut self, now_ns: u64) {
        while self.next_fault_ns() <= now_ns {
            let Some(step) = self.faults.pop() else {
                return;
            };
            self.carry_out(step);
        }
    }

    fn carry_out(&mut self, step: FaultStep) {
        let plan = std::sync::Arc::clone(&self.plan);
        let Some(fault) = plan.scenario.faults.get(step.fault) else {
            return;
        };
        match &fault.kind {
            FaultKind::Disconnect { victims, reset } => {
                for peer in self.victims(victims) {
                    self.cut(peer, *reset);
                }
            }
            FaultKind::StopReading { victims } => {
                self.impair(victims, Impairment::NotReading, step.is_end);
            }
            FaultKind::Freeze { victims } => self.impair(victims, Impairment::Frozen, step.is_end),
            FaultKind::Hook { .. } => {}
        }
    }

    fn victims(&self, victims: &Victims) -> Vec<u32> {
        let groups = &self.plan.scenario.groups;
        let is_victim = |number: u32, state: &super::peer::Peer| {
            let part = self.plan.part(number);
            let group = groups.get(part.group);
            state.step == Step::Ready
                && group.is_some_and(|group| victims.include(&group.name, part.number))
        };
        let peers = (0..).zip(&self.peers);
        peers
            .filter(|(_, state)| is_victim(state.number, state))
            .map(|(peer, _)| peer)
            .collect()
    }

    fn cut(&mut self, peer: u32, reset: bool) {
        if reset && let Some(stream) = &self.peers[slot(peer)].stream {
            // If this fails, the other close cuts the connection as well.
            SockRef::from(stream).set_linger(Some(Duration::ZERO)).ok();
        }
        self.end(peer, End::Cut, "cut by the scenario");
    }

    fn impair(&mut self, victims: &Victims, impairment: Impairment, is_end: bool) {
        let peers: Vec<u32> = if is_end {
            let is_affected = |state: &super::peer::Peer| state.impairment() == impairment;
            let peers = (0..).zip(&self.peers);
            peers
                .filter(|(_, state)| is_affected(state))
                .map(|(peer, _)| peer)
                .collect()
        } else {
            self.victims(victims)
        };
        for peer in peers {
            self.peers[slot(peer)].extra().impairment =
                if is_end { Impairment::None } else { impairment };
            if is_end {
                self.handle_writable(peer);
                // Input during the fault woke no thread; it may hold the end of the connection.
                self.handle_readable(peer, true);
                self.go_on_publishing(self.peers[slot(peer)].publisher);
            }
        }
    }
}
