//! Which thread has which clients.
//!
//! Those that only publish have threads of their own as soon as there are two: a thread that does
//! little is woken on time even when every core is busy, so messages leave when they are due
//! while other threads are reading thousands of deliveries.

use crate::plan::Plan;

/// The clients of one thread, in the order they connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deal {
    /// Ascending; none is empty.
    hands: Vec<Hand>,
}

/// Every `step`-th client of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hand {
    next: u32,
    end: u32,
    step: u32,
}

impl Deal {
    /// The share of a thread, numbered from 0, of so many.
    pub fn new(plan: &Plan, thread: u32, threads: u32) -> Self {
        let publishing = publishing_threads(plan, threads);
        let mut hands = Vec::new();
        let mut first_client = 0;
        for group in &plan.scenario.groups {
            let (first_thread, step) = match (&group.publish, &group.subscribe) {
                (Some(_), None) => (0, publishing),
                (None, Some(_)) if publishing < threads => (publishing, threads - publishing),
                _ => (0, threads),
            };
            let end = first_client + group.clients;
            let turn = thread.checked_sub(first_thread).filter(|turn| *turn < step);
            let hand = turn.map(|turn| Hand {
                next: first_client + turn,
                end,
                step,
            });
            hands.extend(hand.filter(|hand| hand.next < hand.end));
            first_client = end;
        }
        hands.reverse();
        Self { hands }
    }

    /// The client to connect next.
    pub fn next_client(&self) -> Option<u32> {
        self.hands.last().map(|hand| hand.next)
    }

    /// Goes on to the client after it.
    pub fn advance(&mut self) {
        let Some(hand) = self.hands.last_mut() else {
            return;
        };
        hand.next = hand.next.saturating_add(hand.step);
        if hand.next >= hand.end {
            self.hands.pop();
        }
    }
}

/// Threads for those that only publish: as many as their part of all messages, at least one and not all.
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
    let fair = crate::units::whole(f64::from(threads) * plan.publishing_part());
    u32::try_from(fair).unwrap_or(threads).clamp(1, threads - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Overrides, find};

    fn deal(name: &str, overrides: &Overrides, thread: u32, threads: u32) -> Vec<u32> {
        let scenario = find(name).unwrap().with(overrides).unwrap();
        let plan = Plan::new(scenario, "t").unwrap();
        let mut deal = Deal::new(&plan, thread, threads);
        let mut clients = Vec::new();
        while let Some(client) = deal.next_client() {
            clients.push(client);
            deal.advance();
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
        assert_eq!(deal("fanout-1-1K", &scale(1, 4), 0, 1), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn publishers_of_a_fan_out_have_one_thread_to_themselves() {
        let scale = scale(2, 4);
        assert_eq!(deal("fanout-5-1000-5-250K", &scale, 0, 3), [4, 5]);
        assert_eq!(deal("fanout-5-1000-5-250K", &scale, 1, 3), [0, 2]);
        assert_eq!(deal("fanout-5-1000-5-250K", &scale, 2, 3), [1, 3]);
    }

    #[test]
    fn publishers_of_pairs_have_half_of_the_threads() {
        let scale = scale(4, 4);
        assert_eq!(deal("p2p-1K", &scale, 0, 4), [4, 6]);
        assert_eq!(deal("p2p-1K", &scale, 1, 4), [5, 7]);
        assert_eq!(deal("p2p-1K", &scale, 2, 4), [0, 2]);
        assert_eq!(deal("p2p-1K", &scale, 3, 4), [1, 3]);
    }

    #[test]
    fn idle_connections_are_dealt_to_all_threads() {
        let overrides = Overrides {
            connections: Some(5),
            ..Overrides::default()
        };
        assert_eq!(deal("conn-tcp-10K-100", &overrides, 1, 2), [1, 3]);
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
                let dealt = (0..threads)
                    .flat_map(|thread| deal(name, &Overrides::default(), thread, threads));
                let mut dealt: Vec<u32> = dealt.collect();
                dealt.sort_unstable();
                let clients = find(name).unwrap().clients();
                assert_eq!(dealt, (0..clients).collect::<Vec<_>>(), "{name} {threads}");
            }
        }
    }
}
