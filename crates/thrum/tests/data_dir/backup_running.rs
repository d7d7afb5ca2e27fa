//! Backups that a running broker makes: over its port and its control socket.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use thrum_storage::{Batch, Change, Retained};

use crate::folder::{Folder, message};
use crate::server::Server;

const PORT: (&str, &str) = ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0");

/// What the broker on a data directory answers.
fn api(folder: &Folder, data: &str, line: &str) -> Value {
    folder
        .json(&format!("api {line} --data-dir {data}"))
        .remove(0)
}

/// Options that name the broker on `data` by its port, with a key of this scope.
fn remote(folder: &Folder, scope: &str) -> String {
    let status = api(folder, "data", "get /status");
    let listeners = status["listeners"].as_array().unwrap();
    let mut addresses = listeners.iter().filter_map(|one| one["address"].as_str());
    let url = addresses.find(|address| address.starts_with("http"));
    let name = scope.replace(':', "-");
    let key = folder.printed(&format!("keys add {name} --scope {scope} --data-dir data"));
    let path = folder.path(&name);
    std::fs::write(&path, key).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    format!("--url {} --token-file {name}", url.unwrap())
}

/// Has the broker on a data directory make a backup, and returns its name when it is done.
fn made(folder: &Folder, data: &str) -> String {
    let begun = api(folder, data, "post /backups");
    let name = begun["name"].as_str().unwrap().to_owned();
    loop {
        let shown = api(folder, data, &format!("get /backups/{name}"));
        match shown["state"].as_str().unwrap() {
            "running" => std::thread::yield_now(),
            state => {
                assert_eq!(state, "done", "{shown}");
                return name;
            }
        }
    }
}

