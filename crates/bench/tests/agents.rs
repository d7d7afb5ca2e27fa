//! Runs with agents, over real brokers on loopback: one for control, one as the target.
#![expect(clippy::unwrap_used, reason = "a test fails where it is wrong")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use thrum_bench::agents::{AgentError, AgentOptions, AgentsWanted, Watch, serve};
use thrum_bench::clock;
use thrum_bench::observe::{Command, Observer};
use thrum_bench::{Outcome, RunError, RunOptions, Stage, Status, Target, run};
use thrum_broker::config::{Anonymous, ListenerConfig, Workers};
use thrum_broker::{Access, Broker, Config};
use thrum_load::scenario::{Overrides, Scenario, find};
use thrum_transport::Endpoint;

fn broker() -> (Broker, SocketAddr) {
    broker_at(SocketAddr::from(([127, 0, 0, 1], 0)))
}

fn broker_at(address: SocketAddr) -> (Broker, SocketAddr) {
    let mut config = Config::default();
    config.node.workers = Workers::Count(1);
    config.auth.anonymous = Anonymous::Allow;
    config.listeners.clear();
    config.listeners.insert(
        "mqtt".to_owned(),
        ListenerConfig {
            bind: vec![address.into()],
            ..ListenerConfig::default()
        },
    );
    let broker = Broker::start(config, Access::default()).unwrap();
    let address = broker.addresses()[0].socket_address().unwrap();
    (broker, address)
}

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::parse(&format!("mqtt://{address}")).unwrap()
}

/// An agent in a thread of its own, and its end.
struct Agent {
    thread: JoinHandle<Result<(), AgentError>>,
    interrupt: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<String>>>,
}

fn agent(control: SocketAddr, name: &str, change: impl FnOnce(&mut AgentOptions)) -> Agent {
    let mut options = AgentOptions {
        control: endpoint(control),
        name: Some(name.to_owned()),
        threads: Some(1),
        watches: Vec::new(),
        once: true,
        interrupt: Arc::default(),
    };
    change(&mut options);
    let interrupt = Arc::clone(&options.interrupt);
    let said = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&said);
    Agent {
        thread: thread::spawn(move || {
            serve(&options, &mut |text| {
                log.lock().unwrap().push(text.to_owned());
            })
        }),
        interrupt,
        said,
    }
}

fn pairs(pairs: u32, hold: Duration) -> Scenario {
    let overrides = Overrides {
        publishers: Some(pairs),
        rate: thrum_load::scenario::Rate::parse("20"),
        warm_up: Some(Duration::from_millis(200)),
        hold: Some(hold),
        ..Overrides::default()
    };
    find("p2p-1K").unwrap().with(&overrides).unwrap()
}

fn options(control: SocketAddr, target: SocketAddr, count: u32) -> RunOptions {
    RunOptions {
        targets: vec![Target::new(endpoint(target))],
        agents: Some(AgentsWanted {
            control: endpoint(control),
            count,
        }),
        ..RunOptions::default()
    }
}

/// Acts once when the hold has begun, and keeps the notes.
struct InHold<F> {
    act: Option<F>,
    notes: Vec<String>,
}

impl<F: FnOnce()> InHold<F> {
    const fn new(act: F) -> Self {
        Self {
            act: Some(act),
            notes: Vec::new(),
        }
    }
}

impl<F: FnOnce()> Observer for InHold<F> {
    fn look(&mut self, status: &Status) {
        if status.stage == Stage::Hold
            && let Some(act) = self.act.take()
        {
            act();
        }
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

#[track_caller]
fn assert_all_delivered(outcome: &Outcome) {
    let delivery = &outcome.delivery;
    assert!(delivery.expected > 0);
    assert_eq!(
        (
            delivery.lost,
            delivery.wrong.foreign,
            delivery.wrong.misdelivered
        ),
        (0, 0, 0)
    );
    assert_eq!(delivery.delivered(), outcome.counts.distinct);
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
}

#[test]
fn two_agents_share_the_clients_and_deliver_everything() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let agents = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let mut observer = InHold::new(|| {});
    let outcome = run(
        pairs(20, Duration::from_secs(1)),
        &options(control_address, target_address, 2),
        &mut observer,
    )
    .unwrap();
    assert_all_delivered(&outcome);
    assert_eq!((outcome.clients.ready, outcome.clients.failed), (40, 0));
    let mut seen: Vec<_> = outcome
        .result
        .agents
        .iter()
        .map(|agent| (agent.name.as_str(), agent.clients))
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, [("left", 20), ("right", 20)]);
    for agent in &outcome.result.agents {
        // Both run by the same clock: the offset is within what is known of it.
        assert!(agent.clock_error_ns > 0);
        assert!(agent.clock_offset_ns.unsigned_abs() <= agent.clock_error_ns);
        assert!(agent.machine.cores > 0);
        assert_eq!(agent.generator.threads.len(), 1);
        assert!(agent.generator.usage.is_some());
    }
    // Pairs share a machine, so no latency depends on two clocks.
    assert_eq!(outcome.health.clock_error_ns, 0);
    assert_eq!(outcome.latencies.response.len(), 400);
    let received: u64 = outcome
        .result
        .series
        .iter()
        .map(|second| second.received)
        .sum();
    assert_eq!(received, outcome.counts.received);
    assert!(
        observer
            .notes
            .iter()
            .any(|note| note.contains("'left' is here"))
    );
    for agent in agents {
        agent.thread.join().unwrap().unwrap();
        let said = agent.said.lock().unwrap().join("\n");
        assert!(said.contains("20 clients"), "{said}");
    }
    control.stop();
    target.stop();
}

