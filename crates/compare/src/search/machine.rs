//! The search itself: upwards in strides until a load is not held, then halving, then repeats on
//! both sides.
//!
//! Loads are on a ladder whose rungs are one resolution apart, so the same load can be tried again.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Grade, Trial};

/// Times that a trial which the generator limited is tried again before the load counts as beyond
/// its reach.
const LIMITED_MAX: u32 = 2;

/// Below the first load the search goes down to this part of it.
const LOWEST_PART: f64 = 1.0 / 1_024.0;

/// The limits of a search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// The first load.
    pub from: f64,
    /// The highest load to try.
    pub to: f64,
    /// From one load to the next at the end of the search: 0.05 is 5 %.
    pub resolution: f64,
    /// From one load to the next at the beginning: 2 doubles.
    pub stride: f64,
    /// Trials at each end of the interval, all of which must agree.
    pub repeats: u32,
    /// Most trials.
    pub trials_max: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            from: 1_000.0,
            to: 10_000_000.0,
            resolution: 0.05,
            stride: 2.0,
            repeats: 3,
            trials_max: 60,
        }
    }
}

/// Why a search cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// Not a range.
    #[error("the search needs 0 < --from <= --to")]
    Range,
    /// Not a step.
    #[error("--resolution must be between 0.5 % and 50 %")]
    Resolution,
    /// No trial.
    #[error("--repeat must be at least 1")]
    Repeats,
}

/// The next step.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Try this load and record how it went.
    Try {
        /// Messages per second or clients.
        load: f64,
        /// The reason for it, as text.
        why: &'static str,
    },
    /// There is nothing left to try.
    Done(Answer),
}

/// The reason why the search upwards ended before the broker's limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ceiling {
    /// The generator could not offer more.
    Generator,
    /// The highest requested load.
    Asked,
}

/// The result of the search.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Answer {
    /// The broker held `low` every time and failed at `high` every time.
    Between {
        /// Held in every repeat.
        low: f64,
        /// Failed in every repeat.
        high: f64,
    },
    /// The broker held this load every time; the search ended for another reason.
    AtLeast {
        /// Held in every repeat.
        low: f64,
        /// The reason.
        ceiling: Ceiling,
        /// The lowest load above it that the generator could not offer in any trial, if that
        /// stopped it.
        limited: Option<f64>,
    },
    /// The broker held not even the lowest load that was tried.
    Below {
        /// The lowest load tried.
        high: f64,
    },
    /// The generator could not offer even the lowest load.
    NoTrial,
    /// The most trials were made before both ends were sure, or the generator was the limit in the
    /// repeats; `low` held and `high` failed at least once.
    Unsure {
        /// Highest load that was held and never failed.
        low: Option<f64>,
        /// Lowest load above it that failed.
        high: Option<f64>,
    },
}

/// Rungs of the ladder: load = from * (1 + resolution) ^ rung; of the top one it is the highest
/// load that may be tried.
type Rung = i32;

/// Knowledge about the loads above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    /// The broker failed here.
    Failed(Rung),
    /// The generator failed here.
    Limited(Rung),
    /// Nothing above may be tried.
    Asked,
}

/// Knowledge while narrowing.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    /// The highest rung that held.
    low: Option<Rung>,
    /// The upper bound of the search.
    above: Option<Above>,
    /// Rungs to the next trial while one of the two is missing.
    stride: Rung,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Looking for two neighbours of which the lower one holds.
    Narrow(Bounds),
    /// Repeats where the generator failed: one valid trial disproves a generator limit.
    Reach { low: Rung, high: Rung },
    /// Repeats at the lower end.
    Low { low: Rung, above: Above },
    /// Repeats at the upper end.
    High { low: Rung, high: Rung },
    /// Found.
    Done(Answer),
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    held: u32,
    failed: u32,
    limited: u32,
}

/// A search under way.
#[derive(Clone, Debug)]
pub struct Search {
    limits: Limits,
    /// The first rung.
    start: Rung,
    /// Rungs of the longest stride.
    stride: Rung,
    bottom: Rung,
    top: Rung,
    phase: Phase,
    tallies: BTreeMap<Rung, Tally>,
    trials: Vec<Trial>,
}

