//! The broker as a program: start, signals, reload, and one clear line for each error.
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

/// Longest wait for a line, an answer or an end; a wait that runs out fails the test.
const PATIENCE: Duration = Duration::from_secs(20);

/// CONNECT of an MQTT 3.1.1 client with a clean session and the identifier `a`.
const CONNECT_V3: [u8; 15] = *b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01a";
/// CONNECT of an MQTT 5.0 client with a clean start and the identifier `b`.
const CONNECT_V5: [u8; 16] = *b"\x10\x0e\0\x04MQTT\x05\x02\0\0\0\0\x01b";
/// CONNACK of MQTT 3.1.1: accepted.
const ACCEPTED: [u8; 4] = [0x20, 2, 0, 0];
/// CONNACK of MQTT 3.1.1: not authorized.
const NOT_AUTHORIZED: [u8; 4] = [0x20, 2, 0, 5];

/// A running broker, ended with the test in any case.
struct Broker {
    child: Child,
    /// Its standard output, line by line.
    output: Receiver<String>,
    /// Its log, line by line.
    log: Receiver<String>,
}

impl Broker {
    fn start<A: AsRef<OsStr>>(args: &[A]) -> Self {
        let (log, write) = std::io::pipe().unwrap();
        Self::start_with(args, write, lines(log))
    }

    /// With another end of its log.
    fn start_with<A: AsRef<OsStr>>(
        args: &[A],
        stderr: impl Into<Stdio>,
        log: Receiver<String>,
    ) -> Self {
        let mut command = thrum();
        let command = command.arg("serve").args(args).stdout(Stdio::piped());
        let mut child = command.stderr(stderr).spawn().unwrap();
        let output = lines(child.stdout.take().unwrap());
        Self { child, output, log }
    }

    /// Its start-up message.
    fn ready(&self) -> Vec<String> {
        let mut printed = Vec::new();
        while printed
            .last()
            .is_none_or(|line: &String| !line.contains("thrum pub"))
        {
            printed.push(
                self.output
                    .recv_timeout(PATIENCE)
                    .expect("the broker becomes ready"),
            );
        }
        printed
    }

    /// The first address it listens on.
    fn address(&self) -> SocketAddr {
        let printed = self.ready();
        let line = printed
            .iter()
            .find(|line| line.contains("mqtt://"))
            .unwrap();
        let (_, address) = line.split_once("mqtt://").unwrap();
        address.split(' ').next().unwrap().parse().unwrap()
    }

