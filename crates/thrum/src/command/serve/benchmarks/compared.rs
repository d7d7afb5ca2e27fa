//! The answer of `thrum bench compare --json` as the interface shows it.

use serde::Deserialize;
use thrum_management::api::{BenchmarkComparison, BenchmarkComparisonRow, BenchmarkRun};
use thrum_report::Better;
use thrum_report::metric::{self, Unit};

/// A comparison of two runs.
#[derive(Debug, Deserialize)]
struct Compared {
    conclusion: String,
    #[serde(default)]
    differences: Vec<String>,
    rows: Vec<Row>,
}

#[derive(Clone, Debug, Deserialize)]
struct Row {
    metric: String,
    baseline: Option<f64>,
    candidate: Option<f64>,
    change: Option<f64>,
    noise: Option<f64>,
    verdict: String,
}

/// Makes a table of comparisons with the same first run.
pub(super) fn comparison(
    text: &str,
    runs: Vec<BenchmarkRun>,
) -> Result<BenchmarkComparison, serde_json::Error> {
    let compared: Vec<Compared> = serde_json::from_str(text)?;
    let mut names: Vec<&str> = Vec::new();
    for row in compared.iter().flat_map(|of| &of.rows) {
        if !names.contains(&row.metric.as_str()) {
            names.push(&row.metric);
        }
    }
    let rows = names.iter().map(|name| row_of(name, &compared)).collect();
    let mut differences: Vec<String> = Vec::new();
    for difference in compared.iter().flat_map(|of| &of.differences) {
        if !differences.contains(difference) {
            differences.push(difference.clone());
        }
    }
    Ok(BenchmarkComparison {
        runs,
        rows,
        why_not_comparable: differences,
        conclusions: compared.into_iter().map(|of| of.conclusion).collect(),
    })
}

fn row_of(name: &str, compared: &[Compared]) -> BenchmarkComparisonRow {
    let of_each: Vec<Option<&Row>> = compared
        .iter()
        .map(|of| of.rows.iter().find(|row| row.metric == name))
        .collect();
    let each = |figure: fn(&Row) -> Option<f64>| -> Vec<Option<f64>> {
        of_each.iter().map(|row| row.and_then(figure)).collect()
    };
    let first = of_each.iter().flatten().find_map(|row| row.baseline);
    let metric = metric::find(name);
    BenchmarkComparisonRow {
        what: name.to_owned(),
        unit: metric
            .map_or("count", |metric| unit(metric.unit))
            .to_owned(),
        better: metric.and_then(|metric| match metric.better {
            Better::Higher => Some("higher".to_owned()),
            Better::Lower => Some("lower".to_owned()),
            Better::Neither => None,
        }),
        values: std::iter::once(first)
            .chain(each(|row| row.candidate))
            .collect(),
        delta_ratio: each(|row| row.change),
        noise_ratio: each(|row| row.noise),
        verdict: of_each
            .iter()
            .map(|row| match row.map(|row| row.verdict.as_str()) {
                Some(known @ ("better" | "worse" | "same")) => known.to_owned(),
                _ => "unknown".to_owned(),
            })
            .collect(),
    }
}

const fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Nanoseconds => "ns",
        Unit::Microseconds => "us",
        Unit::Seconds => "secs",
        Unit::PerSecond => "per_sec",
        Unit::Count => "count",
        Unit::Share => "ratio",
        Unit::Bytes => "bytes",
        Unit::Cores => "cores",
    }
}

#[cfg(test)]
mod tests {
    use thrum_report::RunResult;
    use thrum_report::compare::{Comparison, json};

    use super::*;

    #[test]
    fn further_runs_are_columns_of_one_table() {
        let compared = |candidate: f64, verdict: &str, difference: &str| {
            serde_json::json!({
                "conclusion": verdict,
                "differences": [difference],
                "rows": [{
                    "metric": "lost",
                    "baseline": 0.0,
                    "candidate": candidate,
                    "change": null,
                    "noise": 0.5,
                    "verdict": verdict,
                }],
            })
        };
        let both = [
            compared(1.0, "worse", "hold differs"),
            compared(0.0, "not-comparable", "hold differs"),
        ];
        let text = serde_json::to_string(&both).unwrap();
        let table = comparison(&text, Vec::new()).unwrap();
        let lost = &table.rows[0];
        assert_eq!(lost.values, [Some(0.0), Some(1.0), Some(0.0)]);
        assert_eq!(
            (lost.unit.as_str(), lost.better.as_deref()),
            ("count", Some("lower"))
        );
        assert_eq!(lost.verdict, ["worse", "unknown"]);
        assert_eq!(lost.noise_ratio, [Some(0.5), Some(0.5)]);
        assert_eq!(table.why_not_comparable, ["hold differs"]);
        assert_eq!(table.conclusions, ["worse", "not-comparable"]);
    }

    #[test]
    fn what_the_command_prints_can_be_read() {
        let mut run = RunResult::default();
        run.fill_metrics();
        let others = [Comparison::new(&[run.clone()], &[run])];
        let table = comparison(&json(&others), Vec::new()).unwrap();
        assert!(table.rows.iter().any(|row| row.what == "lost"));
    }
}
