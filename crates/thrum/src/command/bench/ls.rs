//! `thrum bench ls`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use thrum_figures::{latency, rate};
use thrum_report::RunResult;

use super::folders;

const EXAMPLES: &str = "\
Examples:
  thrum bench ls                           the runs in ./runs
  thrum bench ls --out /srv/runs --json";

/// Arguments of `thrum bench ls`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct LsArgs {
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
    /// One line of JSON for each run.
    #[arg(long)]
    json: bool,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let names = folders::names(&args.out)?;
    for name in &names {
        match folders::read(&args.out.join(name)) {
            Ok(kept) if args.json => writeln!(out, "{}", json(name, &kept.result))?,
            Ok(kept) => writeln!(out, "  {}", line(name, &kept.result))?,
            // One run that cannot be read does not hide the others.
            Err(error) => writeln!(std::io::stderr(), "  {name}: {error:#}")?,
        }
    }
    if !args.json {
        let folder = args.out.display();
        match names.last() {
            Some(name) => writeln!(out, "\nShow one: thrum bench show {name}")?,
            None => writeln!(out, "no runs in {folder}; make one: thrum bench run p2p-1K")?,
        }
    }
    Ok(0)
}

fn line(name: &str, result: &RunResult) -> String {
    let validity = match result.validity.valid {
        _ if result.is_without_figures() => "",
        true => "VALID",
        false => "INVALID",
    };
    let verdict = result.verdict_word();
    let thresholds = result.thresholds.iter();
    let missed = thresholds.filter(|threshold| threshold.is_missed(&result.validity));
    let missed = match missed.count() {
        0 => String::new(),
        number => format!("  {number} thresholds missed"),
    };
    format!(
        "{name:<52}  {validity:<7}  {verdict}  {:>12}  p99 {}{missed}",
        rate(result.rates.received),
        p99(result).map_or_else(|| "-".to_owned(), latency)
    )
}

fn p99(result: &RunResult) -> Option<u64> {
    let (_, judged) = result.latency_ns.main()?;
    let is_withheld = judged.withheld.contains_key("p99");
    (!is_withheld).then_some(judged.quantiles.p99)
}

fn json(name: &str, result: &RunResult) -> serde_json::Value {
    serde_json::json!({
        "name": name,
        "started": result.started,
        "scenario": result.scenario.name,
        "valid": result.validity.valid,
        "pass": result.verdict.pass,
        "exit_code": result.exit_code,
        "received_per_second": result.rates.received,
        "p99_ns": p99(result),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_whether_a_run_counts_and_its_rate() {
        let mut result = RunResult::default();
        result.verdict.pass = true;
        result.rates.received = 1_000.0;
        let text = line("run", &result);
        assert!(
            text.contains("INVALID  PASS") && text.contains("1 000/s"),
            "{text}"
        );
        assert_eq!(json("run", &result)["valid"], false);
    }
}
