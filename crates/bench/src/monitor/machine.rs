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
}

impl MachineSample {
    /// This machine; none if the kernel does not report it.
    pub fn read() -> Option<Self> {
        Self::parse(&kernel_text::read("/proc/stat")?)
    }

    fn parse(text: &str) -> Option<Self> {
        let (all_ticks, idle_ticks) = accounts::machine(text)?;
        Some(Self {
            all_ticks,
            idle_ticks,
        })
    }

    /// Share of the CPU that was idle since an earlier sample; 1 minus it is what some reports call
    /// CPU. None if no time has passed.
    pub fn idle_since(&self, earlier: &Self) -> Option<f64> {
        let all = self.all_ticks.checked_sub(earlier.all_ticks)?;
        // The kernel's idle count may go back by a tick.
        let idle = self.idle_ticks.saturating_sub(earlier.idle_ticks);
        (all > 0).then(|| ratio(idle.min(all), all))
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
        assert_eq!(later.idle_since(&later), None);
        assert_eq!(earlier.idle_since(&later), None);
    }

    #[test]
    fn this_machine_has_cores() {
        let sample = MachineSample::read().unwrap();
        assert!(sample.all_ticks >= sample.idle_ticks);
    }
}
