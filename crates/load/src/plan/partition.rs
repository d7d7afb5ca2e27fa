//! The partition of clients among threads.
//!
//! With two or more threads, clients that only publish have threads of their own: a thread with
//! little work is woken on time even when every core is busy, so messages leave when they are due
//! while other threads read thousands of deliveries.

use thrum_figures::as_index;

use super::{Expectation, Plan};

use std::sync::Arc;

/// Threads of all machines. The client with a number of its group is on the machine with that
/// number in every group, so that one-to-one pairs share a machine; machines have clients in
/// proportion to their threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machines {
    threads: Arc<[u32]>,
    /// Clients of a round, of which each machine has its part.
    round: u32,
    /// Threads of a machine for one client in a round.
    divisor: u32,
}

/// The clients of one thread, in the order they connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Ascending; none is empty.
    groups: Vec<GroupShare>,
}

/// Every `step`-th client that a group has on a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GroupShare {
    first_client: u32,
    end: u32,
    /// Counted among those of the machine.
    next: u32,
    step: u32,
    share: MachineShare,
}

/// The clients of a group that a machine has: in every round of `round` clients the `part` from
/// `start` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MachineShare {
    start: u32,
    part: u32,
    round: u32,
}

impl Machines {
    /// Machines with these numbers of threads.
    pub fn new(threads: &[u32]) -> Self {
        let divisor = threads.iter().copied().fold(0, greatest_divisor).max(1);
        let sum = threads
            .iter()
            .fold(0, |sum: u32, of| sum.saturating_add(*of));
        Self {
            threads: threads.into(),
            round: (sum / divisor).max(1),
            divisor,
        }
    }

    /// Threads of each machine.
    pub fn threads(&self) -> &[u32] {
        &self.threads
    }

    /// Number of the first thread of a machine among all.
    pub fn first_thread(&self, machine: usize) -> u32 {
        self.threads.iter().take(machine).sum()
    }

    /// The machine of the client with a number of its group.
    pub fn machine_of(&self, number: u32) -> usize {
        let place = number % self.round;
        let mut end = 0;
        let found = self.threads.iter().position(|threads| {
            end += threads / self.divisor;
            place < end
        });
        found.unwrap_or(0)
    }

    /// Clients of a plan that a machine has.
    pub fn clients_of(&self, plan: &Plan, machine: usize) -> u32 {
        let share = self.share(machine);
        let groups = plan.scenario.groups.iter();
        groups.map(|group| share.len(group.clients)).sum()
    }

    /// The machine of a thread, and the thread's number on it.
    fn locate(&self, thread: u32) -> (usize, u32) {
        let mut first = 0;
        for (machine, threads) in self.threads.iter().enumerate() {
            if thread < first + threads {
                return (machine, thread - first);
            }
            first += threads;
        }
        (self.threads.len(), 0)
    }

    fn share(&self, machine: usize) -> MachineShare {
        MachineShare {
            start: self.first_thread(machine) / self.divisor,
            part: self.threads.get(machine).copied().unwrap_or(0) / self.divisor,
            round: self.round,
        }
    }
}

impl MachineShare {
    /// The number in the group of the `index`-th client of the machine; the machine must have some.
    const fn number(self, index: u32) -> u32 {
        let rounds = index / self.part;
        let place = self.start + index % self.part;
        rounds.saturating_mul(self.round).saturating_add(place)
    }

    /// Number of its clients among this many.
    fn len(self, clients: u32) -> u32 {
        let rest = clients % self.round;
        let in_rest = rest.saturating_sub(self.start).min(self.part);
        clients / self.round * self.part + in_rest
    }
}

impl GroupShare {
    /// The next client to connect; none if none is left.
    fn client(self) -> Option<u32> {
        let number = self.share.number(self.next);
        let client = self.first_client.saturating_add(number);
        (client < self.end).then_some(client)
    }
}

impl Share {
    /// The share of a thread, numbered from 0, on one machine with `threads` threads.
    pub fn new(plan: &Plan, thread: u32, threads: u32) -> Self {
        Self::across(plan, thread, &Machines::new(&[threads]))
    }

    /// The share of a thread, numbered from 0 among those of all machines.
    pub fn across(plan: &Plan, thread: u32, machines: &Machines) -> Self {
        let (machine, thread) = machines.locate(thread);
        let threads = machines.threads.get(machine).copied().unwrap_or(0);
        let share = machines.share(machine);
        if share.part == 0 {
            return Self { groups: Vec::new() };
        }
        let publishing = publishing_threads(plan, threads);
        let mut groups = Vec::new();
        let mut first_client = 0;
        for group in &plan.scenario.groups {
            let (first_thread, step) = match (&group.publish, &group.subscribe) {
                (Some(_), None) => (0, publishing),
                (None, Some(_)) if publishing < threads => (publishing, threads - publishing),
                _ => (0, threads),
            };
            let end = first_client + group.clients;
            let turn = thread.checked_sub(first_thread).filter(|turn| *turn < step);
            let of_group = turn.map(|turn| GroupShare {
                first_client,
                end,
                next: turn,
                step,
                share,
            });
            groups.extend(of_group.filter(|group| group.client().is_some()));
            first_client = end;
        }
        groups.reverse();
        Self { groups }
    }

