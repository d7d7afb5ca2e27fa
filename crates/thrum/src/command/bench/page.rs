//! `thrum bench page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, FromArgMatches as _};
use thrum_bench::clock;
use thrum_compare::page::{Case, KeptRun, KeptRuns, Plan, Row, Table, Turn, next_turn, turns};
use thrum_compare::versus::{Ended, Entry, Installed};
use thrum_load::scenario::Scenario;
use thrum_report::page::{Failure, Page, PageRow, PageTable};
use thrum_report::versus::VersusScenario;

use super::arguments::{OutputArgs, SizeArgs, StageArgs};
use super::complaint::{Complaint, INTERRUPTED};
use super::launched::{self, Launched, Launcher};
use super::overall::{After, Series};
use super::{scenario_file, versus};

const EXAMPLES: &str = "\
Examples:
  thrum bench page results.toml                                measure all of it, and write the page
  thrum bench page results.toml --page results.md              and copy the page there
  thrum bench page results.toml --resume runs/2026-11-26T090000Z-page   go on after ^C";

/// Arguments of `thrum bench page`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, help_template = super::TEMPLATE)]
pub(super) struct PageArgs {
    /// File that says what the page shows: tables, scenarios, brokers, rounds.
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Copy the page to this file.
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
    /// Go on with the runs of this folder, of the same plan and the same brokers.
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Write the page of the runs that there are and make no more of them.
    #[arg(long, requires = "resume")]
    no_runs: bool,
    /// Threads of the generator [default: half of the cores].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    threads: Option<u32>,
    #[command(flatten)]
    output: OutputArgs,
}

/// The flags of a row.
#[derive(Debug, Args)]
#[command(no_binary_name = true, args_override_self = true)]
struct RowArgs {
    scenario: String,
    #[command(flatten)]
    stages: StageArgs,
    #[command(flatten)]
    size: SizeArgs,
}

/// A scenario of the page: its row, and how it is measured.
struct Planned<'a> {
    table: &'a Table,
    label: String,
    scenario: Scenario,
}

/// Measures and writes the page.
pub(super) fn run(args: &PageArgs) -> anyhow::Result<u8> {
    let path = args.plan.display().to_string();
    let text = fs::read_to_string(&args.plan).with_context(|| format!("cannot read {path}"))?;
    let plan = Plan::parse(&text, &path).map_err(Complaint::usage)?;
    let (cases, planned) = cases(&plan, &path)?;
    let (entries, installed) = installed(&plan, &args.plan)?;
    let versions = installed.iter().map(|known| {
        let name = &known.broker.name;
        let entry = entries.iter().find(|entry| entry.name == *name);
        let version = entry.map_or_else(String::new, |entry| entry.version.clone());
        (name.clone(), version)
    });
    let versions: BTreeMap<String, String> = versions.collect();
    let started = thrum_figures::utc_text(clock::unix_seconds()).replace(':', "");
    let (folder, kept) = match &args.resume {
        None => (
            args.output.out.join(format!("{started}-page")),
            KeptRuns::new(&text, versions),
        ),
        Some(folder) => (folder.clone(), resumed(folder, &text, &versions)?),
    };
    let scenarios = planned.iter().map(|planned| &planned.scenario);
    let launcher = Launcher::new(scenarios, args.threads, &args.output, folder)?;
    let mut measuring = Measuring {
        cases,
        planned,
        installed,
        entries,
        launcher,
        kept,
    };
    if !args.no_runs {
        measuring.run()?;
    }
    let page = measuring.page(&plan, args)?;
    let page = thrum_report::page::markdown(&page);
    let own = measuring.launcher.folder.join("page.md");
    for path in [Some(&own), args.page.as_ref()].into_iter().flatten() {
        write_file(path, &page)?;
    }
    let mut out = std::io::stdout().lock();
    let shown = args.page.as_ref().unwrap_or(&own);
    writeln!(out, "  page {}", shown.display())?;
    if measuring.launcher.engine.is_interrupted() {
        let folder = measuring.launcher.folder.display();
        writeln!(out, "  to go on: thrum bench page {path} --resume {folder}")?;
        return Ok(INTERRUPTED);
    }
    let is_measured = |run: &KeptRun| matches!(run.ended, Ended::Measured { .. });
    Ok(u8::from(!measuring.kept.runs.iter().all(is_measured)))
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = fs::write(path, text);
    let written = written.with_context(|| format!("cannot write {}", path.display()));
    written.map_err(Complaint::or_not_stored)
}

fn resumed(
    folder: &Path,
    plan: &str,
    versions: &BTreeMap<String, String>,
) -> anyhow::Result<KeptRuns> {
    let path = folder.join(KEPT);
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()));
    let kept = KeptRuns::resume(&text?, plan, versions);
    Ok(kept.map_err(|error| Complaint::usage(format!("{}: {error}", path.display())))?)
}

