//! Samples summed up over the hold.

use super::tree::{Detail, Memory, Sample};
use crate::units::{SECOND_NS, fraction, ratio};

/// Shortest hold that CPU use is told of: ten of the kernel's clock ticks.
const SPAN_NS_MIN: u64 = SECOND_NS / 10;

/// What a process and its children used during the hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Usage {
    /// CPU seconds in user mode.
    pub user_seconds: f64,
    /// CPU seconds in the kernel.
    pub system_seconds: f64,
    /// Cores in use on average.
    pub cores_avg: f64,
    /// Cores in use in the busiest second.
    pub cores_max: f64,
    /// Seconds that threads were ready to run and had no core, all threads together.
    pub core_wait_seconds: f64,
    /// Resident memory before the first connection.
    pub before: Memory,
    /// Resident memory with all connections and no load.
    pub connected: Memory,
    /// Resident memory after the run.
    pub end: Memory,
    /// Resident memory during the hold: highest sample.
    pub rss_max_bytes: u64,
    /// Resident memory during the hold: mean of the samples.
    pub rss_avg_bytes: u64,
    /// Most threads.
    pub threads_max: u64,
    /// Context switches of threads that waited for something.
    pub voluntary_switches: u64,
    /// Context switches of threads that had to make room.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Sums up; the first and the last sample are the ends of the hold.
    pub fn new(samples: &[Sample], [before, connected, end]: [Memory; 3]) -> Option<Self> {
        let (first, last) = (samples.first()?, samples.last()?);
        let span_ns = last
            .at_ns
            .checked_sub(first.at_ns)
            .filter(|span| *span >= SPAN_NS_MIN)?;
        let user_ns = last.user_ns.saturating_sub(first.user_ns);
        let system_ns = last.system_ns.saturating_sub(first.system_ns);
        let details = first.detail.as_ref().zip(last.detail.as_ref());
        let exact = details.and_then(|(first, last)| thread_times(first, last));
        // The kernel's ticks give the split, the threads' own accounts the exact sum.
        let cpu_ns = exact.map_or(user_ns + system_ns, |(run_ns, _)| run_ns);
        let user_share = ratio(user_ns, user_ns + system_ns);
        let cpu_seconds = fraction(cpu_ns) / 1e9;
        let rss = samples.iter().map(|sample| sample.rss_bytes);
        let rss_sum: u64 = rss.clone().sum();
        let switches = |of: fn(&Detail) -> u64| {
            details.map_or(0, |(first, last)| of(last).saturating_sub(of(first)))
        };
        Some(Self {
            user_seconds: cpu_seconds * user_share,
            system_seconds: cpu_seconds * (1.0 - user_share),
            cores_avg: ratio(cpu_ns, span_ns),
            cores_max: busiest(samples).max(ratio(cpu_ns, span_ns)),
            core_wait_seconds: exact.map_or(0.0, |(_, wait_ns)| fraction(wait_ns) / 1e9),
            before,
            connected,
            end,
            rss_max_bytes: rss.max().unwrap_or(0),
            rss_avg_bytes: rss_sum / u64::try_from(samples.len()).unwrap_or(1),
            threads_max: samples
                .iter()
                .map(|sample| sample.threads)
                .max()
                .unwrap_or(0),
            voluntary_switches: switches(|detail| detail.voluntary_switches),
            involuntary_switches: switches(|detail| detail.involuntary_switches),
        })
    }

    /// CPU seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }

    /// CPU microseconds per message.
    pub fn cpu_us_per(&self, messages: u64) -> Option<f64> {
        (messages > 0).then(|| self.cpu_seconds() * 1e6 / fraction(messages))
    }

    /// Bytes that one connection added to the resident memory.
    pub fn bytes_per_connection(&self, connections: u64) -> Option<f64> {
        let added = fraction(self.connected.rss_bytes) - fraction(self.before.rss_bytes);
        (connections > 0).then(|| added / fraction(connections))
    }
}

