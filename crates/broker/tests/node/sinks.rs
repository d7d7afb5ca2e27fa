//! Messages that leave the broker through a `log` sink.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use thrum_broker::config::{SinkConfig, WhenFull};
use thrum_broker::{Config, OperatorMessage, PublishOutcome};
use thrum_codec::packet::{Packet, Publish};
use thrum_codec::properties::{PublishProperties, UserProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, Version};

use crate::peer::{Peer, configured, connect_packet, start};
use crate::rights::Folder;

/// Longer than a reload takes.
const PATIENCE: Duration = Duration::from_secs(10);
/// Number of reads of a file, together longer than a sink waits between two attempts.
const LOOKS_MAX: u32 = 10_000;
const LOOK_PAUSE: Duration = Duration::from_millis(1);

fn sink(filter: &str, path: PathBuf) -> SinkConfig {
    SinkConfig {
        filter: filter.to_owned(),
        path,
        ..SinkConfig::default()
    }
}

fn with_sink(config: &mut Config, name: &str, sink: SinkConfig) {
    config.sinks.insert(name.to_owned(), sink);
}

/// The lines of the file once there are so many.
fn lines(path: &Path, count: usize) -> Vec<Value> {
    let mut text = String::new();
    for _ in 0..LOOKS_MAX {
        text = std::fs::read_to_string(path).unwrap_or_default();
        if text.lines().count() >= count && text.ends_with('\n') {
            break;
        }
        std::thread::park_timeout(LOOK_PAUSE);
    }
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), count, "{text}");
    lines
}

fn payloads(path: &Path, count: usize) -> Vec<String> {
    let payload = |line: &Value| line["payload"].as_str().expect("a text").to_owned();
    lines(path, count).iter().map(payload).collect()
}

#[test]
fn messages_of_the_filter_are_lines_of_json() {
    for workers in [1, 3] {
        let folder = Folder::new("sink-lines");
        let path = folder.0.join("log.jsonl");
        let (broker, address) = start(workers, |config| {
            with_sink(config, "all", sink("a/+", path.clone()));
        });
        let mut peer = Peer::connect(address, "p");
        assert_eq!(
            peer.publish_acknowledged("a/b", b"text"),
            ReasonCode::Success
        );
        let other = peer.publish_acknowledged("b", b"text");
        assert_eq!(other, ReasonCode::NoMatchingSubscribers);
        peer.send(&Packet::Publish(Publish {
            dup: false,
            qos: QoS::AtMostOnce,
            retain: true,
            topic: "a/c",
            packet_id: None,
            properties: PublishProperties {
                content_type: Some("application/octet-stream"),
                user: UserProperties::Listed(&[("k", "1"), ("k", "2")]),
                ..PublishProperties::default()
            },
            payload: &[0xFF, 0],
        }));
        let lines = lines(&path, 2);
        assert_eq!(lines[0]["topic"], "a/b");
        assert_eq!(lines[0]["payload"], "text");
        assert_eq!(
            (&lines[0]["qos"], &lines[0]["retain"]),
            (&1.into(), &false.into())
        );
        assert!(
            lines[0]["timestamp"]
                .as_u64()
                .is_some_and(|at| at > 1_600_000_000_000)
        );
        assert_eq!(lines[1]["payload_base64"], "/wA=");
        assert_eq!(
            (&lines[1]["qos"], &lines[1]["retain"]),
            (&0.into(), &true.into())
        );
        assert_eq!(lines[1]["content_type"], "application/octet-stream");
        let user = serde_json::json!([["k", "1"], ["k", "2"]]);
        assert_eq!(lines[1]["user_properties"], user);
        broker.stop();
    }
}

#[test]
fn a_message_for_several_filters_reaches_each_sink_and_subscriber_once() {
    let folder = Folder::new("sink-several");
    let paths = ["x", "y"].map(|name| folder.0.join(name));
    let (broker, address) = start(2, |config| {
        with_sink(config, "x", sink("#", paths[0].clone()));
        with_sink(config, "y", sink("a/#", paths[1].clone()));
    });
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("a/b", QoS::AtMostOnce);
    let mut peer = Peer::connect(address, "p");
    for number in 0..100 {
        peer.publish_acknowledged("a/b", number.to_string().as_bytes());
    }
    let expected: Vec<String> = (0..100).map(|number| number.to_string()).collect();
    for path in &paths {
        assert_eq!(payloads(path, 100), expected);
    }
    for expected in expected {
        assert_eq!(subscriber.message().payload, expected.as_bytes());
    }
    broker.stop();
}

