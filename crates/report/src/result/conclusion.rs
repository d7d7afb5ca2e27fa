//! What follows from the figures of a run: its thresholds, their part in its validity, and its exit
//! code.

use super::RunResult;
use crate::threshold::Threshold;

/// The remedy where a threshold judges a figure that is withheld.
const ADVICE: &str =
    "run again; stop other work on this machine, or leave thrum a core that nothing else uses";

impl RunResult {
    /// Judges the thresholds, and sets the exit code. A limit of a figure that is withheld, because
    /// the generator could not measure it, is neither kept nor missed: the run is INVALID.
    pub fn conclude(&mut self, thresholds: &[Threshold]) {
        let judged = thresholds.iter().map(|threshold| threshold.judge(self));
        self.thresholds = judged.collect();
        for threshold in thresholds {
            let name = threshold.metric.name;
            let Some(why) = self.validity.withheld.get(name) else {
                continue;
            };
            let limit = format!("{name}, which a threshold judges, is withheld: {why}");
            self.validity.valid = false;
            if !self.validity.limits.contains(&limit) {
                self.validity.limits.push(limit);
                self.validity.advice.push(ADVICE.to_owned());
            }
        }
        self.exit_code = self.conclusive_exit_code();
    }

    /// The most fundamental matter counts: 130 interrupted, 7 INVALID, 1 promises not kept, 99
    /// thresholds missed, else 0.
    fn conclusive_exit_code(&self) -> u8 {
        let thresholds_kept = self.thresholds.iter().all(|threshold| threshold.pass);
        match (self.interrupted, self.validity.valid, self.verdict.pass) {
            (true, _, _) => 130,
            (false, false, _) => 7,
            (false, true, false) => 1,
            (false, true, true) if !thresholds_kept => 99,
            (false, true, true) => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn limits(all: &[(&str, &str)]) -> Vec<Threshold> {
        let read = all
            .iter()
            .map(|(metric, condition)| Threshold::parse(metric, condition));
        read.collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn a_limit_of_a_withheld_figure_makes_the_run_invalid_and_says_why() {
        let mut run = sample::run();
        let why = "the accounts of the hold were read 3s late".to_owned();
        run.validity
            .withheld
            .insert("broker.cpu_per_message".to_owned(), why);
        run.fill_metrics();
        run.conclude(&limits(&[("e2e.p99", "< 50ms")]));
        assert_eq!((run.exit_code, run.validity.valid), (0, true));
        let judged = limits(&[("broker.cpu_per_message", "< 1ms")]);
        for _ in 0..2 {
            run.conclude(&judged);
            let found = (run.exit_code, run.validity.valid, run.validity.limits.len());
            assert_eq!(found, (7, false, 1));
        }
        assert_eq!(
            run.thresholds[0].measured_text(),
            "withheld: the accounts of the hold were read 3s late"
        );
        assert_eq!(
            run.validity.limits[0],
            "broker.cpu_per_message, which a threshold judges, is withheld: the accounts of the hold were read 3s late"
        );
        assert_eq!(run.validity.advice.len(), 1);
    }

    #[test]
    fn the_most_fundamental_matter_is_the_exit_code() {
        let missed = limits(&[("broker.rss", "< 1B")]);
        let code = |change: fn(&mut RunResult)| {
            let mut run = sample::run();
            change(&mut run);
            run.conclude(&missed);
            run.exit_code
        };
        assert_eq!(code(|_| ()), 99);
        assert_eq!(code(|run| run.verdict.pass = false), 1);
        assert_eq!(
            code(|run| {
                run.verdict.pass = false;
                run.validity.valid = false;
            }),
            7
        );
        assert_eq!(
            code(|run| {
                run.interrupted = true;
                run.validity.valid = false;
            }),
            130
        );
        let mut kept = sample::run();
        kept.conclude(&[]);
        assert_eq!(kept.exit_code, 0);
    }
}
