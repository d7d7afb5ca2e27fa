//! The runs that were made for a page: a measurement of hours goes on where it was interrupted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::versus::Ended;

/// Name and version of the schema of `page.json`.
const SCHEMA: &str = "thrum-bench-page/1";

/// The runs so far, as `page.json` has them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptRuns {
    schema: String,
    /// The file that says what the page shows, as it was.
    plan: String,
    /// Version of each broker.
    versions: BTreeMap<String, String>,
    /// In the order of time.
    pub runs: Vec<KeptRun>,
}

/// A run that was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KeptRun {
    /// The scenario of the page.
    pub case: String,
    /// Name of the broker.
    pub broker: String,
    /// From 1.
    pub round: u32,
    /// Its end.
    pub ended: Ended,
}

/// Why runs cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeptError {
    /// Another file, or of another version.
    #[error("it is no page.json of this version: {0}")]
    Syntax(String),
    /// The page shows something else now.
    #[error(
        "the plan was changed since: '{line}' is new; measure all of it again, without --resume"
    )]
    Plan {
        /// The first line that differs.
        line: String,
    },
    /// Other programs.
    #[error(
        "{broker} was '{before}' and is '{now}': runs of two versions make no table; measure all of it again, without --resume"
    )]
    Version {
        /// The broker.
        broker: String,
        /// When the runs were made.
        before: String,
        /// Now.
        now: String,
    },
}

impl KeptRuns {
    /// None yet.
    pub fn new(plan: &str, versions: BTreeMap<String, String>) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            plan: plan.to_owned(),
            versions,
            runs: Vec::new(),
        }
    }

    /// Takes runs up again, of the same plan and the same brokers.
    ///
    /// # Errors
    /// The text is another file, or the plan or a broker is another one.
    pub fn resume(
        text: &str,
        plan: &str,
        versions: &BTreeMap<String, String>,
    ) -> Result<Self, KeptError> {
        let mut kept: Self =
            serde_json::from_str(text).map_err(|error| KeptError::Syntax(error.to_string()))?;
        if kept.schema != SCHEMA {
            return Err(KeptError::Syntax(format!(
                "its schema is '{}'",
                kept.schema
            )));
        }
        if kept.plan != plan {
            let mut before = kept.plan.lines();
            let changed = plan.lines().find(|line| before.next() != Some(line));
            let line = changed.unwrap_or("the end of the file").to_owned();
            return Err(KeptError::Plan { line });
        }
        for (broker, now) in versions {
            match kept.versions.get(broker) {
                Some(before) if before != now => {
                    return Err(KeptError::Version {
                        broker: broker.clone(),
                        before: before.clone(),
                        now: now.clone(),
                    });
                }
                _ => {}
            }
        }
        kept.versions.extend(versions.clone());
        Ok(kept)
    }

    /// Forgets the runs that did not begin, so that they are made again. A crash is a result.
    pub fn retry(&mut self) {
        let is_result = |run: &KeptRun| !matches!(run.ended, Ended::Failed { .. });
        self.runs.retain(is_result);
    }

    /// Whether this run was made.
    pub fn has(&self, case: &str, broker: &str, round: u32) -> bool {
        self.of(case, broker).any(|run| run.round == round)
    }

    /// VALID runs of a broker in a scenario.
    pub fn valid(&self, case: &str, broker: &str) -> u32 {
        let runs = self.of(case, broker);
        let valid = runs.filter(|run| matches!(run.ended, Ended::Measured { valid: true, .. }));
        u32::try_from(valid.count()).unwrap_or(u32::MAX)
    }

    /// The runs of a broker in a scenario.
    pub fn of<'a>(
        &'a self,
        case: &'a str,
        broker: &'a str,
    ) -> impl Iterator<Item = &'a KeptRun> + 'a {
        let runs = self.runs.iter();
        runs.filter(move |run| run.case == case && run.broker == broker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn versions(thrum: &str) -> BTreeMap<String, String> {
        [("thrum".to_owned(), thrum.to_owned())].into()
    }

    fn kept() -> KeptRuns {
        let mut kept = KeptRuns::new("title = 'a'\nrounds = 2\n", versions("1.0"));
        let measured = |valid| Ended::Measured {
            pass: true,
            valid,
            figures: BTreeMap::new(),
            folder: "runs/x".to_owned(),
        };
        let failed = Ended::Failed {
            why: "interrupted".to_owned(),
        };
        for (round, ended) in [(1, measured(true)), (2, measured(false)), (3, failed)] {
            kept.runs.push(KeptRun {
                case: "p2p".to_owned(),
                broker: "thrum".to_owned(),
                round,
                ended,
            });
        }
        kept
    }

    fn resume(plan: &str, version: &str) -> Result<KeptRuns, KeptError> {
        let text = serde_json::to_string(&kept()).unwrap();
        KeptRuns::resume(&text, plan, &versions(version))
    }

    #[test]
    fn runs_are_taken_up_and_those_without_figures_are_made_again() {
        let mut kept = resume("title = 'a'\nrounds = 2\n", "1.0").unwrap();
        assert!(kept.has("p2p", "thrum", 3), "the page tells about it");
        kept.retry();
        assert!(kept.has("p2p", "thrum", 2) && !kept.has("p2p", "thrum", 3));
        assert!(!kept.has("p2p", "other", 1) && !kept.has("fanout", "thrum", 1));
        assert_eq!(kept.valid("p2p", "thrum"), 1);
    }

    #[test]
    fn a_crash_stays_a_result() {
        let mut kept = kept();
        kept.runs[0].ended = Ended::Crashed {
            how: "signal: 11".to_owned(),
        };
        kept.retry();
        assert!(kept.has("p2p", "thrum", 1));
    }

    #[test]
    fn runs_of_another_plan_or_of_another_broker_are_not_mixed() {
        let error = resume("title = 'a'\nrounds = 3\n", "1.0").unwrap_err();
        assert!(error.to_string().contains("'rounds = 3' is new"), "{error}");
        let error = resume("title = 'a'\nrounds = 2\n", "1.1").unwrap_err();
        assert!(
            error.to_string().contains("thrum was '1.0' and is '1.1'"),
            "{error}"
        );
        let other = KeptRuns::resume("{}", "", &versions("1.0")).unwrap_err();
        assert!(other.to_string().contains("no page.json"), "{other}");
    }
}