/// Name of the file of the runs that were made.
const KEPT: &str = "page.json";

/// The scenarios of all rows, the steps of sweeps one by one.
fn cases<'a>(plan: &'a Plan, origin: &str) -> anyhow::Result<(Vec<Case>, Vec<Planned<'a>>)> {
    let (mut cases, mut planned): (Vec<Case>, Vec<Planned<'_>>) = (Vec::new(), Vec::new());
    let tables = (1..).zip(&plan.tables);
    let rows = tables.flat_map(|(number, table)| {
        let rows = plan.rows_of(table).into_iter();
        rows.map(move |row| (number, table, row))
    });
    for (number, table, row) in rows {
        let [rounds, extra_rounds] = plan.rounds_of(table);
        for scenario in scenarios(&row, origin)? {
            let label = label(&row, &scenario);
            cases.push(Case {
                key: format!("{number} {label}"),
                brokers: plan.brokers_of(table).to_vec(),
                rounds,
                extra_rounds,
            });
            planned.push(Planned {
                table,
                label,
                scenario,
            });
        }
    }
    let mut known = BTreeSet::new();
    match cases.iter().find(|case| !known.insert(&case.key)) {
        None => Ok((cases, planned)),
        Some(twice) => {
            let message = format!("{origin}: '{}' stands twice in a table", twice.key);
            Err(Complaint::usage(message).into())
        }
    }
}

fn scenarios(row: &Row, origin: &str) -> anyhow::Result<Vec<Scenario>> {
    let wrong = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let text = text.lines().next().unwrap_or_default();
        let text = text.strip_prefix("error: ").unwrap_or(text);
        Complaint::usage(format!("{origin}: row '{}': {text}", row.label))
    };
    let command = RowArgs::augment_args(clap::Command::new("row"));
    let matches = command.try_get_matches_from(&row.words);
    let args = matches.and_then(|matches| RowArgs::from_arg_matches(&matches));
    let args = args.map_err(|error| wrong(&error))?;
    let stages = versus::short(&args.stages);
    let changes = stages.changes(&args.size);
    Ok(scenario_file::resolve(&args.scenario, &changes).map_err(|error| wrong(&error))?)
}

/// The row's text; of a sweep the name of the step instead of the sweep's.
fn label(row: &Row, scenario: &Scenario) -> String {
    let is_step = scenario.name.contains('/') && !row.label.contains('/');
    match (is_step, row.label.split_once(' ')) {
        (false, _) => row.label.clone(),
        (true, None) => scenario.name.clone(),
        (true, Some((_, flags))) => format!("{} {flags}", scenario.name),
    }
}

/// The brokers of the whole page.
fn installed(plan: &Plan, path: &Path) -> anyhow::Result<(Vec<Entry>, Vec<Installed>)> {
    let mut names: Vec<String> = Vec::new();
    for name in plan.tables.iter().flat_map(|table| plan.brokers_of(table)) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    let beside = path.parent().unwrap_or_else(|| Path::new(""));
    let file = (!plan.broker_file.is_empty()).then(|| beside.join(&plan.broker_file));
    let (entries, installed) = launched::installed(launched::brokers(file.as_deref(), &names)?)?;
    if let Some(missing) = entries.iter().find(|entry| !entry.installed) {
        let message = format!(
            "{} is not on this machine; get it: {}",
            missing.name, missing.obtain
        );
        return Err(Complaint::usage(message).into());
    }
    Ok((entries, installed))
}

struct Measuring<'a> {
    cases: Vec<Case>,
    planned: Vec<Planned<'a>>,
    installed: Vec<Installed>,
    entries: Vec<Entry>,
    launcher: Launcher<'a>,
    kept: KeptRuns,
}

