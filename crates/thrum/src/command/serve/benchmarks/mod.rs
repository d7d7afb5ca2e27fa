//! Benchmarks that the management interface starts: `thrum bench` as a process of its own, with a
//! part of the cores, a later place and a limit of memory; one run at a time.

mod activity;
mod arguments;
mod bounds;
mod changes;
mod compared;
mod confinement;
mod ending;
mod findings;
mod identifier;
mod last_run;
mod lines;
mod spawn;
mod store;
mod temporary;
mod watch;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use thrum_broker::config::Bind;
use thrum_broker::{Listening, Queries};
use thrum_management::api::{
    BenchmarkCheck, BenchmarkComparison, BenchmarkConfig, BenchmarkLimits, BenchmarkRun,
    BenchmarkRunInFull, BenchmarkSamples, BenchmarkScenario,
};
use thrum_management::{
    BenchmarkActivity, BenchmarkChange, BenchmarkOrder, BenchmarkRefusal, Benchmarks, OpenRunFile,
    ProgramError,
};

use super::tasks::Around;
use activity::Activity;
use arguments::{Aim, SCENARIO_FILE};
use confinement::{Answered, AskError, Confinement, Question};
use findings::{Loaded, NoPlan};
use last_run::{LastRun, Occupied};
use lines::PlanLine;
use store::{RUNS_MAX, Store};
use watch::{Current, Start};

/// Where a broker without a plain TCP listener would be.
const NO_LISTENER: &str = "this broker has no open listener for plain TCP: name a target";
/// Why there can be no run if the configuration says so.
const OFF: &str = "management.benchmarks.enabled is false";
/// Longest drain that the end of a run is waited for; the check has limited all stages together.
const DRAIN_SECS_MAX: f64 = 7.0 * 86_400.0;
/// Where processes are that have no folder.
const NO_FOLDER: &str = "/";

/// The benchmarks of a broker.
#[derive(Clone, Debug)]
pub(crate) struct HostedBenchmarks {
    around: Around,
    queries: Queries,
    /// Before the store, which it needs at its end.
    current: Arc<LastRun>,
    store: Arc<Store>,
    scenarios: Arc<OnceLock<Vec<BenchmarkScenario>>>,
    activity: Arc<Activity>,
}

/// What is in force.
struct Settings {
    config: BenchmarkConfig,
    connections_max: u32,
}

/// A run that passed its check.
struct Prepared {
    run: BenchmarkRunInFull,
    aim: Aim,
    /// The longest wait for its last messages.
    drain: Duration,
}

impl HostedBenchmarks {
    /// Those in a data directory, which is empty if the broker has none.
    pub(crate) fn open(data_dir: &Path, around: Around, queries: Queries) -> Self {
        Self {
            around,
            queries,
            store: Arc::new(Store::open(data_dir)),
            current: Arc::default(),
            scenarios: Arc::default(),
            activity: Arc::default(),
        }
    }

    fn settings(&self) -> Result<Settings, ProgramError> {
        self.around.ask.ask(|serving| {
            let config = &serving.reload.in_force.config;
            Settings {
                config: config.management.benchmarks.clone(),
                connections_max: config.limits.connections,
            }
        })
    }

    /// Checks an order; an error is a finding.
    fn checked(
        &self,
        order: &BenchmarkOrder,
        settings: &Settings,
    ) -> Result<(BenchmarkCheck, Option<Aim>, Option<PlanLine>), ProgramError> {
        let limits = limits_of(&settings.config);
        if !settings.config.enabled {
            // Nobody wants processes here.
            let check = findings::check(Err(&off()), &limits, &Loaded::default(), true);
            return Ok((check, None, None));
        }
        let own = self.own_target();
        let aim = match (&own, &order.target) {
            (None, None) => Err(NO_LISTENER.to_owned()),
            _ => Aim::of(order, own.as_deref().unwrap_or_default())
                .map_err(|error| error.to_string()),
        };
        let aim = match aim {
            Ok(aim) => aim,
            Err(why) => {
                let remedy = "give a target such as mqtt://HOST:PORT";
                let no_plan = NoPlan { why, remedy };
                let check = findings::check(Err(&no_plan), &limits, &Loaded::default(), true);
                return Ok((check, None, None));
            }
        };
        let loaded = self.loaded(&aim, settings);
        let plans = plans(order, settings)?;
        let plans = plans.as_deref();
        let may_load_others = settings.config.other_targets;
        let check = findings::check(plans, &limits, &loaded, may_load_others);
        let plan = plans.ok().and_then(|plans| plans.first()).cloned();
        Ok((check, Some(aim), plan))
    }