/// Cores in use in the busiest interval between samples that is about a second long.
fn busiest(samples: &[Sample]) -> f64 {
    let intervals = samples.windows(2).filter_map(|pair| {
        let [earlier, later] = pair else { return None };
        let span_ns = later.at_ns.saturating_sub(earlier.at_ns);
        let cpu_ns =
            (later.user_ns + later.system_ns).saturating_sub(earlier.user_ns + earlier.system_ns);
        // A shorter one would show the kernel's ticks, not the load.
        (span_ns >= SECOND_NS / 2).then(|| ratio(cpu_ns, span_ns))
    });
    intervals.fold(0.0, f64::max)
}

/// Running and waiting time between two samples; none if a thread ended meanwhile, with its accounts.
fn thread_times(first: &Detail, last: &Detail) -> Option<(u64, u64)> {
    if last.threads.is_empty() {
        return None;
    }
    let (mut run_ns, mut wait_ns, mut found) = (0, 0, 0);
    for (thread, time) in &last.threads {
        let earlier = first
            .threads
            .binary_search_by_key(thread, |(thread, _)| *thread);
        let earlier = earlier.ok().and_then(|index| first.threads.get(index));
        found += usize::from(earlier.is_some());
        let earlier = earlier.map(|(_, time)| *time).unwrap_or_default();
        run_ns += time.run_ns.saturating_sub(earlier.run_ns);
        wait_ns += time.wait_ns.saturating_sub(earlier.wait_ns);
    }
    (found == first.threads.len()).then_some((run_ns, wait_ns))
}

#[cfg(test)]
mod tests {
    use super::super::tree::ThreadTime;
    use super::*;

    fn sample(at: u64, user_ms: u64, rss_bytes: u64, threads: &[(u32, u64, u64)]) -> Sample {
        let detail = Detail {
            threads: threads
                .iter()
                .map(|&(thread, run_ns, wait_ns)| (thread, ThreadTime { run_ns, wait_ns }))
                .collect(),
            voluntary_switches: at * 10,
            involuntary_switches: at,
        };
        Sample {
            at_ns: at * SECOND_NS,
            user_ns: user_ms * 1_000_000,
            system_ns: user_ms * 3_000_000,
            rss_bytes,
            threads: 2,
            detail: (!threads.is_empty()).then_some(detail),
        }
    }

    fn usage(samples: &[Sample]) -> Usage {
        let memory = |rss_bytes| Memory {
            rss_bytes,
            pss_bytes: 0,
        };
        Usage::new(samples, [memory(1_000), memory(3_000), memory(5_000)]).unwrap()
    }

    #[track_caller]
    fn assert_near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn exact_thread_times_replace_the_ticks_and_keep_their_split() {
        let usage = usage(&[
            sample(10, 0, 100, &[(1, 5, 7)]),
            sample(11, 100, 300, &[]),
            sample(
                12,
                400,
                200,
                &[(1, 1_700_000_005, 300_000_007), (2, 100_000_000, 0)],
            ),
        ]);
        assert_near(usage.cpu_seconds(), 1.8);
        assert_near(usage.user_seconds, 0.45);
        assert_near(usage.cores_avg, 0.9);
        assert_near(usage.cores_max, 1.2);
        assert_near(usage.core_wait_seconds, 0.3);
        assert_eq!((usage.rss_max_bytes, usage.rss_avg_bytes), (300, 200));
        assert_eq!(
            (usage.voluntary_switches, usage.involuntary_switches),
            (20, 2)
        );
        assert_near(usage.cpu_us_per(1_000).unwrap(), 1_800.0);
        assert_near(usage.bytes_per_connection(4).unwrap(), 500.0);
        assert_eq!(usage.cpu_us_per(0), None);
    }

    #[test]
    fn when_a_thread_ended_the_ticks_count() {
        let usage = usage(&[
            sample(10, 0, 100, &[(1, 0, 0), (2, 0, 0)]),
            sample(12, 100, 100, &[(1, 5, 5)]),
        ]);
        assert_near(usage.cpu_seconds(), 0.4);
    }

    #[test]
    fn one_sample_is_no_span() {
        assert_eq!(
            Usage::new(&[sample(1, 0, 1, &[])], [Memory::default(); 3]),
            None
        );
    }
}
