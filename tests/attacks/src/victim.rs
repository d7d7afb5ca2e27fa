//! A broker under attack: started for it, watched during it.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use thrum_conformance::broker::{free_address, thrum_binary};
use thrum_conformance::folder::Folder;
use thrum_conformance::packets::{Connect, unique};
use thrum_conformance::wire::DEADLINE;
use thrum_conformance::{Broker, Event, Version, Wire, clock};

use crate::outcome::Outcome;
use crate::watch::Watch;

/// Bytes in a MiB.
pub const MIB: u64 = 1024 * 1024;
/// Longest wait for what the broker has to do in the end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A binary, and the core that it has to itself.
#[derive(Clone, Debug)]
pub struct Site {
    /// The program under attack.
    pub program: PathBuf,
    /// The core of the broker; any if there is only one.
    pub core: Option<usize>,
}

/// The configuration of a broker.
#[derive(Clone, Copy, Debug, Default)]
pub struct Setup<'a> {
    /// Variables; `{folder}` in a value is the folder of the files, `{proxy}` an address where
    /// no process listens.
    pub settings: &'a [(&'a str, &'a str)],
    /// Files by their names, and what is in them.
    pub files: &'a [(&'a str, &'a str)],
    /// Users with their passwords.
    pub users: &'a [(&'a str, &'a str)],
    /// A command that runs the broker's.
    pub prefix: &'a [&'a str],
    /// Clients from elsewhere need credentials.
    pub is_closed: bool,
    /// It may use all cores.
    pub uses_all_cores: bool,
}

impl Site {
    /// The binary that the tests are about, on any core.
    pub fn of_tests() -> Self {
        Self {
            program: thrum_binary(),
            core: None,
        }
    }

