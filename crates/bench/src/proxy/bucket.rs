//! A limit of bytes per second, as a pure function of time.

use thrum_figures::SECOND_NS;

/// A connection that rested may send what it could have sent in this time at once.
const BURST_NS: u64 = SECOND_NS / 20;

/// A token bucket, kept as the time at which all bytes so far would have passed at the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    bytes_per_second: u64,
    burst_ns: u64,
    paid_until_ns: u64,
}

impl Bucket {
    /// A full one; a rate of 0 counts as 1.
    pub(super) fn new(bytes_per_second: u64) -> Self {
        let bytes_per_second = bytes_per_second.max(1);
        Self {
            bytes_per_second,
            // At least one byte must fit.
            burst_ns: BURST_NS.max(SECOND_NS.div_ceil(bytes_per_second)),
            paid_until_ns: 0,
        }
    }

    pub(super) const fn bytes_per_second(&self) -> u64 {
        self.bytes_per_second
    }

    /// Bytes that may pass now.
    pub(super) fn allowed(&self, now_ns: u64) -> usize {
        let left_ns = (now_ns + self.burst_ns).saturating_sub(self.paid_until_ns.max(now_ns));
        let bytes = u128::from(left_ns) * u128::from(self.bytes_per_second) / u128::from(SECOND_NS);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Bytes have passed.
    pub(super) fn pay(&mut self, now_ns: u64, bytes: usize) {
        self.paid_until_ns = self.paid_until_ns.max(now_ns) + self.price_ns(bytes);
    }

    /// When this many bytes may pass, or half a burst if they are more: not each byte is worth a
    /// wake-up.
    pub(super) fn next_ns(&self, bytes: usize) -> u64 {
        let price_ns = self.price_ns(bytes).min(self.burst_ns);
        let wanted_ns = price_ns.min((self.burst_ns / 2).max(self.price_ns(1)));
        (self.paid_until_ns + wanted_ns).saturating_sub(self.burst_ns)
    }

    fn price_ns(&self, bytes: usize) -> u64 {
        let bytes = u128::try_from(bytes).unwrap_or(u128::MAX);
        let ns = (bytes * u128::from(SECOND_NS)).div_ceil(u128::from(self.bytes_per_second));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START_NS: u64 = 100 * SECOND_NS;

    /// Bytes that pass in this many seconds if there is always more to send, and how often the
    /// sender had to wake.
    fn passed(bytes_per_second: u64, seconds: u64) -> (u64, u64) {
        let mut bucket = Bucket::new(bytes_per_second);
        let (mut now_ns, mut bytes, mut wakes) = (START_NS, 0, 0);
        while now_ns < START_NS + seconds * SECOND_NS {
            let allowed = bucket.allowed(now_ns);
            bucket.pay(now_ns, allowed);
            bytes += u64::try_from(allowed).unwrap();
            wakes += 1;
            now_ns = bucket.next_ns(usize::MAX).max(now_ns + 1);
        }
        (bytes, wakes)
    }

    #[test]
    fn the_rate_is_kept_beyond_the_first_burst() {
        for rate in [100, 1_000, 123_457, 1_000_000_000] {
            let (bytes, wakes) = passed(rate, 10);
            let most = rate * 10 + rate / 20 + 1;
            assert!(
                (rate * 10 * 99 / 100..=most).contains(&bytes),
                "{rate}: {bytes}"
            );
            assert!(wakes <= 500, "{rate}: {wakes}");
        }
    }

    #[test]
    fn the_slowest_rate_passes_byte_by_byte() {
        assert_eq!(passed(1, 10).0, 10);
        assert_eq!(Bucket::new(0).bytes_per_second(), 1);
    }

    #[test]
    fn rest_is_credited_up_to_one_burst() {
        let mut bucket = Bucket::new(1_000);
        assert_eq!(bucket.allowed(START_NS), 50);
        bucket.pay(START_NS, 50);
        assert_eq!(bucket.allowed(START_NS), 0);
        assert_eq!(bucket.next_ns(5), START_NS + 5_000_000);
        assert_eq!(bucket.allowed(START_NS + 5_000_000), 5);
        assert_eq!(bucket.allowed(START_NS + 60 * SECOND_NS), 50);
    }
}
