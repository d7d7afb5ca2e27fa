//! Run folders as a table.

use std::path::Path;

use super::{RunEntry, RunHead};
use crate::grid;
use crate::metric;

const HEAD: [&str; 7] = [
    "run",
    "scenario",
    "verdict",
    "received",
    "e2e p99",
    "connect p99",
    "exit",
];

/// Columns of text.
const WORDS: usize = 3;

/// A table of run folders; an unreadable folder has its error as the row.
pub fn listing(entries: &[RunEntry]) -> String {
    let mut rows = vec![HEAD.map(str::to_owned).to_vec()];
    for entry in entries {
        let name = folder_name(&entry.path);
        rows.push(match &entry.run {
            Ok(head) => row(name, head),
            Err(error) => vec![name, String::new(), error.to_string()],
        });
    }
    grid::grid(&rows, WORDS)
}

fn row(name: String, head: &RunHead) -> Vec<String> {
    let figure = |name: &str| {
        let value = head.metrics.get(name).filter(|value| **value > 0.0);
        let unit = metric::find(name).map(|metric| metric.unit);
        value.zip(unit).map_or_else(
            || "-".to_owned(),
            |(value, unit)| metric::format(unit, *value),
        )
    };
    vec![
        name,
        head.scenario.name.clone(),
        verdict(head),
        figure("rate.received"),
        figure("e2e.p99"),
        figure("connect.p99"),
        head.exit_code.to_string(),
    ]
}

fn verdict(head: &RunHead) -> String {
    let mut words = vec![if head.verdict.pass { "PASS" } else { "FAIL" }.to_owned()];
    if !head.validity.valid {
        words.push("INVALID".to_owned());
    }
    let missed = head
        .thresholds
        .iter()
        .filter(|threshold| threshold.is_missed(&head.validity))
        .count();
    if missed > 0 {
        words.push(format!("✗{missed}"));
    }
    words.join(" ")
}

fn folder_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::folder::{ReadError, ScenarioHead};
    use crate::sample;

    #[test]
    fn a_run_is_a_line_whether_it_can_be_read_or_not() {
        let run = sample::run();
        let head = RunHead {
            exit_code: run.exit_code,
            validity: run.validity,
            verdict: run.verdict,
            thresholds: run.thresholds,
            scenario: ScenarioHead {
                name: run.scenario.name,
            },
            metrics: run.metrics,
            ..RunHead::default()
        };
        let older = ReadError::Older {
            path: PathBuf::from("runs/b/result.json"),
            schema: "thrum-bench-result/1".to_owned(),
        };
        let entries = [
            RunEntry {
                path: PathBuf::from("runs/a"),
                run: Ok(head),
            },
            RunEntry {
                path: PathBuf::from("runs/b"),
                run: Err(older),
            },
        ];
        let text = listing(&entries);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("  run  scenario  verdict "), "{text}");
        assert!(lines[1].starts_with("  a    p2p-1K    PASS ✗1 "), "{text}");
        assert!(
            lines[1].ends_with("1 000/s     41ms        1.1ms    99"),
            "{text}"
        );
        assert!(
            lines[2].contains("is of an older version (thrum-bench-result/1"),
            "{text}"
        );
    }
}
