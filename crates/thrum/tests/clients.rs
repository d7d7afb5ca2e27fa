//! `thrum pub`, `sub` and `rr` as programs, against a broker of their own.
//!
//! [MQTT-4.2.0-1] [MQTT3-7.1.2-1] [MQTT-3.14.4-2] [MQTT3-3.14.4-1]
#![expect(clippy::unwrap_used, reason = "a failed setup should panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

/// Longest wait for a line; one that runs out fails the test.
const PATIENCE: Duration = Duration::from_secs(20);
/// The exit code of `-W`, in a program that is not expected to reach it.
const LIMIT: &str = "20";

/// A process that ends with the test in any case.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // A process that has ended already cannot be killed, which is fine.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

struct Broker {
    _process: Running,
    port: String,
}

impl Broker {
    fn start() -> Self {
        let mut command = thrum();
        command.args(["serve", "--dev", "--listen", "127.0.0.1:0"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let printed = lines(child.stdout.take().unwrap());
        let process = Running(child);
        loop {
            let line = printed
                .recv_timeout(PATIENCE)
                .expect("the broker becomes ready");
            if let Some((_, place)) = line.split_once("mqtt://") {
                let address = place.split(' ').next().unwrap();
                let (_, port) = address.rsplit_once(':').unwrap();
                return Self {
                    _process: process,
                    port: port.to_owned(),
                };
            }
        }
    }

    fn command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = thrum();
        command
            .args([name, "-h", "127.0.0.1", "-p", &self.port])
            .args(args);
        command
    }

    fn run(&self, name: &str, args: &[&str]) -> Output {
        self.command(name, args)
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Publishes and checks the success.
    fn publish(&self, args: &[&str]) {
        let output = self.run("pub", args);
        assert_eq!(code(&output), 0, "{args:?}: {}", text(&output.stderr));
    }

    /// A subscriber whose subscriptions are in place.
    fn subscribe(&self, args: &[&str]) -> Subscriber {
        let mut command = self.command("sub", &["-d", "-W", LIMIT]);
        let command = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = child.stdout.take().unwrap();
        let trace = lines(child.stderr.take().unwrap());
        let subscriber = Subscriber {
            process: Running(child),
            output,
        };
        while !trace
            .recv_timeout(PATIENCE)
            .expect("SUBACK")
            .contains("received SUBACK")
        {}
        subscriber
    }
}

#[test]
fn very_many_filters_are_asked_for_in_several_packets() {
    let broker = Broker::start();
    // More than the broker accepts in a packet; the last one proves that all of them are there.
    let filters: Vec<String> = (0..600).map(|number| format!("f/{number}")).collect();
    let mut args = vec!["-E"];
    for filter in &filters {
        args.extend(["-t", filter]);
    }
    let output = broker.run("sub", &args);
    assert_eq!((code(&output), text(&output.stderr)), (0, String::new()));
}

struct Subscriber {
    process: Running,
    output: ChildStdout,
}

impl Subscriber {
    /// Its exit code and what it printed.
    fn end(mut self) -> (i32, String) {
        let mut printed = String::new();
        self.output.read_to_string(&mut printed).unwrap();
        (self.process.0.wait().unwrap().code().unwrap(), printed)
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }
}

fn thrum() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_thrum"));
    command
        .env_remove("RUST_LOG")
        .env_remove("THRUM_PASSWORD")
        .env("NO_COLOR", "1");
    command
}

fn lines(from: impl std::io::Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = sync_channel(1000);
    std::thread::spawn(move || {
        // A receiver that is gone has seen enough, but the program must not block on a full pipe.
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            sender.try_send(line).ok();
        }
    });
    receiver
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_message_arrives_in_every_version_and_with_every_qos() {
    let broker = Broker::start();
    for version in ["31", "311", "mqttv5"] {
        for qos in ["0", "1", "2"] {
            let args = ["-V", version, "-q", qos, "-t", "a/b"];
            let subscriber = broker.subscribe(&[&args[..], &["-v", "-C", "3"]].concat());
            broker.publish(&[&args[..], &["-m", "-hello", "--repeat", "3"]].concat());
            let expected = (0, "a/b -hello\n".repeat(3));
            assert_eq!(subscriber.end(), expected, "version {version}, QoS {qos}");
        }
    }
}

#[test]
fn every_line_of_the_input_is_a_message_and_they_stay_in_order() {
    let broker = Broker::start();
    let subscriber = broker.subscribe(&["-t", "lines", "-q", "1", "-C", "5000"]);
    let mut publisher = broker.command("pub", &["-t", "lines", "-q", "1", "-l"]);
    let mut publisher = Running(publisher.stdin(Stdio::piped()).spawn().unwrap());
    let numbered: Vec<String> = (0..5000).map(|number| format!("line {number}\n")).collect();
    let input = numbered.concat();
    publisher
        .0
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    assert_eq!(publisher.0.wait().unwrap().code(), Some(0));
    assert_eq!(subscriber.end(), (0, input));
}

#[test]
fn payloads_come_from_files_and_standard_input_unchanged() {
    let broker = Broker::start();
    let payload: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let path = std::env::temp_dir().join(format!("thrum-payload-{}", std::process::id()));
    std::fs::write(&path, &payload).unwrap();
    let subscriber = broker.subscribe(&["-t", "file", "-q", "2", "-C", "2", "-N", "-F", "%x "]);
    broker.publish(&["-t", "file", "-q", "2", "-f", path.to_str().unwrap()]);
    std::fs::remove_file(&path).unwrap();
    let mut publisher = broker.command("pub", &["-t", "file", "-q", "2", "-s"]);
    let mut publisher = Running(publisher.stdin(Stdio::piped()).spawn().unwrap());
    publisher
        .0
        .stdin
        .take()
        .unwrap()
        .write_all(&payload)
        .unwrap();
    assert_eq!(publisher.0.wait().unwrap().code(), Some(0));
    let digits: Vec<String> = payload.iter().map(|byte| format!("{byte:02x}")).collect();
    let digits = digits.concat();
    let (exit, printed) = subscriber.end();
    assert_eq!(exit, 0);
    assert!(
        printed == format!("{digits} {digits} "),
        "{} bytes",
        printed.len()
    );
}

#[test]
fn properties_given_with_d_arrive() {
    let broker = Broker::start();
    let format = "%C|%R|%D|%E|%F|%P|%t|%p";
    let subscriber = broker.subscribe(&["-V", "5", "-t", "p", "-C", "1", "-F", format]);
    let properties = "-D publish content-type text -D publish response-topic r -D publish correlation-data id \
                      -D publish message-expiry-interval 60 -D publish payload-format-indicator 1 \
                      -D publish user-property a b -D publish user-property a c";
    let mut args = vec!["-t", "p", "-m", "x"];
    args.extend(properties.split_whitespace());
    broker.publish(&args);
    assert_eq!(
        subscriber.end(),
        (0, "text|r|id|60|1|a:b a:c|p|x\n".to_owned())
    );
}

#[test]
fn retained_messages_are_kept_selected_and_removed() {
    let broker = Broker::start();
    broker.publish(&["-t", "r/a", "-m", "one", "-r", "-q", "1"]);
    broker.publish(&["-t", "r/b", "-m", "two", "-r", "-q", "1"]);
    let kept = broker.run(
        "sub",
        &["-t", "r/#", "-T", "r/b", "-v", "-C", "1", "-W", LIMIT],
    );
    assert_eq!(
        (code(&kept), text(&kept.stdout)),
        (0, "r/a one\n".to_owned())
    );
    let flags = [
        "-t",
        "r/#",
        "-T",
        "r/b",
        "-v",
        "--remove-retained",
        "--retained-only",
        "-W",
        LIMIT,
    ];
    let removed = broker.run("sub", &flags);
    assert_eq!(
        (code(&removed), text(&removed.stdout)),
        (0, "r/a one\n".to_owned())
    );
    let left = broker.run("sub", &["-t", "r/#", "-v", "-W", "1"]);
    assert_eq!(
        (code(&left), text(&left.stdout)),
        (27, "r/b two\n".to_owned())
    );
    let fresh = broker.run("sub", &["-t", "r/#", "-R", "-W", "1"]);
    assert_eq!((code(&fresh), text(&fresh.stdout)), (27, String::new()));
}

#[test]
fn a_kept_session_receives_messages_published_meanwhile() {
    let broker = Broker::start();
    for (identifier, version) in [("keep-311", "311"), ("keep-5", "5")] {
        let session = [
            "-c", "-i", identifier, "-V", version, "-q", "1", "-t", "news",
        ];
        let begun = broker.run("sub", &[&session[..], &["-E"]].concat());
        assert_eq!(code(&begun), 0, "{}", text(&begun.stderr));
        broker.publish(&["-t", "news", "-q", "1", "-m", "meanwhile"]);
        let resumed = broker.run("sub", &[&session[..], &["-C", "1", "-W", LIMIT]].concat());
        assert_eq!(
            (code(&resumed), text(&resumed.stdout)),
            (0, "meanwhile\n".to_owned())
        );
    }
}

#[test]
fn a_request_is_answered_on_its_response_topic() {
    let broker = Broker::start();
    let responder = broker.subscribe(&["-V", "5", "-t", "ask", "-C", "1", "-F", "%R"]);
    let mut asker = broker.command(
        "rr",
        &["-t", "ask", "-e", "answer", "-m", "?", "-v", "-W", LIMIT],
    );
    let asker = asker.stdout(Stdio::piped()).spawn().unwrap();
    let (_, topic) = responder.end();
    broker.publish(&["-t", topic.trim(), "-m", "42"]);
    let output = asker.wait_with_output().unwrap();
    assert_eq!(
        (code(&output), text(&output.stdout)),
        (0, "answer 42\n".to_owned())
    );
}

#[test]
fn a_will_is_published_only_if_the_client_disappears() {
    let broker = Broker::start();
    let watcher = broker.subscribe(&["-t", "will/#", "-v", "-C", "1"]);
    let leaving = broker.subscribe(&[
        "-t",
        "x",
        "--will-topic",
        "will/left",
        "--will-payload",
        "no",
    ]);
    leaving.signal(Signal::INT);
    assert_eq!(leaving.end().0, 130);
    let killed = broker.subscribe(&[
        "-t",
        "x",
        "--will-topic",
        "will/killed",
        "--will-payload",
        "yes",
    ]);
    killed.signal(Signal::KILL);
    assert_eq!(watcher.end(), (0, "will/killed yes\n".to_owned()));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let broker = Broker::start();
    let Subscriber {
        mut process,
        output,
    } = broker.subscribe(&["-t", "pipe"]);
    drop(output);
    broker.publish(&["-t", "pipe", "-m", "nobody reads this"]);
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
}

fn check_failure(args: &[&str], expected: i32, words: &str) {
    let output = thrum().args(args).stdin(Stdio::null()).output().unwrap();
    let message = text(&output.stderr);
    assert_eq!(code(&output), expected, "{args:?}: {message}");
    assert!(message.contains(words), "{args:?}: {message}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

#[test]
fn failures_name_the_error_its_cause_and_the_remedy() {
    check_failure(&["pub", "-t", "a"], 2, "-m TEXT");
    check_failure(&["pub", "-m", "a"], 2, "-t");
    check_failure(&["pub", "-t", "a", "-m", "b", "-n"], 2, "only one of");
    check_failure(&["pub", "-t", "a/#", "-m", "b"], 2, "without + and #");
    check_failure(&["pub", "-t", "a", "-m", "b", "-q", "3"], 2, "0, 1 or 2");
    check_failure(&["sub"], 2, "-t '#'");
    check_failure(&["sub", "-t", "a#"], 2, "comes last");
    check_failure(&["sub", "-t", "a", "-F", "%z"], 2, "known: ");
    check_failure(
        &["sub", "-t", "a", "-V", "311", "--retain-as-published"],
        2,
        "-V 5",
    );
    check_failure(&["rr", "-t", "a", "-m", "b"], 2, "-e");
    // Nothing listens on the discard port of this machine's loopback address.
    let nowhere = ["-h", "127.0.0.1", "-p", "9"];
    check_failure(
        &[&["pub", "-t", "a", "-m", "b"][..], &nowhere].concat(),
        5,
        "thrum serve --dev",
    );
    check_failure(
        &[&["sub", "-t", "a", "--quiet"][..], &nowhere].concat(),
        5,
        "",
    );
}

#[test]
fn h_without_a_host_asks_for_help() {
    for name in ["pub", "sub", "rr"] {
        for flag in ["-h", "--help"] {
            let output = thrum().args([name, flag]).output().unwrap();
            assert_eq!(code(&output), 0);
            let help = text(&output.stdout);
            assert!(
                help.contains("--host") && help.contains("Examples:"),
                "{help}"
            );
        }
    }
}
