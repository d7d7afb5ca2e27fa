//! Comparison of the table with a plain list, and the validity of cached routes.

use crate::workers::{WorkerId, WorkerSet};
use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::{Strategy as Generate, prop_assert, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;

use super::*;

const FILTERS: [&str; 14] = [
    "#", "+", "+/b", "+/+/c", "a", "a/#", "a/+", "a/b", "a/b/#", "a/b/+", "a/b/c", "b/b/#", "/+/c",
    "$x/#",
];
const TOPICS: [&str; 8] = ["a", "a/b", "a/b/c", "a/b/c/d", "b/b", "//c", "$x/y", "b"];
const WORKERS: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Change {
    Worker(usize),
    Member(u64),
}

/// The expected contents of the table: filters with their workers and the sessions in their group.
#[derive(Debug, Default)]
struct Plain {
    workers: BTreeMap<&'static str, BTreeSet<usize>>,
    members: BTreeMap<&'static str, BTreeMap<u64, GroupId>>,
}

fn change() -> impl Generate<Value = (&'static str, Change)> {
    let kind = prop_oneof![
        (0..WORKERS).prop_map(Change::Worker),
        (1..3_u64).prop_map(Change::Member),
    ];
    (select(&FILTERS[..]), kind)
}

/// A member whose session has that number.
pub(super) fn member(id: u64) -> Member {
    let session = SessionRef {
        worker: WorkerId::new(0),
        slot: Slot::FIRST,
        id,
    };
    Member {
        session,
        options: SubscriptionOptions::default(),
        identifier: None,
        durable: false,
        room: Arc::new(QueueRoom::new(session, Arc::default())),
    }
}

impl Plain {
    /// Removes the worker or member of a filter if it is in the table, and adds it otherwise.
    fn apply(&mut self, interest: &Interest, filter: &'static str, change: Change) {
        let shared = SharedFilter { group: "g", filter };
        match change {
            Change::Worker(worker) => {
                let workers = self.workers.entry(filter).or_default();
                if workers.remove(&worker) {
                    interest.remove_worker(filter, WorkerId::new(worker));
                } else {
                    workers.insert(worker);
                    interest.add_worker(filter, WorkerId::new(worker));
                }
            }
            Change::Member(session) => {
                let members = self.members.entry(filter).or_default();
                if let Some(group) = members.remove(&session) {
                    assert_eq!(interest.find_group(shared), Some(group));
                    assert!(interest.leave(group, session));
                    assert!(!interest.leave(group, session));
                } else {
                    let joined = interest.join(shared, member(session));
                    assert!(!joined.existed);
                    members.insert(session, joined.group);
                }
            }
        }
    }

    /// The expected workers and members of a topic.
    fn route(&self, topic: &str) -> (WorkerSet, Vec<BTreeSet<u64>>) {
        let workers = self
            .workers
            .iter()
            .filter(|(filter, _)| matches(filter, topic));
        let bits = workers.flat_map(|(_, workers)| workers);
        let bits = bits.map(|worker| WorkerId::new(*worker)).collect();
        let groups = self
            .members
            .iter()
            .filter(|(filter, _)| matches(filter, topic));
        let groups = groups.map(|(_, members)| members.keys().copied().collect());
        let mut groups: Vec<BTreeSet<u64>> = groups.collect();
        groups.retain(|group| !group.is_empty());
        groups.sort();
        (bits, groups)
    }
}

fn matches(filter: &str, topic: &str) -> bool {
    let mut index = Index::new();
    index.insert(filter, Interested::Worker(WorkerId::new(0)));
    let mut found = Vec::new();
    index.matches(topic, &mut found);
    !found.is_empty()
}

fn contents(route: &Route) -> (WorkerSet, Vec<BTreeSet<u64>>) {
    let groups = route.groups.iter();
    let groups = groups.map(|(_, group)| group.members().map(|(one, _)| one.key()).collect());
    let mut groups: Vec<_> = groups.collect();
    groups.sort();
    (route.workers, groups)
}

proptest! {
    #[test]
    fn routes_equal_a_plain_list_and_hold_until_that_changes(
        changes in vec(vec(change(), 0..3), 1..40),
    ) {
        let interest = Interest::new(Strategy::RoundRobin, WORKERS);
        let mut plain = Plain::default();
        let mut remembered = TOPICS.map(|topic| (topic, Version::default(), Route::default()));
        let mut scratch = Vec::new();
        for changes in changes {
            for (filter, change) in changes {
                plain.apply(&interest, filter, change);
            }
            for (topic, version, route) in &mut remembered {
                if !interest.holds(version, topic) {
                    (*version, _) = interest.route(topic, &mut scratch, route);
                }
                prop_assert!(interest.holds(version, topic));
                prop_assert_eq!(contents(route), plain.route(topic), "{}", topic);
            }
        }
    }
}

#[test]
fn a_node_with_one_worker_enters_groups_only() {
    let interest = Interest::new(Strategy::RoundRobin, 1);
    let worker = WorkerId::new(0);
    let (mut scratch, mut route) = (Vec::new(), Route::default());
    let (mut version, _) = interest.route("a/b", &mut scratch, &mut route);
    for filter in FILTERS {
        interest.add_worker(filter, worker);
    }
    assert!(interest.holds(&mut version, "a/b"));
    let shared = SharedFilter {
        group: "g",
        filter: "a/+",
    };
    interest.join(shared, member(7));
    assert!(!interest.holds(&mut version, "a/b"));
    interest.route("a/b", &mut scratch, &mut route);
    assert_eq!(
        contents(&route),
        (WorkerSet::NONE, vec![BTreeSet::from([7])])
    );
}

#[test]
fn events_are_wanted_while_a_shared_subscription_asks_for_them() {
    let interest = Interest::new(Strategy::RoundRobin, WORKERS);
    let shared = SharedFilter {
        group: "g",
        filter: "$events/client/+",
    };
    let wanted = || interest.event_subscribers.want(EventKind::ClientConnected);
    let groups = [1, 2].map(|id| interest.join(shared, member(id)).group);
    assert!(wanted());
    interest.leave(groups[0], 1);
    assert!(wanted());
    interest.leave(groups[1], 2);
    assert!(!wanted());
}