#[test]
fn a_fan_out_across_agents_states_the_error_of_its_latencies() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let agents = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let overrides = Overrides {
        subscribers: Some(10),
        warm_up: Some(Duration::ZERO),
        hold: Some(Duration::from_secs(1)),
        rate: thrum_load::scenario::Rate::parse("50"),
        ..Overrides::default()
    };
    let scenario = find("fanout-1-1K").unwrap().with(&overrides).unwrap();
    let options = options(control_address, target_address, 2);
    let outcome = run(scenario, &options, &mut InHold::new(|| {})).unwrap();
    assert_all_delivered(&outcome);
    let errors = outcome
        .result
        .agents
        .iter()
        .map(|agent| agent.clock_error_ns);
    let error_ns = errors.sum::<u64>();
    assert_eq!(outcome.health.clock_error_ns, error_ns);
    // The figures of single seconds are no more exact.
    let bounds = outcome.result.series.iter();
    let bounds = bounds.filter_map(|second| second.delays.e2e_bound);
    let least_ns = bounds.map(|bound| bound.min).min();
    assert!(least_ns.unwrap() >= error_ns, "{least_ns:?} {error_ns}");
    for agent in agents {
        agent.thread.join().unwrap().unwrap();
    }
    control.stop();
    target.stop();
}

#[test]
fn an_agent_on_the_brokers_host_measures_the_broker() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let load = agent(control_address, "load", |_| {});
    let watcher = agent(control_address, "watcher", |options| {
        options.threads = None;
        options.watches = vec![Watch::parse(&target_address.port().to_string()).unwrap()];
    });
    let outcome = run(
        pairs(4, Duration::from_secs(2)),
        &options(control_address, target_address, 2),
        &mut InHold::new(|| {}),
    )
    .unwrap();
    assert_all_delivered(&outcome);
    let [broker] = &outcome.result.brokers[..] else {
        panic!("{:?}", outcome.result.brokers);
    };
    assert_eq!(
        (broker.host.as_str(), broker.pid),
        ("watcher", std::process::id())
    );
    assert!(broker.usage.rss_max_bytes > 0);
    let series = &outcome.result.series;
    assert!(series.iter().any(|second| second.broker.is_some()));
    assert!(series.iter().any(|second| second.generator.is_some()));
    for agent in [load, watcher] {
        agent.thread.join().unwrap().unwrap();
    }
    control.stop();
    target.stop();
}

#[test]
fn a_report_larger_than_a_fragment_arrives_whole() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let agents = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let overrides = Overrides {
        subscribers: Some(2_000),
        connect_rate: Some(4_000),
        warm_up: Some(Duration::ZERO),
        hold: Some(Duration::from_secs(1)),
        rate: thrum_load::scenario::Rate::parse("2"),
        ..Overrides::default()
    };
    let scenario = find("fanout-1-1K").unwrap().with(&overrides).unwrap();
    let options = options(control_address, target_address, 2);
    let outcome = run(scenario, &options, &mut InHold::new(|| {})).unwrap();
    assert_all_delivered(&outcome);
    assert_eq!(outcome.clients.ready, 2_001);
    for agent in agents {
        agent.thread.join().unwrap().unwrap();
    }
    control.stop();
    target.stop();
}

/// Doubles the rate when the hold begins.
struct Double(Option<Command>);

