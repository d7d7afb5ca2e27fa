//! Where a series of runs is: which run of how many, the time gone, the time left.

use std::time::Duration;

use thrum_bench::{Stage, Status, clock};
use thrum_figures::{SECOND_NS, nanos, span};
use thrum_load::scenario::Scenario;

/// Runs that follow the present one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct After {
    /// Their number.
    pub(super) runs: u32,
    /// Their stages.
    pub(super) planned: Duration,
}

impl After {
    /// These runs.
    pub(super) fn of<'a>(scenarios: impl IntoIterator<Item = &'a Scenario>) -> Self {
        let mut after = Self::default();
        for scenario in scenarios {
            after.runs += 1;
            after.planned += planned(scenario);
        }
        after
    }

    /// This many runs of one scenario.
    pub(super) fn times(scenario: &Scenario, runs: u32) -> Self {
        Self {
            runs,
            planned: planned(scenario) * runs,
        }
    }
}

/// The stages of a run; the drain ends when the last message is there, mostly at once.
fn planned(scenario: &Scenario) -> Duration {
    scenario.ramp() + scenario.stages.warm_up + scenario.stages.hold
}

/// A series of runs.
#[derive(Debug)]
pub(super) struct Series {
    started_ns: u64,
    /// Stages of the runs that were begun.
    planned: Duration,
    begun: u32,
}

impl Series {
    /// A series that begins now.
    pub(super) fn begin() -> Self {
        Self {
            started_ns: clock::monotonic_ns(),
            planned: Duration::ZERO,
            begun: 0,
        }
    }

    /// The next run of the series, named by `head`; `after` are the fewest and the most runs that
    /// follow it.
    pub(super) fn next_run(
        &mut self,
        head: String,
        scenario: &Scenario,
        after: [After; 2],
    ) -> Overall {
        let gone = gone(self.started_ns);
        // What the runs so far took beyond their stages: brokers that start, reports.
        let extra = gone.saturating_sub(self.planned) / self.begun.max(1);
        self.begun += 1;
        self.planned += planned(scenario);
        Overall {
            head,
            started_ns: self.started_ns,
            stages: [
                (Stage::Ramp, scenario.ramp()),
                (Stage::WarmUp, scenario.stages.warm_up),
                (Stage::Hold, scenario.stages.hold),
            ],
            after: after.map(|after| after.planned + extra * after.runs),
        }
    }
}

fn gone(started_ns: u64) -> Duration {
    Duration::from_nanos(clock::monotonic_ns().saturating_sub(started_ns))
}

/// The present run as a part of its series.
#[derive(Clone, Debug)]
pub(super) struct Overall {
    /// `run 2/4`.
    head: String,
    started_ns: u64,
    stages: [(Stage, Duration); 3],
    /// The least and the most time of all that follows.
    after: [Duration; 2],
}

impl Overall {
    /// `run 2/4 · 1m12s gone · about 2m30s left`, before the run or during it.
    pub(super) fn text(&self, status: Option<&Status>) -> String {
        self.text_after(gone(self.started_ns), status)
    }

    /// The same where there is little room.
    pub(super) fn short_text(&self, status: Option<&Status>) -> String {
        self.text(status).replace("at most ", "≤ ")
    }

    fn text_after(&self, gone: Duration, status: Option<&Status>) -> String {
        let present = self.present(status);
        let [least, most] = self.after.map(|after| whole_seconds(present + after));
        let left = if least == most {
            format!("about {}", span(least))
        } else {
            format!("{} to at most {}", span(least), span(most))
        };
        let gone = span(Duration::from_secs(gone.as_secs()));
        format!("{} · {gone} gone · {left} left", self.head)
    }

    /// Time left of the present run.
    fn present(&self, status: Option<&Status>) -> Duration {
        let Some(status) = status else {
            return self.stages.iter().map(|(_, length)| *length).sum();
        };
        let later = self
            .stages
            .iter()
            .filter(|(stage, _)| *stage > status.stage);
        let later: Duration = later.map(|(_, length)| *length).sum();
        // A drain ends when the last message is there; its plan is only how long it may take.
        let planned = if status.stage == Stage::Drain {
            Duration::ZERO
        } else {
            status.planned
        };
        later + planned.saturating_sub(status.elapsed)
    }
}

/// Rounded up: nothing is left only at the end.
fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(nanos(duration).div_ceil(SECOND_NS))
}

#[cfg(test)]
mod tests {
    use thrum_bench::Progress;
    use thrum_load::scenario::find;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn overall(after: [u64; 2]) -> Overall {
        Overall {
            head: "run 2/4".to_owned(),
            started_ns: 0,
            stages: [
                (Stage::Ramp, seconds(2)),
                (Stage::WarmUp, seconds(5)),
                (Stage::Hold, seconds(60)),
            ],
            after: after.map(seconds),
        }
    }

    fn status(stage: Stage, elapsed: u64, planned: u64) -> Status {
        Status {
            stage,
            elapsed: seconds(elapsed),
            planned: seconds(planned),
            clients: 10,
            progress: Progress::default(),
        }
    }

    #[test]
    fn the_time_left_is_that_of_the_stages_and_of_the_runs_that_follow() {
        let overall = overall([67, 67]);
        let text = |status: Option<Status>| overall.text_after(seconds(72), status.as_ref());
        assert_eq!(text(None), "run 2/4 · 1m12s gone · about 2m14s left");
        assert_eq!(
            text(Some(status(Stage::WarmUp, 1, 5))),
            "run 2/4 · 1m12s gone · about 2m11s left"
        );
        assert_eq!(
            text(Some(status(Stage::Hold, 50, 60))),
            "run 2/4 · 1m12s gone · about 1m17s left"
        );
        // Time that is not left again when the stage after it begins.
        assert_eq!(
            text(Some(status(Stage::Drain, 0, 5))),
            "run 2/4 · 1m12s gone · about 1m07s left"
        );
    }

    #[test]
    fn a_search_has_a_range() {
        let text = overall([0, 600]).text_after(seconds(3), Some(&status(Stage::Hold, 0, 60)));
        assert_eq!(text, "run 2/4 · 3s gone · 1m00s to at most 11m00s left");
    }

    #[test]
    fn the_runs_that_follow_are_planned_from_their_stages() {
        let scenario = find("p2p-1K").unwrap();
        let each = planned(&scenario);
        assert!(each >= scenario.stages.hold);
        let twice = After::of([&scenario, &scenario]);
        assert_eq!((twice.runs, twice.planned), (2, each * 2));
        assert_eq!(After::times(&scenario, 2), twice);
    }
}
