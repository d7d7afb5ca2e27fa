//! Changes during a run.

use thrum_figures::{nanos, percent, span};
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
                self.factor = (self.factor * factor).clamp(FACTOR_MIN, FACTOR_MAX);
                self.change(now_ns);
                format!("rate {} of the planned one", percent(self.factor))
            }
            Command::Pause | Command::Resume => {
                self.is_paused = command == Command::Pause;
                self.change(now_ns);
                if self.is_paused { "paused" } else { "resumed" }.to_owned()
            }
        };
        let at = self.collector.seconds_at(now_ns);
        self.marks.push(Mark { at, text });
    }

    /// Changes the rate of the load a moment from now.
    fn change(&mut self, now_ns: u64) {
        let Some(timeline) = self.timeline else {
            return;
        };
        let at_ns = (now_ns + self.order_delay_ns).saturating_sub(timeline.start_ns);
        let factor = self.factor_now();
        // Too many changes: the load stays unchanged.
        if self.warp.change(at_ns, factor).is_ok() {
            self.order(timeline);
        }
    }
}