    /// Asks a process for something that it knows or computes.
    fn ask(&self, arguments: Vec<String>, folder: PathBuf) -> Result<Answered, ProgramError> {
        let settings = self.settings()?;
        let question = Question {
            folder,
            arguments,
            input: None,
            later: None,
        };
        let answered = confinement::ask(confinement_of(&settings.config), question);
        let answered = answered.map_err(|error| not_answered(&error.to_string()))?;
        if answered.code == Some(0) {
            return Ok(answered);
        }
        Err(not_answered(&ending::complaint(&answered.complaint)))
    }

    /// The first listener for plain TCP, as a client of this machine reaches it.
    fn own_target(&self) -> Option<String> {
        let listeners = self.queries.listeners();
        let mut open = listeners.iter().flat_map(|of| &of.addresses);
        open.find_map(reachable)
    }

    fn loaded(&self, aim: &Aim, settings: &Settings) -> Loaded {
        let listeners = self.queries.listeners();
        let addresses = listeners.iter().flat_map(|of| &of.addresses);
        let open = addresses.filter_map(socket_address);
        let (host, port) = (aim.endpoint.host.as_str(), aim.endpoint.port);
        let (is_own, is_here) = whose(host, port, open);
        let counted = listeners.iter().map(|of| of.connections);
        Loaded {
            url: aim.url.clone(),
            is_own,
            is_here,
            connections_max: settings.connections_max,
            connections: counted.sum(),
        }
    }

    /// The run under way or the last one, if it has this identifier. It knows more than its file,
    /// which may not be written down.
    fn watched(&self, id: &str) -> Option<Arc<Current>> {
        self.current.get().filter(|run| run.id() == id)
    }

    /// The run under way, if it has this identifier.
    fn running(&self, id: &str) -> Option<Arc<Current>> {
        self.watched(id).filter(|run| !run.is_over())
    }

    /// The refusal of what only a run under way can do.
    fn not_under_way(&self, id: &str) -> Result<ProgramError, ProgramError> {
        let state = self.run(id)?.run.state;
        let why = format!("the run {id} is not under way: it is {state}");
        Ok(refused(BenchmarkRefusal::Ended, why))
    }

    /// What is known of a run that is or was watched, with its files once there are all of them.
    fn shown(&self, watched: &Current) -> BenchmarkRunInFull {
        let mut run = watched.run();
        if watched.is_over() {
            run.run.files = self.store.files(&run.run.id);
        }
        run
    }

    /// Makes the folder of a run and starts its process. Questions about runs are answered
    /// meanwhile.
    fn begin(
        &self,
        prepared: Prepared,
        order: &BenchmarkOrder,
        config: &BenchmarkConfig,
    ) -> Result<String, ProgramError> {
        let Prepared {
            mut run,
            aim,
            drain,
        } = prepared;
        // Two orders do not both begin.
        let beginning = self.current.begin().map_err(occupied)?;
        if let Some(other) = beginning.before() {
            other.write_end(&self.store)?;
        }
        let folder = self.store.create(&mut run)?;
        if let Some(toml) = &order.toml {
            let written = store::create(&folder.path().join(SCENARIO_FILE))
                .and_then(|mut file| std::io::Write::write_all(&mut file, toml.as_bytes()));
            written.map_err(|error| store::failed(&error))?;
        }
        let confinement = confinement_of(config);
        let start = Start {
            store: Arc::downgrade(&self.store),
            folder: folder.path().to_owned(),
            confinement,
            arguments: arguments::run(order, &aim, confinement.cores),
            password: aim.password,
            drain,
            activity: Arc::clone(&self.activity),
        };
        let id = run.run.id.clone();
        let begun = Arc::new(Current::new(run));
        let watched = Arc::clone(&begun);
        let ask = |errand: spawn::Errand| self.around.ask.ask(move |_| errand());
        spawn::by_another(ask, move || watched.conduct(start))?;
        beginning.publish(begun);
        folder.keep();
        self.store.make_room(&id);
        tracing::info!(run = id, by = order.by, "a benchmark has begun");
        Ok(id)
    }
}

