//! How a run ended, from what its process printed and how it ended itself.

use thrum_management::api::BenchmarkRunInFull;

use super::lines::EndLine;

/// Exit codes of `thrum bench`.
const USAGE: i32 = 2;
const UNREACHABLE: i32 = 5;
const NOT_STORED: i32 = 6;
const INTERRUPTED: i32 = 130;

/// Why the broker ended the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    /// It took more memory.
    Memory {
        /// What it took.
        bytes: u64,
        /// What it may take.
        limit: u64,
    },
    /// It said nothing for so long.
    Silent {
        /// For how long.
        seconds: u64,
    },
    /// It went on for longer than its stages.
    TooLong,
    /// It was asked to end, and did not.
    DidNotStop,
    /// The broker stops.
    BrokerStops,
}

/// What is known at the end of a process.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its exit code; none if a signal ended it, or if it could not be started.
    pub(super) code: Option<i32>,
    /// Its last line, if it got so far.
    pub(super) end: Option<EndLine>,
    /// Its standard error.
    pub(super) complaint: String,
    /// Why the broker ended it.
    pub(super) killed: Option<Killed>,
    /// Somebody asked for its end.
    pub(super) was_stopped: bool,
}

/// The text of a run that another life of the broker began.
pub(super) const CUT_OFF: &str =
    "the broker ended while this run was under way, and the run with it";
/// Its remedy.
pub(super) const CUT_OFF_REMEDY: &str = "start it again";

/// Writes the end into a run.
pub(super) fn conclude(run: &mut BenchmarkRunInFull, ended: Ended) {
    let (error, remedy) = match (&ended.killed, &ended.end, ended.code) {
        (Some(killed), ..) => killed.words(),
        (None, Some(_), Some(NOT_STORED)) => (
            Some(complaint(&ended.complaint)),
            Some("make room on the disk, and run it again"),
        ),
        (None, Some(_), Some(INTERRUPTED)) if !ended.was_stopped => (
            Some("something else than the broker interrupted the run".to_owned()),
            Some("look who sends signals to processes on this machine"),
        ),
        (None, Some(_), _) => (None, None),
        (None, None, _) if ended.was_stopped => (None, None),
        (None, None, code) => (Some(complaint(&ended.complaint)), Some(remedy_of(code))),
    };
    let is_failure = ended.killed.is_some() || (error.is_some() && ended.code != Some(NOT_STORED));
    let state = match (is_failure, ended.was_stopped) {
        (true, _) => "failed",
        (false, true) => "stopped",
        (false, false) => "done",
    };
    state.clone_into(&mut run.run.state);
    run.run.stage = None;
    run.run.error = error;
    run.run.remedy = remedy.map(str::to_owned);
    if let Some(end) = ended.end {
        // Nothing is judged that was not measured.
        run.run.verdict = end.figures.is_some().then_some(end.verdict);
        run.run.figures = end.figures;
        run.thresholds = end.thresholds;
        run.stages = end.stages;
    }
}

impl Killed {
    fn words(&self) -> (Option<String>, Option<&'static str>) {
        let mib = |bytes: u64| bytes / (1024 * 1024);
        let (what, remedy) = match self {
            Self::Memory { bytes, limit } => (
                format!(
                    "the benchmark took {} MiB of memory, more than the {} MiB of \
                     management.benchmarks.memory, and was ended",
                    mib(*bytes),
                    mib(*limit)
                ),
                "ask for fewer clients, or raise management.benchmarks.memory",
            ),
            Self::Silent { seconds } => (
                format!("the benchmark said nothing for {seconds} s, and was ended"),
                "run it again; if it happens again, report it with the scenario",
            ),
            Self::TooLong => (
                "the benchmark went on after its last stage, and was ended".to_owned(),
                "run it again; if it happens again, report it with the scenario",
            ),
            Self::DidNotStop => (
                "the benchmark was asked to end, did not, and was ended without a report"
                    .to_owned(),
                "run it again; if it happens again, report it with the scenario",
            ),
            Self::BrokerStops => (CUT_OFF.to_owned(), CUT_OFF_REMEDY),
        };
        (Some(what), Some(remedy))
    }
}

const fn remedy_of(code: Option<i32>) -> &'static str {
    match code {
        Some(USAGE) => "correct the scenario; POST /api/v1/benchmarks/check says what is wrong",
        Some(UNREACHABLE) => {
            "look whether the broker listens at the target; if it asks for a login, give username and password"
        }
        None => "look into the log of the system: it may have run out of memory",
        Some(_) => "run it again; if it happens again, report it with the scenario",
    }
}