    /// The client to connect next.
    pub fn next_client(&self) -> Option<u32> {
        self.groups.last()?.client()
    }

    /// Advances to the next client.
    pub fn advance(&mut self) {
        let Some(group) = self.groups.last_mut() else {
            return;
        };
        group.next = group.next.saturating_add(group.step);
        if group.client().is_none() {
            self.groups.pop();
        }
    }
}

/// Threads for clients that only publish: in proportion to their messages, at least one and not
/// all.
fn publishing_threads(plan: &Plan, threads: u32) -> u32 {
    let is_pure = |publishes: bool| {
        let mut groups = plan.scenario.groups.iter();
        groups.any(|group| {
            group.publish.is_some() == publishes && group.subscribe.is_some() != publishes
        })
    };
    if threads < 2 || !is_pure(true) || !is_pure(false) {
        return threads;
    }
    let fair = thrum_figures::whole(f64::from(threads) * plan.publishing_part());
    u32::try_from(fair).unwrap_or(threads).clamp(1, threads - 1)
}

const fn greatest_divisor(mut left: u32, mut right: u32) -> u32 {
    while right != 0 {
        (left, right) = (right, left % right);
    }
    left
}

impl Plan {
    /// Whether some subscriber is to receive from a publisher of another machine.
    pub fn crosses(&self, machines: &Machines) -> bool {
        if machines
            .threads
            .iter()
            .filter(|threads| **threads > 0)
            .count()
            < 2
        {
            return false;
        }
        let home_of = |publisher: u32| {
            let planned = self.publishers.get(as_index(publisher))?;
            Some(machines.machine_of(planned.number))
        };
        let subscribers = (0..self.clients()).filter_map(|client| {
            let part = self.part(client);
            Some((part.subscriber?, machines.machine_of(part.number)))
        });
        let mut subscribers = subscribers;
        subscribers.any(|(subscriber, home)| {
            let sources = match self.expectation(subscriber) {
                Expectation::Each(sources) => Some(sources),
                Expectation::Shared(group) => self.shared.get(as_index(*group)),
            };
            let publishers = sources.into_iter().flat_map(|sources| {
                (0..sources.len()).filter_map(|position| sources.publisher(position))
            });
            let mut homes = publishers.filter_map(home_of);
            homes.any(|of_publisher| of_publisher != home)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tests::no_files;
    use crate::scenario::{Overrides, find};

    fn plan(name: &str, overrides: &Overrides) -> Plan {
        Plan::new(find(name).unwrap().with(overrides).unwrap(), "t", &no_files).unwrap()
    }

    /// The clients of every thread.
    fn partition_across(plan: &Plan, machines: &Machines) -> Vec<Vec<u32>> {
        let threads = 0..machines.threads().iter().sum();
        let shares = threads.map(|thread| {
            let mut share = Share::across(plan, thread, machines);
            std::iter::from_fn(|| {
                let client = share.next_client();
                share.advance();
                client
            })
            .collect()
        });
        shares.collect()
    }

    fn share(name: &str, overrides: &Overrides, thread: u32, threads: u32) -> Vec<u32> {
        let scenario = find(name).unwrap().with(overrides).unwrap();
        let plan = Plan::new(scenario, "t", &no_files).unwrap();
        let mut share = Share::new(&plan, thread, threads);
        let mut clients = Vec::new();
        while let Some(client) = share.next_client() {
            clients.push(client);
            share.advance();
        }
        clients
    }

    fn scale(publishers: u32, subscribers: u32) -> Overrides {
        Overrides {
            publishers: Some(publishers),
            subscribers: Some(subscribers),
            ..Overrides::default()
        }
    }

    #[test]
    fn one_thread_has_all_clients_in_order() {
        assert_eq!(share("fanout-1-1K", &scale(1, 4), 0, 1), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn publishers_of_a_fan_out_have_one_thread_to_themselves() {
        let scale = scale(2, 4);
        assert_eq!(share("fanout-5-1000-5-250K", &scale, 0, 3), [4, 5]);
        assert_eq!(share("fanout-5-1000-5-250K", &scale, 1, 3), [0, 2]);
        assert_eq!(share("fanout-5-1000-5-250K", &scale, 2, 3), [1, 3]);
    }

    #[test]
    fn publishers_of_pairs_have_half_of_the_threads() {
        let scale = scale(4, 4);
        assert_eq!(share("p2p-1K", &scale, 0, 4), [4, 6]);
        assert_eq!(share("p2p-1K", &scale, 1, 4), [5, 7]);
        assert_eq!(share("p2p-1K", &scale, 2, 4), [0, 2]);
        assert_eq!(share("p2p-1K", &scale, 3, 4), [1, 3]);
    }

    #[test]
    fn idle_connections_are_spread_over_all_threads() {
        let overrides = Overrides {
            connections: Some(5),
            ..Overrides::default()
        };
        assert_eq!(share("conn-tcp-10K-100", &overrides, 1, 2), [1, 3]);
    }

    #[test]
    fn every_client_has_exactly_one_thread() {
        for name in [
            "fanout-1-1K",
            "p2p-1K",
            "sharedsub-1K-5",
            "conn-tcp-10K-100",
        ] {
            for threads in 1..6 {
                let assigned = (0..threads)
                    .flat_map(|thread| share(name, &Overrides::default(), thread, threads));
                let mut assigned: Vec<u32> = assigned.collect();
                assigned.sort_unstable();
                let clients = find(name).unwrap().clients();
                assert_eq!(
                    assigned,
                    (0..clients).collect::<Vec<_>>(),
                    "{name} {threads}"
                );
            }
        }
    }

    #[test]
    fn pairs_share_a_machine() {
        let plan = plan("p2p-1K", &scale(20, 20));
        for threads in [[1, 1], [2, 2], [3, 1], [2, 3]] {
            let machines = Machines::new(&threads);
            for number in 0..20 {
                let (subscriber, publisher) = (plan.part(number), plan.part(20 + number));
                assert_eq!(subscriber.number, publisher.number);
            }
            let shares = partition_across(&plan, &machines);
            let home = |client: u32| {
                let thread = shares.iter().position(|share| share.contains(&client));
                machines.locate(u32::try_from(thread.unwrap()).unwrap()).0
            };
            for number in 0..20 {
                assert_eq!(
                    home(number),
                    home(20 + number),
                    "{threads:?}: pair {number}"
                );
                assert_eq!(home(number), machines.machine_of(number));
            }
            assert!(!plan.crosses(&machines));
        }
    }

    #[test]
    fn machines_have_clients_in_proportion_to_their_threads() {
        let plan = plan("p2p-1K", &scale(40, 40));
        let machines = Machines::new(&[3, 0, 1]);
        let of = |machine| machines.clients_of(&plan, machine);
        assert_eq!((of(0), of(1), of(2)), (60, 0, 20));
        let even = Machines::new(&[4, 4]);
        assert_eq!(even.machine_of(0), 0);
        assert_eq!(even.machine_of(1), 1);
    }

    /// Every client has one thread, and every machine its stated number of clients.
    #[track_caller]
    fn check_across(plan: &Plan, threads: &[u32]) {
        let machines = Machines::new(threads);
        let shares = partition_across(plan, &machines);
        for (machine, threads) in threads.iter().enumerate() {
            let first = as_index(machines.first_thread(machine));
            let of_machine = &shares[first..first + as_index(*threads)];
            let assigned: usize = of_machine.iter().map(Vec::len).sum();
            assert_eq!(assigned, as_index(machines.clients_of(plan, machine)));
        }
        assert!(shares.iter().all(|share| share.is_sorted()));
        let mut assigned: Vec<u32> = shares.concat();
        assigned.sort_unstable();
        let all: Vec<u32> = (0..plan.clients()).collect();
        assert_eq!(assigned, all, "{} {threads:?}", plan.scenario.name);
    }

    #[test]
    fn every_client_has_exactly_one_thread_of_all_machines() {
        for name in [
            "fanout-1-1K",
            "p2p-1K",
            "sharedsub-1K-5",
            "conn-tcp-10K-100",
        ] {
            let plan = plan(name, &Overrides::default());
            for threads in [&[1][..], &[2, 2], &[1, 0, 3], &[5, 3, 2]] {
                check_across(&plan, threads);
            }
        }
    }

    #[test]
    fn publishers_stay_apart_on_each_machine() {
        let plan = plan("p2p-1K", &scale(4, 4));
        let shares = partition_across(&plan, &Machines::new(&[2, 2]));
        assert_eq!(shares, [vec![4, 6], vec![0, 2], vec![5, 7], vec![1, 3]]);
    }

    #[test]
    fn a_fan_out_crosses_machines() {
        let plan = plan("fanout-1-1K", &scale(1, 4));
        assert!(plan.crosses(&Machines::new(&[1, 1])));
        assert!(!plan.crosses(&Machines::new(&[2])));
        assert!(!plan.crosses(&Machines::new(&[2, 0])));
    }
}