impl Benchmarks for HostedBenchmarks {
    fn activity(&self) -> Option<BenchmarkActivity> {
        Some(self.activity.figures())
    }

    fn limits(&self) -> BenchmarkLimits {
        match self.settings() {
            Ok(settings) => limits_of(&settings.config),
            Err(error) => BenchmarkLimits {
                why_not: Some(error.to_string()),
                ..BenchmarkLimits::default()
            },
        }
    }

    fn scenarios(&self) -> Result<Vec<BenchmarkScenario>, ProgramError> {
        if let Some(scenarios) = self.scenarios.get() {
            return Ok(scenarios.clone());
        }
        let words = ["scenarios", "list", "--json"].map(str::to_owned);
        let answered = self.ask(words.into(), NO_FOLDER.into())?;
        let scenarios =
            lines::scenarios(&answered.output).map_err(|error| not_answered(&error.to_string()))?;
        Ok(self.scenarios.get_or_init(|| scenarios).clone())
    }

    fn check(&self, order: &BenchmarkOrder) -> Result<BenchmarkCheck, ProgramError> {
        let settings = self.settings()?;
        let (check, ..) = self.checked(order, &settings)?;
        Ok(check)
    }

    fn start(&self, order: BenchmarkOrder) -> Result<String, ProgramError> {
        let settings = self.settings()?;
        if !settings.config.enabled {
            return Err(refused(BenchmarkRefusal::Off, OFF.to_owned()));
        }
        // Before the check, which takes a process.
        drop(self.current.begin().map_err(occupied)?);
        let (check, aim, plan) = self.checked(&order, &settings)?;
        let (true, Some(aim), Some(plan)) = (check.ok, aim, plan) else {
            let errors = check.findings.iter().filter(|of| of.level == "error");
            let errors: Vec<&str> = errors.map(|of| of.what.as_str()).collect();
            return Err(refused(BenchmarkRefusal::Invalid, errors.join("; ")));
        };
        let run = BenchmarkRun {
            name: order.name.clone().unwrap_or_else(|| plan.shown_name()),
            scenario: order.scenario.clone().unwrap_or_else(|| plan.shown_name()),
            target: check.target.clone(),
            state: "preparing".to_owned(),
            duration_secs: plan.hold_secs,
            planned_secs: plan.duration_secs(),
            clients: plan.clients,
            by: order.by.clone(),
            note: order.note.clone(),
            command: arguments::shown(&order, &aim),
            ..BenchmarkRun::default()
        };
        let run = BenchmarkRunInFull {
            run,
            toml: check.toml,
            limits: limits_of(&settings.config),
            ..BenchmarkRunInFull::default()
        };
        let drain = Duration::from_secs_f64(plan.drain_secs.clamp(0.0, DRAIN_SECS_MAX));
        let prepared = Prepared { run, aim, drain };
        self.begin(prepared, &order, &settings.config)
    }

    fn runs(&self) -> Result<Vec<BenchmarkRun>, ProgramError> {
        let watched = self.current.get().map(|run| self.shown(&run).run);
        let kept = self.store.list().into_iter().map(|run| match &watched {
            // The file has what it began with.
            Some(watched) if watched.id == run.run.id => watched.clone(),
            _ => run.run,
        });
        Ok(kept.collect())
    }

    fn run(&self, id: &str) -> Result<BenchmarkRunInFull, ProgramError> {
        match self.watched(id) {
            Some(run) => Ok(self.shown(&run)),
            None => self.store.read(id),
        }
    }

    fn samples(&self, id: &str, after: u64, most: usize) -> Result<BenchmarkSamples, ProgramError> {
        // The last run is in memory after its end, too.
        let current = self.watched(id);
        let kept = self.store.read(id)?;
        let (items, state) = if let Some(run) = current {
            run.samples(after, most)
        } else {
            let samples = self.store.samples(id)?;
            (samples.after(after, most), kept.run.state)
        };
        Ok(BenchmarkSamples {
            next: items.last().map_or(after, |sample| sample.n),
            items,
            state,
        })
    }

