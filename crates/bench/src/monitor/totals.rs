//! Counters of processes and threads that start and end, in sums that never go back.
//!
//! A process that starts and ends between two entries is never seen. Its CPU time is in that of its
//! parent's children, to which the kernel adds the time of a child when the parent waits for it:
//! what that account grows by counts, less what was counted of the children that have gone.

use std::collections::BTreeMap;

use super::accounts::{SchedStat, Traffic};

/// The kernel's CPU times of a process are rounded down to a tick, user mode and kernel each.
const ROUNDED_TICKS: u64 = 2;

/// Most processes that are remembered; beyond, ended processes are forgotten. A process
/// that could not be read for a while must not count from its birth again.
const PROCESSES_MAX: usize = 4096;

/// Ancestors of a process that may go together with it.
const GENERATIONS_MAX: usize = 64;

/// A process: its number and when it started.
pub(super) type ProcessId = (u32, u64);

/// Counters of a process at one moment, since its start.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessCounters {
    pub(super) parent: u32,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    /// Of children that it has waited for: user mode and kernel.
    pub(super) children_ns: [u64; 2],
    /// None if the kernel does not report it.
    pub(super) disk: Option<Traffic>,
    pub(super) threads: BTreeMap<u32, ThreadCounters>,
}

/// Counters of one of its threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ThreadCounters {
    pub(super) sched: SchedStat,
    /// Voluntary and involuntary context switches, where they were read.
    pub(super) switches: Option<[u64; 2]>,
}

/// Sums over all processes and threads since the first entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sums {
    pub(super) cpu_ns: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) wait_ns: u64,
    pub(super) turns: u64,
    pub(super) switches: [u64; 2],
    pub(super) disk: Traffic,
}

/// Adds up how far the counters of each process have moved.
#[derive(Debug)]
pub(super) struct Totals {
    tick_ns: u64,
    sums: Sums,
    /// None before the first entry: existing processes count from that moment, later ones from
    /// their start.
    known: Option<BTreeMap<ProcessId, Known>>,
}

/// A process as it was entered last.
#[derive(Debug, Default)]
struct Known {
    counters: ProcessCounters,
    /// CPU time by the kernel's ticks when it was first seen.
    ticks_before_ns: u64,
    /// CPU time that was counted for it.
    counted_ns: u64,
    /// It was not in the last entry.
    is_missing: bool,
    /// Of children that have gone, which its account of children gets with the next entry at the
    /// latest: from the entry before, and from this one.
    inherited: [Account; 2],
}

/// What a process has used, its children that it waited for included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Account {
    cpu_ns: u64,
    user_ns: u64,
    system_ns: u64,
    disk: Traffic,
}

impl Account {
    /// Each number by a rule.
    fn with(self, other: Self, rule: fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_ns: rule(self.cpu_ns, other.cpu_ns),
            user_ns: rule(self.user_ns, other.user_ns),
            system_ns: rule(self.system_ns, other.system_ns),
            disk: Traffic {
                in_bytes: rule(self.disk.in_bytes, other.disk.in_bytes),
                out_bytes: rule(self.disk.out_bytes, other.disk.out_bytes),
            },
        }
    }

    fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    fn less(self, other: Self) -> Self {
        self.with(other, u64::saturating_sub)
    }
}

impl Known {
    fn newborn() -> Self {
        let mut known = Self::default();
        known.counters.disk = Some(Traffic::default());
        known
    }

    /// What its parent's account of children grows by when it goes, as far as it was seen.
    fn account(&self) -> Account {
        let counters = &self.counters;
        let ticks_ns = counters.user_ns + counters.system_ns;
        let [user_ns, system_ns] = counters.children_ns;
        let own = Account {
            // The ticks leave out the last of what ran, which its threads' own accounts have.
            cpu_ns: ticks_ns.max(self.ticks_before_ns + self.counted_ns) + user_ns + system_ns,
            user_ns: counters.user_ns + user_ns,
            system_ns: counters.system_ns + system_ns,
            disk: counters.disk.unwrap_or_default(),
        };
        let [earlier, now] = self.inherited;
        own.plus(earlier).plus(now)
    }

    /// Takes what is inherited from what has grown; what is left then waits for one more entry.
    fn without_inherited(&mut self, grown: Account) -> Account {
        let [earlier, now] = self.inherited;
        let rest = grown.less(earlier);
        self.inherited = [now.less(rest), Account::default()];
        rest.less(now)
    }
}

