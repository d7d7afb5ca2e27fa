//! Runs against brokers that are started for them, which `versus` and `page` share.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use thrum_bench::preflight;
use thrum_compare::versus::{
    self, BUILT_IN, BrokerFile, Ended, Entry, Installed, LaunchError, Running,
};
use thrum_load::scenario::Scenario;

use super::arguments::{MeasureArgs, OutputArgs, TargetArgs};
use super::complaint::{Complaint, USAGE};
use super::engine::Engine;
use super::overall::Overall;
use super::results::{self, Place};
use super::{folders, interrupt};

/// Name of the built-in file in messages.
const BUILT_IN_NAME: &str = "the built-in list";

/// Why a run has no figures that ^C ended.
const INTERRUPTED: &str = "interrupted";

/// The brokers of a file, those of these names or, without names, those that run by default.
pub(super) fn brokers(
    file: Option<&Path>,
    names: &[String],
) -> anyhow::Result<Vec<versus::Broker>> {
    let (text, origin) = match file {
        None => (BUILT_IN.to_owned(), BUILT_IN_NAME.to_owned()),
        Some(path) => {
            let text = fs::read_to_string(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            (text, path.display().to_string())
        }
    };
    let file = BrokerFile::parse(&text, &origin).map_err(Complaint::usage)?;
    let file = if names.is_empty() {
        file.by_default()
    } else {
        file.only(names, &origin).map_err(Complaint::usage)?
    };
    Ok(file.brokers)
}

/// All of them with their versions, and those whose programs are on this machine.
pub(super) fn installed(
    brokers: Vec<versus::Broker>,
) -> anyhow::Result<(Vec<Entry>, Vec<Installed>)> {
    let own = std::env::current_exe().context("this program cannot be found")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let mut entries = Vec::new();
    let mut installed = Vec::new();
    for broker in brokers {
        let found = broker.find(&path, &own).map(|program| Installed {
            broker: broker.clone(),
            program,
        });
        entries.push(entry(&broker, found.as_ref()));
        installed.extend(found);
    }
    Ok((entries, installed))
}

fn entry(broker: &versus::Broker, installed: Option<&Installed>) -> Entry {
    Entry {
        name: broker.name.clone(),
        version: installed.map_or_else(String::new, Installed::version),
        installed: installed.is_some(),
        obtain: broker.obtain.clone(),
        license: broker.license.clone(),
        note: broker.note.clone(),
    }
}

/// Starts brokers, runs scenarios against them and keeps the runs below a folder.
pub(super) struct Launcher<'a> {
    pub(super) engine: Engine,
    pub(super) output: &'a OutputArgs,
    pub(super) folder: PathBuf,
}

/// A run of a series.
pub(super) struct Launched<'a> {
    pub(super) installed: &'a Installed,
    pub(super) version: &'a str,
    pub(super) scenario: &'a Scenario,
    /// Heading of the live view: the scenario, the broker, the round.
    pub(super) title: String,
    pub(super) overall: Overall,
    /// Command for the scenario's hooks, with the placeholders of the file of brokers.
    pub(super) on_fault: Option<&'a str>,
}

impl<'a> Launcher<'a> {
    /// An engine for these scenarios; its brokers will inherit the limit of open files.
    pub(super) fn new<'s>(
        scenarios: impl Iterator<Item = &'s Scenario>,
        threads: Option<u32>,
        output: &'a OutputArgs,
        folder: PathBuf,
    ) -> anyhow::Result<Self> {
        let clients = scenarios.map(Scenario::clients).max().unwrap_or(0);
        preflight::raise_open_files(clients).map_err(|error| Complaint::new(error, USAGE))?;
        let measure = MeasureArgs {
            threads,
            ..MeasureArgs::default()
        };
        Ok(Self {
            engine: Engine::new(&TargetArgs::default(), &measure, interrupt::flag()?)?,
            output,
            folder,
        })
    }

    /// Starts a broker, runs a scenario, stops it.
    pub(super) fn run(&self, run: Launched<'_>) -> anyhow::Result<Ended> {
        let (installed, scenario) = (run.installed, run.scenario);
        let failed = |why: String| Ok(Ended::Failed { why });
        let started = Running::start(installed, scenario.clients(), self.engine.interrupt());
        let mut running = match started {
            Ok(running) => running,
            Err(LaunchError::Interrupted) => return failed(INTERRUPTED.to_owned()),
            Err(error) => return failed(error.to_string()),
        };
        let engine = self.engine.against(&running, run.version, run.on_fault)?;
        let mut observer = engine.observer(self.output, "  ", &run.title, Some(run.overall));
        let finished = engine.run(scenario.clone(), &self.folder, &mut *observer);
        drop(observer);
        if let Some(how) = running.crash() {
            return Ok(Ended::Crashed { how });
        }
        running.stop();
        let finished = match finished {
            Ok(finished) => finished,
            Err(complaint) => return failed(complaint.to_string()),
        };
        if finished.result.interrupted {
            return failed(INTERRUPTED.to_owned());
        }
        let parent = self.folder.join("runs").join(&installed.broker.name);
        let kept =
            results::keep(&finished, &Place::under(&parent)).map_err(Complaint::or_not_stored);
        let folder = match kept {
            Ok(folder) => folder,
            Err(error) => {
                // Figures that cannot be stored are shown all the same.
                eprint_summary(&finished.result);
                return Err(error);
            }
        };
        let relative = folder.strip_prefix(&self.folder).unwrap_or(&folder);
        Ok(Ended::Measured {
            pass: finished.result.verdict.pass,
            valid: finished.result.validity.valid,
            figures: finished.result.metrics,
            folder: relative.display().to_string(),
        })
    }
}

/// The result of a run whose folder cannot be written.
fn eprint_summary(result: &thrum_report::RunResult) {
    use std::io::Write as _;
    write!(std::io::stderr(), "{}", thrum_report::summary(result)).ok();
}

/// The runs of a broker in full, and how it was started.
pub(super) fn full_broker(
    entry: &Entry,
    ended: impl Iterator<Item = Ended>,
    folder: &Path,
) -> anyhow::Result<thrum_report::versus::VersusBroker> {
    let folders = ended.filter_map(|ended| match ended {
        Ended::Measured { folder, .. } => Some(folder),
        Ended::Crashed { .. } | Ended::Failed { .. } => None,
    });
    let runs = folders.map(|run| Ok(folders::read(&folder.join(run))?.result));
    let runs = runs.collect::<anyhow::Result<Vec<_>>>()?;
    let seen = runs.first().and_then(|run| run.brokers.first());
    Ok(thrum_report::versus::VersusBroker {
        name: entry.name.clone(),
        version: entry.version.clone(),
        configuration: seen.map_or_else(String::new, |broker| broker.configuration.clone()),
        note: entry.note.clone(),
        runs,
    })
}
