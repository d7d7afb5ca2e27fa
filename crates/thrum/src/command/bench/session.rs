//! Scenarios run one after the other: progress, summary, stored results, and the exit code.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use anyhow::Context as _;
use thrum_bench::observe::{Command, Observer};
use thrum_load::scenario::Scenario;
use thrum_report::RunResult;
use thrum_report::compat::{Compat, WithCompat};

use super::arguments::{CompatTool, MeasureArgs, OutputArgs, ReportArgs, TargetArgs};
use super::bundle;
use super::changes;
use super::complaint::{Complaint, INTERRUPTED, NOT_INTACT};
use super::engine::{Engine, Finished};
use super::folders::{self, Kept};
use super::interrupt;
use super::live_lines::{self, LiveLines};
use super::overall::{After, Overall, Series};
use super::results::{self, Form, Forms, Place};

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
    let session = Session {
        output,
        reports,
        baseline,
    };
    Ok(session.run(&engine(target, measure)?, scenarios)?.exit_code)
}

/// The engine of these flags, which ^C ends.
pub(super) fn engine(target: &TargetArgs, measure: &MeasureArgs) -> anyhow::Result<Engine> {
    Engine::new(target, measure, interrupt::flag()?)
}

/// What is done with every run.
pub(super) struct Session<'a> {
    pub(super) output: &'a OutputArgs,
    pub(super) reports: &'a ReportArgs,
    /// The run that each is compared with.
    pub(super) baseline: Option<Kept>,
}

/// The end of a session.
pub(super) struct Ended {
    /// The runs that have figures.
    pub(super) results: Vec<RunResult>,
    /// The most serious exit code.
    pub(super) exit_code: u8,
}

impl Session<'_> {
    /// Runs scenarios until the last one or ^C, which ends all of them.
    pub(super) fn run(&self, engine: &Engine, scenarios: Vec<Scenario>) -> anyhow::Result<Ended> {
        let (mut results, mut series) = (Vec::new(), Series::begin());
        // After the password, which may be the first line of the same input.
        let changes = if self.reports.changes {
            Some(changes::read_standard_input()?)
        } else {
            None
        };
        let mut lacking = None;
        let total = scenarios.len();
        let mut rest = scenarios.into_iter();
        while let Some(scenario) = rest.next() {
            let number = total - rest.len();
            let overall = (total > 1).then(|| {
                let after = [After::of(rest.as_slice()); 2];
                series.next_run(format!("run {number}/{total}"), &scenario, after)
            });
            match self.run_one(engine, scenario, overall, changes.as_ref()) {
                Ok((result, not_stored)) => {
                    results.push(result);
                    lacking = not_stored.as_ref().map(Complaint::code).max(lacking);
                    tell(not_stored.as_ref())?;
                }
                Err(error) if engine.is_interrupted() => {
                    writeln!(std::io::stderr(), "{error:#}")?;
                }
                Err(error) => return Err(error),
            }
            if engine.is_interrupted() {
                break;
            }
        }
        let is_for_people = !self.output.json && self.reports.progress.is_none();
        if total > 1 && !results.is_empty() && is_for_people {
            let table = thrum_report::table(&results);
            writeln!(std::io::stdout(), "\n{table}")?;
        }
        if engine.is_interrupted() && total > 1 {
            let begun = results.len();
            writeln!(std::io::stderr(), "interrupted in run {begun} of {total}")?;
        }
        let codes = results.iter().map(|result| result.exit_code);
        let exit_code = match (engine.is_interrupted(), lacking) {
            (true, _) => INTERRUPTED,
            (false, Some(code)) => code,
            (false, None) => codes.max().unwrap_or(0),
        };
        Ok(Ended { results, exit_code })
    }

    /// Runs a scenario; the result, and why it is not stored.
    fn run_one(
        &self,
        engine: &Engine,
        scenario: Scenario,
        overall: Option<Overall>,
        changes: Option<&Receiver<Command>>,
    ) -> anyhow::Result<(RunResult, Option<Complaint>)> {
        let is_quiet = (self.output.json && self.output.no_tui) || self.reports.progress.is_some();
        if let Some(overall) = overall.as_ref().filter(|_| !is_quiet) {
            let name = &scenario.name;
            writeln!(std::io::stderr(), "{name}: {}", overall.text(None))?;
        }
        let title = format!("{} → {}", scenario.alias, engine.target());
        let mut observer: Box<dyn Observer + '_> = if self.reports.progress.is_some() {
            live_lines::begin(&scenario, &engine.target());
            Box::new(LiveLines::new(self.output.note.clone(), changes))
        } else {
            engine.observer(self.output, "", &title, overall)
        };
        let run = engine.run(scenario, &self.output.out, &mut *observer);
        // The terminal is given back before anything is printed.
        drop(observer);
        let run = run?;
        let not_stored = self.publish(&run)?;
        Ok((run.result, not_stored))
    }

    /// Keeps a run and shows it; returns why it is not kept.
    fn publish(&self, run: &Finished) -> anyhow::Result<Option<Complaint>> {
        let baseline = self.baseline.as_ref();
        let template = self.reports.template.as_deref();
        let compat = compat(self.reports.compat, &run.result)?;
        let place = Place {
            parent: &self.output.out,
            baseline,
            template,
            compat: compat.as_ref(),
        };
        let kept = results::keep(run, &place);
        // A result that cannot be stored is shown all the same.
        let folder = kept.as_deref().ok().map(Path::to_owned);
        let written = kept.and_then(|folder| write_reports(run, self.reports, &folder));
        if self.reports.progress.is_some() {
            live_lines::end(&run.result, folder.as_deref());
        } else {
            print(run, self.output, folder.as_deref(), &place)?;
        }
        let Err(error) = written else {
            return Ok(None);
        };
        match error.downcast::<Complaint>() {
            // A bundle that contradicts itself says nothing about the runs that follow.
            Ok(complaint) if complaint.code() == NOT_INTACT => Ok(Some(complaint)),
            Ok(complaint) => Err(complaint.into()),
            Err(error) => Complaint::not_stored(error).map(Some),
        }
    }
}

/// Tells that a run is not stored. The series goes on: what was shown is kept at least there, and
/// space may be freed meanwhile.
fn tell(not_stored: Option<&Complaint>) -> std::io::Result<()> {
    match not_stored {
        Some(complaint) => writeln!(std::io::stderr(), "error: {complaint}"),
        None => Ok(()),
    }
}

fn print(
    run: &Finished,
    output: &OutputArgs,
    folder: Option<&Path>,
    place: &Place<'_>,
) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if output.json {
        let with = WithCompat {
            run: &run.result,
            compat: place.compat,
        };
        let json = serde_json::to_string(&with).context("the result cannot be written as JSON")?;
        writeln!(out, "{json}")?;
        return Ok(());
    }
    write!(out, "{}", results::summary(run, place.baseline))?;
    if let Some(compat) = place.compat {
        writeln!(out, "{}", compat.xmeter.text(&run.result))?;
    }
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

/// The figures of the other tool that is named, if one is.
pub(super) fn compat(
    tool: Option<CompatTool>,
    result: &RunResult,
) -> Result<Option<Compat>, Complaint> {
    let compat = match tool {
        None => return Ok(None),
        Some(CompatTool::Xmeter) => Compat::xmeter(result),
    };
    compat.map(Some).map_err(Complaint::usage)
}

/// Writes the bundle and the picture, if the flags ask for them.
fn write_reports(run: &Finished, reports: &ReportArgs, folder: &Path) -> anyhow::Result<()> {
    if reports.bundle {
        bundle::write(folder, None)?;
    }
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