    /// The next line of the log that contains the words.
    fn logged(&self, words: &str) -> String {
        loop {
            let line = self
                .log
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|_| panic!("not logged: {words}"));
            if line.contains(words) {
                return line;
            }
        }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn end(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is fine.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn thrum() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command.env_remove("RUST_LOG").env("NO_COLOR", "1");
    command
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1000);
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// An empty folder of this test's own.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Connects, sends a packet and reads as many bytes as the answer should have.
fn ask<const N: usize>(address: SocketAddr, packet: &[u8]) -> (TcpStream, [u8; N]) {
    let mut client = TcpStream::connect(address).unwrap();
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    client.write_all(packet).unwrap();
    let mut answer = [0; N];
    client.read_exact(&mut answer).unwrap();
    (client, answer)
}

fn check_refused(output: &Output, expected: &str) {
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn dev_mode_announces_its_address_and_accepts_clients() {
    let broker = Broker::start(&["--dev", "--listen", "127.0.0.1:0"]);
    let printed = broker.ready();
    assert!(
        printed[0].starts_with("thrum 0.") && printed[0].contains(" ready in "),
        "{printed:?}"
    );
    assert!(
        printed[1].starts_with("  Listening  mqtt://127.0.0.1:"),
        "{printed:?}"
    );
    assert!(
        printed[2].contains("dev: every client that reaches it may connect"),
        "{printed:?}"
    );
    assert!(printed[3].contains("thrum sub -p "), "{printed:?}");
    let (_, address) = printed[1].split_once("mqtt://").unwrap();
    let address = address.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(ask(address, &CONNECT_V3).1, ACCEPTED);
}

#[test]
fn a_file_at_the_size_limit_of_the_process_ends_neither_the_broker_nor_the_sink() {
    let folder = folder("file-limit");
    let (file, sink) = (folder.join("thrum.toml"), folder.join("log.jsonl"));
    let text = format!(
        "listeners.mqtt.bind = \"127.0.0.1:0\"\nsinks.all = {{ filter = \"t\", path = {sink:?} }}\n"
    );
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let address = broker.address();
    let limit = |bytes| {
        let limit = Rlimit {
            current: bytes,
            maximum: None,
        };
        prlimit(Some(Pid::from_child(&broker.child)), Resource::Fsize, limit).unwrap();
    };
    limit(Some(10));
    let (mut publisher, answer) = ask(address, &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    let mut publish = |payload: u8| {
        let packet = *b"\x32\x06\0\x01t\0\x01";
        publisher.write_all(&packet).unwrap();
        publisher.write_all(&[payload]).unwrap();
        let mut answer = [0; 4];
        publisher.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"\x40\x02\0\x01");
    };
    publish(b'0');
    broker.logged("the sink cannot write");
    assert_eq!(std::fs::read(&sink).unwrap(), b"");
    (b'1'..=b'3').for_each(&mut publish);
    let line = "{\"timestamp\":1000000000000,\"topic\":\"t\",\"qos\":1,\"retain\":false,\"payload\":\"0\"}\n";
    let payloads = || {
        let text = std::fs::read_to_string(&sink).unwrap();
        assert_eq!(text.len() % line.len(), 0, "{text}");
        let payloads = text
            .lines()
            .filter_map(|line| line.strip_suffix("\"}")?.chars().next_back());
        payloads.collect::<String>()
    };
    // Of the three that wait then, one has room.
    limit(Some(line.len() as u64 * 5 / 2));
    broker.logged("the sink works again");
    broker.logged("the sink cannot write");
    assert_eq!(payloads(), "01");
    limit(None);
    broker.logged("the sink works again");
    assert_eq!(payloads(), "0123");
}

#[test]
fn a_busy_port_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = thrum()
        .args(["serve", "--dev", "--listen", &address])
        .output()
        .unwrap();
    let expected = format!(
        "error: cannot listen on {address}: address already in use; another broker? stop it or choose another port \
         with --listen\n"
    );
    check_refused(&output, &expected);
}

#[test]
fn a_second_broker_does_not_share_the_port_of_the_first() {
    let first = Broker::start(&["--dev", "--listen", "127.0.0.1:0"]);
    let address = first.address().to_string();
    let output = thrum()
        .args(["serve", "--dev", "--listen", &address])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("address already in use"));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_bad_file_is_reported_with_all_its_errors() {
    let file = folder("bad_file").join("thrum.toml");
    std::fs::write(&file, "[limits]\nmax_paket = 1\nmax_qos = 3\n").unwrap();
    let output = thrum().args(["serve", "-c"]).arg(&file).output().unwrap();
    let file = file.display();
    let expected = format!(
        "error: {file}:2:1: unknown key \"max_paket\" in [limits], did you mean \"max_packet\"?\n  \
         2 | max_paket = 1\n    | ^^^^^^^^^\n\
         error: {file}:3:11: limits.max_qos: expected a whole number from 0 to 2, found 3\n  \
         3 | max_qos = 3\n    |           ^\n"
    );
    check_refused(&output, &expected);
}

#[test]
fn a_configuration_is_read_once_and_may_come_from_a_pipe() {
    let (read, mut write) = std::io::pipe().unwrap();
    write
        .write_all(b"listeners.mqtt.bind = \"127.0.0.1:0\"\nnode.name = \"piped\"\n")
        .unwrap();
    drop(write);
    let mut command = thrum();
    let command = command.args(["config", "explain", "node.name", "-c", "/dev/stdin"]);
    let told = command.stdin(read).output().unwrap();
    let said = String::from_utf8_lossy(&told.stdout).into_owned();
    assert!(said.contains("piped"), "{said} {told:?}");
    let (read, mut write) = std::io::pipe().unwrap();
    // Port 1 is nobody's: the start fails with the address of the file, and not with another one.
    write
        .write_all(b"listeners.mqtt.bind = \"192.0.2.1:1\"\n")
        .unwrap();
    drop(write);
    let mut command = thrum();
    let command = command.args(["serve", "-c", "/dev/stdin"]).stdin(read);
    let refused = command.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("192.0.2.1:1"), "{said}");
}