impl Measuring<'_> {
    /// Makes the runs that are due, and keeps each at once.
    fn run(&mut self) -> anyhow::Result<()> {
        let turns = turns(&self.cases);
        let (mut series, mut from) = (Series::begin(), 0);
        while let Some(place) = self.next(&turns, from) {
            from = place + 1;
            let turn = turns[place];
            let ended = self.run_turn(&turns, place, &mut series)?;
            if self.launcher.engine.is_interrupted() && !matches!(ended, Ended::Measured { .. }) {
                break;
            }
            let case = &self.cases[turn.case];
            self.kept.runs.push(KeptRun {
                case: case.key.clone(),
                broker: case.brokers[turn.broker].clone(),
                round: turn.round,
                ended,
            });
            self.keep()?;
            if self.launcher.engine.is_interrupted() {
                break;
            }
        }
        Ok(())
    }

    fn next(&self, turns: &[Turn], from: usize) -> Option<usize> {
        let pair = |turn: &Turn| {
            let case = &self.cases[turn.case];
            (case.key.as_str(), case.brokers[turn.broker].as_str())
        };
        let made = |turn: &Turn| {
            let (case, broker) = pair(turn);
            self.kept.has(case, broker, turn.round)
        };
        let valid = |turn: &Turn| {
            let (case, broker) = pair(turn);
            self.kept.valid(case, broker)
        };
        next_turn(&self.cases, turns, from, made, valid)
    }

    fn run_turn(&self, turns: &[Turn], place: usize, series: &mut Series) -> anyhow::Result<Ended> {
        let (turn, later) = (turns[place], &turns[place + 1..]);
        let planned = &self.planned[turn.case];
        let name = &self.cases[turn.case].brokers[turn.broker];
        // The plan's brokers are all here.
        let (installed, entry) = self
            .installed
            .iter()
            .zip(&self.entries)
            .find(|(installed, _)| installed.broker.name == *name)
            .with_context(|| format!("{name} is not installed"))?;
        let case_of = |turn: &Turn| &self.cases[turn.case];
        let is_new = |turn: &&Turn| {
            let case = case_of(turn);
            !self
                .kept
                .has(&case.key, &case.brokers[turn.broker], turn.round)
        };
        let scenario_of = |turn: &Turn| &self.planned[turn.case].scenario;
        let later: Vec<&Turn> = later.iter().filter(is_new).collect();
        let due = later
            .iter()
            .filter(|turn| turn.round <= case_of(turn).rounds);
        let least = After::of(due.map(|turn| scenario_of(turn)));
        let most = After::of(later.iter().map(|turn| scenario_of(turn)));
        let head = format!("run {}/{}", place + 1, turns.len());
        let overall = series.next_run(head, &planned.scenario, [least, most]);
        writeln!(
            std::io::stderr(),
            "round {} {}: {name} · {}",
            turn.round,
            planned.label,
            overall.text(None)
        )?;
        self.launcher.run(Launched {
            installed,
            version: &entry.version,
            scenario: &planned.scenario,
            overall,
            on_fault: Some(planned.table.on_fault.as_str()).filter(|command| !command.is_empty()),
        })
    }

    /// Writes the list of runs; a half written one does not take the place of a whole one.
    fn keep(&self) -> anyhow::Result<()> {
        let text = serde_json::to_string(&self.kept).context("the runs cannot be kept as JSON")?;
        let path = self.launcher.folder.join(KEPT);
        let new = path.with_extension("json.new");
        write_file(&new, &text)?;
        let moved = fs::rename(&new, &path);
        let moved = moved.with_context(|| format!("cannot write {}", path.display()));
        moved.map_err(Complaint::or_not_stored)
    }

    fn page(&self, plan: &Plan, args: &PageArgs) -> anyhow::Result<Page> {
        let mut tables = Vec::new();
        for table in &plan.tables {
            let of_table = |planned: &Planned<'_>| std::ptr::eq(planned.table, table);
            let rows = self.cases.iter().zip(&self.planned);
            let rows = rows.filter(|(_, planned)| of_table(planned));
            let rows = rows.map(|(case, planned)| self.row(case, planned));
            tables.push(PageTable {
                title: table.title.clone(),
                text: table.text.clone(),
                columns: table.columns,
                rows: rows.collect::<anyhow::Result<_>>()?,
            });
        }
        let name = args.plan.display();
        let to = args.page.as_ref();
        let to = to.map_or_else(String::new, |page| format!(" --page {}", page.display()));
        Ok(Page {
            title: plan.title.clone(),
            text: plan.text.clone(),
            command: format!("thrum bench page {name}{to}"),
            machine: thrum_bench::machine::machine(),
            tables,
        })
    }

    fn row(&self, case: &Case, planned: &Planned<'_>) -> anyhow::Result<PageRow> {
        let (mut brokers, mut failures) = (Vec::new(), Vec::new());
        let named = case.brokers.iter();
        let entries =
            named.filter_map(|name| self.entries.iter().find(|known| known.name == *name));
        for entry in entries {
            let ended = || {
                let runs = self.kept.of(&case.key, &entry.name);
                runs.map(|run| run.ended.clone())
            };
            failures.extend(ended().filter_map(|ended| {
                let why = match ended {
                    Ended::Measured { .. } => return None,
                    Ended::Crashed { how } => format!("crashed: {how}"),
                    Ended::Failed { why } => why,
                };
                Some(Failure {
                    broker: entry.name.clone(),
                    why,
                })
            }));
            let folder = &self.launcher.folder;
            brokers.push(launched::full_broker(entry, ended(), folder)?);
        }
        Ok(PageRow {
            label: planned.label.clone(),
            scenario: VersusScenario {
                name: planned.scenario.name.clone(),
                summary: planned.scenario.summary.clone(),
                toml: planned.scenario.toml.clone(),
                brokers,
            },
            failures,
        })
    }
}
