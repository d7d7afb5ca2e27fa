//! Preparation before the first connection: the plan, the way to the brokers, the limits of this
//! machine.

use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::thread;

use thrum_figures::whole;
use thrum_load::plan::Plan;
use thrum_load::scenario::{FaultKind, Scenario};
use thrum_quic::{DialOptions, QuicDialer};
use thrum_transport::{Connector, Endpoint};

use super::{BrokerProcess, RunError, RunOptions, THREADS_MAX, Target};
use crate::agents::{BrokerWatch, RemoteAgents};
use crate::clock;
use crate::message_stages::StageFeed;
use crate::monitor::{Monitor, listening_process};
use crate::observe::Observer;
use crate::preflight::{self, Needs, PreflightError, TargetNeeds};
use crate::proxy::Proxy;
use crate::swarm::{QuicSetup, TargetSetup};

/// A load is a fan-out if less than this part of all messages is sent, the rest delivered.
const FAN_OUT_PART_MAX: f64 = 0.1;

/// Messages that one thread handles when it is about half busy: past two thirds, a burst of the
/// broker makes the thread the limit.
const THREAD_MESSAGES_PER_SECOND: f64 = 150_000.0;

/// A run that can start.
pub(super) struct Prepared {
    pub(super) plan: Arc<Plan>,
    pub(super) started_unix: u64,
    /// The brokers, in the order of the scenario.
    pub(super) targets: Vec<Target>,
    pub(super) wired: Wired,
    pub(super) threads: u32,
    /// In the order of the brokers; none where no process is measured.
    pub(super) monitors: Vec<Option<BrokerWatch>>,
    /// The machines that make the load; this one if none.
    pub(super) agents: Option<RemoteAgents>,
}

/// The way to the brokers.
#[derive(Default)]
pub(crate) struct Wired {
    /// The brokers, then the proxy of each group with a `network`.
    pub(crate) setups: Arc<[TargetSetup]>,
    /// Which of them each group connects to.
    pub(crate) target_of_group: Arc<[usize]>,
    /// Notes about this machine for the run.
    pub(crate) advice: Vec<String>,
    /// The stages of messages inside the broker; none if it does not stamp any.
    pub(super) stages: Option<StageFeed>,
    /// Networks made worse; they end with the run.
    _proxies: Vec<Proxy>,
}

pub(super) fn prepare(
    scenario: Scenario,
    options: &RunOptions,
    observer: &mut dyn Observer,
) -> Result<Prepared, RunError> {
    check_hooks(&scenario, options)?;
    let targets = targets(&scenario, options)?;
    let started_unix = clock::unix_seconds();
    let scenario = with_credentials(scenario, &targets);
    let plan = Arc::new(crate::plan(scenario, &run_tag(started_unix))?);
    if let Some(wanted) = &options.agents {
        let note = &mut |text: &str| observer.note(text);
        let agents = RemoteAgents::gather(wanted, &options.interrupt, note)?;
        agents.prepare(&plan, &targets, &options.interrupt)?;
        return Ok(Prepared {
            started_unix,
            monitors: distant_monitors(&agents, &targets, plan.clients())?,
            wired: Wired {
                stages: stages(&plan, &targets, options),
                ..Wired::default()
            },
            targets,
            threads: 0,
            agents: Some(agents),
            plan,
        });
    }
    let sources = preflight::all_sources(&plan.scenario.source_addresses);
    let sources = sources.map_err(PreflightError::from)?;
    let mut wired = connect(&plan, &targets, plan.clients(), sources)?;
    wired.stages = stages(&plan, &targets, options);
    for advice in &wired.advice {
        observer.note(advice);
    }
    let monitors = targets.iter().zip(wired.setups.iter()).map(|(target, of)| {
        let monitor = monitor(target, of.address, plan.clients())?;
        Ok(monitor.map(|monitor| BrokerWatch::Here(Box::new(monitor))))
    });
    let threads = options.threads.unwrap_or_else(|| default_threads(&plan));
    Ok(Prepared {
        started_unix,
        monitors: monitors.collect::<Result<_, RunError>>()?,
        targets,
        wired,
        threads: threads.clamp(1, THREADS_MAX).min(plan.clients().max(1)),
        agents: None,
        plan,
    })
}

/// The stages of messages inside the broker; with several brokers a message passes more than one.
fn stages(plan: &Plan, targets: &[Target], options: &RunOptions) -> Option<StageFeed> {
    match targets {
        [target] if options.asks_for_stages => StageFeed::open(target, plan),
        _ => None,
    }
}

