//! Readings summed up over the hold, of this machine or of another.

use thrum_figures::{SECOND_NS, fraction};
use thrum_report::result::{MachineUse, Memory, Resources, Usage};

use super::sample::{Moment, Reading, Sample};
use super::second::{SPAN_NS_MIN, cores, moved, resources, span_ns, user_share};
use super::stable::MemoryCurve;

/// The clients' counts of the hold, as divisors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Messages received.
    pub messages_received: u64,
    /// Messages sent and received.
    pub messages_in_and_out: u64,
    /// Clients connected when the memory of connections was read.
    pub connections: u64,
}

/// Sums up readings in the order of their moments.
#[derive(Clone, Debug, Default)]
pub struct UsageBuilder {
    before: Option<Memory>,
    connected: Option<Memory>,
    end: Option<Memory>,
    idle_start: Option<Sample>,
    cores_idle: Option<f64>,
    second: Option<Sample>,
    curve: MemoryCurve,
    hold: Option<Hold>,
    hold_is_open: bool,
}

/// Sums of the hold.
#[derive(Clone, Copy, Debug)]
struct Hold {
    first: Sample,
    last: Sample,
    /// Begin of the current second.
    second: Sample,
    samples: u64,
    cores_max: f64,
    rss_max_bytes: u64,
    rss_sum_bytes: u64,
    pss_max_bytes: u64,
    pss_sum_bytes: u64,
    pss_samples: u64,
    threads_max: u64,
    open_files_max: u64,
}

/// Fewest connections whose kernel memory stands out from what else the kernel does.
const KERNEL_CONNECTIONS_MIN: u64 = 500;

impl UsageBuilder {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Enters what was read; after a second returns the use since the one before.
    pub fn enter(&mut self, reading: &Reading) -> Option<Resources> {
        let sample = reading.sample;
        match reading.moment {
            Moment::Start => {
                self.before = reading.memory;
                self.second = sample;
            }
            Moment::Connected => {
                self.connected = reading.memory;
                self.idle_start = sample;
            }
            Moment::IdleEnd => self.enter_idle_end(sample),
            Moment::HoldStart => {
                self.hold = None;
                self.hold_is_open = true;
            }
            Moment::Second | Moment::HoldEnd => {}
            Moment::End => self.end = reading.memory,
        }
        if let Some(sample) = &sample {
            self.enter_sample(sample);
        }
        match reading.moment {
            Moment::HoldEnd => {
                self.hold_is_open = false;
                None
            }
            Moment::Second => self.advance(sample?),
            _ => None,
        }
    }

    /// The sum of it all; none without samples at both ends of the hold.
    pub fn usage(&self, work: Work) -> Option<Usage> {
        let hold = self.hold.as_ref()?;
        let (first, last) = (&hold.first, &hold.last);
        let span_ns = span_ns(first, last).filter(|span| *span >= SPAN_NS_MIN)?;
        let before = self.before.unwrap_or_default();
        let connected = self.connected.unwrap_or(before);
        let cpu_seconds = moved(first, last, |sample| sample.cpu_ns) / 1e9;
        let user = user_share(first, last);
        let cores_avg = cores(first, last);
        let per_second = |of| moved(first, last, of) * 1e9 / fraction(span_ns);
        let switches = |of: fn(&Sample) -> u64| of(last).saturating_sub(of(first));
        Some(Usage {
            cpu_user_seconds: cpu_seconds * user,
            cpu_system_seconds: cpu_seconds * (1.0 - user),
            cores_avg,
            cores_max: hold.cores_max.max(cores_avg),
            machine: MachineUse {
                idle: last.machine.idle_since(&first.machine).unwrap_or(0.0),
                stolen: last.machine.stolen_since(&first.machine).unwrap_or(0.0),
                cpu_us_per_message: divided(
                    last.machine.used_seconds_since(&first.machine) * 1e6,
                    work.messages_received,
                ),
                kernel_bytes_per_connection: kernel_bytes(before, connected, work.connections),
            },
            cpu_us_per_message: divided(cpu_seconds * 1e6, work.messages_received),
            messages_per_core_second: (cpu_seconds > 0.0)
                .then(|| fraction(work.messages_in_and_out) / cpu_seconds),
            cores_idle: self.cores_idle,
            waited_for_core_seconds: moved(first, last, |sample| sample.wait_ns) / 1e9,
            rss_max_bytes: hold.rss_max_bytes,
            rss_avg_bytes: mean(hold.rss_sum_bytes, hold.samples),
            pss_max_bytes: hold.pss_max_bytes,
            pss_avg_bytes: mean(hold.pss_sum_bytes, hold.pss_samples),
            rss_stable_seconds: self.curve.stable_after(),
            memory_before: before,
            memory_connected: connected,
            memory_end: self.end.unwrap_or(connected),
            bytes_per_connection: divided(
                fraction(connected.rss_bytes) - fraction(before.rss_bytes),
                work.connections,
            ),
            threads_max: hold.threads_max,
            open_files_max: hold.open_files_max,
            voluntary_context_switches: switches(|sample| sample.voluntary_switches),
            involuntary_context_switches: switches(|sample| sample.involuntary_switches),
            network_in_bytes: per_second(|sample| sample.network_in_bytes),
            network_out_bytes: per_second(|sample| sample.network_out_bytes),
            disk_read_bytes: switches(|sample| sample.disk_read_bytes),
            disk_write_bytes: switches(|sample| sample.disk_write_bytes),
        })
    }