    /// Runs the program with these arguments and this input; returns its output.
    ///
    /// # Panics
    /// It cannot be run.
    pub fn run(&self, arguments: &[&str], input: &str) -> String {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program runs");
        let mut stdin = child.stdin.take().expect("standard input is piped");
        // A program that reads none has ended already.
        stdin.write_all(input.as_bytes()).unwrap_or_default();
        drop(stdin);
        let output = child.wait_with_output().expect("the program ends");
        let text = [output.stdout, output.stderr].concat();
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// A broker under attack.
#[derive(Debug)]
pub struct Victim {
    /// The process.
    pub broker: Broker,
    /// Its files.
    pub folder: Folder,
    /// The address for a second listener.
    pub proxy: SocketAddr,
    site: Site,
    watch: Watch,
    memory_before: u64,
    cpu_before: Duration,
    began: Instant,
}

impl Victim {
    /// Starts a broker with one worker, and a probe.
    ///
    /// # Panics
    /// It does not start.
    pub fn start(site: &Site, setup: &Setup<'_>) -> Self {
        let (folder, proxy) = (Folder::new("attack"), free_address());
        for (name, text) in setup.files {
            folder.write(name, text);
        }
        for (user, password) in setup.users {
            let file = folder.file("users.jsonl");
            let add = ["users", "add", user, "--users", &file, "--password-stdin"];
            site.run(&add, password);
        }
        let value = |text: &str| {
            let text = text.replace("{proxy}", &proxy.to_string());
            text.replace("{folder}", &folder.file(""))
        };
        let settings: Vec<_> = setup
            .settings
            .iter()
            .map(|(key, text)| (*key, value(text)))
            .collect();
        let settings: Vec<_> = settings
            .iter()
            .map(|(key, text)| (*key, text.as_str()))
            .collect();
        let address = free_address();
        let command = command(site, setup, address)
            .iter()
            .map(|word| value(word))
            .collect();
        let broker = Broker::start_command(address, command, &settings);
        let watch = Watch::start(address);
        Self {
            memory_before: broker.resident_bytes(),
            cpu_before: broker.cpu_time(),
            began: clock::now(),
            broker,
            folder,
            proxy,
            site: site.clone(),
            watch,
        }
    }

    /// Its listening address.
    pub fn address(&self) -> SocketAddr {
        self.broker.address()
    }

    /// Preparations are over: measurements from here on count.
    pub fn begin(&mut self) {
        // The probe's rounds of the preparations are over with the next one.
        clock::sleep(Duration::from_millis(200));
        self.watch.forget();
        self.memory_before = self.broker.resident_bytes();
        self.cpu_before = self.broker.cpu_time();
        self.began = clock::now();
    }

    /// The attack is over. `memory` is the value of `limits.memory`, `seen` the other observations.
    pub fn end(self, memory: Option<u64>, seen: String) -> Outcome {
        let took = self.began.elapsed();
        let rounds = self.watch.end();
        if !self.broker.is_alive() {
            return Outcome {
                wrong: Some(format!("the broker ended: {}", self.broker.log_tail())),
                ..Outcome::default()
            };
        }
        let lost = || format!("the probe was lost: {}", self.broker.log_tail());
        Outcome {
            wrong: rounds.is_lost.then(lost),
            memory_before: self.memory_before,
            memory_peak: self.broker.resident_bytes_peak(),
            memory_bound: memory.map(|limit| limit + limit / 5),
            cpu: self.broker.cpu_time().saturating_sub(self.cpu_before),
            took,
            rounds,
            seen,
            ..Outcome::default()
        }
    }

    /// The same, for an attack that has to show that something works as it should.
    pub fn end_with(self, wrong: Option<String>, seen: String) -> Outcome {
        let mut outcome = self.end(None, seen);
        outcome.wrong = outcome.wrong.or(wrong);
        outcome
    }

    /// A client with a clean session.
    pub fn client(&self) -> Wire {
        Wire::fresh(self.address(), Version::V5)
    }

    /// A connection whose session outlives it; returns whether there was one.
    pub fn resume(&self, client_id: &str) -> (Wire, bool) {
        let connect = Connect::new(Version::V5).client_id(client_id).persistent();
        let (wire, connack) = Wire::connect(self.address(), &connect);
        (wire, connack.session_present)
    }

    /// For a client that may be refused: its connection, and whether it had a session.
    pub fn try_connect(&self, connect: &Connect) -> Option<(Wire, bool)> {
        let mut wire = Wire::open(self.address(), Version::V5);
        wire.send(&connect.bytes());
        let Event::Packet(packet) = wire.next(DEADLINE) else {
            return None;
        };
        let connack = packet.connack(Version::V5);
        (connack.code == 0).then_some((wire, connack.session_present))
    }

    /// Adds rules before all others, and waits until they are in force.
    ///
    /// # Panics
    /// They are not after a while.
    pub fn put_rules_first(&self, rules: &str, others: &str) {
        let marker = unique("marker/");
        let text = format!("{rules}\nallow all sub {marker}\n{others}");
        self.folder.write("rules", &text);
        self.broker.reload();
        let mut client = self.client();
        let start = clock::now();
        while crate::requests::subscribe(&mut client, &marker, 1) >= 0x80 {
            assert!(start.elapsed() < PATIENCE, "the rules are not in force");
            clock::sleep(Duration::from_millis(10));
        }
    }

    /// The binary.
    pub fn site(&self) -> &Site {
        &self.site
    }
}

/// Loopback only, one worker.
fn command(site: &Site, setup: &Setup<'_>, address: SocketAddr) -> Vec<String> {
    let mut command: Vec<String> = Vec::new();
    if let Some(core) = site.core.filter(|_| !setup.uses_all_cores) {
        command.extend(["taskset".to_owned(), "-c".to_owned(), core.to_string()]);
    }
    command.extend(setup.prefix.iter().map(|&word| word.to_owned()));
    command.push(site.program.to_string_lossy().into_owned());
    command.push("serve".to_owned());
    if !setup.is_closed {
        command.push("--dev".to_owned());
    }
    command.extend(["--workers", "1", "--listen"].map(str::to_owned));
    command.push(address.to_string());
    command
}