impl Search {
    /// A search within these limits.
    ///
    /// # Errors
    /// The limits contradict each other.
    pub fn new(limits: Limits) -> Result<Self, LimitsError> {
        let is_range = limits.from.is_finite() && limits.to.is_finite() && limits.from > 0.0;
        if !is_range || limits.to < limits.from {
            return Err(LimitsError::Range);
        }
        if !(0.005..=0.5).contains(&limits.resolution) {
            return Err(LimitsError::Resolution);
        }
        if limits.repeats == 0 {
            return Err(LimitsError::Repeats);
        }
        let rungs = |factor: f64| floor(factor.ln() / limits.resolution.ln_1p());
        let stride = rungs(limits.stride).max(1);
        Ok(Self {
            start: 0,
            stride,
            bottom: rungs(LOWEST_PART),
            // The highest load is tried itself, however far it is above the rung below.
            top: -rungs(limits.from / limits.to),
            phase: Phase::Narrow(Bounds {
                low: None,
                above: None,
                stride,
            }),
            tallies: BTreeMap::new(),
            trials: Vec::new(),
            limits,
        })
    }

    /// A search of its own that begins at a load near which the answer is supposed. Its first
    /// strides are short and double, so that it leaves that load as far as the trials ask it to.
    #[must_use]
    pub fn near(&self, load: f64) -> Self {
        let rungs = (load / self.limits.from).ln() / self.limits.resolution.ln_1p();
        let start = if load >= self.limits.to {
            // The top rung may be less than a step above the one below it.
            self.top
        } else {
            floor(rungs + 0.5).clamp(self.bottom, self.top)
        };
        Self {
            start,
            phase: Phase::Narrow(Bounds {
                low: None,
                above: None,
                stride: 1,
            }),
            tallies: BTreeMap::new(),
            trials: Vec::new(),
            ..*self
        }
    }

    /// Loads below this one are not tried, because no trial of them can be judged.
    pub fn raise_lowest(&mut self, load: f64) {
        let rungs = (load / self.limits.from).ln() / self.limits.resolution.ln_1p();
        let tried = self.tallies.keys().next().copied().unwrap_or(self.start);
        // The ends that are known already stay.
        self.bottom = floor(rungs + 1.0).clamp(self.bottom, tried.max(self.bottom));
    }

    /// The next step; the same until a trial is recorded.
    pub fn next(&self) -> Step {
        let (rung, why) = match self.phase {
            Phase::Done(answer) => return Step::Done(answer),
            Phase::Narrow(bounds) => match (bounds.low, bounds.above) {
                (None, None) => (self.start, "first"),
                (Some(_), None) => (self.narrowing(bounds), "up"),
                (None, Some(_)) => (self.narrowing(bounds), "down"),
                (Some(_), Some(_)) => (self.narrowing(bounds), "halving"),
            },
            Phase::Low { low, .. } => (low, "repeat, lower end"),
            Phase::Reach { high, .. } => (high, "repeat, INVALID before"),
            Phase::High { high, .. } => (high, "repeat, upper end"),
        };
        Step::Try {
            load: self.load(rung),
            why,
        }
    }

    /// Records the outcome of the load that [`Search::next`] named.
    pub fn record(&mut self, trial: Trial) {
        let rung = match self.phase {
            Phase::Done(_) => return,
            Phase::Narrow(bounds) => self.narrowing(bounds),
            Phase::Low { low, .. } => low,
            Phase::Reach { high, .. } | Phase::High { high, .. } => high,
        };
        let tally = self.tallies.entry(rung).or_default();
        match trial.grade {
            Grade::Held => tally.held += 1,
            Grade::Failed => tally.failed += 1,
            Grade::Limited => tally.limited += 1,
        }
        let (tally, grade) = (*tally, trial.grade);
        self.trials.push(trial);
        self.phase = match self.phase {
            Phase::Done(answer) => Phase::Done(answer),
            Phase::Narrow(bounds) => self.after_narrowing(bounds, rung, grade, tally),
            Phase::Low { low, above } => self.after_low(low, above, tally),
            Phase::Reach { low, high } => self.after_reach(low, high, tally),
            Phase::High { low, high } => self.after_high(low, high, tally),
        };
        let made = u32::try_from(self.trials.len()).unwrap_or(u32::MAX);
        if made >= self.limits.trials_max && !matches!(self.phase, Phase::Done(_)) {
            self.phase = Phase::Done(self.unsure());
        }
    }

