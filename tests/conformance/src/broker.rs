//! Starts the broker under test on a free port and stops it, whatever happens to the test.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;
use std::{env, fs};

use crate::clock;

const START_MAX: Duration = Duration::from_secs(10);
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

/// Whether Debian's mosquitto stands in for thrum, to try the cases themselves.
pub fn is_mosquitto() -> bool {
    env::var("BROKER").is_ok_and(|kind| kind == "mosquitto")
}

/// Whether the broker under test keeps its state on disk, so that every answer of a durable session waits for it.
fn is_durable() -> bool {
    env::var_os("CONFORMANCE_DURABLE").is_some()
}

impl Broker {
    /// Starts a broker of its own for one test.
    ///
    /// # Panics
    /// There is no binary, or it does not accept connections within ten seconds.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// As [`Self::start`], with settings of thrum's as variables.
    ///
    /// # Panics
    /// As there.
    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let port = free_port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let log = env::temp_dir().join(format!("thrum-conformance-{port}.log"));
        let mut keeper = Command::new("sh")
            .args(["-c", KEEPER, "keeper"])
            .arg(&log)
            .args(command(address))
            .envs(settings.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("sh is there");
        let mut first_line = String::new();
        let stdout = keeper.stdout.take().expect("standard output is piped");
        BufReader::new(stdout)
            .read_line(&mut first_line)
            .expect("the keeper tells the process id");
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

    /// Where it listens.
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
            "the broker died; the end of its log:\n{}",
            self.log_tail()
        );
    }

    /// Resident memory in bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process_id))
            .expect("the broker runs");
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS:"))
            .expect("VmRSS is there");
        let kibibytes = line.split_whitespace().nth(1).expect("VmRSS has a value");
        kibibytes.parse::<u64>().expect("VmRSS is a number") * 1024
    }

    /// The last lines that the broker wrote.
    pub fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let start = text.len().saturating_sub(LOG_BYTES_SHOWN);
        String::from_utf8_lossy(text.get(start..).unwrap_or_default()).into_owned()
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

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    listener
        .local_addr()
        .expect("a bound socket has an address")
        .port()
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
