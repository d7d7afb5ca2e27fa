//! `thrum bench page`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::{Args, FromArgMatches as _};
use thrum_bench::clock;
use thrum_compare::page::{
    Case, KeptRun, KeptRuns, Plan, Row, Table, Turn, left, next_turn, turns,
};
use thrum_compare::versus::{Ended, Entry, Installed};
use thrum_load::scenario::Scenario;
use thrum_report::page::{Failure, Page, PageRow, PageTable};
use thrum_report::result::AFFINITY;
use thrum_report::versus::VersusScenario;

use super::arguments::{OutputArgs, SizeArgs, StageArgs};
use super::complaint::{Complaint, INTERRUPTED};
use super::engine::quoted;
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
    for known in installed.iter().filter(|_| !args.no_runs) {
        known.require_ports().map_err(Complaint::usage)?;
    }
    let versions = installed.iter().map(|known| {
        let name = &known.broker.name;
        let entry = entries.iter().find(|entry| entry.name == *name);
        let version = entry.map_or("", |entry| entry.version.as_str());
        (name.clone(), identity(known, version))
    });
    let mut versions: BTreeMap<String, String> = versions.collect();
    versions.insert("the generator".to_owned(), generator(args));
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
        measuring.kept.retry();
        fs::create_dir_all(&measuring.launcher.folder)
            .with_context(|| format!("cannot make {}", measuring.launcher.folder.display()))?;
        measuring.keep()?;
        measuring.run()?;
    }
    let page = measuring.page(&plan, args)?;
    let page = thrum_report::page::markdown(&page);
    let own = measuring.launcher.folder.join("page.md");
    write_file(&own, &page)?;
    if args.output.json {
        let json = serde_json::to_string(&measuring.kept);
        let json = json.context("the runs cannot be written as JSON")?;
        writeln!(std::io::stdout(), "{json}")?;
    }
    if measuring.launcher.engine.is_interrupted() {
        // Half a page does not take the place of a whole one.
        tell(args, &format!("page of the runs so far {}", own.display()))?;
        let folder = word(&measuring.launcher.folder);
        let again = format!("to go on: {} --resume {folder}", command(args));
        tell(args, &again)?;
        return Ok(INTERRUPTED);
    }
    if let Some(page_file) = &args.page {
        write_file(page_file, &page)?;
    }
    let shown = args.page.as_ref().unwrap_or(&own);
    tell(args, &format!("page {}", shown.display()))?;
    let is_measured = |run: &KeptRun| matches!(run.ended, Ended::Measured { .. });
    Ok(u8::from(!measuring.kept.runs.iter().all(is_measured)))
}

/// The command line that measures all of it.
fn command(args: &PageArgs) -> String {
    let page = args.page.as_ref();
    let page = page.map_or_else(String::new, |page| format!(" --page {}", word(page)));
    let threads = args.threads;
    let threads = threads.map_or_else(String::new, |threads| format!(" --threads {threads}"));
    format!("thrum bench page {}{page}{threads}", word(&args.plan))
}

/// A path as a word of a command line.
fn word(path: &Path) -> String {
    quoted(path.display().to_string())
}

/// Tells where the page is, beside JSON on standard error.
fn tell(args: &PageArgs, text: &str) -> std::io::Result<()> {
    if args.output.json {
        writeln!(std::io::stderr(), "  {text}")
    } else {
        writeln!(std::io::stdout(), "  {text}")
    }
}

fn write_file(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = fs::write(path, text);
    let written = written.with_context(|| format!("cannot write {}", path.display()));
    written.map_err(Complaint::or_not_stored)
}

/// What tells a broker from another one of its name: its version, its program and its start.
fn identity(installed: &Installed, version: &str) -> String {
    let build = build(&installed.program);
    format!("{version}{build}, started by {}", installed.start_text())
}

/// What tells a program from another build of its version.
fn build(program: &Path) -> String {
    let file = fs::metadata(program).ok();
    let file = file.and_then(|file| Some((file.len(), file.modified().ok()?)));
    file.map_or_else(String::new, |(bytes, changed)| {
        let since = changed.duration_since(std::time::UNIX_EPOCH);
        let since = thrum_figures::utc_text(since.unwrap_or_default().as_secs());
        format!(", {bytes} bytes of {since}")
    })
}