impl Totals {
    pub(super) const fn new(tick_ns: u64) -> Self {
        Self {
            tick_ns,
            sums: Sums {
                cpu_ns: 0,
                user_ns: 0,
                system_ns: 0,
                wait_ns: 0,
                turns: 0,
                switches: [0; 2],
                disk: Traffic {
                    in_bytes: 0,
                    out_bytes: 0,
                },
            },
            known: None,
        }
    }

    /// Nothing was entered yet.
    pub(super) const fn is_empty(&self) -> bool {
        self.known.is_none()
    }

    /// Enters all current processes; missing ones have ended, or could not be
    /// read.
    pub(super) fn enter(&mut self, now: BTreeMap<ProcessId, ProcessCounters>) -> Sums {
        let Some(mut known) = self.known.take() else {
            let first = now.into_iter().map(|(id, counters)| {
                let known = Known {
                    ticks_before_ns: counters.user_ns + counters.system_ns,
                    counters,
                    ..Known::default()
                };
                (id, known)
            });
            self.known = Some(first.collect());
            return self.sums;
        };
        hand_down(&mut known, &now);
        if known.len() > PROCESSES_MAX {
            known.retain(|id, _| now.contains_key(id));
        }
        for (id, counters) in now {
            let process = known.remove(&id).unwrap_or_else(Known::newborn);
            known.insert(id, self.advance(process, counters));
        }
        self.known = Some(known);
        self.sums
    }

    fn advance(&mut self, mut process: Known, mut now: ProcessCounters) -> Known {
        let before = std::mem::take(&mut process.counters);
        let mut run_ns = 0;
        for (number, thread) in &mut now.threads {
            let earlier = before.threads.get(number).copied().unwrap_or_default();
            run_ns += thread.sched.run_ns.saturating_sub(earlier.sched.run_ns);
            self.sums.wait_ns += thread.sched.wait_ns.saturating_sub(earlier.sched.wait_ns);
            self.sums.turns += thread.sched.turns.saturating_sub(earlier.sched.turns);
            let was = earlier.switches.unwrap_or_default();
            let is = *thread.switches.get_or_insert(was);
            for ((sum, is), was) in self.sums.switches.iter_mut().zip(is).zip(was) {
                *sum += is.saturating_sub(was);
            }
        }
        // The ticks know of threads that ended, but not the last of what runs.
        let ticks_ns = (now.user_ns + now.system_ns)
            .saturating_sub(process.ticks_before_ns + ROUNDED_TICKS * self.tick_ns);
        let counted_ns = (process.counted_ns + run_ns).max(ticks_ns);
        self.sums.cpu_ns += counted_ns - process.counted_ns;
        self.sums.user_ns += now.user_ns.saturating_sub(before.user_ns);
        self.sums.system_ns += now.system_ns.saturating_sub(before.system_ns);
        let of_children = process.without_inherited(grown(&before, &now));
        self.sums.cpu_ns += of_children.cpu_ns;
        self.sums.user_ns += of_children.user_ns;
        self.sums.system_ns += of_children.system_ns;
        self.sums.disk.in_bytes += of_children.disk.in_bytes;
        self.sums.disk.out_bytes += of_children.disk.out_bytes;
        now.disk = now.disk.or(before.disk);
        process.counters = now;
        process.counted_ns = counted_ns;
        process.is_missing = false;
        process
    }
}

/// What the accounts of a process have grown by that the children it waited for may be in. The
/// kernel has no account of the disk for the children alone.
fn grown(before: &ProcessCounters, now: &ProcessCounters) -> Account {
    let [user_ns, system_ns] =
        [0, 1].map(|mode| now.children_ns[mode].saturating_sub(before.children_ns[mode]));
    let mut disk = Traffic::default();
    if let (Some(is), Some(was)) = (now.disk, before.disk) {
        disk.in_bytes = is.in_bytes.saturating_sub(was.in_bytes);
        disk.out_bytes = is.out_bytes.saturating_sub(was.out_bytes);
    }
    Account {
        cpu_ns: user_ns + system_ns,
        user_ns,
        system_ns,
        disk,
    }
}