    /// All trials so far, in order.
    pub fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The fewest trials that are left if every repeat agrees and every load is held or fails as
    /// those before, and the most.
    pub fn trials_left(&self) -> [u32; 2] {
        let made = u32::try_from(self.trials.len()).unwrap_or(u32::MAX);
        let most = self.limits.trials_max.saturating_sub(made);
        let repeats = self.limits.repeats;
        let held = |rung| self.needed().saturating_sub(self.tally(rung).held);
        let failed = |rung| self.needed().saturating_sub(self.tally(rung).failed);
        let fewest = match self.phase {
            Phase::Done(_) => return [0, 0],
            Phase::Narrow(Bounds {
                low: Some(low),
                above: Some(Above::Failed(high)),
                ..
            }) => (high - low).max(1).ilog2() + 2 * repeats,
            Phase::Narrow(Bounds { low: Some(_), .. }) => 1 + repeats,
            Phase::Narrow(Bounds { low: None, .. }) => 1,
            Phase::Low {
                low,
                above: Above::Failed(high),
            } => held(low) + failed(high),
            Phase::Low { low, .. } => held(low),
            Phase::Reach { .. } => 1,
            Phase::High { high, .. } => failed(high),
        };
        [fewest.max(1).min(most), most]
    }

    /// Its limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    fn load(&self, rung: Rung) -> f64 {
        let load = self.limits.from * (1.0 + self.limits.resolution).powi(rung);
        load.min(self.limits.to)
    }

    /// The rung to try while narrowing.
    fn narrowing(&self, bounds: Bounds) -> Rung {
        let ceiling = bounds.above.map(|above| match above {
            Above::Failed(rung) | Above::Limited(rung) => rung,
            Above::Asked => self.top + 1,
        });
        match (bounds.low, ceiling) {
            (None, None) => self.start,
            (Some(low), None) => (low + bounds.stride).min(self.top),
            (None, Some(high)) => (high - bounds.stride).max(self.bottom),
            (Some(low), Some(high)) => i32::midpoint(low, high),
        }
    }

    fn after_narrowing(&self, bounds: Bounds, rung: Rung, grade: Grade, tally: Tally) -> Phase {
        let Bounds { low, above, stride } = bounds;
        let was_open = low.is_some() != above.is_some();
        let (low, above) = match grade {
            Grade::Held if rung == self.top => (Some(rung), Some(Above::Asked)),
            Grade::Held => (Some(rung), above),
            Grade::Failed => (low, Some(Above::Failed(rung))),
            Grade::Limited if tally.limited < LIMITED_MAX => (low, above),
            Grade::Limited => (low, Some(Above::Limited(rung))),
        };
        match (low, above) {
            (None, Some(Above::Failed(high))) if high <= self.bottom => {
                Phase::Done(Answer::Below {
                    high: self.load(high),
                })
            }
            (None, Some(Above::Limited(high))) if high <= self.bottom => {
                Phase::Done(Answer::NoTrial)
            }
            (Some(low), Some(above)) if self.is_next(low, above) => Phase::Low { low, above },
            // A trial that the generator limited is repeated first.
            _ if was_open && (grade != Grade::Limited || tally.limited >= LIMITED_MAX) => {
                Phase::Narrow(Bounds {
                    low,
                    above,
                    stride: (2 * stride).min(self.stride),
                })
            }
            _ => Phase::Narrow(Bounds { low, above, stride }),
        }
    }

    fn is_next(&self, low: Rung, above: Above) -> bool {
        match above {
            Above::Failed(high) | Above::Limited(high) => high - low <= 1,
            Above::Asked => low == self.top,
        }
    }

    /// The lower end is sure when every repeat was held; else it goes down by a rung.
    fn after_low(&self, low: Rung, above: Above, tally: Tally) -> Phase {
        if tally.failed == 0 && tally.limited <= self.limits.repeats {
            return if tally.held < self.needed() {
                Phase::Low { low, above }
            } else {
                self.after_sure_low(low, above)
            };
        }
        if low <= self.bottom {
            let is_measured = |tally: &Tally| tally.held + tally.failed > 0;
            return Phase::Done(match tally.failed {
                // Loads held or failed before the generator became the limit.
                0 if self.tallies.values().any(is_measured) => self.unsure(),
                0 => Answer::NoTrial,
                _ => Answer::Below {
                    high: self.load(low),
                },
            });
        }
        // A load that is held only sometimes is above the lower end, and one that failed bounds it
        // from above.
        let above = match above {
            Above::Asked | Above::Limited(_) if tally.failed > 0 => Above::Failed(low),
            Above::Asked => Above::Limited(low),
            known => known,
        };
        Phase::Low {
            low: low - 1,
            above,
        }
    }

    fn after_sure_low(&self, low: Rung, above: Above) -> Phase {
        match above {
            Above::Failed(high) => Phase::High { low, high },
            Above::Limited(high) => self.after_reach(low, high, self.tally(high)),
            Above::Asked => self.at_least(low, Ceiling::Asked),
        }
    }

    /// The generator is the limit if no trial there measured the broker. Otherwise the search
    /// continues above a load that was held, and below one that was not.
    fn after_reach(&self, low: Rung, high: Rung, tally: Tally) -> Phase {
        if tally.failed > 0 {
            Phase::High { low, high }
        } else if tally.held > 0 && high >= self.top {
            Phase::Low {
                low: high,
                above: Above::Asked,
            }
        } else if tally.held > 0 {
            Phase::Narrow(Bounds {
                low: Some(high),
                above: None,
                stride: self.stride,
            })
        } else if tally.limited < self.needed() {
            Phase::Reach { low, high }
        } else {
            self.limited_at(low, high)
        }
    }

    /// The upper end is sure when every repeat failed; else it goes up by a rung.
    fn after_high(&self, low: Rung, high: Rung, tally: Tally) -> Phase {
        if tally.limited > self.limits.repeats {
            return if tally.failed > 0 {
                // The broker failed there once: the generator alone is not the limit.
                Phase::Done(self.unsure())
            } else {
                self.limited_at(low, high)
            };
        }
        if tally.held > 0 {
            return if high >= self.top {
                self.at_least(low, Ceiling::Asked)
            } else {
                Phase::High {
                    low,
                    high: high + 1,
                }
            };
        }
        if tally.failed < self.needed() {
            Phase::High { low, high }
        } else {
            Phase::Done(Answer::Between {
                low: self.load(low),
                high: self.load(high),
            })
        }
    }

    /// Trials that must agree: the one that found the end is not one of them, because its outcome
    /// selected it.
    fn needed(&self) -> u32 {
        self.limits.repeats + 1
    }

    fn at_least(&self, low: Rung, ceiling: Ceiling) -> Phase {
        Phase::Done(Answer::AtLeast {
            low: self.load(low),
            ceiling,
            limited: None,
        })
    }

    fn limited_at(&self, low: Rung, high: Rung) -> Phase {
        Phase::Done(Answer::AtLeast {
            low: self.load(low),
            ceiling: Ceiling::Generator,
            limited: Some(self.load(high)),
        })
    }

    fn tally(&self, rung: Rung) -> Tally {
        self.tallies.get(&rung).copied().unwrap_or_default()
    }

    /// What is known of a search that has not ended.
    pub fn unsure(&self) -> Answer {
        let failed = |tally: &Tally| tally.failed > 0;
        let held = |tally: &Tally| tally.held > 0 && tally.failed == 0;
        let low = self.tallies.iter().filter(|(_, tally)| held(tally));
        let lowest_failed = self.tallies.iter().find(|(_, tally)| failed(tally));
        let below = lowest_failed.map_or(Rung::MAX, |(rung, _)| *rung);
        let low = low.map(|(rung, _)| *rung).rfind(|rung| *rung < below);
        Answer::Unsure {
            low: low.map(|rung| self.load(rung)),
            high: lowest_failed.map(|(rung, _)| self.load(*rung)),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "logarithms of loads are small"
)]
fn floor(value: f64) -> Rung {
    // A power that is a whole number must not fall short of it by a rounding error.
    (value + 1e-9).floor() as Rung
}