/// Clients without a user name use the one in the broker's URL.
fn with_credentials(mut scenario: Scenario, targets: &[Target]) -> Scenario {
    for group in &mut scenario.groups {
        let Some(target) = targets.get(group.target) else {
            continue;
        };
        if group.client.username.is_none() && target.endpoint.username.is_some() {
            group.client.username.clone_from(&target.endpoint.username);
            group.client.password.clone_from(&target.endpoint.password);
        }
    }
    scenario
}

/// The requirements of this many of the plan's clients on each broker.
fn needs<'a>(
    plan: &Plan,
    targets: &'a [Target],
    clients: u32,
    source_addresses: Vec<IpAddr>,
) -> Result<Needs<'a>, RunError> {
    let scenario = &plan.scenario;
    // The clients of an agent are a part of those of each group.
    let part = f64::from(clients) / f64::from(plan.clients().max(1));
    let here = |all: u32| u32::try_from(whole((f64::from(all) * part).ceil())).unwrap_or(all);
    let mut needs = Vec::with_capacity(targets.len());
    for (number, target) in targets.iter().enumerate() {
        let address = target.endpoint.resolve()?;
        let groups = scenario
            .groups
            .iter()
            .filter(|group| group.target == number);
        let proxied = groups
            .clone()
            .filter(|group| group.client.network.is_some());
        needs.push(TargetNeeds {
            target: &target.endpoint,
            address,
            pid: broker_pid(target.process, address),
            clients: here(groups.map(|group| group.clients).sum()),
            proxied: here(proxied.map(|group| group.clients).sum()),
        });
    }
    Ok(Needs {
        targets: needs,
        connect_rate: scenario.connect_rate,
        source_addresses,
    })
}

fn broker_pid(process: BrokerProcess, address: SocketAddr) -> Option<u32> {
    match process {
        BrokerProcess::Pid(pid) => Some(pid),
        BrokerProcess::Detect if address.ip().is_loopback() => listening_process(address.port()),
        BrokerProcess::Detect | BrokerProcess::Unknown => None,
    }
}

/// The way to the brokers for this many clients of this machine, with its source addresses, if
/// set.
///
/// # Errors
/// This machine cannot do it, or a broker cannot be reached.
pub(crate) fn connect(
    plan: &Plan,
    targets: &[Target],
    clients: u32,
    source_addresses: Vec<IpAddr>,
) -> Result<Wired, RunError> {
    let connectors = targets
        .iter()
        .map(|target| Connector::new(&target.endpoint, &target.tls));
    let connectors = connectors.collect::<Result<Vec<_>, _>>()?;
    let needs = needs(plan, targets, clients, source_addresses)?;
    let sources = preflight::check(&needs)?;
    let mut setups = Vec::with_capacity(targets.len());
    for ((connector, needs), sources) in connectors.into_iter().zip(&needs.targets).zip(sources) {
        let quic = quic(&connector, needs, &sources)?;
        setups.push(TargetSetup {
            address: needs.address,
            connector: Arc::new(connector),
            quic: quic.map(Arc::new),
            sources: sources.into(),
        });
    }
    let advice = preflight::advice(&needs);
    let (proxies, target_of_group) = add_networks(plan, &mut setups)?;
    Ok(Wired {
        setups: setups.into(),
        target_of_group: target_of_group.into(),
        advice: advice.iter().map(ToString::to_string).collect(),
        stages: None,
        _proxies: proxies,
    })
}

/// The QUIC dialer of a broker, after one successful connection.
fn quic(
    connector: &Connector,
    needs: &TargetNeeds<'_>,
    sources: &[IpAddr],
) -> Result<Option<QuicSetup>, RunError> {
    let Some((tls, server_name)) = connector.quic() else {
        return Ok(None);
    };
    let options = DialOptions {
        threads: quic_threads(),
        sources: sources.to_vec(),
        ..DialOptions::default()
    };
    let dialer = QuicDialer::new(tls, options).map_err(|cause| RunError::Quic {
        target: needs.target.to_string(),
        cause,
    })?;
    let setup = QuicSetup {
        dialer,
        server_name: server_name.to_str().into_owned(),
    };
    preflight::reach_quic(needs.target, needs.address, &setup)?;
    Ok(Some(setup))
}

/// Threads that carry QUIC in addition to the load threads: half of the cores, the other half is
/// the broker's.
fn quic_threads() -> usize {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (cores / 2).max(1)
}

/// Brokers are watched by an agent on their host, or by this machine if they are on it: the
/// coordinator need not reach them.
fn distant_monitors(
    agents: &RemoteAgents,
    targets: &[Target],
    clients: u32,
) -> Result<Vec<Option<BrokerWatch>>, RunError> {
    let numbered = targets.iter().enumerate();
    let monitors = numbered.map(|(number, target)| {
        let by_agent = agents.watch(number, target);
        if by_agent.is_some() {
            return Ok(by_agent);
        }
        let Ok(address) = target.endpoint.resolve() else {
            return Ok(None);
        };
        let monitor = monitor(target, address, clients)?;
        Ok(monitor.map(|monitor| BrokerWatch::Here(Box::new(monitor))))
    });
    monitors.collect()
}

