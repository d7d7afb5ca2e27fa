//! `thrum bench bundle|verify|diff`: runs in one file.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use thrum_report::RunResult;
use thrum_report::bundle::{self, Bundle, BundleError, FILE_NAME};
use thrum_report::compare::Comparison;

use super::compare::{self, ShowArgs};
use super::complaint::{Complaint, NOT_INTACT};
use super::folders;

const BUNDLE_EXAMPLES: &str = "\
Examples:
  thrum bench bundle latest                                  run.mbench in the folder of the run
  thrum bench bundle latest --file p2p.mbench";

const VERIFY_EXAMPLES: &str = "\
Examples:
  thrum bench verify run.mbench                              0: intact, 8: changed or contradictory";

const DIFF_EXAMPLES: &str = "\
Examples:
  thrum bench diff before.mbench after.mbench
  thrum bench diff theirs.mbench ours.mbench --allow-different --md";

/// Arguments of `thrum bench bundle`.
#[derive(Debug, Args)]
#[command(before_help = BUNDLE_EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct BundleArgs {
    /// The run: its folder, its name or `latest`.
    #[arg(value_name = "RUN")]
    run: String,
    /// The file to write [default: run.mbench in the run's folder].
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Folder of the run folders.
    #[arg(long, value_name = "DIR", default_value = folders::RUNS)]
    out: PathBuf,
}

/// Arguments of `thrum bench verify`.
#[derive(Debug, Args)]
#[command(before_help = VERIFY_EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct VerifyArgs {
    /// The bundle.
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
}

/// Arguments of `thrum bench diff`.
#[derive(Debug, Args)]
#[command(before_help = DIFF_EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct DiffArgs {
    /// The bundle to compare with: A.
    #[arg(value_name = "BUNDLE")]
    first: PathBuf,
    /// The bundle that is compared: B.
    #[arg(value_name = "BUNDLE")]
    second: PathBuf,
    #[command(flatten)]
    show: ShowArgs,
}

/// Packs a run that was kept.
pub(super) fn run(args: &BundleArgs) -> anyhow::Result<u8> {
    let kept = folders::find(&args.run, &args.out)?;
    let path = write(&kept.folder, args.file.as_deref())?;
    writeln!(std::io::stdout(), "{}", path.display())?;
    Ok(0)
}

/// Writes the bundle of a run folder into it, or to `file`; returns its path.
pub(super) fn write(folder: &Path, file: Option<&Path>) -> anyhow::Result<PathBuf> {
    let bytes = bundle::pack(folder).map_err(|error| refused(folder, &error))?;
    let path = file.map_or_else(|| folder.join(FILE_NAME), Path::to_owned);
    let name = path.file_name().unwrap_or(path.as_os_str());
    let part = path.with_file_name(format!(".{}.part", name.to_string_lossy()));
    // Nobody sees half a bundle.
    fs::write(&part, bytes)
        .and_then(|()| fs::rename(&part, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Checks a bundle and says what was checked.
pub(super) fn verify(args: &VerifyArgs) -> anyhow::Result<u8> {
    let bundle = read(&args.bundle)?;
    let mut out = std::io::stdout().lock();
    for check in &bundle.checks {
        writeln!(out, "  ✓ {check}")?;
    }
    writeln!(
        out,
        "\n{} is intact: {}, {}",
        args.bundle.display(),
        bundle.run.scenario.name,
        bundle.run.started
    )?;
    Ok(0)
}

/// Compares two bundles.
pub(super) fn diff(args: &DiffArgs) -> anyhow::Result<u8> {
    let [first, second] = [read(&args.first)?, read(&args.second)?];
    let comparison = Comparison::new(&[first.run], &[second.run]);
    compare::show(&[comparison], &args.show)
}

/// Reads a bundle, which stands all checks. It may come from anyone: its texts are shown without
/// characters that command a terminal.
pub(super) fn read(path: &Path) -> Result<Bundle, Complaint> {
    let bundle = bundle::read(path).map_err(|error| refused(path, &error))?;
    let run = printable(&bundle.run).map_err(Complaint::usage)?;
    Ok(Bundle { run, ..bundle })
}

fn printable(run: &RunResult) -> serde_json::Result<RunResult> {
    let mut value = serde_json::to_value(run)?;
    clean(&mut value);
    serde_json::from_value(value)
}

fn clean(value: &mut Value) {
    match value {
        Value::String(text) => *text = plain(text),
        Value::Array(values) => values.iter_mut().for_each(clean),
        Value::Object(fields) => {
            let cleaned = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                clean(&mut value);
                (plain(&name), value)
            });
            *fields = cleaned.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn plain(text: &str) -> String {
    let is_harmless = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    let letters = text.chars();
    letters
        .map(|letter| {
            if is_harmless(letter) {
                letter
            } else {
                '\u{fffd}'
            }
        })
        .collect()
}

fn refused(path: &Path, error: &BundleError) -> Complaint {
    match error {
        // The error names the file.
        BundleError::Read { .. } => Complaint::usage(error),
        _ => Complaint::new(plain(&format!("{}: {error}", path.display())), NOT_INTACT),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_a_bundle_command_no_terminal() {
        let mut run = RunResult::default();
        run.scenario.name = "a\u{1b}[2Jb\u{9b}".to_owned();
        run.scenario.toml = "a = 1\n\tb = 2\n".to_owned();
        run.metrics.insert("x\u{7}".to_owned(), 0.1);
        let shown = printable(&run).unwrap();
        assert_eq!(shown.scenario.name, "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(shown.scenario.toml, run.scenario.toml);
        assert!(shown.metrics.contains_key("x\u{fffd}"));
    }
}
