//! Changes during a run.

use std::time::Duration;

use thrum_figures::{nanos, percent, span};
use thrum_load::pacing::WarpError;
use thrum_report::result::{Mark, MarkKind};

use super::coordinator::Coordinator;
use crate::observe::Command;
use crate::swarm::Timeline;

/// Changes by keys stay between these factors of the planned rate.
const FACTOR_MIN: f64 = 0.01;
const FACTOR_MAX: f64 = 100.0;

/// What commands want of the load, also before it has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wishes {
    /// Rate as a fraction of the planned one.
    factor: f64,
    is_paused: bool,
    /// By how much the hold was extended before it had a time.
    pub(super) extended_ns: u64,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            factor: 1.0,
            is_paused: false,
            extended_ns: 0,
        }
    }
}

impl Coordinator<'_> {
    /// Rate of the load as a fraction of the planned rate.
    pub(super) const fn factor_now(&self) -> f64 {
        if self.wishes.is_paused {
            0.0
        } else {
            self.wishes.factor
        }
    }

    /// Carries out a command and keeps it in the result, also if nothing is changed by it.
    pub(super) fn obey(&mut self, command: Command, now_ns: u64) {
        let at = self.collector.seconds_at(now_ns);
        let (kind, value, text) = match command {
            Command::Stop => {
                self.was_stopped = true;
                (MarkKind::Stopped, None, "stopped by hand".to_owned())
            }
            Command::Note(text) => (MarkKind::Note, None, text),
            Command::Extend(by) => {
                let secs = Some(by.as_secs_f64());
                match self.extend(by, now_ns) {
                    Ok(()) => (
                        MarkKind::Extended,
                        secs,
                        format!("hold extended by {}", span(by)),
                    ),
                    Err(why) => (MarkKind::NotChanged, secs, format!("not extended: {why}")),
                }
            }
            // Not a number, or negative: not a rate.
            Command::Rate(factor) if factor.is_nan() || factor <= 0.0 => return,
            Command::Rate(factor) => {
                let before = self.wishes.factor;
                self.wishes.factor = (self.wishes.factor * factor).clamp(FACTOR_MIN, FACTOR_MAX);
                match self.change(now_ns) {
                    Ok(()) => (
                        MarkKind::Rate,
                        Some(self.wishes.factor),
                        format!("rate {} of the planned one", percent(self.wishes.factor)),
                    ),
                    Err(error) => {
                        self.wishes.factor = before;
                        let text = format!("the rate is not changed: {error}");
                        (MarkKind::NotChanged, None, text)
                    }
                }
            }
            Command::Pause | Command::Resume => {
                let before = self.wishes.is_paused;
                self.wishes.is_paused = command == Command::Pause;
                match self.change(now_ns) {
                    Ok(()) if self.wishes.is_paused => {
                        (MarkKind::Paused, None, "paused".to_owned())
                    }
                    Ok(()) => (MarkKind::Resumed, None, "resumed".to_owned()),
                    Err(error) => {
                        self.wishes.is_paused = before;
                        let text = format!("not paused or resumed: {error}");
                        (MarkKind::NotChanged, None, text)
                    }
                }
            }
        };
        self.marks.push(Mark {
            at,
            kind,
            value,
            text,
        });
    }

    /// Moves the end of the hold, also of one that has not begun.
    ///
    /// # Errors
    /// The hold is over, or about to end.
    fn extend(&mut self, by: Duration, now_ns: u64) -> Result<(), &'static str> {
        if self.is_interrupted() {
            return Err("the run is being stopped");
        }
        let Some(timeline) = self.timeline else {
            self.wishes.extended_ns = self.wishes.extended_ns.saturating_add(nanos(by));
            return Ok(());
        };
        if now_ns >= timeline.hold_end_ns {
            return Err("the hold is over");
        }
        self.order(Timeline {
            hold_end_ns: timeline.hold_end_ns.saturating_add(nanos(by)),
            ..timeline
        });
        Ok(())
    }

    /// Changes the rate of the load a moment from now.
    ///
    /// # Errors
    /// There were too many changes: the load stays as it is.
    fn change(&mut self, now_ns: u64) -> Result<(), WarpError> {
        let Some(timeline) = self.timeline else {
            return Ok(());
        };
        let at_ns = (now_ns + self.order_delay_ns).saturating_sub(timeline.start_ns);
        self.warp.change(at_ns, self.factor_now())?;
        self.order(timeline);
        Ok(())
    }
}
