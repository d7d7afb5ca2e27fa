//! `thrum probe` on a broker that shares nothing with it.
#![expect(clippy::unwrap_used, reason = "a test may panic")]
#![expect(
    clippy::disallowed_methods,
    reason = "the test waits for a broker to listen"
)]

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

struct Mosquitto {
    process: Child,
    port: u16,
}

impl Mosquitto {
    fn start() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = Command::new("mosquitto");
        command.args(["-p", &port.to_string()]);
        let path = std::env::var("PATH").unwrap_or_default();
        // Debian keeps the daemon outside the path of ordinary users.
        command.env("PATH", format!("{path}:/usr/sbin"));
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let process = process.expect("mosquitto is installed");
        let broker = Self { process, port };
        for _ in 0..200 {
            if TcpStream::connect(("127.0.0.1", port)).is_ok() {
                return broker;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("mosquitto does not listen");
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[test]
fn a_probe_finds_what_mosquitto_supports() {
    let broker = Mosquitto::start();
    let url = format!("mqtt://127.0.0.1:{}", broker.port);
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    let probed = command.args(["probe", &url]).output().unwrap();
    let printed = String::from_utf8_lossy(&probed.stdout).into_owned();
    assert_eq!(probed.status.code(), Some(0), "{probed:?}");
    let outcome = |name: &str| {
        let mut lines = printed.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        let line = line.unwrap_or_else(|| panic!("{name}: {printed}"));
        line.split_whitespace().next().unwrap().to_owned()
    };
    for name in [
        "MQTT 5.0",
        "MQTT 3.1.1",
        "MQTT 3.1",
        "QoS 2",
        "retained messages",
        "wildcards",
        "shared subscriptions",
        "persistent sessions",
        "identifies itself",
        "subscription identifiers",
        "topic aliases",
        "no local",
        "will delay",
    ] {
        assert_eq!(outcome(name), "yes", "{name}: {printed}");
    }
    assert!(printed.contains("mosquitto version"), "{printed}");
}
