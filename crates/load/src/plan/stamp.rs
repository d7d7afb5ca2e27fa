//! The send time in a mark, which also tells runs apart that use the same topics.
//!
//! The low bits are the time, the bits above them a number of the run. A time of two hours is
//! enough: no message is under way for longer.

use crate::mark::STAMP_BITS;

/// Bits of the time, in nanoseconds: 4.9 hours, half of them for clocks that differ.
const TIME_BITS: u32 = 44;

const TIME: u64 = (1 << TIME_BITS) - 1;

/// Numbers of runs are below this.
const RUNS: u64 = 1 << (STAMP_BITS - TIME_BITS);

/// The number of a run: 13 bits of its tag; 0 for a tag that is not hexadecimal.
pub(super) fn run_number(run_tag: &str) -> u16 {
    let number = u64::from_str_radix(run_tag, 16).unwrap_or_default();
    u16::try_from(number % RUNS).unwrap_or_default()
}

/// A send time, stamped with the number of the run.
pub(super) fn stamped(run: u16, sent_ns: u64) -> u64 {
    (u64::from(run) << TIME_BITS) | (sent_ns & TIME)
}

/// The send time of a message that is here now; none if it is of another run.
pub(super) fn sent_ns(run: u16, stamp: u64, now_ns: u64) -> Option<u64> {
    let is_ours = stamp >> TIME_BITS == u64::from(run);
    is_ours.then(|| {
        let since_ns = now_ns.wrapping_sub(stamp) & TIME;
        if since_ns <= TIME / 2 {
            now_ns.saturating_sub(since_ns)
        } else {
            // Clocks of machines differ.
            now_ns.saturating_add(TIME + 1 - since_ns)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR_NS: u64 = 3_600_000_000_000;

    #[test]
    fn a_time_is_read_back_on_machines_that_run_for_years() {
        for sent in [0, 5, HOUR_NS, TIME, TIME + 1, 9 * 365 * 24 * HOUR_NS + 17] {
            for (run, wait_ns) in [(0, 0), (1, 3), (0x1FFF, 2 * HOUR_NS)] {
                let stamp = stamped(run, sent);
                assert!(stamp < 1 << STAMP_BITS);
                assert_eq!(sent_ns(run, stamp, sent + wait_ns), Some(sent));
                assert_eq!(sent_ns(run, stamp, sent.saturating_sub(5)), Some(sent));
                assert_eq!(sent_ns(run ^ 1, stamp, sent), None);
            }
        }
    }

    #[test]
    fn runs_differ_by_their_tags() {
        assert_eq!(run_number("0a1b2c"), 0x1b2c);
        assert_eq!(run_number("0affff"), 0x1fff);
        assert_eq!(run_number("t"), 0);
    }
}