#[test]
fn a_missing_file_is_one_clear_line() {
    let file = folder("missing_file").join("absent/thrum.toml");
    let output = thrum().args(["serve", "-c"]).arg(&file).output().unwrap();
    let expected = format!(
        "error: cannot read {}: no such file; write one with: thrum config init FILE\n",
        file.display()
    );
    check_refused(&output, &expected);
}

#[test]
fn an_address_of_another_machine_is_one_clear_line() {
    let output = thrum()
        .args(["serve", "--listen", "192.0.2.1:1883"])
        .output()
        .unwrap();
    check_refused(
        &output,
        "error: cannot listen on 192.0.2.1:1883: this machine has no such address; choose one of its own with \
         --listen\n",
    );
}

// [MQTT-3.14.4-1]
#[test]
fn sigterm_tells_the_clients_and_ends_with_success() {
    let broker = Broker::start(&["--dev", "--listen", "127.0.0.1:0"]);
    let (mut client, header) = ask::<2>(broker.address(), &CONNECT_V5);
    assert_eq!(header[0], 0x20, "a CONNACK");
    let mut rest = vec![0; usize::from(header[1])];
    client.read_exact(&mut rest).unwrap();
    broker.signal(Signal::TERM);
    let mut farewell = Vec::new();
    client.read_to_end(&mut farewell).unwrap();
    assert_eq!(farewell.first(), Some(&0xe0), "a DISCONNECT: {farewell:x?}");
    assert_eq!(
        farewell.get(2),
        Some(&0x8b),
        "server shutting down: {farewell:x?}"
    );
    let length = farewell.get(1).map(|length| 2 + usize::from(*length));
    assert_eq!(
        length,
        Some(farewell.len()),
        "nothing after it: {farewell:x?}"
    );
    assert_eq!(broker.end().code(), Some(0));
}

#[test]
fn interrupt_ends_with_success() {
    let broker = Broker::start(&["--dev", "--listen", "127.0.0.1:0"]);
    broker.ready();
    broker.signal(Signal::INT);
    assert_eq!(broker.end().code(), Some(0));
}

#[test]
fn a_reload_takes_over_a_valid_file_and_keeps_the_old_one_over_an_invalid_one() {
    let file = folder("reload").join("thrum.toml");
    let write = |auth: &str| {
        std::fs::write(
            &file,
            format!("listeners.mqtt.bind = \"127.0.0.1:0\"\n{auth}\n"),
        )
        .unwrap();
    };
    write("auth.anonymous = true");
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let address = broker.address();
    assert_eq!(ask(address, &CONNECT_V3).1, ACCEPTED);

    write("auth.anonymous = \"nobody\"");
    broker.signal(Signal::HUP);
    broker.logged("configuration not reloaded, the old one stays in force");
    assert_eq!(ask(address, &CONNECT_V3).1, ACCEPTED);

    write("auth.anonymous = false");
    broker.signal(Signal::HUP);
    let line = broker.logged("configuration reloaded");
    assert!(line.contains("changed=auth.anonymous"), "{line}");
    // The workers take it over at their next turn; the log does not wait for that.
    let refused = (0..100).any(|_| ask(address, &CONNECT_V3).1 == NOT_AUTHORIZED);
    assert!(refused, "the new configuration is in force");

    write("auth.anonymous = false\nnode.workers = 7\nlog.format = \"json\"");
    broker.signal(Signal::HUP);
    let line = broker.logged("wait for a restart");
    assert!(line.contains("waiting=node.workers, log.format"), "{line}");
}