fn check_hooks(scenario: &Scenario, options: &RunOptions) -> Result<(), RunError> {
    let mut faults = scenario.faults.iter();
    let without = faults
        .find(|fault| matches!(&fault.kind, FaultKind::Hook { command } if command.is_empty()));
    match without {
        Some(fault) if options.on_fault.is_none() => Err(RunError::NoHook { at: fault.at }),
        _ => Ok(()),
    }
}

/// The brokers in the order of the scenario: given by name, given for all, or named by the
/// scenario.
fn targets(scenario: &Scenario, options: &RunOptions) -> Result<Vec<Target>, RunError> {
    let mut targets = Vec::with_capacity(scenario.targets.len());
    for spec in &scenario.targets {
        let named = options
            .targets
            .iter()
            .find(|target| target.name == spec.name);
        let target = match (named, &spec.url) {
            (Some(target), _) => target.clone(),
            (None, Some(url)) => Target::new(Endpoint::parse(url)?),
            (None, None) => {
                let any = options.targets.iter().find(|target| target.name.is_empty());
                any.cloned().ok_or_else(|| RunError::NoTarget {
                    name: spec.name.clone(),
                })?
            }
        };
        targets.push(Target {
            name: spec.name.clone(),
            ..target
        });
    }
    Ok(targets)
}

fn monitor(
    target: &Target,
    address: SocketAddr,
    clients: u32,
) -> Result<Option<Monitor>, RunError> {
    let Some(pid) = broker_pid(target.process, address) else {
        return Ok(None);
    };
    if !target.endpoint.scheme.is_quic() {
        preflight::check_broker_files(pid, clients)?;
    }
    let monitor = match target.process {
        // A broker that is restarted has another number, and the same port.
        BrokerProcess::Detect => Monitor::follow(address.port()),
        BrokerProcess::Pid(pid) => Some(Monitor::new(pid).ok_or(RunError::NoProcess(pid))?),
        BrokerProcess::Unknown => None,
    };
    Ok(monitor)
}

/// Groups with a network of their own reach their broker through a proxy.
fn add_networks(
    plan: &Plan,
    setups: &mut Vec<TargetSetup>,
) -> Result<(Vec<Proxy>, Vec<usize>), RunError> {
    let (mut proxies, mut target_of_group) = (Vec::new(), Vec::new());
    for (number, group) in (0..).zip(&plan.scenario.groups) {
        let Some(network) = group.client.network else {
            target_of_group.push(group.target);
            continue;
        };
        let upstream = &setups[group.target];
        if upstream.quic.is_some() {
            return Err(RunError::NetworkOverQuic {
                group: group.name.clone(),
            });
        }
        let proxy = Proxy::start(upstream.address, network, number)?;
        let connector = Arc::clone(&upstream.connector);
        target_of_group.push(setups.len());
        setups.push(TargetSetup {
            address: proxy.address(),
            connector,
            quic: None,
            sources: Arc::default(),
        });
        proxies.push(proxy);
    }
    Ok((proxies, target_of_group))
}

/// Default number of threads: half of the cores, the other half is the broker's. More if the load
/// would keep those busy all the time; a fan-out has one more even then: its publishers do so
/// little that they cost nothing, and are punctual for it.
fn default_threads(plan: &Plan) -> u32 {
    let cores = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let half = u32::try_from(cores / 2).unwrap_or(1).clamp(1, THREADS_MAX);
    let (sent, delivered) = plan.messages_per_second();
    let for_load = ((sent + delivered) / THREAD_MESSAGES_PER_SECOND).ceil();
    let for_load = u32::try_from(whole(for_load)).unwrap_or(THREADS_MAX);
    // A core is the broker's, if it is on this machine: more threads than the rest would only take
    // turns with it.
    let at_most = u32::try_from(cores.saturating_sub(1))
        .unwrap_or(THREADS_MAX)
        .max(1);
    let threads = half.max(for_load.min(at_most));
    if plan.publishing_part() < FAN_OUT_PART_MAX {
        threads + 1
    } else {
        threads
    }
}

/// Short text that differs between runs on all machines, so that clients and topics do not clash.
fn run_tag(started_unix: u64) -> String {
    let random = RandomState::new().hash_one((started_unix, std::process::id()));
    format!("{:06x}", random % 0x100_0000)
}