    fn enter_idle_end(&mut self, sample: Option<Sample>) {
        let (Some(earlier), Some(later)) = (self.idle_start, sample) else {
            return;
        };
        self.cores_idle = span_ns(&earlier, &later)
            .filter(|span| *span >= SPAN_NS_MIN)
            .map(|_| cores(&earlier, &later));
    }

    /// Memory counts until the end of the hold, the rest within it.
    fn enter_sample(&mut self, sample: &Sample) {
        let is_over = self.hold.is_some() && !self.hold_is_open;
        if !is_over {
            self.curve.enter(sample.at_ns, sample.rss_bytes);
        }
        if self.hold_is_open {
            match &mut self.hold {
                Some(hold) => hold.enter(sample),
                None => self.hold = Some(Hold::new(sample)),
            }
        }
    }

    fn advance(&mut self, sample: Sample) -> Option<Resources> {
        let Some(earlier) = self.second else {
            self.second = Some(sample);
            return None;
        };
        let used = resources(&earlier, &sample)?;
        self.second = Some(sample);
        Some(used)
    }
}

impl Hold {
    fn new(sample: &Sample) -> Self {
        let mut hold = Self {
            first: *sample,
            last: *sample,
            second: *sample,
            samples: 0,
            cores_max: 0.0,
            rss_max_bytes: 0,
            rss_sum_bytes: 0,
            pss_max_bytes: 0,
            pss_sum_bytes: 0,
            pss_samples: 0,
            threads_max: 0,
            open_files_max: 0,
        };
        hold.enter(sample);
        hold
    }

    fn enter(&mut self, sample: &Sample) {
        self.last = *sample;
        self.samples += 1;
        self.rss_max_bytes = self.rss_max_bytes.max(sample.rss_bytes);
        self.rss_sum_bytes += sample.rss_bytes;
        if let Some(pss_bytes) = sample.pss_bytes {
            self.pss_max_bytes = self.pss_max_bytes.max(pss_bytes);
            self.pss_sum_bytes += pss_bytes;
            self.pss_samples += 1;
        }
        self.threads_max = self.threads_max.max(sample.threads);
        self.open_files_max = self.open_files_max.max(sample.open_files);
        // A shorter interval would show bursts and the kernel's ticks, not the load.
        if span_ns(&self.second, sample).is_some_and(|span| span >= SECOND_NS / 2) {
            self.cores_max = self.cores_max.max(cores(&self.second, sample));
            self.second = *sample;
        }
    }
}

fn mean(sum: u64, number: u64) -> u64 {
    sum.checked_div(number).unwrap_or(0)
}