#[test]
fn a_file_that_was_moved_away_is_made_again() {
    let folder = Folder::new("sink-moved");
    let path = folder.0.join("log");
    let (broker, address) = start(1, |config| {
        with_sink(config, "all", sink("#", path.clone()));
    });
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"1");
    assert_eq!(payloads(&path, 1), ["1"]);
    let moved = folder.0.join("log.1");
    std::fs::rename(&path, &moved).expect("the same folder");
    peer.publish_acknowledged("a", b"2");
    assert_eq!(payloads(&path, 1), ["2"]);
    assert_eq!(payloads(&moved, 1), ["1"]);
    broker.stop();
}

#[test]
fn a_reload_adds_changes_and_removes_sinks() {
    let folder = Folder::new("sink-reload");
    let path = |name: &str| folder.0.join(name);
    let mut config = Config::default();
    configured(&mut config, 2);
    with_sink(&mut config, "first", sink("a", path("first")));
    let (mut broker, address) = start(2, |start| start.clone_from(&config));
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"1");
    let mut reload = |config: &Config| {
        let (waiting, settling) = broker.reload(config).expect("a good configuration");
        assert_eq!(waiting, [""; 0]);
        settling.wait(PATIENCE).expect("the workers continue");
    };
    config.sinks.get_mut("first").expect("it is there").filter = "b".to_owned();
    with_sink(&mut config, "second", sink("a", path("second")));
    reload(&config);
    peer.publish_acknowledged("a", b"2");
    peer.publish_acknowledged("b", b"3");
    assert_eq!(payloads(&path("first"), 2), ["1", "3"]);
    assert_eq!(payloads(&path("second"), 1), ["2"]);
    config.sinks.remove("second");
    config.sinks.get_mut("first").expect("it is there").path = path("other");
    reload(&config);
    let answer = peer.publish_acknowledged("a", b"4");
    assert_eq!(answer, ReasonCode::NoMatchingSubscribers);
    peer.publish_acknowledged("b", b"5");
    assert_eq!(payloads(&path("other"), 1), ["5"]);
    assert_eq!(payloads(&path("second"), 1), ["2"]);
    let mut wrong = config.clone();
    with_sink(&mut wrong, "third", sink("a/#/b", path("third")));
    let error = broker.reload(&wrong).expect_err("the filter is wrong");
    assert!(error.to_string().contains("a/#/b"), "{error}");
    peer.publish_acknowledged("b", b"6");
    assert_eq!(payloads(&path("other"), 2), ["5", "6"]);
    broker.stop();
}

/// A folder for the file that can be taken away, so that the sink cannot write.
struct Target {
    folder: PathBuf,
    away: PathBuf,
}

impl Target {
    fn new(folder: &Folder) -> Self {
        let target = Self {
            folder: folder.0.join("target"),
            away: folder.0.join("away"),
        };
        std::fs::create_dir_all(&target.folder).expect("a folder of the test");
        target
    }

    fn file(&self) -> PathBuf {
        self.folder.join("log")
    }

    fn goes(&self) {
        std::fs::rename(&self.folder, &self.away).expect("it is there");
    }

    fn restore_directory(&self) {
        std::fs::rename(&self.away, &self.folder).expect("it is away");
    }
}

