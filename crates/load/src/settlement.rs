//! The ledgers of all threads, added up: which deliveries happened, and which of the others were
//! promised.

use std::collections::BTreeMap;

use thrum_figures::{SECOND_NS, as_index};

use crate::ledger::{PairLedger, SharedLedger};
use crate::plan::{Plan, Sources};
use crate::thread_report::{
    Absence, PublisherReport, Role, SubscriberReport, SubscriberState, ThreadReport,
};
use crate::verdict::Delivery;

impl Delivery {
    /// Adds up the ledgers of all threads. `due_ns` returns when a message of a publisher was due.
    pub fn settle(
        plan: &Plan,
        reports: &[ThreadReport],
        due_ns: &dyn Fn(u32, u32) -> Option<u64>,
    ) -> Self {
        let mut sent = vec![PublisherReport::default(); plan.publishers().len()];
        for publisher in reports.iter().flat_map(|report| &report.publishers) {
            if let Some(entry) = sent.get_mut(as_index(publisher.number)) {
                entry.clone_from(publisher);
                entry.given_up.sort_unstable();
            }
        }
        let subscribers = reports.iter().flat_map(|report| &report.subscribers);
        let responders = subscribers.filter(|subscriber| subscriber.role == Role::Responder);
        let mut shared_responders = responders
            .clone()
            .filter(|responder| matches!(responder.state, SubscriberState::Shared(_)));
        let slowest_ns = reports.iter().map(|report| report.slowest_ns).max();
        let mut settlement = Settlement {
            delivery: Self::default(),
            sent,
            due_ns,
            on_the_way_ns: on_the_way_ns(slowest_ns.unwrap_or(0)),
            absent_responders: responders
                .clone()
                .filter_map(|responder| AbsentResponder::of(plan, responder))
                .collect(),
            answers_have_order: shared_responders.nth(1).is_none(),
            absences: BTreeMap::new(),
        };
        for report in reports {
            settlement.delivery.wrong.merge(&report.counts.wrong);
            settlement.delivery.late += report.counts.late;
            for subscriber in &report.subscribers {
                settlement.settle_subscriber(report, subscriber);
            }
        }
        for (group, absences) in std::mem::take(&mut settlement.absences) {
            let ledgers = reports
                .iter()
                .filter_map(|report| report.shared.get(as_index(group)));
            if let Some(sources) = plan.shared().get(as_index(group)) {
                settlement.settle_shared(ledgers, sources, &absences);
            }
        }
        settlement.delivery
    }
}

/// Messages in flight to a client when its connection ended are lost with a clean session. This is
/// the longest that any may have been.
const ON_THE_WAY_NS_MAX: u64 = 5 * SECOND_NS;

/// How long a message may always have been in flight: the generator itself reads and sends with
/// delays.
const ON_THE_WAY_NS_MIN: u64 = SECOND_NS / 4;

/// How long before the last arrival at a client a message to it was due at most that had not
/// arrived yet, where messages have no order: at most twice as long as the slowest one took.
fn on_the_way_ns(slowest_ns: u64) -> u64 {
    slowest_ns
        .saturating_mul(2)
        .clamp(ON_THE_WAY_NS_MIN, ON_THE_WAY_NS_MAX)
}

/// A responder that was disconnected, so that requests may have no answer.
struct AbsentResponder<'a> {
    /// The publishers of its requests; of a shared subscription those of all members, because
    /// nobody knows which member a request went to.
    sources: &'a Sources,
    absences: &'a [Absence],
}

impl<'a> AbsentResponder<'a> {
    fn of(plan: &'a Plan, responder: &'a SubscriberReport) -> Option<Self> {
        let sources = match &responder.state {
            SubscriberState::Each { sources, .. } => sources,
            SubscriberState::Shared(group) => plan.shared().get(as_index(*group))?,
        };
        let absences = responder.absences.as_slice();
        (!absences.is_empty()).then_some(Self { sources, absences })
    }
}

