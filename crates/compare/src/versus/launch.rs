//! One broker as a process: started in a group, a folder and on a port of its own, stopped with
//! everything it started.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use thrum_bench::clock;
use thrum_figures::{SECOND_NS, nanos};

use super::spec::{Broker, Installed, Places, StopSignal};

/// Default of `ready_seconds`.
const READY_SECONDS: u64 = 30;

/// Default of `stop_seconds`.
const STOP_SECONDS: u64 = 10;

/// Between two looks at a process that is starting or stopping.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// After an answer of the port: some listen before they are ready.
const SETTLE: Duration = Duration::from_millis(300);

/// Lines of a broker's log that a message quotes.
const LOG_LINES: usize = 5;

/// Most bytes of a line of the log that a message quotes.
const LOG_LINE_CHARS: usize = 200;

/// Name of the broker's output in its folder.
const LOG: &str = "broker.log";

/// Clients that a broker has to have room for, besides those of the scenario.
const CLIENTS_SPARE: u32 = 1_000;

/// What helps against a port that is taken.
const CURE: &str = "stop that (`ss -ltnp` shows it), or change the port in the file of brokers (`--print-brokers`)";

/// Process groups that run, and their folders. The lock guards the list alone, and is held while a
/// process starts, so that [`kill_all`] misses none.
static STARTED: Mutex<Vec<(Pid, PathBuf)>> = Mutex::new(Vec::new());

/// Kills every broker that runs and removes its folder, for a program that ends at once.
pub fn kill_all() {
    for (group, folder) in started().drain(..) {
        kill_process_group(group, Signal::KILL).ok();
        fs::remove_dir_all(folder).ok();
    }
}

fn started() -> MutexGuard<'static, Vec<(Pid, PathBuf)>> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why a broker does not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// No folder, no port, or the program cannot be started.
    #[error("cannot start {name}: {source}")]
    Start {
        /// Name of the broker.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// Something else has its port: it would be measured instead.
    #[error("{name} has to listen on port {port}, but something listens there already: {cure}", cure = CURE)]
    PortTaken {
        /// Name of the broker.
        name: String,
        /// The port.
        port: u16,
    },
    /// It ended before it was ready.
    #[error("{name} ended while it started: {how}")]
    Ended {
        /// Name of the broker.
        name: String,
        /// Exit status and the end of its log.
        how: String,
    },
    /// It does not accept connections.
    #[error("{name} did not listen on port {port} within {seconds} s; its log ends: {log}")]
    NotReady {
        /// Name of the broker.
        name: String,
        /// The expected address.
        port: u16,
        /// How long it was waited for.
        seconds: u64,
        /// The end of its log.
        log: String,
    },
    /// The user ended the wait for it.
    #[error("interrupted")]
    Interrupted,
}

/// A broker that was started here. Dropping it kills the process group and removes the folder.
#[derive(Debug)]
pub struct Running {
    child: Child,
    folder: PathBuf,
    places: Places,
    targets: Vec<(String, String)>,
    configuration: String,
    stop: StopSignal,
    stop_wait: Duration,
    has_ended: bool,
}

impl Running {
    /// Starts a broker with room for this many clients and waits until it accepts connections, or
    /// until `interrupt` is set.
    ///
    /// # Errors
    /// Its port is taken, it cannot be started, ends, does not listen in time, or the wait was
    /// interrupted.
    pub fn start(
        installed: &Installed,
        clients: u32,
        interrupt: &AtomicBool,
    ) -> Result<Self, LaunchError> {
        let broker = &installed.broker;
        let failed = |source| LaunchError::Start {
            name: broker.name.clone(),
            source,
        };
        installed.require_ports()?;
        let folder = new_folder(&broker.name).map_err(failed)?;
        let places = places(installed, &folder, clients).map_err(failed)?;
        let mut list = started();
        let child = spawn(installed, &places, &folder).map_err(|source| {
            fs::remove_dir_all(&folder).ok();
            failed(source)
        })?;
        list.extend(group_of(&child).map(|group| (group, folder.clone())));
        drop(list);
        let mut running = Self {
            child,
            folder,
            configuration: configuration(installed, &places),
            targets: targets(installed, &places),
            places,
            stop: broker.stop,
            stop_wait: Duration::from_secs(broker.stop_seconds.unwrap_or(STOP_SECONDS)),
            has_ended: false,
        };
        let seconds = broker.ready_seconds.unwrap_or(READY_SECONDS);
        let ports = ports_of(broker, &running.places);
        for port in ports {
            running.wait_until_ready(&broker.name, port, seconds, interrupt)?;
        }
        clock::rest(SETTLE);
        Ok(running)
    }