#[test]
fn a_full_sink_refuses_and_gets_what_was_acknowledged_later() {
    let folder = Folder::new("sink-full");
    let target = Target::new(&folder);
    let (broker, address) = start(2, |config| {
        let queue_messages = 5;
        let sink = sink("a", target.file());
        with_sink(
            config,
            "all",
            SinkConfig {
                queue_messages,
                ..sink
            },
        );
    });
    let mut peer = Peer::connect(address, "p");
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("a", QoS::AtMostOnce);
    target.goes();
    let mut taken = Vec::new();
    for number in 0..20 {
        let number = number.to_string();
        match peer.publish_acknowledged("a", number.as_bytes()) {
            ReasonCode::Success => taken.push(number),
            reason => assert_eq!(reason, ReasonCode::QuotaExceeded),
        }
    }
    assert_eq!(taken, ["0", "1", "2", "3", "4"]);
    // A refused message reaches no subscriber, and the connection of an MQTT 3.1.1 client ends.
    for number in &taken {
        assert_eq!(subscriber.message().payload, number.as_bytes());
    }
    subscriber.assert_silent();
    // Nor does a message of the operator, which is refused.
    let ordered = broker.queries().publish(&OperatorMessage {
        topic: "a".to_owned(),
        payload: b"ordered".to_vec(),
        qos: QoS::AtLeastOnce,
        retain: false,
        expiry_secs: None,
    });
    let outcome = ordered.expect("an answer").outcome;
    assert!(matches!(outcome, PublishOutcome::Refused(_)), "{outcome:?}");
    subscriber.assert_silent();
    let mut old = Peer::open(address, Version::V311);
    assert_eq!(
        old.handshake(&connect_packet(Version::V311, "o")).0,
        ReasonCode::Success
    );
    old.send(&Packet::Publish(Publish {
        dup: false,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "a",
        packet_id: PacketId::new(1),
        properties: PublishProperties::default(),
        payload: b"x",
    }));
    old.assert_closed();
    target.restore_directory();
    assert_eq!(payloads(&target.file(), 5), taken);
    broker.stop();
}

#[test]
fn a_full_sink_that_holds_makes_its_publishers_wait() {
    let folder = Folder::new("sink-hold");
    let target = Target::new(&folder);
    let (broker, address) = start(1, |config| {
        let sink = SinkConfig {
            queue_messages: 5,
            when_full: WhenFull::Hold,
            ..sink("a", target.file())
        };
        with_sink(config, "all", sink);
    });
    let mut peer = Peer::connect(address, "p");
    target.goes();
    for number in 0..10_u8 {
        peer.publish("a", &[b'0' + number], QoS::AtMostOnce, false);
    }
    // It is not read: the answer arrives when the sink has room.
    peer.send(&Packet::PingReq);
    peer.assert_silent();
    let mut other = Peer::connect(address, "o");
    other.publish_acknowledged("b", b"passes");
    target.restore_directory();
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(payloads(&target.file(), 10), expected);
    peer.receive(|packet| assert!(matches!(packet, Packet::PingResp), "{packet:?}"));
    broker.stop();
}

#[test]
fn a_reload_releases_the_publishers_of_a_sink_that_no_longer_holds_them() {
    let folder = Folder::new("sink-let-go");
    let path = folder.0.join("log");
    let file = std::fs::File::create(&path).expect("a file of the test");
    file.lock().expect("nobody else has it");
    let mut config = Config::default();
    configured(&mut config, 1);
    let holding = SinkConfig {
        queue_messages: 5,
        when_full: WhenFull::Hold,
        ..sink("a", path)
    };
    with_sink(&mut config, "all", holding);
    let (mut broker, address) = start(1, |start| start.clone_from(&config));
    let mut peer = Peer::connect(address, "p");
    for number in 0..10_u8 {
        peer.publish("a", &[b'0' + number], QoS::AtMostOnce, false);
    }
    peer.send(&Packet::PingReq);
    peer.assert_silent();
    config.sinks.get_mut("all").expect("it is there").when_full = WhenFull::Drop;
    let (_, settling) = broker.reload(&config).expect("a good configuration");
    settling.wait(PATIENCE).expect("the workers go on");
    peer.receive(|packet| assert!(matches!(packet, Packet::PingResp), "{packet:?}"));
    broker.stop();
}

#[test]
fn a_full_sink_that_drops_holds_no_publisher() {
    let folder = Folder::new("sink-drop");
    let target = Target::new(&folder);
    let (broker, address) = start(1, |config| {
        let sink = SinkConfig {
            queue_messages: 2,
            when_full: WhenFull::Drop,
            ..sink("a", target.file())
        };
        with_sink(config, "all", sink);
    });
    let mut subscriber = Peer::connect(address, "s");
    subscriber.subscribe("a", QoS::AtMostOnce);
    let mut peer = Peer::connect(address, "p");
    target.goes();
    for number in 0..5 {
        let answer = peer.publish_acknowledged("a", number.to_string().as_bytes());
        assert_eq!(answer, ReasonCode::Success);
        assert_eq!(subscriber.message().payload, number.to_string().as_bytes());
    }
    target.restore_directory();
    assert_eq!(payloads(&target.file(), 2), ["0", "1"]);
    broker.stop();
}