/// What each connection added to the kernel's memory; none where that was not read.
fn kernel_bytes(before: Memory, connected: Memory, connections: u64) -> Option<f64> {
    let is_known = before.kernel_bytes > 0 && connected.kernel_bytes > 0;
    let added = fraction(connected.kernel_bytes) - fraction(before.kernel_bytes);
    divided(added, connections).filter(|_| is_known && connections >= KERNEL_CONNECTIONS_MIN)
}

fn divided(sum: f64, number: u64) -> Option<f64> {
    (number > 0).then(|| sum / fraction(number))
}

#[cfg(test)]
mod tests {
    use super::super::machine::MachineSample;
    use super::*;

    const WORK: Work = Work {
        messages_received: 1_000,
        messages_in_and_out: 3_600,
        connections: 4,
    };

    /// A sample after this many tenths of a second, with CPU time in milliseconds.
    fn sample(tenths: u64, cpu_ms: u64, rss_bytes: u64) -> Sample {
        Sample {
            at_ns: tenths * SECOND_NS / 10,
            cpu_ns: cpu_ms * 1_000_000,
            user_ns: cpu_ms * 250_000,
            system_ns: cpu_ms * 750_000,
            wait_ns: cpu_ms * 100_000,
            context_switches: tenths * 20,
            voluntary_switches: tenths * 10,
            involuntary_switches: tenths,
            rss_bytes,
            pss_bytes: tenths.is_multiple_of(20).then_some(rss_bytes / 2),
            threads: 2,
            open_files: 10 + tenths,
            disk_read_bytes: 0,
            disk_write_bytes: tenths * 4_096,
            network_in_bytes: tenths * 500,
            network_out_bytes: tenths * 700,
            machine: MachineSample {
                all_ticks: tenths * 20,
                idle_ticks: tenths * 5,
                stolen_ticks: 0,
            },
        }
    }

    fn reading(moment: Moment, sample: Sample) -> Reading {
        let memory = moment.has_memory().then_some(Memory {
            rss_bytes: sample.rss_bytes,
            pss_bytes: sample.rss_bytes / 2,
            kernel_bytes: sample.rss_bytes * 1_000,
        });
        Reading {
            moment,
            sample: Some(sample),
            memory,
        }
    }

    /// A run with a ramp of two seconds, half a second of idleness and a hold of two and a half
    /// seconds.
    fn run() -> Vec<Reading> {
        vec![
            reading(Moment::Start, sample(100, 10, 1_000)),
            reading(Moment::Second, sample(110, 210, 2_000)),
            reading(Moment::Second, sample(120, 410, 3_000)),
            reading(Moment::Connected, sample(120, 410, 3_000)),
            reading(Moment::IdleEnd, sample(125, 435, 3_000)),
            reading(Moment::Second, sample(130, 500, 3_000)),
            reading(Moment::HoldStart, sample(131, 600, 3_000)),
            reading(Moment::Second, sample(140, 1_050, 3_600)),
            reading(Moment::Second, sample(150, 2_250, 3_300)),
            reading(Moment::HoldEnd, sample(156, 2_400, 3_300)),
            reading(Moment::Second, sample(160, 9_000, 9_000)),
            reading(Moment::End, sample(170, 9_000, 5_000)),
        ]
    }

    fn entered(readings: &[Reading]) -> (UsageBuilder, Vec<Option<Resources>>) {
        let mut builder = UsageBuilder::new();
        let used = readings.iter().map(|reading| builder.enter(reading));
        let used = used.collect();
        (builder, used)
    }

    #[track_caller]
    fn assert_near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    #[test]
    fn cpu_is_that_of_the_hold() {
        let usage = entered(&run()).0.usage(WORK).unwrap();
        assert_near(usage.cpu_user_seconds, 0.45);
        assert_near(usage.cpu_system_seconds, 1.35);
        assert_near(usage.cores_avg, 0.72);
        assert_near(usage.cores_max, 1.2);
        assert_near(usage.waited_for_core_seconds, 0.18);
        assert_near(usage.machine.idle, 0.25);
        assert_near(usage.cpu_us_per_message.unwrap(), 1_800.0);
        assert_near(usage.messages_per_core_second.unwrap(), 2_000.0);
        assert_near(usage.cores_idle.unwrap(), 0.05);
    }

