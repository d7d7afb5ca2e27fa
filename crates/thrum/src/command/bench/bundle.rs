//! `thrum bench bundle|verify|diff`: runs in one file.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use thrum_report::RunResult;
use thrum_report::bundle::{self, Bundle, BundleError, FILE_NAME};
use thrum_report::compare::Comparison;

use super::compare::{self, ShowArgs};
use super::complaint::{Complaint, NOT_INTACT};
use super::{bundle_verdict, folders};

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
    writeln!(io::stdout(), "{}", path.display())?;
    Ok(0)
}

/// Writes the bundle of a run folder into it, or to `file`; returns its path.
pub(super) fn write(folder: &Path, file: Option<&Path>) -> anyhow::Result<PathBuf> {
    let packed = bundle::pack(folder).map_err(|error| refused(folder, &error))?;
    bundle_verdict::check(&packed.bundle.run).map_err(|what| contradiction(folder, &what))?;
    let path = file.map_or_else(|| folder.join(FILE_NAME), Path::to_owned);
    write_whole(&path, &packed.bytes)
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Nobody sees half a bundle. One that was left by an interrupted command, or a link of that name,
/// is replaced; one that cannot be finished is removed.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().unwrap_or(path.as_os_str());
    let part = path.with_file_name(format!(".{}.part", name.to_string_lossy()));
    match fs::remove_file(&part) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::create_new(&part)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_data())
        .and_then(|()| fs::rename(&part, path));
    if written.is_err() {
        // The first error is the one to report.
        fs::remove_file(&part).ok();
    }
    written
}

/// Checks a bundle and says what was checked.
pub(super) fn verify(args: &VerifyArgs) -> anyhow::Result<u8> {
    let bundle = read(&args.bundle)?;
    let mut out = io::stdout().lock();
    for check in &bundle.checks {
        writeln!(out, "  ✓ {}", one_line(check))?;
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
    let mut bundle = bundle::read(path).map_err(|error| refused(path, &error))?;
    let checks = bundle_verdict::check(&bundle.run).map_err(|what| contradiction(path, &what))?;
    bundle.checks.extend(checks);
    let run = printable(bundle.run).map_err(Complaint::usage)?;
    Ok(Bundle { run, ..bundle })
}

/// Texts of several lines; everywhere else a line break would forge lines of the output.
const OF_SEVERAL_LINES: [&str; 2] = ["configuration", "toml"];

/// The run with harmless texts.
fn printable(mut run: RunResult) -> serde_json::Result<RunResult> {
    // They have no texts, and would take gigabytes as values.
    let series = std::mem::take(&mut run.series);
    let mut value = serde_json::to_value(run)?;
    clean(&mut value, false);
    let run = serde_json::from_value(value)?;
    Ok(RunResult { series, ..run })
}

fn clean(value: &mut Value, has_lines: bool) {
    match value {
        Value::String(text) => *text = plain(text, has_lines),
        Value::Array(values) => values.iter_mut().for_each(|value| clean(value, has_lines)),
        Value::Object(fields) => {
            let cleaned = std::mem::take(fields).into_iter().map(|(name, mut value)| {
                clean(&mut value, OF_SEVERAL_LINES.contains(&name.as_str()));
                (one_line(&name), value)
            });
            *fields = cleaned.collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn one_line(text: &str) -> String {
    plain(text, false)
}

/// A text without characters that command a terminal or change the order of others.
fn plain(text: &str, has_lines: bool) -> String {
    let is_harmless = |letter: char| match letter {
        '\n' | '\t' => has_lines,
        // The marks, embeddings, overrides and isolates of right-to-left text, and the separators
        // of lines and paragraphs.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            false
        }
        letter => !letter.is_control(),
    };
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

/// Parts of a bundle that deny each other.
fn contradiction(path: &Path, what: &str) -> Complaint {
    let path = path.display();
    let message = format!("{path}: its parts contradict each other: {what}");
    Complaint::new(one_line(&message), NOT_INTACT)
}

fn refused(path: &Path, error: &BundleError) -> Complaint {
    match error {
        // The error names the file.
        BundleError::Read { .. } => Complaint::usage(error),
        _ => Complaint::new(
            one_line(&format!("{}: {error}", path.display())),
            NOT_INTACT,
        ),
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
        run.started = "now\n  intact\u{202e}\u{2066}\u{200f}".to_owned();
        run.series = vec![thrum_report::result::Second::default()];
        let shown = printable(run.clone()).unwrap();
        assert_eq!(shown.scenario.name, "a\u{fffd}[2Jb\u{fffd}");
        assert_eq!(shown.started, "now\u{fffd}  intact\u{fffd}\u{fffd}\u{fffd}");
        assert_eq!(shown.series, run.series);
        assert_eq!(shown.scenario.toml, run.scenario.toml);
        assert!(shown.metrics.contains_key("x\u{fffd}"));
    }

    #[test]
    fn a_part_that_was_left_behind_is_replaced_and_none_is_left() {
        let name = format!("thrum-bundle-part-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let (path, part) = (folder.join("a.mbench"), folder.join(".a.mbench.part"));
        let other = folder.join("other");
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &part).unwrap();
        write_whole(&path, b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read(&other).unwrap(), b"kept");
        assert!(!part.exists());
        // A folder of that name cannot be replaced.
        fs::create_dir(folder.join("b.mbench")).unwrap();
        assert!(write_whole(&folder.join("b.mbench"), b"whole").is_err());
        assert!(!folder.join(".b.mbench.part").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