#[test]
fn waiting_messages_of_a_durable_sink_are_written_after_a_restart_in_order_and_once() {
    let folder = Folder::new("sink-durable");
    let target = Target::new(&folder);
    let durable = |config: &mut Config| {
        config.node.data_dir = folder.0.join("data");
        with_sink(config, "all", sink("a", target.file()));
    };
    let (broker, address) = start(3, durable);
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"before");
    assert_eq!(payloads(&target.file(), 1), ["before"]);
    target.goes();
    for number in 0..50 {
        peer.publish_acknowledged("a", number.to_string().as_bytes());
        peer.publish("a", b"at most once", QoS::AtMostOnce, false);
    }
    broker.stop();
    target.restore_directory();
    let expected = || {
        let numbers = (0..50).map(|number| number.to_string());
        ["before".to_owned()].into_iter().chain(numbers)
    };
    let (broker, address) = start(2, durable);
    assert_eq!(payloads(&target.file(), 51), expected().collect::<Vec<_>>());
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"after");
    let expected: Vec<String> = expected().chain(["after".to_owned()]).collect();
    assert_eq!(payloads(&target.file(), 52), expected);
    broker.stop();
    // Nothing is left that would be written again.
    let (broker, address) = start(1, durable);
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"last");
    assert_eq!(payloads(&target.file(), 53)[52], "last");
    broker.stop();
}

#[test]
fn messages_of_a_sink_that_is_not_configured_are_kept_until_it_is() {
    let folder = Folder::new("sink-gone");
    let target = Target::new(&folder);
    let without = |config: &mut Config| config.node.data_dir = folder.0.join("data");
    let with = |config: &mut Config| {
        without(config);
        with_sink(config, "all", sink("a", target.file()));
    };
    let (broker, address) = start(2, with);
    let mut peer = Peer::connect(address, "p");
    target.goes();
    peer.publish_acknowledged("a", b"kept");
    broker.stop();
    target.restore_directory();
    let (broker, _) = start(2, without);
    broker.stop();
    // A reload that adds it is as good as a restart, and what is published then comes behind.
    let mut config = Config::default();
    configured(&mut config, 1);
    without(&mut config);
    let (mut broker, address) = start(1, |start| start.clone_from(&config));
    with_sink(&mut config, "all", sink("a", target.file()));
    let (_, settling) = broker.reload(&config).expect("a good configuration");
    settling.wait(PATIENCE).expect("the workers go on");
    Peer::connect(address, "p").publish_acknowledged("a", b"new");
    assert_eq!(payloads(&target.file(), 2), ["kept", "new"]);
    broker.stop();
    let (broker, _) = start(1, with);
    assert_eq!(payloads(&target.file(), 2), ["kept", "new"]);
    broker.stop();
}

/// Publishes large messages; those that were accepted. Between two sinks of a rename there may be
/// none that wants them.
fn publish_until(is_over: &AtomicBool, address: SocketAddr, answers: &AtomicUsize) -> Vec<String> {
    let mut peer = Peer::connect(address, "p");
    let padding = "x".repeat(9000);
    let mut accepted = Vec::new();
    while !is_over.load(Ordering::Relaxed) {
        let payload = format!("{} {padding}", answers.fetch_add(1, Ordering::Relaxed));
        if peer.publish_acknowledged("a", payload.as_bytes()) == ReasonCode::Success {
            accepted.push(payload);
        }
    }
    accepted
}