impl Observer for Double {
    fn look(&mut self, status: &Status) {
        if status.stage == Stage::Hold && self.0.is_none() {
            self.0 = Some(Command::Rate(2.0));
        }
    }

    fn next_command(&mut self) -> Option<Command> {
        let command = self.0.clone()?;
        let is_new = command != Command::Note(String::new());
        self.0 = Some(Command::Note(String::new()));
        is_new.then_some(command)
    }
}

#[test]
fn a_change_of_the_rate_reaches_every_agent_in_time() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let agents = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let overrides = Overrides {
        subscribers: Some(4),
        warm_up: Some(Duration::ZERO),
        hold: Some(Duration::from_secs(3)),
        rate: thrum_load::scenario::Rate::parse("50"),
        ..Overrides::default()
    };
    let scenario = find("fanout-1-1K").unwrap().with(&overrides).unwrap();
    let options = options(control_address, target_address, 2);
    let outcome = run(scenario, &options, &mut Double(None)).unwrap();
    assert_all_delivered(&outcome);
    // 150 as planned, and half as many again in the part of the hold after the change.
    assert!(outcome.counts.sent > 180, "{}", outcome.counts.sent);
    for agent in agents {
        agent.thread.join().unwrap().unwrap();
    }
    control.stop();
    target.stop();
}

/// Ends the hold half a second after its beginning.
#[derive(Default)]
struct EndEarly {
    is_due: bool,
    was_given: bool,
}

impl Observer for EndEarly {
    fn look(&mut self, status: &Status) {
        self.is_due = status.stage == Stage::Hold && status.elapsed >= Duration::from_millis(500);
    }

    fn next_command(&mut self) -> Option<Command> {
        let is_first = self.is_due && !std::mem::replace(&mut self.was_given, self.is_due);
        is_first.then_some(Command::Stop)
    }
}

#[test]
fn a_hold_that_is_ended_early_ends_for_all_agents_at_once() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let agents = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let mut scenario = pairs(150, Duration::from_mins(1));
    scenario.stages.warm_up = Duration::ZERO;
    let options = options(control_address, target_address, 2);
    let outcome = run(scenario, &options, &mut EndEarly::default()).unwrap();
    assert_all_delivered(&outcome);
    assert!(outcome.was_interrupted);
    assert!(outcome.hold < Duration::from_secs(10), "{:?}", outcome.hold);
    // No agent sends a message that is due after the end.
    assert_eq!(outcome.counts.sent, outcome.health.offered);
    assert_eq!(outcome.latencies.response.len(), outcome.health.offered);
    for agent in agents {
        agent.thread.join().unwrap().unwrap();
    }
    control.stop();
    target.stop();
}

#[test]
fn an_agent_waits_for_a_control_broker_that_comes_later() {
    let reserved = TcpListener::bind("127.0.0.1:0").unwrap();
    let control_address = reserved.local_addr().unwrap();
    drop(reserved);
    let waiting = agent(control_address, "left", |_| {});
    let has_tried = (0..1_000).any(|_| {
        clock::rest(Duration::from_millis(5));
        let said = waiting.said.lock().unwrap();
        said.iter().any(|text| text.contains("trying again"))
    });
    assert!(has_tried);
    let (control, _) = broker_at(control_address);
    let (target, target_address) = broker();
    let outcome = run(
        pairs(2, Duration::from_secs(1)),
        &options(control_address, target_address, 1),
        &mut InHold::new(|| {}),
    )
    .unwrap();
    assert_all_delivered(&outcome);
    waiting.thread.join().unwrap().unwrap();
    control.stop();
    target.stop();
}

#[test]
fn a_run_fails_with_the_name_of_the_agent_that_ended() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let [left, right] = ["left", "right"].map(|name| agent(control_address, name, |_| {}));
    let interrupt = Arc::clone(&right.interrupt);
    let failed = run(
        pairs(20, Duration::from_mins(1)),
        &options(control_address, target_address, 2),
        &mut InHold::new(|| interrupt.store(true, Ordering::Relaxed)),
    );
    let Err(RunError::AgentLost { name, why }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(
        (name.as_str(), why.as_str()),
        ("right", "failed: interrupted")
    );
    right.thread.join().unwrap().unwrap();
    // The other agent is sent the end of the run.
    left.thread.join().unwrap().unwrap();
    control.stop();
    target.stop();
}

