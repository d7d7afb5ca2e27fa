//! Faults that the scenario applies to its clients.

use std::time::Duration;

use socket2::SockRef;

use super::Swarm;
use super::outbox::slot;
use super::peer::{Impairment, Step};
use super::session::End;
use crate::plan::Plan;
use crate::scenario::{FaultKind, Victims};
use crate::units::nanos;

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

impl Victims {
    /// Whether a client is one of them, by its number in its group: spread evenly.
    pub(crate) fn include(&self, group: &str, number: u32) -> bool {
        if self.group.as_ref().is_some_and(|wanted| wanted != group) {
            return false;
        }
        let below = |clients: u32| (f64::from(clients) * self.share).floor();
        below(number + 1) > below(number)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_are_spread_evenly() {
        let tenth = Victims {
            group: None,
            share: 0.1,
        };
        let chosen: Vec<u32> = (0..100)
            .filter(|number| tenth.include("any", *number))
            .collect();
        assert_eq!(chosen.len(), 10);
        assert!(
            chosen
                .windows(2)
                .all(|pair| (9..=11).contains(&(pair[1] - pair[0])))
        );
        let all = Victims {
            group: Some("a".to_owned()),
            share: 1.0,
        };
        assert!((0..100).all(|number| all.include("a", number)));
        assert!(!all.include("b", 0));
    }
}
