//! Which messages arrived, once and in order: per pair of publisher and subscriber, or per shared
//! group.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thrum_figures::as_index;

use crate::gaps::Gaps;

/// The way in which a message arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// For the first time, after all earlier messages that arrive at all.
    First,
    /// For the first time, but after a later one.
    Late,
    /// Again.
    Duplicate,
    /// With a sequence that the publisher cannot have used.
    Impossible,
}

/// Deliveries from one publisher to one subscriber. While they are in order they take no more than
/// a number: a thread has many of these, and touches one for each delivery.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PairLedger {
    /// One more than the highest sequence seen.
    next: u32,
    /// None if every message arrived, once and in order, and the subscriber was always connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disorder: Option<Box<Disorder>>,
}

/// What was not in order.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Disorder {
    late: u32,
    duplicates: u32,
    /// Sequences below `next` that are missing.
    gaps: Gaps,
    /// None if the subscriber was always connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interruptions: Option<Interruptions>,
}

/// What the losses of a subscriber's connection may have cost.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Interruptions {
    /// `next` at the last loss.
    at: u32,
    /// Gaps that began at a loss: no message behind them arrived before it. At most one for each
    /// loss.
    gaps: Vec<Range<u32>>,
}

impl PairLedger {
    /// Enters a message.
    pub fn receive(&mut self, sequence: u32) -> Arrival {
        if sequence == self.next {
            self.next = sequence.saturating_add(1);
            return Arrival::First;
        }
        if sequence > self.next {
            if sequence - self.next > JUMP_MAX {
                return Arrival::Impossible;
            }
            let gap = self.next..sequence;
            self.disorder().open_gap(gap);
            self.next = sequence.saturating_add(1);
            return Arrival::First;
        }
        self.disorder().receive_again_or_late(sequence)
    }

    /// The subscriber has lost its connection.
    pub fn interrupt(&mut self) {
        let at = self.next;
        self.disorder().interruptions.get_or_insert_default().at = at;
    }

    /// Whether a missing message may have been on its way when the subscriber lost its connection:
    /// no later one had arrived by then.
    pub fn was_interrupted(&self, sequence: u32) -> bool {
        let disorder = self.disorder.as_ref();
        let interruptions = disorder.and_then(|disorder| disorder.interruptions.as_ref());
        interruptions.is_some_and(|interruptions| {
            let is_behind = interruptions.at == self.next && sequence >= self.next;
            let mut gaps = interruptions.gaps.iter();
            is_behind || gaps.any(|gap| gap.contains(&sequence))
        })
    }

    /// Messages that did not arrive, of `sent` messages.
    pub fn lost(&self, sent: u32) -> u64 {
        let missing = self.disorder.as_ref();
        let missing = missing.map_or(0, |disorder| disorder.gaps.count());
        missing + u64::from(sent.saturating_sub(self.next))
    }

    /// The messages that did not arrive, of `sent` messages.
    pub fn missing(&self, sent: u32) -> impl Iterator<Item = Range<u32>> {
        let tail = self.next..sent.max(self.next);
        let disorder = self.disorder.iter();
        let gaps = disorder.flat_map(|disorder| disorder.gaps.iter());
        gaps.chain(Some(tail))
    }

    /// Messages that arrived after a later one.
    pub fn late(&self) -> u32 {
        self.disorder.as_ref().map_or(0, |disorder| disorder.late)
    }

    /// Arrivals of messages that were there already.
    pub fn duplicates(&self) -> u32 {
        let disorder = self.disorder.as_ref();
        disorder.map_or(0, |disorder| disorder.duplicates)
    }

    fn disorder(&mut self) -> &mut Disorder {
        self.disorder.get_or_insert_default()
    }
}

impl Disorder {
    fn open_gap(&mut self, gap: Range<u32>) {
        if let Some(interruptions) = &mut self.interruptions
            && interruptions.at == gap.start
        {
            interruptions.gaps.push(gap.clone());
        }
        self.gaps.open(gap);
    }

    fn receive_again_or_late(&mut self, sequence: u32) -> Arrival {
        if self.gaps.fill(sequence) {
            self.late += 1;
            return Arrival::Late;
        }
        self.duplicates += 1;
        Arrival::Duplicate
    }
}

/// Messages of one publisher that a single jump may be ahead of the highest one seen: more cannot
/// have been sent meanwhile, and the ledger's memory stays in proportion to what was received.
const JUMP_MAX: u32 = 1 << 22;

/// Deliveries to a shared group, each message once to any member; one bit per message.
///
/// Every thread keeps its own and they are merged at the end.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SharedLedger {
    publishers: Vec<Vec<u64>>,
    duplicates: u64,
}

impl SharedLedger {
    /// A ledger for this many publishers.
    pub fn new(publishers: u32) -> Self {
        Self {
            publishers: vec![Vec::new(); as_index(publishers)],
            duplicates: 0,
        }
    }

    /// Enters a message of a publisher, numbered within the group's sources.
    pub fn receive(&mut self, publisher: u32, sequence: u32) -> Arrival {
        let Some(words) = self.publishers.get_mut(as_index(publisher)) else {
            return Arrival::Impossible;
        };
        let at = as_index(sequence / 64);
        if at >= words.len() {
            if at > words.len() + as_index(JUMP_MAX / 64) {
                return Arrival::Impossible;
            }
            words.resize(at + 1, 0);
        }
        let bit = 1 << (sequence % 64);
        if words[at] & bit != 0 {
            self.duplicates += 1;
            return Arrival::Duplicate;
        }
        words[at] |= bit;
        Arrival::First
    }

