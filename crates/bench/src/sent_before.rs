//! What senders and responders had of the messages that arrive in a second: many of these left in
//! an earlier one.

use hdrhistogram::Histogram;
use thrum_load::floors::Floors;
use thrum_load::histogram::{add, histogram};

use crate::record::Latencies;

/// Times of the generator within the floors of messages, by the second in which it had them.
#[derive(Debug)]
pub(crate) struct SentBefore {
    last_start_ns: u64,
    last: Excess,
    /// Of all seconds before the last one.
    older: Excess,
}

/// What makes floors too high.
#[derive(Clone, Debug)]
pub(crate) struct Excess {
    pub(crate) handing_over: Histogram<u64>,
    pub(crate) answering: Histogram<u64>,
    pub(crate) finishing: Histogram<u64>,
}

impl SentBefore {
    /// Before the first second.
    pub(crate) fn new() -> Self {
        Self {
            last_start_ns: 0,
            last: Excess::new(),
            older: Excess::new(),
        }
    }

    /// Enters the next second. Returns what senders and responders had of all messages that arrived
    /// in it, and of others.
    pub(crate) fn enter(&mut self, start_ns: u64, latencies: &Latencies) -> Excess {
        let mut excess = Excess::of(&latencies.floors);
        let first_sent_ns = start_ns.saturating_sub(latencies.service.max());
        if first_sent_ns < self.last_start_ns {
            excess.add(&self.older);
        }
        excess.add(&self.last);
        let last = std::mem::replace(&mut self.last, Excess::of(&latencies.floors));
        self.older.add(&last);
        self.last_start_ns = start_ns;
        excess
    }
}

impl Excess {
    fn new() -> Self {
        Self {
            handing_over: histogram(),
            answering: histogram(),
            finishing: histogram(),
        }
    }

    pub(crate) fn of(floors: &Floors) -> Self {
        Self {
            handing_over: floors.handing_over.clone(),
            answering: floors.answering.clone(),
            finishing: floors.finishing.clone(),
        }
    }

    fn add(&mut self, other: &Self) {
        add(&mut self.handing_over, &other.handing_over);
        add(&mut self.answering, &other.answering);
        add(&mut self.finishing, &other.finishing);
    }
}

#[cfg(test)]
mod tests {
    use thrum_figures::SECOND_NS;
    use thrum_load::histogram::{enter, enter_many};

    use super::*;
    use crate::outcome::response_bound;

    const MS: u64 = 1_000_000;

    /// A second in which the kernel took 100 messages this late, and 100 arrived after this long.
    fn second(late_ns: u64, took_ns: u64) -> Latencies {
        let mut latencies = Latencies::new();
        enter_many(&mut latencies.floors.handing_over, late_ns, 100);
        enter_many(&mut latencies.response, took_ns, 100);
        enter_many(&mut latencies.service, took_ns, 100);
        enter_many(&mut latencies.floors.delivery, took_ns, 100);
        latencies
    }

    /// Whether the bound of each has a delay of 5 ms.
    fn is_delayed(seconds: &[Latencies]) -> Vec<bool> {
        let mut before = SentBefore::new();
        let bounds = (1_u64..).zip(seconds).map(|(number, latencies)| {
            let excess = before.enter(number * SECOND_NS, latencies);
            let bound = response_bound(latencies, &excess).unwrap();
            bound.p50 >= 5 * MS - MS / 10
        });
        bounds.collect()
    }

    #[test]
    fn the_bound_of_a_second_has_the_delays_of_messages_that_left_in_the_one_before() {
        let seconds = [second(5 * MS, 9 * MS), second(1, 9 * MS), second(1, 9 * MS)];
        assert_eq!(is_delayed(&seconds), [true, true, false]);
    }

    #[test]
    fn messages_that_were_long_on_their_way_may_have_left_in_any_second() {
        let seconds = [
            second(5 * MS, 9 * MS),
            second(1, 9 * MS),
            second(1, 9 * MS),
            second(1, 1_100 * MS),
        ];
        assert_eq!(is_delayed(&seconds), [true, true, false, true]);
    }

    #[test]
    fn responders_and_full_sockets_count_likewise() {
        let mut first = second(1, 9 * MS);
        enter(&mut first.floors.answering, 3 * MS);
        enter(&mut first.floors.finishing, 2 * MS);
        let mut before = SentBefore::new();
        before.enter(SECOND_NS, &first);
        let excess = before.enter(2 * SECOND_NS, &second(1, 9 * MS));
        assert_eq!((excess.answering.len(), excess.finishing.len()), (1, 1));
    }
}
