//! The samples of a run in a bounded space: when there are too many, two become one.

use super::model::{BenchmarkBucket, BenchmarkSample};

/// Samples of a run: an hour of seconds, and half of that of whatever is longer.
pub(crate) const SAMPLES_MAX: usize = 3_600;
/// Marks of a sample that was made of others.
const MARKS_MAX: usize = 40;
/// Reasons of errors of a sample that was made of others.
const REASONS_MAX: usize = 40;

/// The samples of a run, by their numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeptSamples {
    samples: Vec<BenchmarkSample>,
    /// The next sample to come is added to the last one until that has so many seconds.
    seconds_each: u64,
    /// How many the last one has.
    last_seconds: u64,
    /// Of each sample that became one with the next one when they were halved last, that next one:
    /// for whoever has counted the first of the two already.
    halves: Vec<Half>,
    /// No sample is to come.
    is_finished: bool,
}

/// A sample that is the second part of another one.
#[derive(Clone, Debug, PartialEq)]
struct Half {
    /// The number of the first part.
    behind: u64,
    sample: BenchmarkSample,
}

impl KeptSamples {
    /// Adds the next second; one that does not follow is left out.
    pub fn push(&mut self, sample: BenchmarkSample) {
        if self.samples.last().is_some_and(|last| last.n >= sample.n) {
            return;
        }
        let each = self.seconds_each.max(1);
        match self.samples.last_mut() {
            Some(last) if self.last_seconds < each => {
                merge(last, sample, self.last_seconds);
                self.last_seconds += 1;
            }
            _ => {
                self.samples.push(sample);
                self.last_seconds = 1;
            }
        }
        if self.samples.len() > SAMPLES_MAX {
            self.halve();
        }
    }

    /// No sample is to come: the last one has all of its seconds.
    pub const fn finish(&mut self) {
        self.is_finished = true;
    }

    /// Those with a number above this one, at most so many. The last one is left out while seconds
    /// are added to it: whoever has it would count them twice. For the same reason whoever has read
    /// up to the middle of one gets its second part alone, unless it was read before the last
    /// halving but one: an hour ago at least.
    pub fn after(&self, number: u64, most: usize) -> Vec<BenchmarkSample> {
        let half = self
            .halves
            .binary_search_by_key(&number, |half| half.behind);
        let half = half.ok().map(|place| self.halves[place].sample.clone());
        let number = half.as_ref().map_or(number, |half| half.n);
        let rest = self.complete_after(number).iter().cloned();
        half.into_iter().chain(rest).take(most).collect()
    }

    fn complete_after(&self, number: u64) -> &[BenchmarkSample] {
        let is_complete = self.is_finished || self.last_seconds >= self.seconds_each.max(1);
        let complete = self.samples.len() - usize::from(!is_complete && !self.samples.is_empty());
        let first = self.samples.partition_point(|sample| sample.n <= number);
        &self.samples[first.min(complete)..complete]
    }

    fn halve(&mut self) {
        let each = self.seconds_each.max(1);
        let mut halved: Vec<BenchmarkSample> = Vec::with_capacity(SAMPLES_MAX);
        let mut samples = std::mem::take(&mut self.samples).into_iter();
        let is_even = samples.len().is_multiple_of(2);
        self.halves.clear();
        while let Some(mut sample) = samples.next() {
            if let Some(next) = samples.next() {
                self.halves.push(Half {
                    behind: sample.n,
                    sample: next.clone(),
                });
                merge(&mut sample, next, 1);
            }
            halved.push(sample);
        }
        if is_even {
            self.last_seconds += each;
        }
        self.samples = halved;
        self.seconds_each = 2 * each;
    }
}

/// Adds the next sample to one that has `seconds` times its weight. Rates are means, percentiles
/// the higher ones: a mean of percentiles is none.
fn merge(into: &mut BenchmarkSample, next: BenchmarkSample, seconds: u64) {
    let weight = u32::try_from(seconds).map_or_else(|_| f64::from(u32::MAX), f64::from);
    let mean = |one: f64, other: f64| (one * weight + other) / (weight + 1.0);
    let mean_if_any = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(mean(one, other)),
        (one, other) => one.or(other),
    };
    let room = MARKS_MAX.saturating_sub(into.marks.len());
    into.marks.extend(next.marks.into_iter().take(room));
    into.offered_per_sec = mean(into.offered_per_sec, next.offered_per_sec);
    into.sent_per_sec = mean(into.sent_per_sec, next.sent_per_sec);
    into.received_per_sec = mean(into.received_per_sec, next.received_per_sec);
    into.broker_cores = mean_if_any(into.broker_cores, next.broker_cores);
    into.generator_cores = mean_if_any(into.generator_cores, next.generator_cores);
    into.broker_rss_bytes = into.broker_rss_bytes.max(next.broker_rss_bytes);
    into.p50_ms = higher(into.p50_ms, next.p50_ms);
    into.p99_ms = higher(into.p99_ms, next.p99_ms);
    into.p999_ms = higher(into.p999_ms, next.p999_ms);
    into.max_ms = higher(into.max_ms, next.max_ms);
    for (reason, count) in next.errors {
        let has_room = into.errors.len() < REASONS_MAX || into.errors.contains_key(&reason);
        let reason = if has_room { reason } else { "other".to_owned() };
        *into.errors.entry(reason).or_insert(0) += count;
    }
    add_buckets(&mut into.histogram, next.histogram);
    into.n = next.n;
    into.stage = next.stage;
    into.clients = next.clients;
    into.latency = next.latency.or_else(|| into.latency.take());
    if !next.thresholds.is_empty() {
        into.thresholds = next.thresholds;
    }
}