/// Deliveries under settlement.
struct Settlement<'a> {
    delivery: Delivery,
    /// By number of the publisher.
    sent: Vec<PublisherReport>,
    due_ns: &'a dyn Fn(u32, u32) -> Option<u64>,
    /// How long a message may have been in flight.
    on_the_way_ns: u64,
    absent_responders: Vec<AbsentResponder<'a>>,
    /// Not where the members of a shared group answer: MQTT promises no order between them.
    answers_have_order: bool,
    /// Shared groups that had a member, and when members of clean sessions were disconnected.
    absences: BTreeMap<u32, Vec<Absence>>,
}

impl Settlement<'_> {
    fn settle_subscriber(&mut self, report: &ThreadReport, subscriber: &SubscriberReport) {
        match &subscriber.state {
            SubscriberState::Shared(group) => {
                self.absences
                    .entry(*group)
                    .or_default()
                    .extend(&subscriber.absences);
            }
            SubscriberState::Each {
                first_pair,
                sources,
            } => {
                let publishers =
                    (0..sources.len()).filter_map(|position| sources.publisher(position));
                let pairs = report.pairs.get(*first_pair..).unwrap_or_default();
                let is_requester = subscriber.role == Role::Requester;
                let has_order = !is_requester || self.answers_have_order;
                for (pair, publisher) in pairs.iter().zip(publishers) {
                    let unanswered = self.unanswered(subscriber.role, publisher);
                    let absences = Absences {
                        own: &subscriber.absences,
                        unanswered: &unanswered,
                        has_order,
                    };
                    self.settle_pair(pair, publisher, &absences);
                }
                if has_order {
                    let late = pairs
                        .iter()
                        .take(as_index(sources.len()))
                        .map(PairLedger::late);
                    self.delivery.reordered += late.map(u64::from).sum::<u64>();
                }
            }
        }
    }

    /// When responders to a publisher's requests were disconnected, if the subscriber waits for
    /// their answers.
    fn unanswered(&self, role: Role, publisher: u32) -> Vec<Absence> {
        let responders = self.absent_responders.iter();
        responders
            .filter(|_| role == Role::Requester)
            .filter(|responder| responder.sources.position(publisher).is_some())
            .flat_map(|responder| responder.absences)
            .copied()
            .collect()
    }

    fn settle_pair(&mut self, pair: &PairLedger, publisher: u32, absences: &Absences<'_>) {
        let sent = self
            .sent
            .get(as_index(publisher))
            .map_or(0, |report| report.sent);
        let missing = pair.lost(sent);
        let excused = if missing == 0 {
            0
        } else {
            let missing = pair.missing(sent).flatten();
            missing
                .filter(|sequence| self.is_excused(pair, publisher, *sequence, absences))
                .count()
        };
        let delivery = &mut self.delivery;
        delivery.expected += u64::from(sent);
        delivery.excused += u64::try_from(excused).unwrap_or(u64::MAX);
        delivery.lost += missing.saturating_sub(u64::try_from(excused).unwrap_or(u64::MAX));
        delivery.duplicated += u64::from(pair.duplicates());
    }

    fn settle_shared<'a>(
        &mut self,
        mut ledgers: impl Iterator<Item = &'a SharedLedger>,
        sources: &Sources,
        absences: &[Absence],
    ) {
        let Some(mut sum) = ledgers.next().cloned() else {
            return;
        };
        for ledger in ledgers {
            sum.merge(ledger);
        }
        self.delivery.duplicated += sum.duplicates();
        let on_the_way_ns = self.on_the_way_ns;
        let without_order = |absence: &Absence| absence.without_order(on_the_way_ns);
        for position in 0..sources.len() {
            let Some(publisher) = sources.publisher(position) else {
                continue;
            };
            let sent = self
                .sent
                .get(as_index(publisher))
                .map_or(0, |report| report.sent);
            self.delivery.expected += u64::from(sent);
            let missing = sum.lost(position, sent);
            if missing == 0 {
                continue;
            }
            let excused = sum.missing(position, sent);
            let excused = excused
                .filter(|sequence| {
                    self.is_given_up(publisher, *sequence)
                        || self.is_due(publisher, *sequence, absences, without_order)
                })
                .count();
            let excused = u64::try_from(excused).unwrap_or(u64::MAX);
            self.delivery.excused += excused;
            self.delivery.lost += missing.saturating_sub(excused);
        }
    }

    /// Whether a message was never acknowledged because its session was gone.
    fn is_given_up(&self, publisher: u32, sequence: u32) -> bool {
        let report = self.sent.get(as_index(publisher));
        report.is_some_and(|report| report.given_up.binary_search(&sequence).is_ok())
    }

    /// Whether the delivery of a message over a pair was not promised.
    fn is_excused(
        &self,
        pair: &PairLedger,
        publisher: u32,
        sequence: u32,
        absences: &Absences<'_>,
    ) -> bool {
        let was_overtaken = absences.has_order && !pair.was_interrupted(sequence);
        let own = |absence: &Absence| {
            if was_overtaken {
                // A later message had arrived before the loss: this one was not in flight any more.
                absence.from_ns
            } else if absences.has_order {
                absence.at_most()
            } else {
                absence.without_order(self.on_the_way_ns)
            }
        };
        let unanswered = |absence: &Absence| absence.without_order(self.on_the_way_ns);
        self.is_given_up(publisher, sequence)
            || self.is_due(publisher, sequence, absences.own, own)
            || self.is_due(publisher, sequence, absences.unanswered, unanswered)
    }

    /// Whether a message was due in one of these absences, which begin for it at a given time.
    fn is_due(
        &self,
        publisher: u32,
        sequence: u32,
        absences: &[Absence],
        since_ns: impl Fn(&Absence) -> u64,
    ) -> bool {
        if absences.is_empty() {
            return false;
        }
        let due_ns = (self.due_ns)(publisher, sequence);
        due_ns.is_some_and(|due_ns| {
            let mut absences = absences.iter();
            absences.any(|absence| since_ns(absence) <= due_ns && due_ns <= absence.to_ns)
        })
    }
}