fn said(folder: &Folder, line: &str, code: i32) -> String {
    let output = folder.thrum(line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    said
}

#[test]
fn a_backup_from_elsewhere_starts_as_the_same_broker() {
    let folder = Folder::empty("backup-remote");
    let server = Server::start_with(&folder, "data", Some(PORT));
    let at = remote(&folder, "admin");
    let keep = format!("sub -p {} -i keeper -c -q 1 -t kept/#", server.port);
    folder.printed(&format!("{keep} -E"));
    folder.printed(&format!("pub -p {} -q 1 -t kept/1 -m one", server.port));
    folder.printed(&format!(
        "pub -p {} -q 1 -t here -r -m retained",
        server.port
    ));
    folder.printed(&format!("config set limits.max_packet 2MB {at}"));
    let user = json!({ "name": "alice", "rules": ["allow sub a/#"] });
    std::fs::write(folder.path("user"), user.to_string()).unwrap();
    api(&folder, "data", "post /users -d @user");
    let printed = folder.printed(&format!("backup create b.tar {at}"));
    assert!(
        printed.starts_with("b.tar was written: taken at 20"),
        "{printed}"
    );
    assert!(
        printed.contains("managed.toml") && printed.contains("users.jsonl"),
        "{printed}"
    );
    assert_eq!(
        folder.json(&format!("backup ls {at} -o json")),
        [] as [Value; 0]
    );
    assert!(!folder.path("b.tar.part").exists());
    drop(server);
    folder.printed("backup restore b.tar --data-dir again");
    let copy = Server::start(&folder, "again");
    assert!(!copy.port.is_empty());
    let queue = api(
        &folder,
        "again",
        "get /clients/keeper/queue -q payload=true",
    );
    let queue = queue["messages"].as_array().unwrap();
    assert_eq!(
        (queue.len(), &queue[0]["message"]["topic"]),
        (1, &json!("kept/1"))
    );
    let here = api(&folder, "again", "get /retained/message -q topic=here");
    assert_eq!(here["content"]["text"], "retained");
    let key = api(&folder, "again", "get /config/limits.max_packet");
    assert_eq!(
        (&key["value"], &key["origin"]),
        (&json!("2MB"), &json!("managed"))
    );
    assert_eq!(api(&folder, "again", "get /users/alice")["name"], "alice");
    let keys = api(&folder, "again", "get /keys");
    assert_eq!(keys["keys"][0]["label"], "admin");
}

#[test]
fn backups_are_listed_fetched_and_removed_and_refusals_have_their_codes() {
    let folder = Folder::empty("backup-kept");
    let server = Server::start_with(&folder, "data", Some(PORT));
    assert!(!server.port.is_empty());
    let at = remote(&folder, "admin");
    let name = made(&folder, "data");
    let rows = folder.json("backup ls -o json --data-dir data");
    assert_eq!((rows.len(), &rows[0]["name"]), (1, &json!(name)));
    let table = folder.printed(&format!("backup ls {at}"));
    assert!(
        table.starts_with("NAME ") && table.contains(&*name),
        "{table}"
    );
    let mode = std::fs::metadata(folder.path(&format!("data/backups/{name}.tar"))).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    let printed = folder.printed(&format!("backup get {name} b.tar {at}"));
    assert!(
        printed.starts_with("b.tar was fetched: taken at 20"),
        "{printed}"
    );
    let there = said(&folder, &format!("backup get {name} b.tar {at}"), 2);
    assert!(there.contains("b.tar: it exists"), "{there}");
    // The file of a backup that was changed on the disk does not pass.
    let path = folder.path(&format!("data/backups/{name}.tar"));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[520] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    said(&folder, &format!("backup get {name} c.tar {at}"), 1);
    assert!(!folder.path("c.tar").exists() && !folder.path("c.tar.part").exists());
    said(&folder, &format!("backup rm {name} {at}"), 0);
    let none = said(&folder, &format!("backup ls {at}"), 0);
    assert_eq!(none, "there are no backups\n");
    for line in [
        format!("backup rm {name} {at}"),
        format!("backup get {name} c.tar {at}"),
    ] {
        let none = said(&folder, &line, 3);
        assert!(
            none.contains(&*name) && none.contains("thrum backup ls"),
            "{none}"
        );
    }
    let reader = remote(&folder, "config:write");
    let denied = said(&folder, &format!("backup create c.tar {reader}"), 4);
    assert!(denied.contains("needs the scope admin"), "{denied}");
    for day in 10..20 {
        let name = format!("data/backups/202001{day}T000000Z.tar");
        std::fs::write(folder.path(&name), "").unwrap();
    }
    let full = said(&folder, &format!("backup create c.tar {at}"), 6);
    assert!(
        full.contains("10 backups are kept") && full.contains("thrum backup rm"),
        "{full}"
    );
    assert!(!folder.path("c.tar").exists() && !folder.path("c.tar.part").exists());
    let log = folder.json("audit ls --action backup.* -o json --data-dir data");
    let find = |action: &str, outcome: &str| {
        let mut log = log.iter();
        log.any(|one| one["action"] == action && one["outcome"] == outcome)
    };
    assert!(
        find("backup.make", "done") && find("backup.make", "failed"),
        "{log:?}"
    );
    assert!(
        find("backup.fetch", "done") && find("backup.remove", "done"),
        "{log:?}"
    );
}

/// Answers like a broker that makes a backup, gives it away, and cannot remove it.
fn answer_but_keep(listener: &TcpListener, tar: &[u8]) {
    let made =
        r#"{"name":"20261126T221500Z","state":"done","began_at":"2026-11-26T22:15:00Z","bytes":1}"#;
    for stream in listener.incoming() {
        let mut stream = stream.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            head.extend(byte);
        }
        let (status, body) = match &*head {
            [b'P', ..] => ("202 Accepted", made.as_bytes()),
            [b'G', ..] => ("200 OK", tar),
            _ => ("500 Internal Server Error", &b"{}"[..]),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    }
}

#[test]
fn a_backup_that_is_fetched_is_a_success_though_the_broker_cannot_remove_it() {
    let folder = Folder::filled("backup-stays");
    folder.printed("backup create b.tar --data-dir data");
    let tar = std::fs::read(folder.path("b.tar")).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let given = tar.clone();
    std::thread::spawn(move || answer_but_keep(&listener, &given));
    let path = folder.path("key");
    std::fs::write(&path, "thrum_key").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let line = format!("backup create c.tar --url http://127.0.0.1:{port} --token-file key");
    let warned = said(&folder, &line, 0);
    assert!(
        warned.contains("warning: the broker may keep the backup")
            && warned.contains("thrum backup rm 20261126T221500Z"),
        "{warned}"
    );
    assert_eq!(std::fs::read(folder.path("c.tar")).unwrap(), tar);
}

/// Publishes a retained message to one topic after the other, and counts those that the broker has
/// acknowledged.
fn publish_on(port: &str, acknowledged: &AtomicU64, stop: &AtomicBool) {
    let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
        .write_all(b"\x10\x0E\0\x04MQTT\x04\x02\0\0\0\x02pb")
        .unwrap();
    stream.read_exact(&mut [0; 4]).unwrap();
    let mut number = 0_u64;
    while !stop.load(Ordering::Acquire) {
        number += 1;
        let topic = format!("n/{number}");
        let len = u8::try_from(topic.len()).unwrap();
        // With a payload: without one it would remove what is retained.
        let mut packet = vec![0x33, len + 5, 0, len];
        packet.extend_from_slice(topic.as_bytes());
        packet.extend_from_slice(b"\0\x01x");
        stream.write_all(&packet).unwrap();
        stream.read_exact(&mut [0; 4]).unwrap();
        acknowledged.store(number, Ordering::Release);
    }
}

#[test]
fn a_backup_while_messages_flow_has_all_that_was_acknowledged_before_it_was_asked_for() {
    let folder = Folder::empty("backup-flow");
    let server = Server::start(&folder, "data");
    let (acknowledged, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| publish_on(&server.port, &acknowledged, &stop));
        for round in 0..4 {
            let before = acknowledged.load(Ordering::Acquire);
            let name = made(&folder, "data");
            folder.printed(&format!("backup get {name} b{round}.tar --data-dir data"));
            folder.printed(&format!("backup restore b{round}.tar --data-dir r{round}"));
            let state = folder.state(&format!("r{round}"));
            let topics = state.retained.iter().map(|one| &*one.topic);
            let numbers = topics.filter_map(|topic| topic.strip_prefix("n/")?.parse().ok());
            let mut numbers: Vec<u64> = numbers.collect();
            numbers.sort_unstable();
            let last = numbers.last().copied().unwrap_or(0);
            let expected: Vec<u64> = (1..=last).collect();
            assert_eq!(numbers, expected, "none is missing between");
            assert!(last >= before, "{last} {before}");
        }
        stop.store(true, Ordering::Release);
    });
    assert!(acknowledged.load(Ordering::Acquire) > 100);
}