#[test]
fn reloads_under_load_lose_and_repeat_nothing() {
    let folder = Folder::new("sink-reloads");
    let path = folder.0.join("log");
    let mut config = Config::default();
    configured(&mut config, 2);
    config.node.data_dir = folder.0.join("data");
    with_sink(&mut config, "name-0", sink("a", path.clone()));
    let (mut broker, address) = start(2, |start| start.clone_from(&config));
    let (is_over, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (is_over, answers) = (&is_over, &answers);
    let accepted = std::thread::scope(|scope| {
        let publisher = scope.spawn(move || publish_until(is_over, address, answers));
        for round in 0..30 {
            let (_, mut sink) = config.sinks.pop_first().expect("there is one");
            sink.durable = round % 3 > 0;
            with_sink(&mut config, &format!("name-{}", round % 4 / 2), sink);
            let (_, settling) = broker.reload(&config).expect("a good configuration");
            settling.wait(PATIENCE).expect("the workers go on");
            let before = answers.load(Ordering::Relaxed);
            while answers.load(Ordering::Relaxed) < before + 10 {
                std::thread::yield_now();
            }
        }
        is_over.store(true, Ordering::Relaxed);
        publisher.join().expect("the publisher ends")
    });
    assert!(accepted.len() > 200, "{}", accepted.len());
    // Messages of the name that is not configured wait for it.
    let (_, last) = config.sinks.pop_first().expect("there is one");
    let other = folder.0.join("other");
    with_sink(&mut config, "name-0", last);
    with_sink(&mut config, "name-1", sink("b", other.clone()));
    let (_, settling) = broker.reload(&config).expect("a good configuration");
    settling.wait(PATIENCE).expect("the workers go on");
    let written = || {
        let texts = [&path, &other].map(|path| std::fs::read_to_string(path).unwrap_or_default());
        texts.concat()
    };
    for _ in 0..LOOKS_MAX {
        if written().lines().count() >= accepted.len() {
            break;
        }
        std::thread::park_timeout(LOOK_PAUSE);
    }
    broker.stop();
    // Nothing is left that the next start would write again.
    let (broker, _) = start(1, |start| start.clone_from(&config));
    broker.stop();
    let payload = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        line["payload"].as_str().expect("a text").to_owned()
    };
    let mut written: Vec<String> = written().lines().map(payload).collect();
    written.sort();
    let mut accepted = accepted;
    accepted.sort();
    assert_eq!(written.len(), accepted.len());
    assert!(written == accepted, "others were written than accepted");
}

#[test]
fn a_file_with_two_names_has_one_writer() {
    let folder = Folder::new("sink-link");
    let (path, link) = (folder.0.join("log"), folder.0.join("link"));
    std::fs::write(&path, "").expect("a file of the test");
    std::os::unix::fs::symlink(&path, &link).expect("a link of the test");
    let mut config = Config::default();
    configured(&mut config, 1);
    with_sink(&mut config, "a", sink("a", path.clone()));
    let (mut broker, address) = start(1, |start| start.clone_from(&config));
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"1");
    assert_eq!(payloads(&path, 1), ["1"]);
    with_sink(&mut config, "b", sink("b", link));
    let (_, settling) = broker.reload(&config).expect("the check does not see it");
    settling.wait(PATIENCE).expect("the workers go on");
    peer.publish_acknowledged("b", b"waits");
    peer.publish_acknowledged("a", b"2");
    assert_eq!(payloads(&path, 2), ["1", "2"]);
    config.sinks.remove("a");
    let (_, settling) = broker.reload(&config).expect("a good configuration");
    settling.wait(PATIENCE).expect("the workers go on");
    assert_eq!(payloads(&path, 3), ["1", "2", "waits"]);
    broker.stop();
}

#[test]
fn a_sink_without_its_folder_does_not_keep_the_rest_from_a_reload() {
    let folder = Folder::new("sink-no-folder");
    let target = Target::new(&folder);
    let mut config = Config::default();
    configured(&mut config, 1);
    with_sink(&mut config, "all", sink("a", target.file()));
    let (mut broker, address) = start(1, |start| start.clone_from(&config));
    target.goes();
    let other = folder.0.join("other");
    with_sink(&mut config, "other", sink("b", other.clone()));
    let (_, settling) = broker.reload(&config).expect("that sink goes on as it is");
    settling.wait(PATIENCE).expect("the workers go on");
    Peer::connect(address, "p").publish_acknowledged("b", b"1");
    assert_eq!(payloads(&other, 1), ["1"]);
    // A sink that changes needs its folder.
    config.sinks.get_mut("all").expect("it is there").filter = "c".to_owned();
    broker.reload(&config).expect_err("its folder is missing");
    broker.stop();
}

