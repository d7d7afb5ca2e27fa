//! The outcome of an attack, and whether the broker held.

use std::time::Duration;

use crate::watch::Rounds;

/// Longest wait of the probe in addition to its wait beside a busy neighbour.
pub const DELAY_MAX: Duration = Duration::from_millis(20);

/// Figures of one attack on one broker.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Resident memory when the attack began, in bytes.
    pub memory_before: u64,
    /// The most of it since the start of the broker.
    pub memory_peak: u64,
    /// The largest acceptable value, if a limit was set.
    pub memory_bound: Option<u64>,
    /// CPU time of the broker.
    pub cpu: Duration,
    /// How long the attack took.
    pub took: Duration,
    /// The probe's waits.
    pub rounds: Rounds,
    /// Another requirement that is not met.
    pub wrong: Option<String>,
    /// Other observations.
    pub seen: String,
    /// Why it could not be tried.
    pub untried: Option<&'static str>,
}

/// As one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within all bounds.
    Holds,
    /// Something forbidden was possible, or a well-behaved client was not served.
    Open,
    /// More memory than the limit allows.
    Swells,
    /// Others wait too long.
    Stalls,
    /// The broker or the probe was lost.
    Dies,
    /// This machine cannot show it.
    Untried,
}

impl Outcome {
    /// An attack that needs more resources than there are.
    pub fn untried(why: &'static str) -> Self {
        Self {
            untried: Some(why),
            ..Self::default()
        }
    }

    /// Whether the broker held, if the probe alone waits for this time.
    pub fn verdict(&self, alone: Duration) -> Verdict {
        if self.untried.is_some() {
            Verdict::Untried
        } else if self.rounds.is_lost {
            Verdict::Dies
        } else if !self.has_memory() {
            Verdict::Swells
        } else if self.wrong.is_some() {
            Verdict::Open
        } else if self.rounds.longest > alone + DELAY_MAX {
            Verdict::Stalls
        } else {
            Verdict::Holds
        }
    }

    /// Whether the memory kept to its bound.
    pub fn has_memory(&self) -> bool {
        self.memory_bound
            .is_none_or(|bound| self.memory_peak <= bound)
    }

    /// An observation, or an error.
    pub fn words(&self) -> &str {
        self.untried.or(self.wrong.as_deref()).unwrap_or(&self.seen)
    }
}

impl Verdict {
    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Open => "open",
            Self::Swells => "swells",
            Self::Stalls => "stalls",
            Self::Dies => "dies",
            Self::Untried => "untried",
        }
    }
}
