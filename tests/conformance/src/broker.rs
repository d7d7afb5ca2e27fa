//! Starts the broker under test on a free port and stops it, also when the test fails.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs};

use crate::clock;

const START_MAX: Duration = Duration::from_secs(10);
/// Ports for servers: below those that Linux assigns to connections, so that a restarted server
/// finds its port free.
const FIRST_PORT: u32 = 20_000;
const PORTS: u32 = 12_000;
/// Ports of one test process, so that parallel processes do not collide.
const PORTS_PER_PROCESS: u32 = 37;
const LOG_BYTES_SHOWN: usize = 4_000;

/// Runs the program and ends it when standard input closes: also when the test process is killed.
const KEEPER: &str = r#"
log=$1; shift
"$@" >"$log" 2>&1 </dev/null & pid=$!
echo $pid
read -r _
kill $pid 2>/dev/null
wait $pid
rm -rf "$log" "${log%.log}.conf" "${log%.log}.data"
"#;

/// A running broker.
#[derive(Debug)]
pub struct Broker {
    address: SocketAddr,
    process_id: u32,
    log: PathBuf,
    keeper: Child,
}

/// Whether Debian's mosquitto replaces thrum, to test the cases themselves.
pub fn is_mosquitto() -> bool {
    env::var("BROKER").is_ok_and(|kind| kind == "mosquitto")
}

/// Whether the broker under test keeps its state on disk, so that every answer of a durable session
/// waits for it.
fn is_durable() -> bool {
    env::var_os("CONFORMANCE_DURABLE").is_some()
}

impl Broker {
    /// Starts a broker of its own for one test.
    ///
    /// # Panics
    /// The binary is missing, or it does not accept connections within ten seconds.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`Self::start`], with settings of thrum's as variables.
    ///
    /// # Panics
    /// As there.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let address = free_address();
        Self::start_command(address, command(address), settings)
    }

    /// Starts this command, which has to listen there, with these variables.
    ///
    /// # Panics
    /// It does not accept connections within ten seconds.
    pub fn start_command(
        address: SocketAddr,
        command: Vec<String>,
        settings: &[(&str, &str)],
    ) -> Self {
        let log = env::temp_dir().join(format!("thrum-conformance-{}.log", address.port()));
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&log)
            .args(command)
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut first_line = String::new();
        let stdout = keeper.stdout.take().expect("standard output is piped");
        BufReader::new(stdout)
            .read_line(&mut first_line)
            .expect("the keeper prints the process id");
        let process_id = first_line.trim().parse().expect("a process id is a number");
        let broker = Self {
            address,
            process_id,
            log,
            keeper,
        };
        broker.wait_until_it_accepts();
        broker
    }

    /// The broker that all tests of one test program share.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Broker> = OnceLock::new();
        SHARED.get_or_init(Self::start)
    }

    /// Its listening address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether the process that was started is still running.
    pub fn is_alive(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/stat", self.process_id)).is_ok_and(|stat| {
            !stat
                .rsplit(')')
                .next()
                .unwrap_or_default()
                .starts_with(" Z")
        })
    }

    /// Fails with the end of the log if the process is gone.
    pub fn assert_alive(&self) {
        assert!(
            self.is_alive(),
            "the broker ended; the end of its log:\n{}",
            self.log_tail()
        );
    }

    /// Its process.
    pub fn process_id(&self) -> u32 {
        self.process_id
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// The most resident memory since the start, in bytes.
    pub fn resident_bytes_peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process_id))
            .expect("the broker runs");
        let line = status.lines().find(|line| line.starts_with(name));
        let kibibytes = line.and_then(|line| line.split_whitespace().nth(1));
        let kibibytes = kibibytes.expect("the kernel reports the memory of a process");
        kibibytes.parse::<u64>().expect("it is a number") * 1024
    }

    /// CPU time of all its threads so far, to within a hundredth of a second.
    ///
    /// # Panics
    /// The broker is gone.
    pub fn cpu_time(&self) -> Duration {
        /// Fields behind the name: state, then user and system time as the 12th and 13th.
        const TIMES: std::ops::Range<usize> = 11..13;
        let stat =
            fs::read_to_string(format!("/proc/{}/stat", self.process_id)).expect("the broker runs");
        let fields = stat.rsplit(')').next().unwrap_or_default();
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks = fields.get(TIMES).unwrap_or_default().iter();
        let ticks: u64 = ticks.filter_map(|field| field.parse::<u64>().ok()).sum();
        // The kernel reports hundredths of a second, independent of its tick.
        Duration::from_millis(ticks * 10)
    }

    /// Tells it to read its configuration again.
    ///
    /// # Panics
    /// The process is gone.
    pub fn reload(&self) {
        let id = self.process_id.to_string();
        let status = Command::new("kill").args(["-HUP", &id]).status();
        assert!(status.is_ok_and(|status| status.success()), "no reload");
    }

    /// All that it wrote.
    pub fn log(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The last lines that the broker wrote.
    pub fn log_tail(&self) -> String {
        let text = self.log();
        let start = text.ceil_char_boundary(text.len().saturating_sub(LOG_BYTES_SHOWN));
        text[start..].to_owned()
    }

    fn wait_until_it_accepts(&self) {
        let start = clock::now();
        while start.elapsed() < START_MAX && self.is_alive() {
            if TcpStream::connect(self.address).is_ok() {
                return;
            }
            clock::sleep(Duration::from_millis(10));
        }
        panic!(
            "the broker does not accept connections:\n{}",
            self.log_tail()
        );
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // The keeper stops the broker when its standard input ends.
        drop(self.keeper.stdin.take());
        if let Err(error) = self.keeper.wait() {
            panic!("the keeper of the broker is gone: {error}");
        }
    }
}

/// An address of this machine where no process listens, outside the ports that Linux assigns to
/// connections: one that is assigned before the broker starts would take its place.
///
/// # Panics
/// There is none.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let first = std::process::id().wrapping_mul(PORTS_PER_PROCESS);
    for _ in 0..PORTS {
        let number = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let port = u16::try_from(FIRST_PORT + number).expect("a port");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
    panic!("no port from {FIRST_PORT} on is free");
}

fn command(address: SocketAddr) -> Vec<String> {
    if is_mosquitto() {
        let config = env::temp_dir().join(format!("thrum-conformance-{}.conf", address.port()));
        let text = format!(
            "listener {} 127.0.0.1\nallow_anonymous true\n",
            address.port()
        );
        fs::write(&config, text).expect("the temporary folder can be written");
        return ["/usr/sbin/mosquitto", "-c", &config.to_string_lossy()]
            .map(str::to_owned)
            .into();
    }
    let binary = thrum_binary().to_string_lossy().into_owned();
    let mut command: Vec<String> = [&binary, "serve", "--dev", "--listen", &address.to_string()]
        .map(str::to_owned)
        .into();
    if is_durable() {
        let data = env::temp_dir().join(format!("thrum-conformance-{}.data", address.port()));
        command.push("--data-dir".to_owned());
        command.push(data.to_string_lossy().into_owned());
    }
    command
}

/// The binary under test: `THRUM_BIN`, or what was built last.
///
/// # Panics
/// There is none.
pub fn thrum_binary() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let candidates = env::var_os("THRUM_BIN").map_or_else(
        || vec![target.join("release/thrum"), target.join("debug/thrum")],
        |named| vec![PathBuf::from(named)],
    );
    candidates.iter().find(|path| path.is_file()).cloned().unwrap_or_else(|| {
        panic!(
            "no thrum binary at {candidates:?}: build one with `cargo build --release -p thrum`, \
             or name it with THRUM_BIN"
        )
    })
}
