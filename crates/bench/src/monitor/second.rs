//! Use over one second: the difference of two samples.

use thrum_figures::{SECOND_NS, fraction, ratio};
use thrum_report::result::Resources;

use super::sample::Sample;

/// Shortest measurable span: ten clock ticks of the kernel.
pub(super) const SPAN_NS_MIN: u64 = SECOND_NS / 10;

/// Use between two samples; none if they are too close.
pub fn resources(earlier: &Sample, later: &Sample) -> Option<Resources> {
    let span_ns = span_ns(earlier, later).filter(|span| *span >= SPAN_NS_MIN)?;
    let cores = cores(earlier, later);
    let user = user_share(earlier, later);
    let per_second = |of: fn(&Sample) -> u64| moved(earlier, later, of) * 1e9 / fraction(span_ns);
    Some(Resources {
        cores_user: cores * user,
        cores_system: cores * (1.0 - user),
        rss_bytes: later.rss_bytes,
        pss_bytes: later.pss_bytes.unwrap_or(0),
        threads: later.threads,
        open_files: later.open_files,
        context_switches: per_second(|sample| sample.context_switches),
        network_in_bytes: per_second(|sample| sample.network_in_bytes),
        network_out_bytes: per_second(|sample| sample.network_out_bytes),
        disk_read_bytes: per_second(|sample| sample.disk_read_bytes),
        disk_write_bytes: per_second(|sample| sample.disk_write_bytes),
        machine_stolen: later.machine.stolen_since(&earlier.machine).unwrap_or(0.0),
    })
}

/// Time between two samples; none if they are in the wrong order.
pub(super) const fn span_ns(earlier: &Sample, later: &Sample) -> Option<u64> {
    later.at_ns.checked_sub(earlier.at_ns)
}

/// Cores in use between two samples.
pub(super) fn cores(earlier: &Sample, later: &Sample) -> f64 {
    ratio(
        later.cpu_ns.saturating_sub(earlier.cpu_ns),
        span_ns(earlier, later).unwrap_or(0),
    )
}

/// Increase of a counter. The network counters restart with their container.
pub(super) fn moved(earlier: &Sample, later: &Sample, of: fn(&Sample) -> u64) -> f64 {
    fraction(of(later).saturating_sub(of(earlier)))
}

/// Part of the CPU time that was in user mode: the kernel's ticks give the split, the exact times
/// the sum. If no tick fell between the samples, the split of all the time before is used.
pub(super) fn user_share(earlier: &Sample, later: &Sample) -> f64 {
    let user_ns = later.user_ns.saturating_sub(earlier.user_ns);
    let system_ns = later.system_ns.saturating_sub(earlier.system_ns);
    if user_ns + system_ns > 0 {
        ratio(user_ns, user_ns + system_ns)
    } else {
        ratio(later.user_ns, later.user_ns + later.system_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[track_caller]
    fn assert_near(left: f64, right: f64) {
        assert!((left - right).abs() < 1e-9, "{left} is not {right}");
    }

    fn earlier() -> Sample {
        Sample {
            at_ns: 10 * SECOND_NS,
            cpu_ns: 5_000 * MS,
            user_ns: 3_000 * MS,
            system_ns: 1_000 * MS,
            context_switches: 1_000,
            network_in_bytes: 5_000,
            network_out_bytes: 900,
            disk_read_bytes: 0,
            disk_write_bytes: 4_096,
            ..Sample::default()
        }
    }

    fn later() -> Sample {
        Sample {
            at_ns: 12 * SECOND_NS,
            cpu_ns: 6_500 * MS,
            user_ns: 3_300 * MS,
            system_ns: 2_200 * MS,
            context_switches: 1_500,
            rss_bytes: 7_000,
            pss_bytes: Some(6_000),
            threads: 4,
            open_files: 18_000,
            network_in_bytes: 9_000,
            network_out_bytes: 100,
            disk_read_bytes: 8_192,
            disk_write_bytes: 4_096,
            ..earlier()
        }
    }

    #[test]
    fn use_is_reported_per_second() {
        let used = resources(&earlier(), &later()).unwrap();
        assert_near(used.cores_user, 0.75 * 0.2);
        assert_near(used.cores_system, 0.75 * 0.8);
        assert_near(used.context_switches, 250.0);
        assert_near(used.network_in_bytes, 2_000.0);
        assert_near(used.disk_read_bytes, 4_096.0);
        assert_near(used.disk_write_bytes, 0.0);
        assert_eq!((used.rss_bytes, used.pss_bytes), (7_000, 6_000));
        assert_eq!((used.threads, used.open_files), (4, 18_000));
    }

    #[test]
    fn a_restarted_counter_moved_by_nothing() {
        let used = resources(&earlier(), &later()).unwrap();
        assert_near(used.network_out_bytes, 0.0);
    }

    #[test]
    fn without_a_tick_the_split_is_that_of_the_time_before() {
        let later = Sample {
            user_ns: earlier().user_ns,
            system_ns: earlier().system_ns,
            ..later()
        };
        assert_near(user_share(&earlier(), &later), 0.75);
    }

    #[test]
    fn samples_too_close_tell_nothing() {
        let close = Sample {
            at_ns: earlier().at_ns + SPAN_NS_MIN - 1,
            ..later()
        };
        assert_eq!(resources(&earlier(), &close), None);
        assert_eq!(resources(&later(), &earlier()), None);
    }
}
