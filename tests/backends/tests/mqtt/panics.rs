//! Databases whose answers make the client library panic.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use thrum_backends::brief_clients::packet;
use thrum_backends::garbage_server::GarbageServer;
use thrum_backends::node::Node;
use thrum_backends::replayed_dialogue::{ReplayedDialogue, USER};
use thrum_backends::sql;
use thrum_conformance::clock;
use thrum_conformance::folder::Folder;
use thrum_conformance::packets::{Connect, Version};
use thrum_conformance::wire::Wire;

/// Longest time until a recovered database is asked again: pauses have up to 2 s.
const RETURN_MAX: Duration = Duration::from_secs(30);

/// A database that sends a faulty answer.
struct FaultyServer {
    name: &'static str,
    server: GarbageServer,
    dialogue: ReplayedDialogue,
    scheme: &'static str,
}

impl FaultyServer {
    fn start(
        name: &'static str,
        scheme: &'static str,
        dialogue: ReplayedDialogue,
        said: &[u8],
    ) -> Self {
        let server = GarbageServer::start();
        server.answer_with(said);
        Self {
            name,
            server,
            dialogue,
            scheme,
        }
    }

    fn settings(&self) -> Value {
        let port = self.server.port();
        json!({ "url": format!("{}://u:p@127.0.0.1:{port}/x", self.scheme), "timeout": "2s" })
    }
}

/// Answers on which sqlx 0.9.0 panics.
fn faulty_servers() -> [FaultyServer; 4] {
    let (postgres, mysql) = (ReplayedDialogue::postgres, ReplayedDialogue::mysql);
    [
        // A length that does not count itself.
        FaultyServer::start("short", "postgresql", postgres(), b"NR\0\0\0\x02\0\0\0\0"),
        // Ready for a query, but not in which state.
        FaultyServer::start("ready", "postgresql", postgres(), &postgres().cut_at(3, 1)),
        // A greeting that ends in a number.
        FaultyServer::start("greeting", "mysql", mysql(), &mysql().cut_at(0, 10)),
        // A row that ends where its nulls should be.
        FaultyServer::start("row", "mysql", mysql(), &mysql().cut_at(17, 1)),
    ]
}

#[test]
fn a_library_that_panics_costs_one_answer_and_not_the_broker() {
    let (faulty_servers, folder) = (faulty_servers(), Folder::new("mqtt-panics"));
    let good = sql::settings(
        &format!("sqlite://{}", sql::sqlite_file(&folder)),
        Path::new(""),
    );
    let (mut backends, mut listeners) = (Map::new(), Map::new());
    backends.insert("db".to_owned(), good["sql"]["db"].clone());
    listeners.insert("mqtt".to_owned(), json!({ "auth": ["db"] }));
    for faulty in &faulty_servers {
        backends.insert(faulty.name.to_owned(), faulty.settings());
        let listener = json!({ "bind": "127.0.0.1:0", "auth": [faulty.name] });
        listeners.insert(faulty.name.to_owned(), listener);
    }
    let node = Node::start(&json!({ "auth": { "sql": backends }, "listeners": listeners }));
    for faulty in &faulty_servers {
        assert_eq!(
            connack_code(&node, faulty.name, Version::V5),
            0x88,
            "{}",
            faulty.name
        );
        assert_eq!(
            connack_code(&node, faulty.name, Version::V311),
            3,
            "{}",
            faulty.name
        );
        assert_eq!(
            connack_code(&node, "mqtt", Version::V5),
            0,
            "others are served"
        );
    }
    let log = node.process().log();
    for faulty in &faulty_servers {
        let mut lines = log.lines();
        let is_named = |line: &str| {
            line.contains(&format!("\"{}\"", faulty.name))
                && line.contains("the library that reads it failed")
        };
        assert!(lines.any(is_named), "nothing about {}: {log}", faulty.name);
    }
    assert!(
        log.contains("a library failed over the answer of another system"),
        "{log}"
    );
    for faulty in &faulty_servers {
        faulty.server.answer_with(&faulty.dialogue.whole());
        let deadline = clock::now() + RETURN_MAX;
        while connack_code(&node, faulty.name, Version::V5) != 0 {
            assert!(
                clock::now() < deadline,
                "{} is not asked again",
                faulty.name
            );
            clock::sleep(Duration::from_millis(50));
        }
    }
    node.assert_sound();
}

fn connack_code(node: &Node, listener: &str, version: Version) -> u8 {
    let mut wire = Wire::open(node.address_of(listener), version);
    wire.send(&Connect::new(version).credentials(USER, "secret").bytes());
    packet(&mut wire, "CONNACK").connack(version).code
}