#[test]
fn a_sink_that_gets_another_file_gives_the_first_one_to_others_at_once() {
    let folder = Folder::new("sink-exchange");
    let [first, second] = ["first", "second"].map(|name| folder.0.join(name));
    let mut config = Config::default();
    configured(&mut config, 1);
    with_sink(&mut config, "a", sink("a", first.clone()));
    let (mut broker, address) = start(1, |start| start.clone_from(&config));
    let mut peer = Peer::connect(address, "p");
    peer.publish_acknowledged("a", b"1");
    assert_eq!(payloads(&first, 1), ["1"]);
    // The sink that has the file gets no message any more that makes it look at its path.
    with_sink(&mut config, "a", sink("a", second));
    with_sink(&mut config, "b", sink("b", first.clone()));
    let (_, settling) = broker.reload(&config).expect("a good configuration");
    settling.wait(PATIENCE).expect("the workers go on");
    peer.publish_acknowledged("b", b"2");
    assert_eq!(payloads(&first, 2), ["1", "2"]);
    broker.stop();
}

#[test]
fn a_sink_that_holds_refuses_beyond_twice_its_limits() {
    let folder = Folder::new("sink-held");
    let target = Target::new(&folder);
    let (broker, address) = start(1, |config| {
        let sink = SinkConfig {
            queue_messages: 3,
            when_full: WhenFull::Hold,
            ..sink("a", target.file())
        };
        with_sink(config, "all", sink);
    });
    target.goes();
    let answers: Vec<ReasonCode> = (0..8)
        .map(|number| {
            let mut peer = Peer::connect(address, &format!("p{number}"));
            peer.publish_acknowledged("a", number.to_string().as_bytes())
        })
        .collect();
    let (taken, refused) = answers.split_at(6);
    assert!(
        taken.iter().all(|answer| *answer == ReasonCode::Success),
        "{answers:?}"
    );
    assert!(
        refused
            .iter()
            .all(|answer| *answer == ReasonCode::QuotaExceeded),
        "{answers:?}"
    );
    target.restore_directory();
    assert_eq!(payloads(&target.file(), 6), ["0", "1", "2", "3", "4", "5"]);
    broker.stop();
}

#[test]
fn a_torn_line_is_cut_and_the_line_of_another_program_is_not() {
    let folder = Folder::new("sink-torn");
    let path = folder.0.join("log");
    let write = |before: &str| {
        std::fs::write(&path, before).expect("a file of the test");
        let (broker, address) = start(1, |config| {
            with_sink(config, "all", sink("#", path.clone()));
        });
        Peer::connect(address, "p").publish_acknowledged("a", b"new");
        broker.stop();
        let text = std::fs::read_to_string(&path).expect("it is there");
        let (rest, line) = text.rsplit_once("{\"timestamp\"").expect("a new line");
        assert!(line.contains("\"new\""));
        rest.to_owned()
    };
    assert_eq!(write("{\"a\":1}\n{\"timestamp\":17"), "{\"a\":1}\n");
    assert_eq!(write("{\"timestamp\":17"), "");
    assert_eq!(write("a note"), "a note\n");
    assert_eq!(write(""), "");
}

#[test]
fn events_can_be_stored() {
    let folder = Folder::new("sink-events");
    let path = folder.0.join("log");
    let (broker, address) = start(1, |config| {
        with_sink(config, "audit", sink("$events/client/+", path.clone()));
    });
    Peer::connect(address, "p").disconnect();
    let kinds = |count| -> Vec<String> {
        let topic = |line: &Value| line["topic"].as_str().expect("a text").to_owned();
        lines(&path, count).iter().map(topic).collect()
    };
    let [received, went] =
        ["connected", "disconnected"].map(|kind| format!("$events/client/{kind}"));
    assert_eq!(kinds(2), [received.clone(), went.clone()]);
    // A stop ends connections as well.
    let peer = Peer::connect(address, "q");
    broker.stop();
    assert_eq!(kinds(4), [received.clone(), went.clone(), received, went]);
    let payload = lines(&path, 4)[3]["payload"].clone();
    let told: Value = serde_json::from_str(payload.as_str().expect("a text")).expect("JSON");
    assert_eq!(told["reason"], "the broker is shutting down");
    drop(peer);
}
