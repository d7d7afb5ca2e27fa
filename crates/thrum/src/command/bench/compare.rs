//! `thrum bench compare`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use thrum_report::RunResult;
use thrum_report::compare::{self, Comparison};

use super::complaint::{Complaint, INVALID, THRESHOLDS};
use super::folders::{self, Kept};

const EXAMPLES: &str = "\
Examples:
  thrum bench compare runs/before runs/after                 one run a side
  thrum bench compare a1 a2 a3 a4 --against b1 b2 b3 b4      several runs a side: A and B
  thrum bench compare runs/a runs/b runs/c                   each with the first";

/// Most runs of one comparison.
const RUNS_MAX: usize = 26;

/// Arguments of `thrum bench compare`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct CompareArgs {
    /// The first run, A: a folder, a name or `latest`.
    #[arg(value_name = "RUN")]
    first: String,
    /// Runs that are each compared with the first; further runs of A if `--against` is given.
    #[arg(
        value_name = "RUN",
        num_args = 1..RUNS_MAX,
        required_unless_present = "against"
    )]
    others: Vec<String>,
    /// The runs of B, all together compared with the runs of A. Alternate the runs of A and B on an
    /// idle machine; 3 runs a side are the least that can raise an alarm by their spread, 4 find
    /// more.
    #[arg(long, value_name = "RUN", num_args = 1..=RUNS_MAX)]
    against: Vec<String>,
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
    #[command(flatten)]
    show: ShowArgs,
}

/// What is shown of a comparison.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Compare runs of different conditions (scenario, load, machine, hold, version), with a
    /// warning for each.
    #[arg(long)]
    allow_different: bool,
    #[command(flatten)]
    form: Form,
    /// End with exit code 99 if B broke a promise that A kept, or if its latency, rate, CPU or
    /// memory got worse by more than noise explains (equal brokers: at most 5 % of comparisons),
    /// and with 7 if a run is INVALID.
    #[arg(long)]
    fail: bool,
}

/// The form that is printed; text for the terminal if neither is given.
#[derive(Debug, Args)]
struct Form {
    /// Print the comparison as JSON.
    #[arg(long)]
    json: bool,
    /// Print the comparison as Markdown.
    #[arg(long, conflicts_with = "json")]
    md: bool,
}

/// Compares.
pub(super) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    show(&comparisons(args)?, &args.show)
}

/// Prints comparisons; returns the exit code.
pub(super) fn show(comparisons: &[Comparison], args: &ShowArgs) -> anyhow::Result<u8> {
    if !args.allow_different {
        refuse_different(comparisons)?;
    }
    let text = match (args.form.json, args.form.md) {
        (true, _) => compare::json(comparisons),
        (false, true) => compare::markdown(comparisons),
        (false, false) => compare::text(comparisons),
    };
    writeln!(std::io::stdout(), "{}", text.trim_end())?;
    Ok(if args.fail { exit_code(comparisons) } else { 0 })
}

fn comparisons(args: &CompareArgs) -> anyhow::Result<Vec<Comparison>> {
    let find = |runs: &[String]| -> anyhow::Result<Vec<Kept>> {
        runs.iter()
            .map(|run| folders::find(run, &args.out))
            .collect()
    };
    let mut left = find(std::slice::from_ref(&args.first))?;
    let others = find(&args.others)?;
    if args.against.is_empty() {
        let baseline = results(&left);
        return Ok(results(&others)
            .iter()
            .map(|run| Comparison::new(&baseline, std::slice::from_ref(run)))
            .collect());
    }
    left.extend(others);
    let right = find(&args.against)?;
    refuse_repeated(&left, &right)?;
    Ok(vec![Comparison::new(&results(&left), &results(&right))])
}

fn results(runs: &[Kept]) -> Vec<RunResult> {
    runs.iter().map(|kept| kept.result.clone()).collect()
}

/// A run that counts twice would make the spread of its side too small.
fn refuse_repeated(left: &[Kept], right: &[Kept]) -> Result<(), Complaint> {
    let runs: Vec<&Kept> = left.iter().chain(right).collect();
    for (index, run) in runs.iter().enumerate() {
        if runs[..index]
            .iter()
            .any(|before| before.folder == run.folder)
        {
            return Err(Complaint::usage(format!(
                "run {} is given twice",
                run.folder.display()
            )));
        }
    }
    Ok(())
}

fn refuse_different(comparisons: &[Comparison]) -> Result<(), Complaint> {
    let different = comparisons
        .iter()
        .find(|comparison| !comparison.differences.is_empty());
    let Some(comparison) = different else {
        return Ok(());
    };
    Err(Complaint::usage(format!(
        "the runs are not comparable (A | B):\n  {}\n`--allow-different` compares them all the same",
        comparison.differences.join("\n  ")
    )))
}

/// 99 where B is worse than A, 7 where a run is INVALID.
pub(super) fn exit_code(comparisons: &[Comparison]) -> u8 {
    let has_regressions = |of: &Comparison| !of.regressions().is_empty();
    if comparisons.iter().any(has_regressions) {
        THRESHOLDS
    } else if comparisons.iter().all(|comparison| comparison.is_valid) {
        0
    } else {
        INVALID
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(lost: u64, is_valid: bool) -> RunResult {
        let mut run = RunResult::default();
        run.validity.valid = is_valid;
        run.verdict.pass = true;
        run.delivery.expected = 1_000;
        run.delivery.delivered = 1_000 - lost;
        run.delivery.lost = lost;
        if lost > 0 {
            run.verdict.faults = vec![format!("messages lost: {lost}")];
        }
        run.fill_metrics();
        run
    }

    fn compared(candidate: &RunResult) -> Vec<Comparison> {
        vec![Comparison::new(
            &[run(0, true)],
            std::slice::from_ref(candidate),
        )]
    }

    #[test]
    fn broken_promises_and_invalid_runs_fail_a_build() {
        for (candidate, code) in [
            (run(0, true), 0),
            (run(1, true), THRESHOLDS),
            (run(1, false), INVALID),
        ] {
            assert_eq!(exit_code(&compared(&candidate)), code);
        }
    }

    #[test]
    fn different_conditions_are_refused_with_the_line_that_differs() {
        assert!(refuse_different(&compared(&run(0, true))).is_ok());
        let mut other = run(0, true);
        other.scenario.stages.hold = 30.0;
        let refusal = refuse_different(&compared(&other)).unwrap_err();
        assert!(
            refusal
                .to_string()
                .contains("\n  hold differs: 0 s | 30 s\n"),
            "{refusal}"
        );
    }

    #[test]
    fn a_run_counts_once() {
        let kept = |folder: &str| Kept {
            folder: folder.into(),
            result: RunResult::default(),
        };
        assert!(refuse_repeated(&[kept("a")], &[kept("b")]).is_ok());
        for (left, right) in [(["a", "a"], "b"), (["a", "b"], "a")] {
            let refusal = refuse_repeated(&left.map(kept), &[kept(right)]).unwrap_err();
            assert_eq!(refusal.to_string(), "run a is given twice");
        }
    }
}