    /// The process whose CPU and memory count, with its children.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its MQTT addresses: names of targets, which are empty where there is one, and URLs.
    pub fn targets(&self) -> &[(String, String)] {
        &self.targets
    }

    /// A text with `{pid}` and the placeholders of the file of brokers filled in.
    pub fn fill(&self, text: &str) -> String {
        let text = self.places.fill(text);
        text.replace("{pid}", &self.pid().to_string())
    }

    /// Its start: the command line with its own environment, and the configuration file.
    pub fn configuration(&self) -> &str {
        &self.configuration
    }

    /// Its unexpected end, if any: exit status and the end of its log.
    pub fn crash(&mut self) -> Option<String> {
        if !self.is_zombie() {
            return None;
        }
        let log = self.log_end();
        let status = self.reap();
        Some(format!("{status}; its log ends: {log}"))
    }

    /// Asks it to stop, waits, and kills the rest of its group; returns its exit status as text.
    pub fn stop(&mut self) -> String {
        if self.has_ended {
            return "ended".to_owned();
        }
        let signal = match self.stop {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Quit => Signal::QUIT,
        };
        self.signal(signal);
        let until_ns = clock::monotonic_ns() + nanos(self.stop_wait);
        while !self.is_zombie() && clock::monotonic_ns() < until_ns {
            clock::rest(LOOK_INTERVAL);
        }
        self.reap()
    }

    fn wait_until_ready(
        &mut self,
        name: &str,
        port: u16,
        seconds: u64,
        interrupt: &AtomicBool,
    ) -> Result<(), LaunchError> {
        let until_ns = clock::monotonic_ns() + seconds * SECOND_NS;
        loop {
            if interrupt.load(Ordering::Relaxed) {
                return Err(LaunchError::Interrupted);
            }
            if let Some(how) = self.crash() {
                return Err(LaunchError::Ended {
                    name: name.to_owned(),
                    how,
                });
            }
            if is_listening(port) {
                return Ok(());
            }
            if clock::monotonic_ns() >= until_ns {
                return Err(LaunchError::NotReady {
                    name: name.to_owned(),
                    port,
                    seconds,
                    log: self.log_end(),
                });
            }
            clock::rest(LOOK_INTERVAL);
        }
    }

    /// Whether the process has ended; it stays unreaped, so that its number is not reused.
    fn is_zombie(&self) -> bool {
        if self.has_ended {
            return false;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        self.group()
            .is_some_and(|pid| matches!(waitid(WaitId::Pid(pid), options), Ok(Some(_))))
    }

    /// Kills what is left of the group, then reaps its leader: until then the group's number is
    /// taken.
    fn reap(&mut self) -> String {
        self.signal(Signal::KILL);
        self.has_ended = true;
        // Its number may be another's as soon as it is reaped.
        let group = self.group();
        started().retain(|(known, _)| Some(*known) != group);
        self.child
            .wait()
            .map_or_else(|error| error.to_string(), |status| status.to_string())
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // A group that is gone needs no signal.
            kill_process_group(group, signal).ok();
        }
    }

    fn group(&self) -> Option<Pid> {
        group_of(&self.child)
    }

    fn log_end(&self) -> String {
        let log = fs::read(self.folder.join(LOG)).unwrap_or_default();
        last_lines(&String::from_utf8_lossy(&log))
    }
}