/// Gives the account of each process that has gone to its parent, or to the next ancestor that is
/// there.
fn hand_down(known: &mut BTreeMap<ProcessId, Known>, now: &BTreeMap<ProcessId, ProcessCounters>) {
    let gone = known
        .iter()
        .filter(|(id, process)| !process.is_missing && !now.contains_key(id));
    let gone: BTreeMap<u32, (ProcessId, u32, Account)> = gone
        .map(|(id, process)| (id.0, (*id, process.counters.parent, process.account())))
        .collect();
    for (id, parent, account) in gone.values() {
        let mut ancestor = *parent;
        for _ in 0..GENERATIONS_MAX {
            let Some((_, next, _)) = gone.get(&ancestor) else {
                break;
            };
            ancestor = *next;
        }
        if let Some(process) = known.get_mut(id) {
            process.is_missing = true;
        }
        let heir = now.range((ancestor, 0)..=(ancestor, u64::MAX)).next();
        if let Some(process) = heir.and_then(|(id, _)| known.get_mut(id)) {
            process.inherited[1] = process.inherited[1].plus(*account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::accounts;
    use super::*;

    const TICK_NS: u64 = 10_000_000;
    const MS: u64 = 1_000_000;

    /// A process from the texts of the kernel: its `stat`, and `schedstat` of each thread.
    fn process(stat: &str, threads: &[(u32, &str)]) -> (ProcessId, ProcessCounters) {
        let pid = stat.split(' ').next().unwrap().parse().unwrap();
        let stat = accounts::stat(stat).unwrap();
        let threads = threads.iter().map(|(thread, text)| {
            let counters = ThreadCounters {
                sched: accounts::schedstat(text).unwrap(),
                switches: None,
            };
            (*thread, counters)
        });
        let counters = ProcessCounters {
            parent: stat.parent,
            user_ns: stat.user_ticks * TICK_NS,
            system_ns: stat.system_ticks * TICK_NS,
            children_ns: stat.children_ticks.map(|ticks| ticks * TICK_NS),
            disk: None,
            threads: threads.collect(),
        };
        ((pid, stat.start_ticks), counters)
    }

    /// `stat` of a broker with these user and kernel ticks that started at this tick.
    fn stat(pid: u32, [user, system]: [u64; 2], start: u64) -> String {
        format!(
            "{pid} (broker) S 1 {pid} {pid} 0 -1 4194560 100 0 0 0 {user} {system} 0 0 20 0 2 0 {start} 1 2 3"
        )
    }

    fn enter(totals: &mut Totals, processes: &[(ProcessId, ProcessCounters)]) -> Sums {
        totals.enter(processes.iter().cloned().collect())
    }

    #[test]
    fn use_before_the_first_entry_does_not_count() {
        let mut totals = Totals::new(TICK_NS);
        assert!(totals.is_empty());
        let old = process(&stat(7, [500, 500], 1), &[(7, "9000000000 5000 80")]);
        assert_eq!(
            enter(&mut totals, std::slice::from_ref(&old)),
            Sums::default()
        );
        assert!(!totals.is_empty());
        assert_eq!(enter(&mut totals, &[old]), Sums::default());
    }

    #[test]
    fn threads_are_counted_exactly_and_ticks_keep_the_split() {
        let mut totals = Totals::new(TICK_NS);
        let before = [(7, "1000000000 5000 80"), (8, "2000000000 0 10")];
        enter(&mut totals, &[process(&stat(7, [200, 100], 1), &before)]);
        let after = [
            (7, "1300000001 9000 85"),
            (8, "2400000002 0 30"),
            (9, "50000000 1 2"),
        ];
        let sums = enter(&mut totals, &[process(&stat(7, [250, 125], 1), &after)]);
        let expected = Sums {
            cpu_ns: 750_000_003,
            user_ns: 500 * MS,
            system_ns: 250 * MS,
            wait_ns: 4_001,
            turns: 27,
            ..Sums::default()
        };
        assert_eq!(sums, expected);
    }

    #[test]
    fn a_thread_that_ended_counts_by_the_ticks() {
        let mut totals = Totals::new(TICK_NS);
        let both = [(7, "0 0 0"), (8, "0 0 0")];
        enter(&mut totals, &[process(&stat(7, [0, 0], 1), &both)]);
        let one = [(7, "100000000 0 5")];
        let sums = enter(&mut totals, &[process(&stat(7, [30, 10], 1), &one)]);
        assert_eq!(sums.cpu_ns, 400 * MS - 2 * TICK_NS);
        let sums = enter(&mut totals, &[process(&stat(7, [40, 10], 1), &one)]);
        assert_eq!(sums.cpu_ns, 500 * MS - 2 * TICK_NS);
    }

    #[test]
    fn a_restarted_process_counts_on_from_its_birth() {
        let mut totals = Totals::new(TICK_NS);
        enter(
            &mut totals,
            &[process(&stat(7, [50, 0], 1), &[(7, "500000000 0 9")])],
        );
        let sums = enter(
            &mut totals,
            &[process(&stat(7, [90, 0], 1), &[(7, "900000000 0 10")])],
        );
        assert_eq!((sums.cpu_ns, sums.user_ns), (400 * MS, 400 * MS));
        assert_eq!(enter(&mut totals, &[]), sums);
        // The same number is another process if it started at another time.
        let sums = enter(
            &mut totals,
            &[process(&stat(7, [10, 0], 9), &[(7, "100000000 0 3")])],
        );
        assert_eq!(
            (sums.cpu_ns, sums.user_ns, sums.turns),
            (500 * MS, 500 * MS, 4)
        );
    }

    #[test]
    fn a_process_that_was_unreadable_for_a_while_continues_its_count() {
        let mut totals = Totals::new(TICK_NS);
        let at = |ticks, run_ns: &str| process(&stat(7, [ticks, 0], 1), &[(7, run_ns)]);
        enter(&mut totals, &[at(500, "5000000000 0 9")]);
        enter(&mut totals, &[]);
        let sums = enter(&mut totals, &[at(510, "5100000000 0 10")]);
        assert_eq!((sums.cpu_ns, sums.user_ns), (100 * MS, 100 * MS));
    }

    #[test]
    fn the_ended_are_forgotten_when_they_are_many() {
        let mut totals = Totals::new(TICK_NS);
        enter(&mut totals, &[]);
        for start in 0..10_000 {
            enter(&mut totals, &[process(&stat(7, [1, 0], start), &[])]);
        }
        assert!(totals.known.unwrap().len() <= PROCESSES_MAX + 1);
        assert_eq!(totals.sums.user_ns, 10_000 * TICK_NS);
    }

    #[test]
    fn switches_and_disk_count_where_they_were_read() {
        let mut totals = Totals::new(TICK_NS);
        let at = |switches, disk: Option<[u64; 2]>| {
            let thread = ThreadCounters {
                switches,
                ..ThreadCounters::default()
            };
            let counters = ProcessCounters {
                disk: disk.map(|[in_bytes, out_bytes]| Traffic {
                    in_bytes,
                    out_bytes,
                }),
                threads: BTreeMap::from([(7, thread)]),
                ..ProcessCounters::default()
            };
            [((7, 1), counters)]
        };
        enter(&mut totals, &at(Some([10, 5]), Some([100, 0])));
        let sums = enter(&mut totals, &at(None, None));
        assert_eq!(sums.switches, [0, 0]);
        let sums = enter(&mut totals, &at(Some([14, 6]), Some([150, 30])));
        assert_eq!(sums.switches, [4, 1]);
        assert_eq!((sums.disk.in_bytes, sums.disk.out_bytes), (50, 30));
    }

    /// `stat` of a process with this parent, ticks of its own, and of children it waited for.
    fn of_family(pid: u32, parent: u32, own: u64, children: u64) -> (ProcessId, ProcessCounters) {
        let stat = format!(
            "{pid} (broker) S {parent} 1 1 0 -1 4194560 100 0 0 0 {own} 0 {children} 0 20 0 1 0 5 1 2 3"
        );
        let run = format!("{} 0 0", own * TICK_NS);
        process(&stat, &[(pid, &run)])
    }

    #[test]
    fn children_that_were_never_seen_count_when_their_parent_has_waited_for_them() {
        let mut totals = Totals::new(TICK_NS);
        enter(&mut totals, &[of_family(7, 1, 10, 900)]);
        let sums = enter(&mut totals, &[of_family(7, 1, 12, 950)]);
        assert_eq!((sums.cpu_ns, sums.user_ns), (52 * TICK_NS, 52 * TICK_NS));
        let sums = enter(&mut totals, &[of_family(7, 1, 12, 950)]);
        assert_eq!(sums.cpu_ns, 52 * TICK_NS);
    }

    #[test]
    fn a_child_that_was_seen_counts_once_when_it_moves_into_its_parents_account() {
        let mut totals = Totals::new(TICK_NS);
        // The child has used 300 before the first entry.
        enter(
            &mut totals,
            &[of_family(7, 1, 0, 0), of_family(8, 7, 300, 0)],
        );
        let sums = enter(
            &mut totals,
            &[of_family(7, 1, 0, 0), of_family(8, 7, 350, 0)],
        );
        assert_eq!(sums.cpu_ns, 50 * TICK_NS);
        // It has used 20 more before it ended.
        let sums = enter(&mut totals, &[of_family(7, 1, 0, 370)]);
        assert_eq!((sums.cpu_ns, sums.user_ns), (70 * TICK_NS, 70 * TICK_NS));
        // Then come two that were not seen.
        let sums = enter(&mut totals, &[of_family(7, 1, 0, 390)]);
        assert_eq!(sums.cpu_ns, 90 * TICK_NS);
    }

    #[test]
    fn a_child_that_goes_after_its_parent_was_read_counts_once() {
        let mut totals = Totals::new(TICK_NS);
        enter(
            &mut totals,
            &[of_family(7, 1, 0, 0), of_family(8, 7, 300, 0)],
        );
        // The parent was read before it waited for the child, and the child after.
        let sums = enter(&mut totals, &[of_family(7, 1, 0, 0)]);
        assert_eq!(sums.cpu_ns, 0);
        let sums = enter(&mut totals, &[of_family(7, 1, 0, 310)]);
        assert_eq!(sums.cpu_ns, 10 * TICK_NS);
    }

    #[test]
    fn a_child_that_nobody_waited_for_does_not_hide_later_ones() {
        let mut totals = Totals::new(TICK_NS);
        enter(
            &mut totals,
            &[of_family(7, 1, 0, 0), of_family(8, 7, 300, 0)],
        );
        for _ in 0..2 {
            assert_eq!(enter(&mut totals, &[of_family(7, 1, 0, 0)]).cpu_ns, 0);
        }
        let sums = enter(&mut totals, &[of_family(7, 1, 0, 40)]);
        assert_eq!(sums.cpu_ns, 40 * TICK_NS);
    }

    #[test]
    fn generations_that_go_together_count_once() {
        let mut totals = Totals::new(TICK_NS);
        let family = |own, rest: &[(ProcessId, ProcessCounters)]| {
            let mut all = vec![of_family(7, 1, 0, own)];
            all.extend_from_slice(rest);
            all
        };
        let rest = [of_family(8, 7, 100, 30), of_family(9, 8, 200, 5)];
        enter(&mut totals, &family(0, &rest));
        // The grandchild's 200 and 5 went into the child's account, and all of it into the first.
        let sums = enter(&mut totals, &family(100 + 30 + 200 + 5 + 11, &[]));
        assert_eq!(sums.cpu_ns, 11 * TICK_NS);
    }

    #[test]
    fn generations_that_go_one_after_the_other_count_once() {
        let mut totals = Totals::new(TICK_NS);
        let root = |children| of_family(7, 1, 0, children);
        let all = [root(0), of_family(8, 7, 100, 0), of_family(9, 8, 200, 0)];
        enter(&mut totals, &all);
        // The child was read before it waited for the grandchild, and never again.
        enter(&mut totals, &[root(0), of_family(8, 7, 100, 0)]);
        let sums = enter(&mut totals, &[root(300 + 7)]);
        assert_eq!(sums.cpu_ns, 7 * TICK_NS);
    }

    #[test]
    fn the_disk_traffic_of_a_child_counts_once_when_its_parent_takes_it_over() {
        let mut totals = Totals::new(TICK_NS);
        let with = |(id, mut counters): (ProcessId, ProcessCounters), out_bytes| {
            counters.disk = Some(Traffic {
                in_bytes: 0,
                out_bytes,
            });
            (id, counters)
        };
        let parent = |out_bytes| with(of_family(7, 1, 0, 0), out_bytes);
        enter(
            &mut totals,
            &[parent(1_000), with(of_family(8, 7, 0, 0), 50)],
        );
        let sums = enter(
            &mut totals,
            &[parent(1_100), with(of_family(8, 7, 0, 0), 90)],
        );
        assert_eq!(sums.disk.out_bytes, 140);
        let sums = enter(&mut totals, &[parent(1_100 + 95 + 3)]);
        assert_eq!(sums.disk.out_bytes, 140 + 8);
    }
}