/// The line of an error, or the last line that there is.
pub(super) fn complaint(text: &str) -> String {
    let begins = text.lines().position(|line| line.starts_with("error: "));
    let from = begins.unwrap_or_else(|| text.lines().count().saturating_sub(1));
    let lines: Vec<&str> = text.lines().skip(from).collect();
    let text = lines.join("\n");
    let text = text.trim().trim_start_matches("error: ");
    if text.is_empty() {
        "the benchmark ended without a word".to_owned()
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use thrum_management::api::{BenchmarkFigures, BenchmarkVerdict};

    use super::*;

    fn ended(code: Option<i32>) -> Ended {
        Ended {
            code,
            end: None,
            complaint: String::new(),
            killed: None,
            was_stopped: false,
        }
    }

    fn with_end(code: i32) -> Ended {
        Ended {
            end: Some(EndLine {
                verdict: BenchmarkVerdict {
                    valid: code != 7,
                    pass: code == 0,
                    changed: false,
                    reasons: Vec::new(),
                },
                figures: Some(BenchmarkFigures::default()),
                ..EndLine::default()
            }),
            ..ended(Some(code))
        }
    }

    fn concluded(ended: Ended) -> (String, Option<BenchmarkVerdict>, String) {
        let mut run = BenchmarkRunInFull::default();
        run.run.stage = Some("hold".to_owned());
        conclude(&mut run, ended);
        assert_eq!(run.run.stage, None);
        assert_eq!(run.run.error.is_some(), run.run.remedy.is_some());
        (
            run.run.state,
            run.run.verdict,
            run.run.error.unwrap_or_default(),
        )
    }

    #[test]
    fn a_run_that_ends_is_done_whatever_its_verdict() {
        for (code, valid, pass) in [
            (0, true, true),
            (1, true, false),
            (7, false, false),
            (99, true, false),
        ] {
            let (state, verdict, error) = concluded(with_end(code));
            let verdict = verdict.unwrap();
            assert_eq!((state.as_str(), error.as_str()), ("done", ""), "{code}");
            assert_eq!((verdict.valid, verdict.pass), (valid, pass), "{code}");
        }
    }

    #[test]
    fn a_run_that_was_stopped_has_its_figures_if_it_got_so_far() {
        let stopped = |ended| Ended {
            was_stopped: true,
            ..ended
        };
        let (state, verdict, error) = concluded(stopped(with_end(130)));
        assert_eq!(
            (state.as_str(), verdict.is_some(), error.as_str()),
            ("stopped", true, "")
        );
        let mut early = with_end(130);
        early.end.as_mut().unwrap().figures = None;
        let (state, verdict, _) = concluded(stopped(early));
        assert_eq!((state.as_str(), verdict), ("stopped", None));
        let (state, verdict, _) = concluded(stopped(ended(Some(1))));
        assert_eq!((state.as_str(), verdict), ("stopped", None));
        let (state, _, error) = concluded(with_end(130));
        assert_eq!(state, "failed");
        assert!(error.contains("something else"), "{error}");
    }

    #[test]
    fn a_run_without_an_end_has_failed_with_what_it_said() {
        let unreachable = Ended {
            complaint: "note: x\nerror: no client was accepted by h: refused\n".to_owned(),
            ..ended(Some(5))
        };
        let (state, _, error) = concluded(unreachable);
        assert_eq!(state, "failed");
        assert_eq!(error, "no client was accepted by h: refused");
        let (state, _, error) = concluded(ended(None));
        assert_eq!((state.as_str(), error.is_empty()), ("failed", false));
    }

    #[test]
    fn a_run_that_the_broker_ended_says_why() {
        let killed = |killed| {
            let (state, _, error) = concluded(Ended {
                killed: Some(killed),
                was_stopped: true,
                ..ended(None)
            });
            assert_eq!(state, "failed");
            error
        };
        let memory = Killed::Memory {
            bytes: 200 << 20,
            limit: 100 << 20,
        };
        assert!(killed(memory).contains("200 MiB of memory, more than the 100 MiB"));
        assert!(killed(Killed::Silent { seconds: 60 }).contains("nothing for 60 s"));
        assert!(killed(Killed::TooLong).contains("after its last stage"));
        assert_eq!(killed(Killed::BrokerStops), CUT_OFF);
        assert!(killed(Killed::DidNotStop).contains("asked to end"));
    }

    #[test]
    fn a_result_that_is_not_stored_is_shown_all_the_same() {
        let (state, verdict, error) = concluded(Ended {
            complaint: "error: no space left".to_owned(),
            ..with_end(6)
        });
        assert_eq!((state.as_str(), verdict.is_some()), ("done", true));
        assert_eq!(error, "no space left");
    }
}
