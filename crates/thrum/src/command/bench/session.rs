//! Scenarios run one after the other: progress, summary, stored results, and the exit code.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thrum_load::scenario::Scenario;

use super::arguments::{MeasureArgs, OutputArgs, ReportArgs, TargetArgs};
use super::complaint::{Complaint, NOT_STORED};
use super::engine::{Engine, Finished};
use super::folders::{self, Kept};
use super::interrupt;
use super::results::{self, Form, Forms};

/// Runs scenarios; returns the most serious exit code.
pub(super) fn run_all(
    scenarios: Vec<Scenario>,
    target: &TargetArgs,
    measure: &MeasureArgs,
    output: &OutputArgs,
    reports: &ReportArgs,
) -> anyhow::Result<u8> {
    if reports.png {
        // Not after a run of an hour.
        thrum_report::png::require().map_err(Complaint::usage)?;
    }
    let baseline = reports.baseline.as_deref();
    let baseline = baseline
        .map(|run| folders::find(run, &output.out))
        .transpose()?;
    let engine = Engine::new(target, measure, interrupt::flag(true)?)?;
    let mut finished = Vec::new();
    for scenario in scenarios {
        let title = format!("{} → {}", scenario.name, engine.target());
        let mut observer = engine.observer(output, "", &title);
        let run = engine.run(scenario, &output.out, &mut *observer);
        // The terminal is given back before anything is printed.
        drop(observer);
        let run = run?;
        let template = reports.template.as_deref();
        let kept = results::keep(&run, &output.out, baseline.as_ref(), template);
        let kept = kept.and_then(|folder| write_reports(&run, reports, &folder).map(|()| folder));
        // A result that cannot be stored is shown all the same.
        print(&run, output, kept.as_deref().ok(), baseline.as_ref())?;
        kept.map_err(not_stored)?;
        finished.push(run.result);
        if engine.is_interrupted() {
            break;
        }
    }
    if finished.len() > 1 && !output.json {
        let table = thrum_report::table(&finished);
        writeln!(std::io::stdout(), "\n{table}")?;
    }
    let codes = finished.iter().map(|result| result.exit_code);
    Ok(codes.max().unwrap_or(0))
}

fn print(
    run: &Finished,
    output: &OutputArgs,
    folder: Option<&Path>,
    baseline: Option<&Kept>,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if output.json {
        let json =
            serde_json::to_string(&run.result).context("the result cannot be written as JSON")?;
        writeln!(out, "{json}")?;
        return Ok(());
    }
    write!(out, "{}", results::summary(run, baseline))?;
    let Some(folder) = folder else {
        return Ok(());
    };
    writeln!(
        out,
        "  report {}          exit {}",
        folder.join("report.html").display(),
        run.result.exit_code
    )?;
    writeln!(
        out,
        "  next   thrum bench compare {} ANOTHER",
        folder.display()
    )?;
    Ok(())
}

/// The error of a run that has figures and no files; wrong usage stays what it is.
fn not_stored(error: anyhow::Error) -> anyhow::Error {
    if error.is::<Complaint>() {
        return error;
    }
    // Some errors contain the text of their cause.
    let (what, cause) = (error.to_string(), error.root_cause().to_string());
    let cause = if what.ends_with(&cause) {
        String::new()
    } else {
        format!(": {cause}")
    };
    let message = format!(
        "the run has ended, but its result is not stored: {what}{cause}; free some space, or name another folder with --out"
    );
    Complaint::new(message, NOT_STORED).into()
}

/// Writes the picture, if the flags ask for it.
fn write_reports(run: &Finished, reports: &ReportArgs, folder: &Path) -> anyhow::Result<()> {
    if !reports.png {
        return Ok(());
    }
    let kept = Kept {
        folder: folder.to_owned(),
        result: run.result.clone(),
    };
    let forms = Forms {
        asked: vec![Form::Png],
        template: None,
        window: None,
    };
    write_forms(&kept, &forms).map(|_| ())
}

/// Writes the reports into the run's folder and returns their paths.
pub(super) fn write_forms(kept: &Kept, forms: &Forms<'_>) -> anyhow::Result<Vec<PathBuf>> {
    let mut written = Vec::new();
    for (name, content) in results::reports(kept, forms)? {
        let path = kept.folder.join(&name);
        std::fs::write(&path, content)
            .with_context(|| format!("cannot write {}", path.display()))?;
        written.push(path);
    }
    Ok(written)
}
