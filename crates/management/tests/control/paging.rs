//! Every list of the document with a cursor is read to its end.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use thrum_auth::config::AclConfig;
use thrum_auth::{AuthService, Settings};

use super::TestBroker;
use super::lists::{narrow, publish, subscribe, three_clients};

const DOCUMENT: &str = include_str!("../../../../docs/api/openapi.json");

/// A list with more than two rows.
struct List {
    operation: &'static str,
    path: &'static str,
    /// The field with the rows.
    rows: &'static str,
    /// Where a row has its identity: pointers, joined.
    identity: &'static [&'static str],
}

/// Each list of the interface. A new one needs a line here.
const LISTS: &[List] = &[
    List {
        operation: "list_clients",
        path: "/clients?",
        rows: "clients",
        identity: &["/client_id"],
    },
    List {
        operation: "list_slow_clients",
        path: "/slow?",
        rows: "clients",
        identity: &["/client_id"],
    },
    List {
        operation: "list_client_queue",
        path: "/clients/s/queue?payload=true&",
        rows: "messages",
        identity: &["/message/payload_base64"],
    },
    List {
        operation: "list_client_subscriptions",
        path: "/clients/m/subscriptions?",
        rows: "subscriptions",
        identity: &["/filter"],
    },
    List {
        operation: "list_subscriptions",
        path: "/subscriptions?",
        rows: "subscriptions",
        identity: &["/client_id", "/filter"],
    },
    List {
        operation: "list_groups",
        path: "/groups?",
        rows: "groups",
        identity: &["/group", "/filter"],
    },
    List {
        operation: "list_drops",
        path: "/drops?",
        rows: "drops",
        identity: &["/reason", "/client_id", "/topic"],
    },
    List {
        operation: "list_refused_publishes",
        path: "/refused-publishes?",
        rows: "refused",
        identity: &["/reason", "/client_id", "/topic"],
    },
    List {
        operation: "list_retained",
        path: "/retained?",
        rows: "messages",
        identity: &["/topic"],
    },
    List {
        operation: "list_topics",
        path: "/topics?",
        rows: "topics",
        identity: &["/topic"],
    },
    List {
        operation: "list_bans",
        path: "/bans?",
        rows: "bans",
        identity: &["/client_id"],
    },
    List {
        operation: "list_users",
        path: "/users?",
        rows: "users",
        identity: &["/name"],
    },
    List {
        operation: "list_roles",
        path: "/roles?",
        rows: "roles",
        identity: &["/name"],
    },
    List {
        operation: "list_user_groups",
        path: "/user-groups?",
        rows: "groups",
        identity: &["/name"],
    },
    List {
        operation: "list_rules",
        path: "/access/rules?",
        rows: "rules",
        identity: &["/position", "/source"],
    },
    List {
        operation: "list_audit",
        path: "/audit?action=message.*&",
        rows: "entries",
        identity: &["/number"],
    },
];

/// Lists whose rows the program around the broker makes; `api/tests/operating/` reads them.
const OF_THE_PROGRAM: [&str; 3] = ["list_logs", "list_past_alarms", "list_backups"];

/// The operations of the document that have a cursor.
fn documented() -> BTreeSet<String> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let operations = paths.flat_map(|item| item.as_object().unwrap().values());
    let has_cursor = |operation: &&Value| {
        let mut parameters = operation["parameters"].as_array().into_iter().flatten();
        parameters.any(|parameter| parameter["name"] == "cursor")
    };
    operations
        .filter(has_cursor)
        .map(|operation| operation["operationId"].as_str().unwrap().to_owned())
        .collect()
}

impl List {
    fn identity(&self, row: &Value) -> String {
        let parts = self.identity.iter();
        let parts = parts.map(|pointer| row.pointer(pointer).unwrap().to_string());
        parts.collect::<Vec<_>>().join(" ")
    }