fn higher(one: Option<f64>, other: Option<f64>) -> Option<f64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    }
}

/// All samples of a run have the same ends of buckets.
fn add_buckets(into: &mut Vec<BenchmarkBucket>, more: Vec<BenchmarkBucket>) {
    for bucket in more {
        let found = into
            .iter_mut()
            .find(|known| (known.1 - bucket.1).abs() < 1e-9);
        match found {
            Some(known) => known.2 += bucket.2,
            None => into.push(bucket),
        }
    }
    into.sort_by(|one, other| one.1.total_cmp(&other.1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: u64) -> BenchmarkSample {
        BenchmarkSample {
            n,
            sent_per_sec: if n.is_multiple_of(2) { 10.0 } else { 20.0 },
            p99_ms: n.is_multiple_of(2).then_some(5.0),
            errors: [("reset".to_owned(), 1)].into(),
            histogram: vec![BenchmarkBucket(0.0, 1.0, 1)],
            ..BenchmarkSample::default()
        }
    }

    fn kept(seconds: u64) -> KeptSamples {
        let mut kept = KeptSamples::default();
        (1..=seconds).for_each(|n| kept.push(sample(n)));
        kept.finish();
        kept
    }

    #[test]
    fn an_hour_is_kept_second_by_second() {
        let kept = kept(3_600);
        assert_eq!(kept.after(0, usize::MAX).len(), 3_600);
        let numbers: Vec<u64> = kept.after(10, 3).iter().map(|sample| sample.n).collect();
        assert_eq!(numbers, [11, 12, 13]);
        assert!(kept.after(3_600, 10).is_empty());
    }

    #[test]
    fn more_are_halved_and_nothing_is_left_out() {
        for seconds in [3_601, 3_602, 7_000, 20_001] {
            let kept = kept(seconds);
            let samples = kept.after(0, usize::MAX);
            assert!(samples.len() <= SAMPLES_MAX, "{seconds}");
            assert_eq!(samples.last().unwrap().n, seconds);
            let errors: u64 = samples.iter().map(|sample| sample.errors["reset"]).sum();
            assert_eq!(errors, seconds);
            let counted: u64 = samples.iter().map(|sample| sample.histogram[0].2).sum();
            assert_eq!(counted, seconds);
            assert!(samples.windows(2).all(|pair| pair[0].n < pair[1].n));
            let first = &samples[0];
            assert!((first.sent_per_sec - 15.0).abs() < 1e-9);
            assert_eq!(first.p99_ms, Some(5.0));
        }
    }

    #[test]
    fn whoever_asks_for_each_next_sample_counts_every_second_once() {
        let mut kept = KeptSamples::default();
        let (mut next, mut counted) = (0, 0);
        let mut read = |kept: &KeptSamples| {
            for sample in kept.after(next, usize::MAX) {
                next = sample.n;
                counted += sample.errors["reset"];
            }
            counted
        };
        for n in 1..=10_001 {
            kept.push(sample(n));
            let counted = read(&kept);
            assert!(counted <= n && counted + 4 > n, "{counted} of {n}");
        }
        kept.finish();
        assert_eq!(read(&kept), 10_001);
    }

    /// A reader that asks for what follows.
    #[derive(Default)]
    struct Reader {
        next: u64,
        seconds: u64,
    }

    impl Reader {
        fn read(&mut self, kept: &KeptSamples, most: usize) {
            for sample in kept.after(self.next, most) {
                let of_histogram: u64 = sample.histogram.iter().map(|of| of.2).sum();
                assert_eq!(of_histogram, sample.errors["reset"]);
                self.next = sample.n;
                self.seconds += of_histogram;
            }
            assert_eq!(self.seconds, self.next, "each of them once");
        }
    }

    #[test]
    fn whoever_reads_late_counts_every_second_once_while_samples_are_halved() {
        for late in [1, 2, 599, 600, 601] {
            let (mut kept, mut reader) = (KeptSamples::default(), Reader::default());
            for n in 1..=15_000 {
                kept.push(sample(n));
                reader.read(&kept, usize::from(n > late));
            }
            kept.finish();
            reader.read(&kept, usize::MAX);
            assert_eq!(reader.seconds, 15_000, "{late}");
        }
    }

    #[test]
    fn a_sample_that_came_before_changes_nothing() {
        let mut kept = kept(5);
        kept.push(sample(5));
        assert_eq!(kept.after(0, usize::MAX).len(), 5);
    }
}