/// The same of the generator: its program, its threads and its cores.
fn generator(args: &PageArgs) -> String {
    let build = std::env::current_exe().map_or_else(|_| String::new(), |own| build(&own));
    let threads = args
        .threads
        .map_or_else(String::new, |threads| format!(", {threads} threads"));
    let settings = thrum_bench::machine::machine().settings;
    let cores = ["cpu.usable_cores", AFFINITY];
    let cores = cores.map(|name| settings.get(name).map_or("all", String::as_str));
    let [number, bound] = cores;
    format!(
        "{}{build}, on {number} cores ({bound}){threads}",
        env!("CARGO_PKG_VERSION")
    )
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
        let scenarios = scenarios(&row, origin)?;
        let is_sweep = scenarios.len() > 1;
        for scenario in scenarios {
            let label = if is_sweep {
                label(&row, &scenario)
            } else {
                row.label.clone()
            };
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

/// The row of a step: its name instead of the sweep's.
fn label(row: &Row, scenario: &Scenario) -> String {
    match row.label.split_once(' ') {
        None => scenario.name.clone(),
        Some((_, flags)) => format!("{} {flags}", scenario.name),
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

/// `run 3/15`, or `run 3 of 15 to at most 21` where INVALID runs may be made up for.
fn number_text(number: usize, [least, most]: [usize; 2]) -> String {
    if least == most {
        format!("run {number}/{least}")
    } else {
        format!("run {number} of {least} to at most {most}")
    }
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
        let (made, valid) = (
            |turn: &Turn| self.is_made(turn),
            |turn: &Turn| self.valid(turn),
        );
        next_turn(&self.cases, turns, from, made, valid)
    }

    fn is_made(&self, turn: &Turn) -> bool {
        let case = &self.cases[turn.case];
        self.kept
            .has(&case.key, &case.brokers[turn.broker], turn.round)
    }

    /// VALID runs of the pair of a turn.
    fn valid(&self, turn: &Turn) -> u32 {
        let case = &self.cases[turn.case];
        self.kept.valid(&case.key, &case.brokers[turn.broker])
    }

    fn run_turn(&self, turns: &[Turn], place: usize, series: &mut Series) -> anyhow::Result<Ended> {
        let turn = turns[place];
        let planned = &self.planned[turn.case];
        let name = &self.cases[turn.case].brokers[turn.broker];
        // The plan's brokers are all here.
        let (installed, entry) = self
            .installed
            .iter()
            .zip(&self.entries)
            .find(|(installed, _)| installed.broker.name == *name)
            .with_context(|| format!("{name} is not installed"))?;
        let left = left(
            &self.cases,
            turns,
            place,
            |turn| self.is_made(turn),
            |turn| self.valid(turn),
        );
        // The first of both is this run.
        let after = [&left.least, &left.most].map(|left| {
            let later = left.iter().skip(1);
            After::of(later.map(|turn| &self.planned[turn.case].scenario))
        });
        let made = turns.iter().filter(|turn| self.is_made(turn)).count();
        let totals = [&left.least, &left.most].map(|left| made + left.len());
        let head = number_text(made + 1, totals);
        let overall = series.next_run(head, &planned.scenario, after);
        let place = overall.text(None);
        let (label, round) = (&planned.label, turn.round);
        let title = format!("{label} on {name}, round {round}");
        writeln!(std::io::stderr(), "round {round} {label}: {name} · {place}")?;
        self.launcher.run(Launched {
            installed,
            version: &entry.version,
            scenario: &planned.scenario,
            title,
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
        let rows = tables.iter().flat_map(|table: &PageTable| &table.rows);
        let mut brokers = rows.flat_map(|row| &row.scenario.brokers);
        let measured = brokers.find_map(|broker| broker.runs.first());
        let machine = measured.map(|run| run.machine.clone());
        Ok(Page {
            title: plan.title.clone(),
            text: plan.text.clone(),
            command: command(args),
            machine: machine.unwrap_or_else(thrum_bench::machine::machine),
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
            let mut broker = launched::full_broker(entry, ended(), folder)?;
            let mut installed = self.installed.iter();
            let installed = installed.find(|known| known.broker.name == entry.name);
            broker.configuration = installed.map_or_else(String::new, Installed::start_text);
            brokers.push(broker);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(rows: &str) -> Plan {
        let text = format!("title = 't'\nbrokers = ['a']\n[[table]]\ntitle = 'x'\nrows = {rows}\n");
        Plan::parse(&text, "p.toml").unwrap()
    }

    #[test]
    fn the_steps_of_a_sweep_have_their_names_and_other_rows_their_text() {
        let plan = plan("['docs-fanin --duration 3s', 'docs-fanin/10K --duration 4s', 'p2p-1K']");
        let (cases, planned) = cases(&plan, "p.toml").unwrap();
        let labels: Vec<&str> = planned.iter().map(|row| row.label.as_str()).collect();
        let steps = labels.len() - 2;
        assert!(steps > 1, "{labels:?}");
        let is_step =
            |label: &&str| label.starts_with("docs-fanin/") && label.ends_with(" --duration 3s");
        assert!(labels[..steps].iter().all(is_step), "{labels:?}");
        assert_eq!(labels[steps..], ["docs-fanin/10K --duration 4s", "p2p-1K"]);
        assert_eq!(cases[0].key, format!("1 {}", labels[0]));
    }

    #[test]
    fn another_build_or_another_start_is_another_broker() {
        let folder = std::env::temp_dir().join(format!("thrum-identity-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let program = folder.join("broker");
        fs::write(&program, "one build").unwrap();
        let mut installed = Installed {
            broker: thrum_compare::versus::Broker {
                launch: vec!["{program}".to_owned()],
                ..Default::default()
            },
            program: program.clone(),
        };
        let first = identity(&installed, "1.0");
        assert_eq!(first, identity(&installed, "1.0"));
        assert_ne!(first, identity(&installed, "1.1"));
        installed.broker.launch.push("--fast".to_owned());
        assert_ne!(first, identity(&installed, "1.0"));
        installed.broker.launch.pop();
        fs::write(&program, "another build").unwrap();
        assert_ne!(first, identity(&installed, "1.0"));
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn the_command_that_goes_on_is_the_one_that_was_given() {
        let mut args = PageArgs {
            plan: "my plan.toml".into(),
            page: None,
            resume: None,
            no_runs: false,
            threads: None,
            output: OutputArgs {
                out: "runs".into(),
                json: false,
                no_tui: true,
                note: None,
            },
        };
        assert_eq!(command(&args), "thrum bench page 'my plan.toml'");
        args.page = Some("my.md".into());
        args.threads = Some(2);
        assert_eq!(
            command(&args),
            "thrum bench page 'my plan.toml' --page my.md --threads 2"
        );
    }

    #[test]
    fn the_number_of_runs_is_a_range_where_extra_rounds_may_follow() {
        assert_eq!(number_text(3, [15, 15]), "run 3/15");
        assert_eq!(number_text(3, [15, 21]), "run 3 of 15 to at most 21");
    }
}
