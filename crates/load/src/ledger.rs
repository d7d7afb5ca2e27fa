//! Which messages arrived, once and in order: per pair of publisher and subscriber, or per shared
//! group.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use thrum_figures::as_index;

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

/// Gaps remembered per pair; beyond that the oldest counts as lost for good, so that a broker
/// that drops every other message costs 8 KiB per pair and not more.
const GAPS_MAX: usize = 1_024;

/// Deliveries from one publisher to one subscriber.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PairLedger {
    /// One more than the highest sequence seen.
    next: u32,
    late: u32,
    duplicates: u32,
    forgotten: u32,
    /// Sequences below `next` that are missing, ascending.
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
            self.open_gap(self.next..sequence);
            self.next = sequence.saturating_add(1);
            return Arrival::First;
        }
        if self.fill_gap(sequence) {
            self.late += 1;
            return Arrival::Late;
        }
        self.duplicates += 1;
        Arrival::Duplicate
    }

    /// Messages that did not arrive, of `sent` messages.
    pub fn lost(&self, sent: u32) -> u64 {
        let in_gaps: u64 = self
            .gaps
            .iter()
            .map(|gap| u64::from(gap.end - gap.start))
            .sum();
        in_gaps + u64::from(self.forgotten) + u64::from(sent.saturating_sub(self.next))
    }

    /// The messages that did not arrive, of `sent` messages; those beyond the remembered gaps are
    /// left out.
    pub fn missing(&self, sent: u32) -> impl Iterator<Item = Range<u32>> {
        let tail = self.next..sent.max(self.next);
        self.gaps.iter().cloned().chain(Some(tail))
    }

    /// Messages that arrived after a later one.
    pub const fn late(&self) -> u32 {
        self.late
    }

    /// Arrivals of messages that were there already.
    pub const fn duplicates(&self) -> u32 {
        self.duplicates
    }

    fn open_gap(&mut self, gap: Range<u32>) {
        if self.gaps.len() == GAPS_MAX {
            let oldest = self.gaps.remove(0);
            self.forgotten += oldest.end - oldest.start;
        }
        self.gaps.push(gap);
    }

    fn fill_gap(&mut self, sequence: u32) -> bool {
        let Some(index) = self.gaps.iter().rposition(|gap| gap.contains(&sequence)) else {
            return false;
        };
        let gap = self.gaps[index].clone();
        match (gap.start == sequence, gap.end == sequence + 1) {
            (true, true) => {
                self.gaps.remove(index);
            }
            (true, false) => self.gaps[index].start += 1,
            (false, true) => self.gaps[index].end -= 1,
            (false, false) => {
                self.gaps[index].end = sequence;
                self.gaps.insert(index + 1, sequence + 1..gap.end);
            }
        }
        true
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
    fn every_other_message_lost_is_counted_in_bounded_memory() {
        let ledger = pair((0..20_000).filter(|sequence| sequence % 2 == 1));
        check(&ledger, 20_000, (10_000, 0, 0));
        assert_eq!(ledger.gaps.len(), GAPS_MAX);
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