#[test]
fn a_broker_that_is_killed_while_it_makes_a_backup_lists_none_that_is_not_whole() {
    let folder = Folder::empty("backup-kill");
    let mut store = folder.open("data");
    for id in 1..=400 {
        let mut batch = Batch::default();
        let topic = format!("t/{id}");
        batch.push(&message(id, &topic, &vec![7; 60_000]));
        batch.push(&Change::Retained(Retained {
            change: id,
            topic: &topic,
            message: id,
            source: None,
        }));
        store.apply(&batch).unwrap();
    }
    store.close().unwrap();
    let mut cut_off = 0;
    for round in 0..6 {
        let server = Server::start(&folder, "data");
        assert!(!server.port.is_empty());
        let begun = api(&folder, "data", "post /backups");
        assert_eq!(begun["state"], "running");
        // Killed.
        drop(server);
        let server = Server::start(&folder, "data");
        let backups = folder.json("backup ls -o json --data-dir data");
        cut_off += usize::from(backups.is_empty());
        for backup in backups {
            let name = backup["name"].as_str().unwrap();
            folder.printed(&format!("backup get {name} b{round}.tar --data-dir data"));
            folder.printed(&format!("backup rm {name} --data-dir data"));
        }
        let left = std::fs::read_dir(folder.path("data/backups")).unwrap();
        assert_eq!(left.count(), 0);
        drop(server);
    }
    assert!(cut_off > 0, "never killed amid it");
    // One that is removed while it is made ends, and the next one can be made.
    let server = Server::start(&folder, "data");
    assert!(!server.port.is_empty());
    let begun = api(&folder, "data", "post /backups");
    let name = begun["name"].as_str().unwrap();
    folder.printed(&format!("backup rm {name} --data-dir data"));
    while !api(&folder, "data", "get /backups")["running"].is_null() {
        std::thread::yield_now();
    }
    assert_eq!(
        folder.json("backup ls -o json --data-dir data"),
        [] as [Value; 0]
    );
    let name = made(&folder, "data");
    folder.printed(&format!("backup get {name} last.tar --data-dir data"));
}