#[test]
fn a_refused_reload_affects_no_client() {
    let file = folder("reload_refused").join("thrum.toml");
    let bind = "[listeners.mqtt]\nbind = \"127.0.0.1:0\"\n";
    let acl = |rule: &str| format!("[acl]\nrules = [{rule}\"allow all pubsub #\"]\n");
    let base = format!("auth.anonymous = true\n{bind}");
    std::fs::write(&file, format!("{base}{}", acl(""))).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let (mut client, answer) = ask(broker.address(), &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    client.write_all(b"\x82\x0b\0\x01\0\x06open/#\0").unwrap();
    let mut granted = [0; 5];
    client.read_exact(&mut granted).unwrap();
    assert_eq!(granted, *b"\x90\x03\0\x01\0");

    let denied = acl("\"deny all pubsub open/#\", ");
    let tls = "[listeners.tls]\nbind = \"127.0.0.1:0\"\ntls.cert = \"/nope.pem\"\n";
    std::fs::write(&file, format!("{base}{tls}{denied}")).unwrap();
    broker.signal(Signal::HUP);
    loop {
        let line = broker.log.recv_timeout(PATIENCE).unwrap();
        assert!(!line.contains("subscriptions ended"), "{line}");
        if line.contains("configuration not reloaded") {
            break;
        }
    }
    client.write_all(b"\x30\x08\0\x06open/1").unwrap();
    let mut message = [0; 10];
    client.read_exact(&mut message).unwrap();
    assert_eq!(message, *b"\x30\x08\0\x06open/1");
}

#[test]
fn the_log_names_refused_clients() {
    let file = folder("refused_log").join("thrum.toml");
    let text =
        "auth.anonymous = true\nauth.client_id = \"b*\"\nlisteners.mqtt.bind = \"127.0.0.1:0\"\n";
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    ask::<4>(broker.address(), &CONNECT_V3);
    let line = broker.logged("connection refused");
    assert!(line.contains("client_id=\"a\""), "{line}");
}

#[test]
fn a_log_that_nobody_reads_stops_neither_clients_nor_the_end() {
    let (unread, mut write) = std::io::pipe().unwrap();
    // A pipe has 64 KiB.
    write.write_all(&vec![b'-'; 65_000]).unwrap();
    let args = ["--dev", "--listen", "127.0.0.1:0", "--log-level", "trace"];
    let broker = Broker::start_with(&args, write, sync_channel(1).1);
    let address = broker.address();
    for _ in 0..30 {
        assert_eq!(ask(address, &CONNECT_V3).1, ACCEPTED);
    }
    broker.signal(Signal::TERM);
    assert!(broker.end().success());
    drop(unread);
}

#[test]
fn a_reload_changes_the_level_of_the_log() {
    let file = folder("reload_level").join("thrum.toml");
    let bind = "listeners.mqtt.bind = \"127.0.0.1:0\"\n";
    std::fs::write(&file, format!("{bind}log.level = \"error\"\n")).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    broker.ready();
    std::fs::write(&file, bind).unwrap();
    broker.signal(Signal::HUP);
    broker.logged("configuration reloaded");
}

#[test]
fn with_a_json_log_nothing_else_is_printed() {
    let broker = Broker::start(&["--dev", "--listen", "127.0.0.1:0", "--log-format", "json"]);
    let line = broker.logged("\"ready\"");
    let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(entry["message"], "ready");
    assert_eq!(entry["node"], "thrum");
    broker.signal(Signal::TERM);
    broker.logged("\"stopped\"");
    assert!(
        broker.output.recv_timeout(PATIENCE).is_err(),
        "nothing on standard output"
    );
    assert_eq!(broker.end().code(), Some(0));
}

/// CONNECT of an MQTT 3.1.1 client with user name and password.
fn connect_as(username: &str, password: &str) -> Vec<u8> {
    let mut body = b"\0\x04MQTT\x04\xc2\0\0\0\x01a".to_vec();
    for text in [username, password] {
        body.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        body.extend(text.as_bytes());
    }
    let mut packet = vec![0x10, u8::try_from(body.len()).unwrap()];
    packet.append(&mut body);
    packet
}

#[test]
fn a_configuration_of_mosquitto_is_taken_as_it_is() {
    let folder = folder("mosquitto");
    let passwords = folder.join("passwd");
    // As mosquitto_passwd writes it.
    let hash = "$7$101$LGNQKce5y2hm8ykH$iu+uvDRL49SsGAof7v5ynriIcvSyt1uH7Wjm/DE5CzEB2h+B/eO7gHwz9Kb3qsTT6r2YyV1pil2KUPitDGr0nw==";
    std::fs::write(&passwords, format!("alice:{hash}\n")).unwrap();
    let file = folder.join("mosquitto.conf");
    let text = format!(
        "listener 1883\npassword_file {}\npid_file /run/mosquitto.pid\n",
        passwords.display()
    );
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&["-c", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(broker.logged("pid_file").contains("mosquitto.conf:3"));
    let address = broker.address();
    assert_eq!(ask(address, &connect_as("alice", "geheim")).1, ACCEPTED);
    let line = broker.logged("client connected");
    assert!(line.contains("user=\"alice\""), "{line}");
    let [packet_type, _, _, reason] = ask(address, &connect_as("alice", "wrong")).1;
    assert_eq!(
        (packet_type, reason),
        (0x20, 4),
        "bad user name or password"
    );
    assert_eq!(ask(address, &CONNECT_V3).1, NOT_AUTHORIZED);
}

#[test]
fn an_option_that_mosquitto_does_not_know_keeps_the_broker_from_starting() {
    let folder = folder("mosquitto_unknown");
    let file = folder.join("mosquitto.conf");
    std::fs::write(&file, "listener 1883\nrequire_certificte true\n").unwrap();
    let output = thrum().arg("serve").arg("-c").arg(&file).output().unwrap();
    let expected = format!(
        "error: {}:2:1: unknown option require_certificte, did you mean require_certificate?\n  \
         2 | require_certificte true\n    | ^^^^^^^^^^^^^^^^^^\n",
        file.display()
    );
    check_refused(&output, &expected);
}

#[test]
fn a_client_that_comes_and_goes_has_a_line_each() {
    let broker = Broker::start(&["--dev", "--listen", "127.0.0.1:0"]);
    let (mut client, answer) = ask(broker.address(), &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    let line = broker.logged("client connected");
    for part in [
        "client_id=\"a\"",
        "peer=127.0.0.1:",
        "version=\"3.1.1\"",
        "listener=mqtt",
        "session_present=false",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
    // PUBLISH with quality of service 0, twice, and a second CONNECT, which ends the connection.
    client.write_all(b"\x30\x03\0\x01x\x30\x03\0\x01x").unwrap();
    client.write_all(&CONNECT_V3).unwrap();
    let line = broker.logged("client disconnected");
    for part in [
        "client_id=\"a\"",
        "reason=\"second CONNECT\"",
        "seconds=",
        "received=2",
        "sent=0",
    ] {
        assert!(line.contains(part), "{part} in {line}");
    }
}

#[test]
fn one_key_switches_the_lines_about_clients_off() {
    let file = folder("no_lines").join("thrum.toml");
    let text = "listeners.mqtt.bind = \"127.0.0.1:0\"\nauth.anonymous = true\nlog.clients = 0\n";
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let (client, answer) = ask(broker.address(), &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    drop(client);
    broker.signal(Signal::TERM);
    let mut lines = Vec::new();
    while lines
        .last()
        .is_none_or(|line: &String| !line.contains("stopped"))
    {
        lines.push(broker.log.recv_timeout(PATIENCE).unwrap());
    }
    assert!(
        !lines.iter().any(|line| line.contains("client")),
        "{lines:?}"
    );
}

#[test]
fn a_denied_publish_names_its_rule() {
    let file = folder("denied").join("thrum.toml");
    let text = "listeners.mqtt.bind = \"127.0.0.1:0\"\nauth.anonymous = true\n\
                acl.rules = [\"allow all pub a\", \"deny all pub x\"]\n";
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let (mut client, answer) = ask(broker.address(), &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    client.write_all(b"\x30\x03\0\x01x\x30\x03\0\x01y").unwrap();
    let line = broker.logged("publish denied");
    assert!(
        line.contains("rule=\"deny all pub x (acl.rules[1])\""),
        "{line}"
    );
    let line = broker.logged("publish denied");
    let default = "rule=\"no rule allows it, and acl.default does not\"";
    assert!(line.contains(default), "{line}");
}

#[test]
fn a_partly_allowed_subscription_is_reported() {
    let file = folder("in_part").join("thrum.toml");
    let text = "listeners.mqtt.bind = \"127.0.0.1:0\"\nauth.anonymous = true\n\
                acl.rules = [\"allow all sub a\"]\n";
    std::fs::write(&file, text).unwrap();
    let broker = Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    let port = broker.address().port().to_string();
    let sub = |topic: &str| {
        let args = ["sub", "-p", &port, "-V", "5", "-t", topic, "-E"];
        let output = thrum().args(args).output().unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let what = "only the topics that the rules allow are delivered";
    let (code, said) = sub("#");
    assert_eq!(
        (code, said),
        (Some(0), format!("warning: the broker says: {what}\n"))
    );
    broker.logged(&format!("subscribed in part: {what}"));
    assert_eq!(sub("a"), (Some(0), String::new()));
    let (code, said) = sub("b");
    assert_ne!(code, Some(0));
    assert!(said.contains("refused by the broker"), "{said}");
}

/// The packets behind the SUBACK with which the broker answers a subscription to `t`, up to its
/// PINGRESP.
fn retained(address: SocketAddr) -> Vec<u8> {
    let (mut client, answer) = ask(address, &CONNECT_V3);
    assert_eq!(answer, ACCEPTED);
    client.write_all(b"\x82\x06\0\x01\0\x01t\0\xc0\0").unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\xd0\0") {
        let mut more = [0; 64];
        let len = client.read(&mut more).unwrap();
        assert!(len > 0, "the broker has closed: {bytes:?}");
        bytes.extend_from_slice(&more[..len]);
    }
    let packets = bytes.strip_prefix(b"\x90\x03\0\x01\0").unwrap();
    packets.strip_suffix(b"\xd0\0").unwrap().to_vec()
}

#[test]
fn a_retained_message_is_withheld_while_its_publisher_may_not_publish_it() {
    let folder = folder("retained_source");
    let file = folder.join("thrum.toml");
    let data = folder.join("data");
    let write = |rules: &str| {
        let text = format!(
            "listeners.mqtt.bind = \"127.0.0.1:0\"\nauth.anonymous = true\nnode.data_dir = {data:?}\n\
             [acl]\ncheck_retained_source = true\nrules = [{rules} \"allow all pubsub #\"]\n"
        );
        std::fs::write(&file, text).unwrap();
    };
    let start = || Broker::start(&[OsStr::new("-c"), file.as_os_str()]);
    write("");
    let broker = start();
    let address = broker.address();
    // Of the client identifier `b`.
    let connect = b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\x01b";
    let (mut publisher, answer) = ask(address, connect);
    assert_eq!(answer, ACCEPTED);
    publisher.write_all(b"\x33\x06\0\x01t\0\x01x").unwrap();
    let mut answer = [0; 4];
    publisher.read_exact(&mut answer).unwrap();
    assert_eq!(answer, *b"\x40\x02\0\x01");
    let message = b"\x31\x04\0\x01tx";
    assert_eq!(retained(address), message);

    write("\"deny client:b pub t\",");
    broker.signal(Signal::HUP);
    let line = broker.logged("a retained message is withheld");
    assert!(line.contains("topic=\"t\" client_id=\"b\""), "{line}");
    broker.logged("withheld=1 given_again=0");
    assert_eq!(retained(address), b"");
    broker.signal(Signal::TERM);
    broker.end();

    // It is judged before the port opens, by what it was published with.
    let broker = start();
    broker.logged("withheld=1 given_again=0");
    let address = broker.address();
    assert_eq!(retained(address), b"");
    write("");
    broker.signal(Signal::HUP);
    broker.logged("withheld=0 given_again=1");
    assert_eq!(retained(address), message);
}