    /// The rows of all pages with this limit, in their order.
    fn read(&self, broker: &TestBroker, limit: usize) -> Vec<String> {
        let first = format!("/api/v1{}limit={limit}", self.path);
        let mut page = broker.get_ok(&first);
        let mut found = Vec::new();
        loop {
            let rows = page[self.rows].as_array().unwrap();
            assert!(rows.len() <= limit, "{}", self.operation);
            found.extend(rows.iter().map(|row| self.identity(row)));
            let Some(next) = page["next"].as_str() else {
                return found;
            };
            page = broker.get_ok(&format!("{first}&cursor={next}"));
        }
    }
}

/// Authentication with three rules, and a user store in a folder.
pub(super) fn clients(folder: &Path) -> Arc<AuthService> {
    let rules = ["a", "b", "c"].map(|topic| format!("allow all pub {topic}"));
    let settings = Settings {
        data_dir: folder.to_owned(),
        acl: AclConfig {
            rules: rules.into(),
            ..AclConfig::default()
        },
        ..Settings::default()
    };
    AuthService::start(&settings).unwrap()
}

/// Makes three rows or more for each list.
fn fill(broker: &TestBroker) -> Vec<TcpStream> {
    // Topics are counted from here on.
    broker.get_ok("/api/v1/topics");
    let mut streams = three_clients(broker);
    let mut member = broker.client(b'm', 0);
    for group in [b'a', b'b', b'c'] {
        let mut packet = *b"\x82\x0F\0\x01\0\x0A$share/g/t\x01";
        packet[13] = group;
        member.write_all(&packet).unwrap();
        member.read_exact(&mut [0; 5]).unwrap();
    }
    streams.push(member);
    // Two more clients that take nothing, each of a topic of its own.
    for id in [b'u', b'v'] {
        let mut slow = broker.client(id, 0);
        subscribe(&mut slow, id);
        publish(broker, &char::from(id).to_string(), 7);
        streams.push(slow);
    }
    // Topics of the broker are refused; MQTT 3.1.1 has no reason code.
    let mut refused = broker.client(b'y', 0);
    for topic in [b'a', b'b', b'c'] {
        let mut packet = *b"\x32\x0B\0\x06$SYS/t\0\x01\0";
        packet[9] = topic;
        refused.write_all(&packet).unwrap();
        let mut answer = [0; 4];
        refused.read_exact(&mut answer).unwrap();
        assert_eq!(answer, *b"\x40\x02\0\x01");
    }
    streams.push(refused);
    for topic in ["r/1", "r/2", "r/3"] {
        let message = json!({ "topic": topic, "payload": "x", "retain": true });
        let answer = broker.post("/api/v1/publish", &message.to_string());
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    let mut store = String::new();
    for name in ["a", "b", "c"] {
        let ban = json!({ "client_id": format!("banned-{name}") });
        let answer = broker.post("/api/v1/bans", &ban.to_string());
        assert_eq!(answer.status, 201, "{}", answer.text);
        for kind in ["user", "group", "role"] {
            store.extend([json!({ kind: name }).to_string(), "\n".to_owned()]);
        }
    }
    let answer = broker.post("/api/v1/import/users?format=jsonl", &store);
    assert_eq!(answer.status, 200, "{}", answer.text);
    streams
}

#[test]
fn every_list_gives_each_row_once_and_no_cursor_at_its_end() {
    let here = LISTS.iter().map(|list| list.operation);
    let listed = here.chain(OF_THE_PROGRAM).map(str::to_owned);
    let listed: BTreeSet<String> = listed.collect();
    assert_eq!(
        documented(),
        listed,
        "the table of this test has every list"
    );
    let broker = TestBroker::with("paging", 2, narrow);
    let _streams = fill(&broker);
    for list in LISTS {
        let whole = list.read(&broker, 1000);
        assert!(whole.len() >= 3, "{}: {whole:?}", list.operation);
        let unique: BTreeSet<&String> = whole.iter().collect();
        assert_eq!(unique.len(), whole.len(), "{}: {whole:?}", list.operation);
        for limit in [1, 2] {
            assert_eq!(list.read(&broker, limit), whole, "{}", list.operation);
        }
    }
}
