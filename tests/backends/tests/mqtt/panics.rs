//! Databases whose answers make the library panic that reads them.

use std::path::Path;
use std::time::Duration;

use serde_json::{Map, Value, json};
use thrum_backends::babble::Babbler;
use thrum_backends::crowd::packet;
use thrum_backends::node::Node;
use thrum_backends::recital::{Recital, USER};
use thrum_backends::sql;
use thrum_conformance::clock;
use thrum_conformance::folder::Folder;
use thrum_conformance::packets::{Connect, Version};
use thrum_conformance::wire::Wire;

/// Longest time until a system that came to its senses is asked again: its pauses have up to 2 s.
const RETURN_MAX: Duration = Duration::from_secs(30);

/// A database that says the wrong thing.
struct Fool {
    name: &'static str,
    babbler: Babbler,
    recital: Recital,
    scheme: &'static str,
}

impl Fool {
    fn start(name: &'static str, scheme: &'static str, recital: Recital, said: &[u8]) -> Self {
        let babbler = Babbler::start();
        babbler.say(said);
        Self {
            name,
            babbler,
            recital,
            scheme,
        }
    }

    fn settings(&self) -> Value {
        let port = self.babbler.port();
        json!({ "url": format!("{}://u:p@127.0.0.1:{port}/x", self.scheme), "timeout": "2s" })
    }
}

/// Answers that sqlx 0.9.0 panics over.
fn fools() -> [Fool; 4] {
    let (postgres, mysql) = (Recital::postgres, Recital::mysql);
    [
        // A length that does not count itself.
        Fool::start("short", "postgresql", postgres(), b"NR\0\0\0\x02\0\0\0\0"),
        // Ready for a query, but not in which state.
        Fool::start("ready", "postgresql", postgres(), &postgres().cut_at(3, 1)),
        // A greeting that ends in a number.
        Fool::start("greeting", "mysql", mysql(), &mysql().cut_at(0, 10)),
        // A row that ends where its nulls should be.
        Fool::start("row", "mysql", mysql(), &mysql().cut_at(17, 1)),
    ]
}

#[test]
fn a_library_that_panics_costs_one_answer_and_not_the_broker() {
    let (fools, folder) = (fools(), Folder::new("mqtt-panics"));
    let good = sql::settings(
        &format!("sqlite://{}", sql::sqlite_file(&folder)),
        Path::new(""),
    );
    let (mut backends, mut listeners) = (Map::new(), Map::new());
    backends.insert("db".to_owned(), good["sql"]["db"].clone());
    listeners.insert("mqtt".to_owned(), json!({ "auth": ["db"] }));
    for fool in &fools {
        backends.insert(fool.name.to_owned(), fool.settings());
        let listener = json!({ "bind": "127.0.0.1:0", "auth": [fool.name] });
        listeners.insert(fool.name.to_owned(), listener);
    }
    let node = Node::start(&json!({ "auth": { "sql": backends }, "listeners": listeners }));
    for fool in &fools {
        assert_eq!(told(&node, fool.name, Version::V5), 0x88, "{}", fool.name);
        assert_eq!(told(&node, fool.name, Version::V311), 3, "{}", fool.name);
        assert_eq!(told(&node, "mqtt", Version::V5), 0, "others are served");
    }
    let log = node.process().log();
    for fool in &fools {
        let mut lines = log.lines();
        let is_named = |line: &str| {
            line.contains(&format!("\"{}\"", fool.name))
                && line.contains("the library that reads it failed")
        };
        assert!(lines.any(is_named), "nothing about {}: {log}", fool.name);
    }
    assert!(
        log.contains("a library failed over what another system said"),
        "{log}"
    );
    for fool in &fools {
        fool.babbler.say(&fool.recital.whole());
        let deadline = clock::now() + RETURN_MAX;
        while told(&node, fool.name, Version::V5) != 0 {
            assert!(clock::now() < deadline, "{} is not asked again", fool.name);
            clock::sleep(Duration::from_millis(50));
        }
    }
    node.assert_sound();
}

fn told(node: &Node, listener: &str, version: Version) -> u8 {
    let mut wire = Wire::open(node.address_of(listener), version);
    wire.send(&Connect::new(version).credentials(USER, "secret").bytes());
    packet(&mut wire, "CONNACK").connack(version).code
}