#[test]
fn an_agent_whose_connection_is_cut_is_noticed_by_its_will() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let cable = CuttableRelay::to(control_address);
    let left = agent(control_address, "left", |_| {});
    let right = agent(cable.address, "right", |_| {});
    let failed = run(
        pairs(20, Duration::from_mins(1)),
        &options(control_address, target_address, 2),
        &mut InHold::new(|| cable.cut()),
    );
    let Err(RunError::AgentLost { name, why }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(name, "right");
    assert!(why.starts_with("is gone"), "{why}");
    left.thread.join().unwrap().unwrap();
    let ended = right.thread.join().unwrap();
    assert!(matches!(ended, Err(AgentError::Run(_))), "{ended:?}");
    control.stop();
    target.stop();
}

#[test]
fn an_agent_ends_its_clients_when_the_coordinator_is_gone() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let cable = CuttableRelay::to(control_address);
    let agent = agent(control_address, "left", |_| {});
    let failed = run(
        pairs(20, Duration::from_mins(1)),
        &options(cable.address, target_address, 1),
        &mut InHold::new(|| cable.cut()),
    );
    assert!(matches!(failed, Err(RunError::Agents(_))), "{failed:?}");
    let Err(AgentError::Run(why)) = agent.thread.join().unwrap() else {
        panic!("the agent ended well");
    };
    assert!(why.starts_with("the coordinator is gone"), "{why}");
    // The clients have sent DISCONNECT; the broker reads it later.
    let is_empty = (0..1_000).any(|_| {
        clock::rest(Duration::from_millis(5));
        target.clients_connected() == 0
    });
    assert!(is_empty);
    control.stop();
    target.stop();
}

#[test]
fn an_agent_that_cannot_reach_the_broker_reports_the_reason() {
    let (control, control_address) = broker();
    let unused = TcpListener::bind("127.0.0.1:0").unwrap();
    let target_address = unused.local_addr().unwrap();
    drop(unused);
    let agent = agent(control_address, "left", |_| {});
    let failed = run(
        pairs(2, Duration::from_secs(1)),
        &options(control_address, target_address, 1),
        &mut InHold::new(|| {}),
    );
    let Err(RunError::AgentLost { name, why }) = failed else {
        panic!("{failed:?}");
    };
    assert_eq!(name, "left");
    assert!(why.contains("connection refused"), "{why}");
    assert!(agent.thread.join().unwrap().is_err());
    control.stop();
}

#[test]
fn two_agents_of_one_name_do_not_both_take_part() {
    let ((control, control_address), (target, target_address)) = (broker(), broker());
    let first = agent(control_address, "same", |_| {});
    let second = agent(control_address, "same", |_| {});
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut wanted = options(control_address, target_address, 2);
    wanted.interrupt = Arc::clone(&interrupt);
    let mut observer = StopAt("a second agent has the name 'same'", interrupt);
    let failed = run(pairs(2, Duration::from_secs(1)), &wanted, &mut observer);
    assert!(matches!(failed, Err(RunError::Agents(_))), "{failed:?}");
    let ended = [first.thread.join().unwrap(), second.thread.join().unwrap()];
    let refused = ended
        .iter()
        .filter(|ended| matches!(ended, Err(AgentError::NameTaken(_))));
    assert_eq!(refused.count(), 1, "{ended:?}");
    control.stop();
    target.stop();
}

/// Interrupts the run at the first note.
struct StopAt(&'static str, Arc<AtomicBool>);

impl Observer for StopAt {
    fn look(&mut self, _: &Status) {}

    fn note(&mut self, text: &str) {
        if text.contains(self.0) {
            self.1.store(true, Ordering::Relaxed);
        }
    }
}

/// A TCP relay whose connections can be cut without notice.
struct CuttableRelay {
    address: SocketAddr,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl CuttableRelay {
    fn to(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let ends = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&ends);
        // It ends with the test's process.
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                connect(client, upstream, &all);
            }
        });
        Self { address, ends }
    }

    fn cut(&self) {
        for end in self.ends.lock().unwrap().iter() {
            end.shutdown(Shutdown::Both).ok();
        }
    }
}

fn connect(client: TcpStream, upstream: SocketAddr, ends: &Mutex<Vec<TcpStream>>) {
    let server = TcpStream::connect(upstream).unwrap();
    for stream in [&client, &server] {
        stream.set_nodelay(true).unwrap();
        ends.lock().unwrap().push(stream.try_clone().unwrap());
    }
    let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || carry(from, to));
    thread::spawn(move || carry(server, client));
}

fn carry(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    to.shutdown(Shutdown::Both).ok();
}