/// A broker leads a process group of its own.
fn group_of(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.has_ended {
            self.reap();
        }
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl Installed {
    /// Refuses if something listens already on a port that the broker cannot be told to change.
    ///
    /// # Errors
    /// Something does.
    pub fn require_ports(&self) -> Result<(), LaunchError> {
        let fixed = self.broker.fixed_ports();
        let taken = fixed.into_iter().find(|port| is_listening(*port));
        taken.map_or(Ok(()), |port| {
            Err(LaunchError::PortTaken {
                name: self.broker.name.clone(),
                port,
            })
        })
    }

    /// The output of its version command: the first line that has a digit; empty if there is none.
    pub fn version(&self) -> String {
        let program = self.program.display().to_string();
        let words: Vec<String> = self
            .broker
            .version
            .iter()
            .map(|word| word.replace("{program}", &program))
            .collect();
        let Some((first, rest)) = words.split_first() else {
            return String::new();
        };
        // Some print it to standard error, and some with a status of failure.
        let output = Command::new(first).args(rest).stdin(Stdio::null()).output();
        let text = output.map_or_else(
            |_| String::new(),
            |output| {
                let (out, err) = (
                    String::from_utf8_lossy(&output.stdout),
                    String::from_utf8_lossy(&output.stderr),
                );
                format!("{out}\n{err}")
            },
        );
        let line = text
            .lines()
            .find(|line| line.contains(|letter: char| letter.is_ascii_digit()));
        line.map_or_else(String::new, |line| {
            line.trim().chars().take(LOG_LINE_CHARS).collect()
        })
    }
}

fn is_listening(port: u16) -> bool {
    TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// Names and URLs of its targets.
fn targets(installed: &Installed, places: &Places) -> Vec<(String, String)> {
    let url = |port: &str| format!("mqtt://127.0.0.1:{port}");
    let named = installed.broker.targets.iter();
    let named = named.map(|(name, port)| (name.clone(), url(&places.fill(port))));
    let named: Vec<_> = named.collect();
    if named.is_empty() {
        return vec![(String::new(), url(&places.ports[0].to_string()))];
    }
    named
}

/// The ports that must accept connections.
fn ports_of(broker: &Broker, places: &Places) -> Vec<u16> {
    let filled = broker.targets.values().map(|port| places.fill(port));
    let ports: Vec<u16> = filled.filter_map(|port| port.parse().ok()).collect();
    if ports.is_empty() {
        return vec![places.ports[0]];
    }
    ports
}

/// The command of [`spawn`], as text.
fn configuration(installed: &Installed, places: &Places) -> String {
    let broker = &installed.broker;
    let env = broker.env.iter();
    let env = env.map(|(name, value)| format!("{name}={}", places.fill(value)));
    let words = broker.launch.iter().map(|word| places.fill(word));
    let mut text = env.chain(words).collect::<Vec<_>>().join(" ");
    if let Some(config) = &broker.config {
        text.push_str("\n\n");
        text.push_str(places.fill(config.trim_start()).trim_end());
    }
    text
}

fn new_folder(name: &str) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let folder = format!("thrum-versus-{}-{number}-{name}", std::process::id());
    let folder = std::env::temp_dir().join(folder);
    fs::create_dir(&folder)?;
    Ok(folder)
}

fn places(installed: &Installed, folder: &Path, clients: u32) -> io::Result<Places> {
    let broker = &installed.broker;
    let config_name = broker.config_name.as_deref().unwrap_or("broker.conf");
    let mut ports = free_ports()?;
    ports[0] = broker.port.unwrap_or(ports[0]);
    Ok(Places {
        program: installed.program.display().to_string(),
        dir: folder.display().to_string(),
        config: folder.join(config_name).display().to_string(),
        ports,
        clients: clients.saturating_add(CLIENTS_SPARE),
    })
}

/// Three ports that were free a moment ago.
fn free_ports() -> io::Result<[u16; 3]> {
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All at once, so that they differ.
    let listeners = [bind()?, bind()?, bind()?];
    let mut ports = [0; 3];
    for (port, listener) in ports.iter_mut().zip(&listeners) {
        *port = listener.local_addr()?.port();
    }
    Ok(ports)
}

fn spawn(installed: &Installed, places: &Places, folder: &Path) -> io::Result<Child> {
    let broker = &installed.broker;
    if let Some(config) = &broker.config {
        fs::write(&places.config, places.fill(config.trim_start()))?;
    }
    let log = File::create(folder.join(LOG))?;
    let words: Vec<String> = broker.launch.iter().map(|word| places.fill(word)).collect();
    let (program, arguments) = words
        .split_first()
        .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    let env = broker
        .env
        .iter()
        .map(|(name, value)| (name, places.fill(value)));
    Command::new(program)
        .args(arguments)
        .envs(env)
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
}

fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
    let first = lines.len().saturating_sub(LOG_LINES);
    let last = lines.get(first..).unwrap_or_default().iter();
    let short: Vec<String> = last
        .map(|line| line.trim().chars().take(LOG_LINE_CHARS).collect())
        .collect();
    if short.is_empty() {
        "(empty)".to_owned()
    } else {
        short.join(" | ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versus::Broker;

    fn shell(script: &str, stop: StopSignal) -> Installed {
        Installed {
            broker: Broker {
                name: "shell".to_owned(),
                launch: ["{program}", "-c", script].map(str::to_owned).to_vec(),
                version: ["{program}", "-c", "echo usage; echo shell 1.2"]
                    .map(str::to_owned)
                    .to_vec(),
                stop,
                ready_seconds: Some(0),
                ..Broker::default()
            },
            program: "/bin/sh".into(),
        }
    }

    fn start(installed: &Installed) -> Result<Running, LaunchError> {
        Running::start(installed, 1, &AtomicBool::new(false))
    }

    #[test]
    fn the_wait_for_a_broker_ends_when_it_is_interrupted() {
        let mut slow = shell("exec sleep 600", StopSignal::Term);
        slow.broker.ready_seconds = Some(600);
        let error = Running::start(&slow, 1, &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, LaunchError::Interrupted), "{error}");
    }

    #[test]
    fn a_broker_whose_port_is_taken_is_not_started() {
        let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = other.local_addr().unwrap().port();
        // Without the look at its port it would end, which is another error.
        let broker = shell("exit 3", StopSignal::Term).broker;
        let by_target = [("a".to_owned(), port.to_string())].into();
        for (port_of, targets) in [(Some(port), [].into()), (None, by_target)] {
            let installed = Installed {
                broker: Broker {
                    port: port_of,
                    targets,
                    ..broker.clone()
                },
                program: "/bin/sh".into(),
            };
            let error = start(&installed).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, LaunchError::PortTaken { .. }), "{text}");
            assert!(text.contains(&format!("on port {port},")), "{text}");
            assert!(text.contains("`ss -ltnp`"), "{text}");
        }
    }

    #[test]
    fn a_command_may_stand_for_several_brokers() {
        let mut pair = shell("exec sleep 600", StopSignal::Term);
        let ports = [("a", "{port}"), ("b", "{port2}")];
        let ports = ports.map(|(name, port)| (name.to_owned(), port.to_owned()));
        pair.broker.targets = ports.into();
        let places = Places {
            program: String::new(),
            dir: String::new(),
            config: String::new(),
            ports: [11, 12, 13],
            clients: 1,
        };
        assert_eq!(ports_of(&pair.broker, &places), [11, 12]);
        let urls = ["mqtt://127.0.0.1:11", "mqtt://127.0.0.1:12"];
        let named = ["a", "b"].map(str::to_owned).into_iter();
        let named: Vec<_> = named.zip(urls.map(str::to_owned)).collect();
        assert_eq!(targets(&pair, &places), named);
    }

    /// A process that needs no port to be ready.
    fn started(script: &str) -> Running {
        let installed = shell(script, StopSignal::Term);
        let folder = new_folder("test").unwrap();
        let places = places(&installed, &folder, 1).unwrap();
        Running {
            child: spawn(&installed, &places, &folder).unwrap(),
            folder,
            configuration: configuration(&installed, &places),
            targets: targets(&installed, &places),
            places,
            stop: StopSignal::Term,
            stop_wait: Duration::from_secs(20),
            has_ended: false,
        }
    }

    #[test]
    fn a_broker_that_ends_while_it_starts_is_reported_with_its_log() {
        let broker = shell("echo no licence >&2; exit 3", StopSignal::Term);
        let mut broker = broker;
        broker.broker.ready_seconds = Some(20);
        let error = start(&broker).unwrap_err().to_string();
        assert_eq!(
            error,
            "shell ended while it started: exit status: 3; its log ends: no licence"
        );
    }

    #[test]
    fn a_broker_that_does_not_listen_is_reported_and_removed() {
        let error = start(&shell("exec sleep 600", StopSignal::Term)).unwrap_err();
        assert!(
            error.to_string().contains("did not listen on port"),
            "{error}"
        );
    }

    #[test]
    fn stopping_ends_the_whole_group_and_removes_the_folder() {
        let mut running = started("sleep 600 & echo $! > child; wait");
        let child_file = running.folder.join("child");
        let child = loop {
            let text = fs::read_to_string(&child_file).unwrap_or_default();
            if text.ends_with('\n') {
                break text.trim().to_owned();
            }
            clock::rest(LOOK_INTERVAL);
        };
        let status = running.stop();
        assert!(status.contains("signal: 15"), "{status}");
        // It may stay a zombie here, but it does not run any more once the signal has reached it.
        let has_ended = || {
            let stat = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
            stat.is_empty() || stat.contains(") Z")
        };
        let until_ns = clock::monotonic_ns() + 10 * SECOND_NS;
        while !has_ended() && clock::monotonic_ns() < until_ns {
            clock::rest(LOOK_INTERVAL);
        }
        assert!(has_ended(), "{child} still runs");
        let folder = running.folder.clone();
        drop(running);
        assert!(!folder.exists());
    }

    #[test]
    fn a_crash_is_distinguished_from_running() {
        let mut running = started("echo fatal: out of memory; kill -SEGV $$");
        let how = loop {
            if let Some(how) = running.crash() {
                break how;
            }
            clock::rest(LOOK_INTERVAL);
        };
        assert!(
            how.contains("signal: 11") && how.contains("fatal: out of memory"),
            "{how}"
        );
        assert_eq!(running.crash(), None);
        let mut running = started("exec sleep 600");
        assert_eq!(running.crash(), None);
        running.stop();
    }

    #[test]
    fn the_version_is_the_first_line_with_a_digit() {
        assert_eq!(shell("", StopSignal::Term).version(), "shell 1.2");
    }

    #[test]
    fn the_disclosure_is_the_started_command() {
        let mut installed = shell("exit", StopSignal::Term);
        installed.broker.launch.push("{config}".to_owned());
        installed.broker.config = Some("\nlistener {port}\nallow_anonymous true\n".to_owned());
        installed.broker.env = [("DATA".to_owned(), "{dir}/data".to_owned())].into();
        let places = Places {
            program: "/bin/sh".to_owned(),
            dir: "/tmp/d".to_owned(),
            config: "/tmp/d/c".to_owned(),
            ports: [1_883, 2, 3],
            clients: 5,
        };
        assert_eq!(
            configuration(&installed, &places),
            "DATA=/tmp/d/data /bin/sh -c exit /tmp/d/c\n\nlistener 1883\nallow_anonymous true"
        );
    }

    #[test]
    fn a_quoted_log_is_short() {
        let lines: Vec<String> = (0..100).map(|line| format!("line {line}\n")).collect();
        let log = lines.join("\n");
        assert_eq!(
            last_lines(&log),
            "line 95 | line 96 | line 97 | line 98 | line 99"
        );
        assert_eq!(last_lines(""), "(empty)");
    }
}
