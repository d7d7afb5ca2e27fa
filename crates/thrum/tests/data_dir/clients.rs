//! `thrum clients` and `thrum status` beside a real broker.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Child;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::Server;

/// A client of a test; killed at its end.
struct Client(Child);

impl Drop for Client {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A client that stays connected until it is kicked; its subscriptions are in force at the return.
fn subscribed(folder: &Folder, server: &Server, client_id: &str) -> Client {
    let port = &server.port;
    let line = format!("sub -p {port} -i {client_id} -c -q 1 -t t/{client_id} -t all");
    let client = Client(folder.start(&line));
    let is_there = |folder: &Folder| {
        let rows = folder.json("clients ls --data-dir data --connected --subscribed all -o json");
        rows.iter().any(|row| row["client_id"] == client_id)
    };
    while !is_there(folder) {
        std::thread::yield_now();
    }
    client
}

fn names(folder: &Folder, options: &str) -> Vec<Value> {
    let rows = folder.json(&format!("clients ls --data-dir data -o json {options}"));
    rows.iter().map(|row| row["client_id"].clone()).collect()
}

#[test]
fn clients_are_listed_shown_and_kicked() {
    let folder = Folder::empty("clients");
    let server = Server::start(&folder, "data");
    let _clients =
        ["meter-1", "meter-2", "desk"].map(|client_id| subscribed(&folder, &server, client_id));
    folder.printed(&format!(
        "sub -p {} -i away -c -q 1 -t t/away -E",
        server.port
    ));
    for _ in 0..3 {
        server.publish(&folder, "-t t/away -m waits");
    }
    let all = ["away", "desk", "meter-1", "meter-2"];
    assert_eq!(names(&folder, ""), all);
    assert_eq!(names(&folder, "--client meter-*"), ["meter-1", "meter-2"]);
    assert_eq!(names(&folder, "--away"), ["away"]);
    assert_eq!(names(&folder, "--filter queue=3"), ["away"]);
    assert_eq!(names(&folder, "--filter state!=disconnected"), all[1..]);
    assert_eq!(
        names(&folder, "--sort queued-messages --reverse --limit 1"),
        ["away"]
    );
    let down = ["meter-2", "meter-1", "desk", "away"];
    assert_eq!(names(&folder, "--reverse --all"), down);
    let by_queue = names(&folder, "--sort queued-messages --all");
    assert_eq!(by_queue, ["desk", "meter-1", "meter-2", "away"]);
    let table = folder.printed("clients ls --data-dir data --limit 2");
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("CLIENT ID  USER  STATE"), "{table}");
    assert!(lines[1].starts_with("away       -     away "), "{table}");
    assert!(lines[2].starts_with("desk       -     up "), "{table}");
    assert!(
        lines.iter().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    assert!(
        table.ends_with("2 of 4 clients; --all lists all, --limit N lists N\n"),
        "{table}"
    );
    let detail = folder.printed("clients get away --data-dir data");
    assert!(
        detail.contains("\nqueue            3 of 10 000 messages, "),
        "{detail}"
    );
    assert!(
        detail.ends_with("\nsubscriptions (1)\nqos 1  t/away\n"),
        "{detail}"
    );
    let detail = &folder.json("clients get desk --data-dir data -o json")[0];
    assert_eq!(detail["subscription_list"][0]["filter"], "all");
    assert_eq!(detail["connection"]["scheme"], "mqtt");
    let kick = |line: &str| folder.printed(&format!("clients kick {line} --data-dir data"));
    assert_eq!(
        kick("meter-1 --session"),
        "meter-1 is disconnected, and its session has ended\n"
    );
    assert_eq!(
        kick("away"),
        "away was away; its session stays, --session ends it\n"
    );
    assert_eq!(
        folder.json("clients kick away --session -o json --data-dir data"),
        [json!({ "disconnected": false, "session_ended": true })]
    );
    folder.check_fails(
        "clients get away --data-dir data",
        3,
        "error: no session has the client identifier \"away\"; list the clients with thrum clients ls\n",
    );
}

#[test]
fn a_client_identifier_does_not_control_the_terminal() {
    let folder = Folder::empty("clients-escaped");
    let server = Server::start(&folder, "data");
    let client_id = "a\u{9b}31m\u{202e}b";
    folder.printed(&format!(
        "sub -p {} -i {client_id} -c -q 1 -t t -E",
        server.port
    ));
    for line in ["ls", "ls --all", &format!("get {client_id}")] {
        let printed = folder.printed(&format!("clients {line} -o json --data-dir data"));
        assert!(printed.is_ascii(), "{line}: {printed:?}");
        let read: Value = serde_json::from_str(printed.trim_end()).unwrap();
        assert_eq!(read["client_id"], client_id);
    }
}

#[test]
fn the_status_is_printed_in_both_forms() {
    let folder = Folder::empty("status");
    let server = Server::start(&folder, "data");
    let _client = subscribed(&folder, &server, "here");
    let status = &folder.json("status --data-dir data -o json")[0];
    assert_eq!(
        (&status["workers"], &status["storage"]),
        (&json!(2), &json!("healthy"))
    );
    assert_eq!(status["clients_connected"], 1);
    let address = format!("mqtt://127.0.0.1:{}", server.port);
    assert_eq!(status["listeners"][0]["address"], json!(address));
    // By the configuration, which names the directory.
    std::fs::write(folder.path("thrum.toml"), "[node]\ndata_dir = \"data\"\n").unwrap();
    let text = folder.printed("status -c thrum.toml");
    assert!(
        text.contains("\nclients        1 connected, 0 away\n"),
        "{text}"
    );
    assert!(
        text.ends_with(&format!("\nlisteners\n  mqtt         {address}\n")),
        "{text}"
    );
}

#[test]
fn a_broker_that_cannot_be_reached_is_reported_with_a_remedy() {
    let folder = Folder::empty("clients-refused");
    std::fs::create_dir(folder.path("data")).unwrap();
    folder.check_fails(
        "clients ls --data-dir none",
        2,
        "error: there is no directory none; name the directory that node.data_dir names\n",
    );
    folder.check_fails(
        "status --data-dir data",
        5,
        "error: no broker runs on data: there is no control.sock in it; start one with thrum serve --data-dir data\n",
    );
    std::fs::write(folder.path("thrum.toml"), "").unwrap();
    folder.check_fails(
        "status -c thrum.toml",
        2,
        "error: thrum.toml names no data directory (node.data_dir), and only a broker with a data directory has a control \
         socket: start it with --data-dir DIR and name that here too, or name its configuration with -c FILE\n",
    );
    drop(Server::start(&folder, "data"));
    folder.check_fails(
        "status --data-dir data",
        5,
        "error: no broker runs on data: its control.sock is from a broker that was killed; start one with thrum serve \
         --data-dir data\n",
    );
    // The next broker replaces it.
    let _server = Server::start(&folder, "data");
    let mode = std::fs::metadata(folder.path("data/control.sock")).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    folder.printed("status --data-dir data");
}
