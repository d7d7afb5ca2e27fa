//! `[telemetry]` of a configuration file: a broker sends to a collector, from its start to its end,
//! and to another one after a reload.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a request or an end; a wait that runs out fails the test.
const PATIENCE: Duration = Duration::from_secs(20);
/// Requests that wait for the test.
const KEPT: usize = 1024;

/// A request without its body.
struct Request {
    line: String,
    headers: Vec<String>,
}

/// A collector that accepts everything.
struct Collector {
    address: SocketAddr,
    requests: Receiver<Request>,
}

impl Collector {
    fn start() -> Self {
        Self::at(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    fn at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = sync_channel(KEPT);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let sender = sender.clone();
                std::thread::spawn(move || serve(&stream.unwrap(), &sender));
            }
        });
        Self { address, requests }
    }

    /// The next request to a path.
    fn request(&self, path: &str) -> Request {
        loop {
            let request = self.requests.recv_timeout(PATIENCE);
            let request = request.unwrap_or_else(|_| panic!("no request to {path}"));
            if request.line == format!("POST {path} HTTP/1.1") {
                return request;
            }
        }
    }
}

/// Answers the requests of one connection.
fn serve(stream: &TcpStream, sender: &SyncSender<Request>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let len = lines
            .iter()
            .find_map(|line| line.strip_prefix("content-length: "));
        let mut body = vec![0; len.unwrap().parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let line = lines.remove(0);
        let headers = lines;
        sender.try_send(Request { line, headers }).ok();
        let mut stream = stream;
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
            .unwrap();
    }
}

/// A broker, ended with the test in any case.
struct Broker {
    process: Child,
    folder: PathBuf,
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir();
    let folder = folder.join(format!("thrum-telemetry-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn thrum(file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command.arg("serve").arg("-c").arg(file);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    command
}

fn write(folder: &Path, telemetry: &str) -> PathBuf {
    let file = folder.join("thrum.toml");
    let listeners = "listeners.mqtt.bind = \"127.0.0.1:0\"\nlisteners.http.bind = []\n";
    std::fs::write(&file, format!("{listeners}[telemetry]\n{telemetry}")).unwrap();
    file
}

#[test]
fn a_broker_exports_from_its_start_to_its_end_and_follows_a_reload() {
    let folder = folder("exports");
    let headers = folder.join("headers");
    std::fs::write(&headers, "authorization: Bearer geheim\n").unwrap();
    let [first, second] = [Collector::start(), Collector::start()];
    let to = |collector: &Collector| {
        let headers = headers.display();
        let address = collector.address;
        format!("endpoint = \"http://{address}/otlp\"\nheaders_file = \"{headers}\"\n")
    };
    let file = write(&folder, &to(&first));
    let mut process = thrum(&file).spawn().unwrap();
    let log = process.stderr.take().unwrap();
    let broker = &mut Broker { process, folder };
    let request = first.request("/otlp/v1/metrics");
    for header in [
        "authorization: Bearer geheim",
        "content-type: application/x-protobuf",
        "content-encoding: gzip",
    ] {
        assert!(
            request.headers.iter().any(|found| found == header),
            "{:?}",
            request.headers
        );
    }
    let signal = |broker: &Broker, signal| {
        kill_process(Pid::from_child(&broker.process), signal).unwrap();
    };
    write(&broker.folder, &to(&second));
    signal(broker, Signal::HUP);
    second.request("/otlp/v1/metrics");
    // The line about the reload.
    second.request("/otlp/v1/logs");
    signal(broker, Signal::TERM);
    // The last figures.
    second.request("/otlp/v1/metrics");
    assert!(broker.process.wait().unwrap().success());
    let log = std::io::read_to_string(log).unwrap();
    assert!(log.contains("telemetry.endpoint"), "{log}");
    assert!(!log.contains("geheim"), "{log}");
}

#[test]
fn a_collector_that_is_away_is_told_once_and_once_more_when_it_is_back() {
    let folder = folder("away");
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let file = write(&folder, &format!("endpoint = \"http://{address}\"\n"));
    let mut process = thrum(&file).spawn().unwrap();
    let log = BufReader::new(process.stderr.take().unwrap());
    let mut broker = Broker { process, folder };
    let mut lines = log.lines().map(Result::unwrap);
    let away = "the OpenTelemetry collector does not take telemetry";
    let found = lines.find(|line| line.contains(away)).unwrap();
    assert!(found.contains("Connection refused"), "{found}");
    let collector = Collector::at(address);
    collector.request("/v1/metrics");
    let until_back = lines
        .by_ref()
        .take_while(|line| !line.contains("takes telemetry again"));
    let told = until_back.filter(|line| line.contains(away)).count();
    assert_eq!(told, 0, "it was told once");
    kill_process(Pid::from_child(&broker.process), Signal::TERM).unwrap();
    let rest = lines.filter(|line| line.contains("telemetry")).count();
    assert_eq!(rest, 0, "nothing changed since");
    assert!(broker.process.wait().unwrap().success());
}

#[test]
fn settings_that_cannot_be_used_end_the_start_with_their_key() {
    let folder = folder("refuses");
    for (telemetry, complaint) in [
        (
            "endpoint = \"collector:4318\"",
            "telemetry.endpoint: expected",
        ),
        ("protocol = \"udp\"", "telemetry.protocol"),
        (
            "endpoint = \"http://127.0.0.1:1\"\ntraces.filters = [\"a/#/b\"]\ntraces.every = 1",
            "telemetry.traces.filters: \"a/#/b\"",
        ),
        (
            "endpoint = \"http://127.0.0.1:1\"\nheaders_file = \"/nonexistent/headers\"",
            "telemetry.headers_file: cannot read /nonexistent/headers",
        ),
    ] {
        let output = thrum(&write(&folder, telemetry)).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains(complaint), "{printed}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