    fn stop(&self, id: &str) -> Result<(), ProgramError> {
        if self.running(id).is_some_and(|run| run.stop()) {
            return Ok(());
        }
        Err(self.not_under_way(id)?)
    }

    fn change(&self, id: &str, change: BenchmarkChange) -> Result<(), ProgramError> {
        let longest = self.settings()?.config.duration.as_secs_f64();
        match self.running(id) {
            Some(run) => run.pass_on(&change, longest),
            None => Err(self.not_under_way(id)?),
        }
    }

    fn remove(&self, id: &str) -> Result<(), ProgramError> {
        if self.running(id).is_some() {
            let why = format!("the run {id} is under way");
            return Err(refused(BenchmarkRefusal::Running, why));
        }
        self.store.remove(id)?;
        self.current.forget(id);
        Ok(())
    }

    fn set_baseline(&self, id: &str, is_baseline: bool) -> Result<(), ProgramError> {
        let change = |run: &mut BenchmarkRunInFull| run.run.baseline = is_baseline;
        match self.watched(id) {
            Some(watched) => watched.change(&self.store, change),
            None => self.store.change(id, change),
        }
    }

    fn open_file(&self, id: &str, name: &str) -> Result<OpenRunFile, ProgramError> {
        self.store.open_file(id, name)
    }

    fn compare(&self, ids: &[String]) -> Result<BenchmarkComparison, ProgramError> {
        let mut words = vec!["compare".to_owned()];
        let mut runs = Vec::new();
        for id in ids {
            runs.push(self.run(id)?.run);
            let folder = self.store.results_of(id).ok_or_else(|| {
                let why = format!("the run {id} has no result");
                refused(BenchmarkRefusal::NotComparable, why)
            })?;
            words.push(folder);
        }
        words.extend(["--allow-different", "--json"].map(str::to_owned));
        let answered = self.ask(words, self.store.path()?)?;
        compared::comparison(&answered.output, runs)
            .map_err(|error| not_answered(&error.to_string()))
    }
}

/// What `thrum bench check` says of an order, or why it has no plan.
fn plans(
    order: &BenchmarkOrder,
    settings: &Settings,
) -> Result<Result<Vec<PlanLine>, NoPlan>, ProgramError> {
    let question = Question {
        folder: NO_FOLDER.into(),
        arguments: arguments::check(order, settings.config.clients),
        input: order.toml.clone().map(String::into_bytes),
        later: None,
    };
    let answered = match confinement::ask(confinement_of(&settings.config), question) {
        Ok(answered) => answered,
        Err(error) => return unplanned(&error).map(Err),
    };
    let lines = answered.output.lines().map(serde_json::from_str);
    let plans: Vec<PlanLine> = lines
        .collect::<Result<_, _>>()
        .map_err(|error| not_answered(&error.to_string()))?;
    if !plans.is_empty() {
        return Ok(Ok(plans));
    }
    let why = ending::complaint(&answered.complaint);
    if answered.code.is_none() {
        // Not the scenario, but the system has ended it.
        return Err(not_answered(&why));
    }
    let remedy = "correct the scenario, or choose one of the list";
    Ok(Err(NoPlan { why, remedy }))
}

/// What a caller can do if a process is ended that was to plan a scenario.
fn unplanned(error: &AskError) -> Result<NoPlan, ProgramError> {
    let remedy = match error {
        AskError::Memory { .. } => {
            "ask for fewer clients and subscriptions, or raise management.benchmarks.memory"
        }
        AskError::Time => "ask for fewer clients and subscriptions",
        AskError::Failed(_) => return Err(not_answered(&error.to_string())),
    };
    let why = format!("the scenario cannot be planned: {error}");
    Ok(NoPlan { why, remedy })
}

/// The configuration permits no run.
fn off() -> NoPlan {
    NoPlan {
        why: OFF.to_owned(),
        remedy: "set management.benchmarks.enabled = true, or run thrum bench on another machine",
    }
}