    /// Adds what another thread's members of the same group received.
    pub fn merge(&mut self, other: &Self) {
        self.duplicates += other.duplicates;
        for (mine, theirs) in self.publishers.iter_mut().zip(&other.publishers) {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0);
            }
            for (mine, theirs) in mine.iter_mut().zip(theirs) {
                self.duplicates += u64::from((*mine & theirs).count_ones());
                *mine |= theirs;
            }
        }
    }

    /// Messages of a publisher that no member received, of `sent` messages.
    pub fn lost(&self, publisher: u32, sent: u32) -> u64 {
        let received: u64 = self
            .words(publisher)
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum();
        u64::from(sent).saturating_sub(received)
    }

    /// The same messages one by one.
    pub fn missing(&self, publisher: u32, sent: u32) -> impl Iterator<Item = u32> {
        let words = self.words(publisher);
        (0..sent).filter(move |sequence| {
            let word = words.get(as_index(sequence / 64)).copied().unwrap_or(0);
            word & (1 << (sequence % 64)) == 0
        })
    }

    /// Arrivals of messages that some member had received already.
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    fn words(&self, publisher: u32) -> &[u64] {
        self.publishers
            .get(as_index(publisher))
            .map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn pair(arrivals: impl IntoIterator<Item = u32>) -> PairLedger {
        let mut ledger = PairLedger::default();
        for sequence in arrivals {
            ledger.receive(sequence);
        }
        ledger
    }

    #[track_caller]
    fn check(ledger: &PairLedger, sent: u32, (lost, duplicates, late): (u64, u32, u32)) {
        assert_eq!(
            (ledger.lost(sent), ledger.duplicates(), ledger.late()),
            (lost, duplicates, late)
        );
    }

    #[test]
    fn messages_in_order_are_without_fault() {
        check(&pair(0..1000), 1000, (0, 0, 0));
    }

    #[test]
    fn a_lost_tail_is_lost() {
        check(&pair(0..990), 1000, (10, 0, 0));
    }

    #[test]
    fn gaps_are_lost_until_they_are_filled() {
        check(&pair([0, 1, 5]), 6, (3, 0, 0));
        check(&pair([0, 1, 5, 3]), 6, (2, 0, 1));
        check(&pair([0, 1, 5, 3, 2, 4]), 6, (0, 0, 3));
        let missing: Vec<_> = pair([0, 1, 5]).missing(8).collect();
        assert_eq!(missing, [2..5, 6..8]);
    }

    #[test]
    fn a_swap_is_one_late_message() {
        check(&pair([0, 2, 1, 3]), 4, (0, 0, 1));
    }

    #[test]
    fn a_message_that_comes_again_is_a_duplicate_however_old() {
        check(&pair((0..500).chain([0, 499, 250])), 500, (0, 3, 0));
        check(&pair([0, 3, 2, 2]), 4, (1, 1, 1));
    }

    #[test]
    fn every_other_message_is_lost_late_or_there_again_however_many_there_are() {
        let odd = || (0..20_000).filter(|sequence| sequence % 2 == 1);
        let even = || (0..20_000).rev().filter(|sequence| sequence % 2 == 0);
        let ledger = pair(odd());
        check(&ledger, 20_000, (10_000, 0, 0));
        let missing: BTreeSet<u32> = ledger.missing(20_000).flatten().collect();
        assert_eq!(missing, even().collect());
        check(&pair(odd().chain(even())), 20_000, (0, 0, 10_000));
        check(
            &pair(odd().chain(even()).chain(even())),
            20_000,
            (0, 10_000, 10_000),
        );
    }

    #[test]
    fn only_what_no_later_message_had_overtaken_was_interrupted() {
        // Message 2 is lost before the connection is, 5 to 7 with it, 9 afterwards.
        let mut ledger = pair([0, 1, 3, 4]);
        ledger.interrupt();
        for sequence in [8, 10] {
            ledger.receive(sequence);
        }
        let interrupted = |ledger: &PairLedger, sent: u32| -> Vec<u32> {
            let missing = ledger.missing(sent).flatten();
            missing
                .filter(|sequence| ledger.was_interrupted(*sequence))
                .collect()
        };
        assert_eq!(interrupted(&ledger, 13), [5, 6, 7]);
        // The last messages are lost with a second loss.
        ledger.interrupt();
        assert_eq!(interrupted(&ledger, 13), [5, 6, 7, 11, 12]);
        assert_eq!(interrupted(&pair([0, 2]), 5), [0; 0]);
    }

    #[test]
    fn a_shared_message_counts_once_whichever_member_gets_it() {
        let mut left = SharedLedger::new(2);
        let mut right = left.clone();
        for sequence in 0..100 {
            let half = if sequence % 2 == 0 {
                &mut left
            } else {
                &mut right
            };
            assert_eq!(half.receive(1, sequence), Arrival::First);
        }
        left.merge(&right);
        assert_eq!(
            (left.lost(0, 100), left.lost(1, 100), left.duplicates()),
            (100, 0, 0)
        );
    }

    #[test]
    fn a_shared_message_that_two_threads_received_is_a_duplicate() {
        let mut left = SharedLedger::new(1);
        let mut right = left.clone();
        assert_eq!(left.receive(0, 3), Arrival::First);
        assert_eq!(left.receive(0, 3), Arrival::Duplicate);
        assert_eq!(right.receive(0, 3), Arrival::First);
        left.merge(&right);
        assert_eq!((left.duplicates(), left.lost(0, 4)), (2, 3));
        assert_eq!(left.missing(0, 4).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn a_sequence_that_was_never_sent_is_impossible() {
        let mut ledger = SharedLedger::new(1);
        assert_eq!(ledger.receive(0, u32::MAX), Arrival::Impossible);
        assert_eq!(ledger.receive(1, 0), Arrival::Impossible);
    }
}