    #[test]
    fn memory_is_that_of_the_hold_and_of_three_moments() {
        let usage = entered(&run()).0.usage(WORK).unwrap();
        assert_eq!((usage.rss_max_bytes, usage.rss_avg_bytes), (3_600, 3_300));
        assert_eq!((usage.pss_max_bytes, usage.pss_avg_bytes), (1_800, 1_800));
        let moments = [
            usage.memory_before,
            usage.memory_connected,
            usage.memory_end,
        ];
        assert_eq!(
            moments.map(|memory| memory.rss_bytes),
            [1_000, 3_000, 5_000]
        );
        assert_near(usage.bytes_per_connection.unwrap(), 500.0);
        assert_eq!(usage.rss_stable_seconds, None);
    }

    #[test]
    fn kernel_memory_is_shown_where_the_connections_stand_out_from_the_rest() {
        let of = |connections| {
            let work = Work {
                connections,
                ..WORK
            };
            let usage = entered(&run()).0.usage(work).unwrap();
            usage.machine.kernel_bytes_per_connection
        };
        assert_near(of(1_000).unwrap(), 2_000.0);
        assert_eq!(of(499), None);
    }

    #[test]
    fn the_rest_is_that_of_the_hold() {
        let usage = entered(&run()).0.usage(WORK).unwrap();
        assert_eq!((usage.threads_max, usage.open_files_max), (2, 166));
        let switches = [
            usage.voluntary_context_switches,
            usage.involuntary_context_switches,
        ];
        assert_eq!(switches, [250, 25]);
        assert_near(usage.network_in_bytes, 5_000.0);
        assert_near(usage.network_out_bytes, 7_000.0);
        assert_eq!(
            (usage.disk_read_bytes, usage.disk_write_bytes),
            (0, 25 * 4_096)
        );
    }

    #[test]
    fn each_second_counts_from_the_previous_one() {
        let (_, used) = entered(&run());
        let cores = used
            .iter()
            .map(|used| used.map(|used| ((used.cores_user + used.cores_system) * 1e6).round()));
        let expected = [
            None,
            Some(200_000.0),
            Some(200_000.0),
            None,
            None,
            Some(90_000.0),
            None,
            Some(550_000.0),
            Some(1_200_000.0),
            None,
            Some(6_750_000.0),
            None,
        ];
        assert_eq!(cores.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn memory_that_stays_is_stable_from_the_ramp_on() {
        let readings = [
            reading(Moment::Start, sample(100, 0, 1_000)),
            reading(Moment::Second, sample(110, 0, 4_000)),
            reading(Moment::HoldStart, sample(120, 0, 4_010)),
            reading(Moment::HoldEnd, sample(170, 0, 4_020)),
            reading(Moment::End, sample(180, 0, 9_000)),
        ];
        let usage = entered(&readings).0.usage(WORK).unwrap();
        assert_eq!(usage.rss_stable_seconds, Some(1.0));
        assert_eq!(usage.messages_per_core_second, None);
    }

    #[test]
    fn a_hold_counts_until_the_process_ended() {
        let mut readings = run();
        readings[9].sample = None;
        let usage = entered(&readings).0.usage(WORK).unwrap();
        assert_near(usage.cores_avg, 1.65 / 1.9);
        assert_eq!(usage.rss_max_bytes, 3_600);
    }

    #[test]
    fn without_a_hold_there_is_no_usage() {
        assert!(entered(&run()[..6]).0.usage(WORK).is_none());
        assert!(entered(&run()[..7]).0.usage(WORK).is_none());
    }

    #[test]
    fn nothing_is_divided_by_nothing() {
        let usage = entered(&run()).0.usage(Work::default()).unwrap();
        assert_eq!(usage.cpu_us_per_message, None);
        assert_eq!(usage.bytes_per_connection, None);
    }

    #[test]
    fn a_reading_travels_as_json() {
        for reading in run() {
            let text = serde_json::to_string(&reading).unwrap();
            assert_eq!(serde_json::from_str::<Reading>(&text).unwrap(), reading);
        }
    }
}