fn limits_of(config: &BenchmarkConfig) -> BenchmarkLimits {
    let (cores, cores_of) = confinement::cores(config.cores);
    let why_not = (!config.enabled).then(|| OFF.to_owned());
    BenchmarkLimits {
        available: config.enabled,
        why_not,
        cores,
        cores_of,
        memory_bytes: config.memory,
        duration_secs_max: config.duration.as_secs_f64(),
        clients_max: config.clients,
        runs_kept: u32::try_from(RUNS_MAX).unwrap_or(u32::MAX),
        nice: config.nice,
    }
}

fn confinement_of(config: &BenchmarkConfig) -> Confinement {
    Confinement {
        cores: confinement::cores(config.cores).0,
        nice: config.nice,
        memory_bytes: config.memory,
    }
}

/// The URL of an address for plain TCP.
fn reachable(listening: &Listening) -> Option<String> {
    let Bind::Address(address) = &listening.address else {
        return None;
    };
    if listening.scheme != "mqtt" {
        return None;
    }
    let mut address = *address;
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    Some(format!("mqtt://{address}"))
}

/// The address of a listener for MQTT.
fn socket_address(listening: &Listening) -> Option<SocketAddr> {
    match &listening.address {
        Bind::Address(address) if !listening.scheme.starts_with("http") => Some(*address),
        _ => None,
    }
}

/// Whether a target is one of the open addresses of this broker, and whether it is on this machine.
fn whose(host: &str, port: u16, mut open: impl Iterator<Item = SocketAddr>) -> (bool, bool) {
    let address = host.parse::<IpAddr>().ok();
    let is_loopback = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    let reaches = |own: SocketAddr| {
        let has_host = match address {
            Some(address) => own.ip() == address || (own.ip().is_unspecified() && is_loopback),
            None => is_loopback && (own.ip().is_loopback() || own.ip().is_unspecified()),
        };
        has_host && own.port() == port
    };
    let is_own = open.any(reaches);
    (is_own, is_own || is_loopback)
}

fn occupied(by: Occupied) -> ProgramError {
    let what = match by {
        Occupied::Running(run) => format!("the run {} is under way", run.id()),
        Occupied::Beginning => "another run is about to begin".to_owned(),
    };
    let why = format!("{what}, and there is one at a time");
    refused(BenchmarkRefusal::Running, why)
}

fn refused(refusal: BenchmarkRefusal, why: String) -> ProgramError {
    ProgramError::Benchmark { refusal, why }
}

fn not_answered(why: &str) -> ProgramError {
    refused(BenchmarkRefusal::NotAnswered, why.to_owned())
}

#[cfg(test)]
mod races;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_this_broker_if_one_of_its_listeners_has_that_address() {
        let of = |host: &str, port, open: &str| {
            whose(host, port, std::iter::once(open.parse().unwrap()))
        };
        let (own, here, elsewhere) = ((true, true), (false, true), (false, false));
        for (host, port, open, expected) in [
            ("127.0.0.1", 1883, "127.0.0.1:1883", own),
            ("localhost", 1883, "127.0.0.1:1883", own),
            ("127.0.0.9", 1883, "0.0.0.0:1883", own),
            ("::1", 1883, "[::]:1883", own),
            // A listener with one address that is not of the loopback.
            ("192.0.2.7", 1883, "192.0.2.7:1883", own),
            // Another program may have this address.
            ("127.0.0.2", 1883, "127.0.0.1:1883", here),
            ("127.0.0.1", 1884, "127.0.0.1:1883", here),
            ("localhost", 1883, "192.0.2.7:1883", here),
            ("192.0.2.8", 1883, "0.0.0.0:1883", elsewhere),
            ("example.com", 1883, "0.0.0.0:1883", elsewhere),
        ] {
            assert_eq!(of(host, port, open), expected, "{host}:{port} {open}");
        }
    }

    #[test]
    fn a_plan_that_takes_too_much_is_a_finding_about_its_size() {
        let too_large = unplanned(&AskError::Memory { limit: 64 << 20 }).unwrap();
        assert!(
            too_large
                .why
                .contains("64 MiB of management.benchmarks.memory")
        );
        assert!(too_large.remedy.contains("fewer clients"));
        assert!(unplanned(&AskError::Time).unwrap().why.contains("8 s"));
        let failed = AskError::Failed(std::io::Error::other("no such file"));
        assert!(unplanned(&failed).is_err());
    }
}
