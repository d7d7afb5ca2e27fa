//! The whole machine's CPU.

use serde::{Deserialize, Serialize};
use thrum_figures::ratio;

use super::accounts;
use crate::kernel_text;

/// CPU of all cores of a machine since it started, in ticks of the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineSample {
    /// All ticks of all cores.
    pub all_ticks: u64,
    /// Those in which a core had nothing to do, or only waited for a disk.
    pub idle_ticks: u64,
    /// Those in which a core had something to do and the machine around this one kept it.
    pub stolen_ticks: u64,
}

impl MachineSample {
    /// This machine; none if the kernel does not report it.
    pub fn read() -> Option<Self> {
        Self::parse(&kernel_text::read("/proc/stat")?)
    }

    fn parse(text: &str) -> Option<Self> {
        accounts::machine(text)
    }

    /// Share of the CPU that was idle since an earlier sample; 1 minus it is what some reports call
    /// CPU. None if no time has passed.
    pub fn idle_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all_ticks.checked_sub(earlier.all_ticks)?;
        // The kernel's idle count may go back by a tick.
        let idle = self.idle_ticks.saturating_sub(earlier.idle_ticks);
        (all > 0).then(|| ratio(idle.min(all), all))
    }

    /// Share of the CPU that the machine around this one kept since an earlier sample. None if no
    /// time has passed.
    pub fn stolen_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all_ticks.checked_sub(earlier.all_ticks)?;
        let stolen = self.stolen_ticks.saturating_sub(earlier.stolen_ticks);
        (all > 0).then(|| ratio(stolen.min(all), all))
    }

    /// CPU seconds that all processes and the kernel used since an earlier sample.
    pub fn used_seconds_since(&self, earlier: &Self) -> f64 {
        let busy = |sample: &Self| {
            sample
                .all_ticks
                .saturating_sub(sample.idle_ticks + sample.stolen_ticks)
        };
        ratio(
            busy(self).saturating_sub(busy(earlier)),
            rustix::param::clock_ticks_per_second(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_the_share_of_all_ticks_between_two_texts() {
        let earlier = MachineSample::parse("cpu  100 0 50 1000 10 0 0 0 0 0\n").unwrap();
        let later = MachineSample::parse("cpu  160 0 70 1100 20 4 5 1 0 0\n").unwrap();
        // 60 + 20 + 4 + 5 + 1 busy, 100 + 10 idle.
        assert_eq!(later.idle_since(&earlier), Some(0.55));
        assert_eq!(later.stolen_since(&earlier), Some(0.005));
        assert_eq!(
            (later.idle_since(&later), later.stolen_since(&later)),
            (None, None)
        );
        // 60 + 20 + 4 + 5 of a hundredth of a second, as long as the kernel counts in these.
        if rustix::param::clock_ticks_per_second() == 100 {
            assert!((later.used_seconds_since(&earlier) - 0.89).abs() < 1e-9);
        }
        assert_eq!(earlier.idle_since(&later), None);
    }

    #[test]
    fn this_machine_has_cores() {
        let sample = MachineSample::read().unwrap();
        assert!(sample.all_ticks >= sample.idle_ticks);
    }
}