impl Absence {
    /// The earliest that a message was due which was in flight when the connection ended.
    const fn at_most(&self) -> u64 {
        self.from_ns.saturating_sub(ON_THE_WAY_NS_MAX)
    }

    /// The same where other messages may overtake one that is in flight for at most a given time:
    /// what was due that long before the last arrival had arrived.
    fn without_order(&self, on_the_way_ns: u64) -> u64 {
        let since_ns = self.heard_ns.saturating_sub(on_the_way_ns);
        since_ns.max(self.at_most()).min(self.from_ns)
    }
}

/// When a message may not have arrived.
struct Absences<'a> {
    /// Its subscriber was disconnected without a session.
    own: &'a [Absence],
    /// Those who were to answer it were.
    unanswered: &'a [Absence],
    /// Messages arrive in the order of their sequence.
    has_order: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payload::tests::no_files;
    use crate::scenario::{Overrides, find};
    use crate::thread_report::Counts;

    /// What is known of a run of a requester or publisher 0 and others, one message every 100 ms.
    struct Case {
        plan: Plan,
        report: ThreadReport,
    }

    const MS: u64 = 1_000_000;

    fn enter(pair: &mut PairLedger, sequences: &[u32]) {
        for sequence in sequences {
            pair.receive(*sequence);
        }
    }

    impl Case {
        /// Pairs of which the publishers have sent twenty messages each.
        fn of_pairs(pairs: u32) -> Self {
            let overrides = Overrides {
                publishers: Some(pairs),
                ..Overrides::default()
            };
            let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
            let plan = Plan::new(scenario, "t", &no_files).unwrap();
            let publishers = (0..pairs).map(|number| PublisherReport {
                number,
                sent: 20,
                ..PublisherReport::default()
            });
            let report = ThreadReport {
                ready: 0,
                failed: 0,
                counts: Counts::default(),
                publishers: publishers.collect(),
                subscribers: Vec::new(),
                pairs: Vec::new(),
                shared: Vec::new(),
                slowest_ns: MS,
            };
            Self { plan, report }
        }

        /// A receiver of a publisher's messages; its connection ends before some of them.
        fn add(&mut self, role: Role, publisher: u32, arrivals: &[&[u32]]) {
            let mut pair = PairLedger::default();
            let (first, later) = arrivals.split_first().unwrap();
            enter(&mut pair, first);
            for sequences in later {
                pair.interrupt();
                enter(&mut pair, sequences);
            }
            self.report.pairs.push(pair);
            self.report.subscribers.push(SubscriberReport {
                state: SubscriberState::Each {
                    first_pair: self.report.pairs.len() - 1,
                    sources: Sources::Range {
                        start: publisher,
                        len: 1,
                    },
                },
                role,
                absences: Vec::new(),
            });
        }

        /// The last receiver was absent, in milliseconds.
        fn absent(&mut self, heard: u64, from: u64, to: u64) {
            let absence = Absence {
                heard_ns: heard * MS,
                from_ns: from * MS,
                to_ns: to * MS,
            };
            self.report
                .subscribers
                .last_mut()
                .unwrap()
                .absences
                .push(absence);
        }

        /// Lost and excused.
        fn settled(self) -> (u64, u64) {
            let due_ns = |_: u32, sequence: u32| Some(u64::from(sequence) * 100 * MS);
            let delivery = Delivery::settle(&self.plan, &[self.report], &due_ns);
            (delivery.lost, delivery.excused)
        }
    }

    #[test]
    fn a_message_that_was_overtaken_before_the_loss_is_not_excused_by_it() {
        let mut case = Case::of_pairs(1);
        // Message 3 is lost in the middle, 8 and 9 in flight, 10 to 12 during the absence, and 14
        // after it.
        let (before, after) = ([0, 1, 2, 4, 5, 6, 7], [13, 15, 16, 17, 18, 19]);
        case.add(Role::Receiver, 0, &[&before, &after]);
        case.absent(705, 950, 1_250);
        assert_eq!(case.settled(), (2, 5));
    }

    #[test]
    fn the_time_in_flight_is_limited_even_if_nothing_arrived() {
        let mut case = Case::of_pairs(1);
        case.report.publishers[0].sent = 100;
        case.add(Role::Receiver, 0, &[&[], &[]]);
        case.absent(0, 8_000, 9_950);
        // Those that were due in the first three seconds.
        assert_eq!(case.settled(), (30, 70));
    }

    #[test]
    fn a_responders_absence_excuses_only_answers_to_its_own_requests() {
        let all: Vec<u32> = (0..20).collect();
        let without_nine: Vec<u32> = all
            .iter()
            .copied()
            .filter(|sequence| *sequence != 9)
            .collect();
        for (asked, expected) in [(0, (0, 1)), (1, (1, 0))] {
            let mut case = Case::of_pairs(2);
            case.add(Role::Responder, 0, &[&all, &[]]);
            case.absent(850, 860, 1_000);
            case.add(Role::Requester, asked, &[&without_nine]);
            assert_eq!(case.settled(), expected, "{asked}");
        }
    }

    #[test]
    fn an_answer_is_not_excused_if_the_responder_went_on_answering_for_long() {
        let all: Vec<u32> = (0..20).collect();
        let without = |missing: u32| -> Vec<u32> {
            let others = all.iter().copied().filter(|sequence| *sequence != missing);
            others.collect()
        };
        for (missing, expected) in [(9, (0, 1)), (7, (0, 1)), (4, (1, 0))] {
            let mut case = Case::of_pairs(1);
            case.add(Role::Responder, 0, &[&all, &[]]);
            case.absent(850, 860, 1_000);
            case.add(Role::Requester, 0, &[&without(missing)]);
            assert_eq!(case.settled(), expected, "{missing}");
        }
    }
}
