//! Changes during a run.

use thrum_figures::{nanos, percent, span};
use thrum_load::pacing::WarpError;
use thrum_report::result::Mark;

use super::coordinator::Coordinator;
use crate::observe::Command;
use crate::swarm::Timeline;

/// Changes by keys stay between these factors of the planned rate.
const FACTOR_MIN: f64 = 0.01;
const FACTOR_MAX: f64 = 100.0;

impl Coordinator<'_> {
    /// Rate of the load as a fraction of the planned rate.
    pub(super) const fn factor_now(&self) -> f64 {
        if self.is_paused { 0.0 } else { self.factor }
    }

    /// Carries out a command and keeps it in the result.
    pub(super) fn obey(&mut self, command: Command, now_ns: u64) {
        let text = match command {
            Command::Stop => {
                self.was_stopped = true;
                "stopped by hand".to_owned()
            }
            Command::Note(text) => text,
            Command::Extend(by) => {
                let Some(timeline) = self
                    .timeline
                    .filter(|timeline| now_ns < timeline.hold_end_ns)
                else {
                    return;
                };
                self.order(Timeline {
                    hold_end_ns: timeline.hold_end_ns + nanos(by),
                    ..timeline
                });
                format!("hold extended by {}", span(by))
            }
            // Not a number, or negative: not a rate.
            Command::Rate(factor) if factor.is_nan() || factor <= 0.0 => return,
            Command::Rate(factor) => {
                let before = self.factor;
                self.factor = (self.factor * factor).clamp(FACTOR_MIN, FACTOR_MAX);
                match self.change(now_ns) {
                    Ok(()) => format!("rate {} of the planned one", percent(self.factor)),
                    Err(error) => {
                        self.factor = before;
                        format!("the rate is not changed: {error}")
                    }
                }
            }
            Command::Pause | Command::Resume => {
                let before = self.is_paused;
                self.is_paused = command == Command::Pause;
                match self.change(now_ns) {
                    Ok(()) if self.is_paused => "paused".to_owned(),
                    Ok(()) => "resumed".to_owned(),
                    Err(error) => {
                        self.is_paused = before;
                        format!("not paused or resumed: {error}")
                    }
                }
            }
        };
        let at = self.collector.seconds_at(now_ns);
        self.marks.push(Mark { at, text });
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
