//! What an attack came to, and whether the broker held.

use std::time::Duration;

use crate::watch::Rounds;

/// Longest wait of the canary in addition to its wait beside a busy neighbour.
pub const DELAY_MAX: Duration = Duration::from_millis(20);

/// Figures of one attack on one broker.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Resident memory when the attack began, in bytes.
    pub memory_before: u64,
    /// The most of it since the start of the broker.
    pub memory_peak: u64,
    /// What it may be at most, where a limit was set.
    pub memory_bound: Option<u64>,
    /// CPU time of the broker.
    pub cpu: Duration,
    /// How long the attack took.
    pub took: Duration,
    /// What the canary noticed.
    pub rounds: Rounds,
    /// What else has to be so, and is not.
    pub wrong: Option<String>,
    /// What was seen beside.
    pub seen: String,
    /// Why it could not be tried.
    pub untried: Option<&'static str>,
}

/// In one word.
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
    /// The broker or the canary was lost.
    Dies,
    /// This machine cannot show it.
    Untried,
}

impl Outcome {
    /// An attack that needs more than there is.
    pub fn untried(why: &'static str) -> Self {
        Self {
            untried: Some(why),
            ..Self::default()
        }
    }

    /// Whether the broker held, if the canary alone waits for this time.
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

    /// What was seen, or is wrong.
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
