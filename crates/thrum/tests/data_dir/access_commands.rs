//! `thrum users`, `roles`, `acl` and `bans` beside a broker that runs, and without one.

use std::io::{BufRead as _, BufReader};
use std::process::Child;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::remote::{key, url};
use crate::server::Server;

/// With the file of a password, `secret`.
fn folder(name: &str) -> Folder {
    let folder = Folder::empty(&format!("commands-{name}"));
    std::fs::write(folder.path("password"), "secret\n").unwrap();
    folder
}

/// Runs the words of a line, those in quotes together, at the broker on `data`.
fn run(folder: &Folder, line: &str, code: i32) -> String {
    let mut words: Vec<&str> = Vec::new();
    for (place, part) in line.split('\'').enumerate() {
        if place % 2 == 0 {
            words.extend(part.split_whitespace());
        } else {
            words.push(part);
        }
    }
    words.extend(["--data-dir", "data"]);
    folder.said(&words, code)
}

/// Who changed what, the newest first.
fn audit(folder: &Folder) -> Vec<Value> {
    let rows = folder.json("audit ls --data-dir data -o json");
    let short = |row: &Value| json!([row["who"], row["action"], row["target"], row["outcome"]]);
    rows.iter().map(short).collect()
}

/// A client that connects again when the broker disconnects it.
fn connected(folder: &Folder, server: &Server, client_id: &str, user: &str) -> Child {
    let port = &server.port;
    let line = format!("sub -p {port} -i {client_id} -u {user} -P secret -q 1 -t a/#");
    let child = folder.start(&line);
    let line = format!("clients ls --connected --client {client_id} --data-dir data -o json");
    while folder.json(&line).is_empty() {
        std::thread::yield_now();
    }
    child
}

/// Ends a client when it has lost its connection.
fn ended(mut child: Child) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("connecting again")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn two_who_add_rules_to_a_user_at_the_same_time_lose_none() {
    let folder = folder("two-writers");
    let server = Server::start(&folder, "data");
    assert!(!server.port.is_empty());
    run(&folder, "users add alice --password-file password", 0);
    let add_ten = |writer| {
        for number in 0..10 {
            let line = format!("users change alice --allow 'sub {writer}/{number}'");
            run(&folder, &line, 0);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| add_ten("a"));
        scope.spawn(|| add_ten("b"));
    });
    let user = folder
        .json("api get /users/alice --data-dir data")
        .remove(0);
    let rules = user["rules"].as_array().unwrap();
    for writer in ["a", "b"] {
        let expected: Vec<String> = (0..10)
            .map(|number| format!("allow sub {writer}/{number}"))
            .collect();
        let own = rules.iter().filter_map(Value::as_str);
        let own: Vec<&str> = own
            .filter(|rule| rule.contains(&format!("{writer}/")))
            .collect();
        assert_eq!(own, expected);
    }
}

#[test]
fn users_of_a_running_broker_are_added_changed_and_removed_at_once() {
    let folder = folder("users");
    let server = Server::start(&folder, "data");
    let run = |line: &str| run(&folder, line, 0);
    assert_eq!(run("roles set ops --allow 'sub b/#'"), "set role ops\n");
    assert_eq!(
        run("users groups set night --role ops"),
        "set group night\n"
    );
    let add = "users add alice --group night --allow 'pubsub a/#' --password-file password";
    assert_eq!(
        run(add),
        "added user alice\nalice: allow all pubsub a/#; allow all sub b/#\n"
    );
    assert_eq!(
        run("users add bob --password-file password --scram"),
        "added user bob\nbob may do nothing yet but what acl.rules allow; next: \
         thrum users change bob --allow 'pubsub devices/%c/#'\n"
    );
    let client = connected(&folder, &server, "c1", "alice");
    assert_eq!(
        run("users change bob --deny 'pub x' --superuser true"),
        "bob is a superuser and may do everything\n"
    );
    run("users change bob --allow 'sub y' --superuser false");
    let bob = &folder.json("users ls --filter name=bob --data-dir data -o json")[0];
    assert_eq!(
        (&bob["rules"], &bob["scram"]),
        (&json!(["deny pub x", "allow sub y"]), &json!(true))
    );
    assert_eq!(
        run("users passwd alice --password-file password"),
        "alice has a new password; still connected: 1 client\n"
    );
    let again = connected(&folder, &server, "c2", "alice");
    assert_eq!(
        run("users passwd alice --password-file password --disconnect"),
        "alice has a new password; disconnects 2 clients\n"
    );
    for client in [client, again] {
        ended(client);
    }
    let client = connected(&folder, &server, "c3", "alice");
    let table = folder.printed("roles ls --data-dir data");
    assert_eq!(table, "NAME  RULES\nops   allow sub b/#\n\n1 role\n");
    assert_eq!(run("users groups rm night"), "removed group night\n");
    assert_eq!(run("roles rm ops"), "removed role ops\n");
    assert_eq!(
        run("users rm bob alice alice"),
        "removed 2 users; disconnects 1 client\n"
    );
    ended(client);
    assert_eq!(folder.printed("users ls --data-dir data"), "0 users\n");
    let changes = audit(&folder);
    assert_eq!(changes[0], json!(["local", "user.remove", "bob", "done"]));
    assert!(
        changes.contains(&json!(["local", "user.add", "alice", "done"])),
        "{changes:?}"
    );
}

#[test]
fn a_user_and_a_role_that_are_not_there_are_told() {
    let folder = folder("misspelt");
    let _server = Server::start(&folder, "data");
    let run = |line: &str| run(&folder, line, 0);
    run("roles set ops --allow 'sub b/#'");
    let carol = run("users add carol --role ops --role nope --password-file password");
    assert!(
        carol.starts_with(
            "warning: there is no role \"nope\": it gives no rights unless acl.rules name it"
        ),
        "{carol}"
    );
    assert!(!carol.contains("no role \"ops\""), "{carol}");
    let changed = run("users change carol --role maybe --role ops");
    assert!(changed.contains("there is no role \"maybe\""), "{changed}");
    assert!(!changed.contains("no role \"ops\""), "{changed}");
    run("users rm carol");
    let tested = folder.thrum("acl test c pub a/1 -u nobody --data-dir data");
    let tested = String::from_utf8(tested.stdout).unwrap();
    assert!(
        tested.contains("the user store has no user \"nobody\""),
        "{tested}"
    );
}

#[test]
fn what_a_running_broker_refuses_has_a_code_of_its_own_and_changes_nothing() {
    let folder = folder("refused");
    let _server = Server::start(&folder, "data");
    let add = "users add alice --password-file password";
    run(&folder, add, 0);
    let taken = run(&folder, add, 6);
    assert!(
        taken.contains("there is a user 'alice' already; thrum users"),
        "{taken}"
    );
    for line in [
        "users add bob --password-file missing",
        "users import missing --format mosquitto",
    ] {
        let unread = run(&folder, line, 2);
        assert!(unread.contains("cannot read missing: "), "{unread}");
    }
    let no_user = "error: there is no user 'bob'; thrum users ls lists them\n";
    for line in [
        "users rm alice bob",
        "users passwd bob --password-file password",
        "users change bob --disabled true",
        "users change bob --allow 'sub a'",
    ] {
        assert_eq!(run(&folder, line, 3), no_user, "{line}");
    }
    let no_role = "error: there is no role \"ops\"; list the roles with thrum roles ls\n";
    assert_eq!(run(&folder, "roles rm ops", 3), no_role);
    assert_eq!(
        run(&folder, "bans rm --user jo", 3),
        "error: user jo is not banned; thrum bans ls lists the bans, name one exactly\n"
    );
    std::fs::write(folder.path("raw"), b"\xff\n").unwrap();
    let raw = run(&folder, "users add carol --password-file raw", 2);
    assert!(
        raw.contains("not text in UTF-8") && raw.contains("--users FILE"),
        "{raw}"
    );
    std::fs::write(folder.path("users.txt"), "carol\n").unwrap();
    let wrong = run(&folder, "users import users.txt --format mosquitto", 2);
    assert!(wrong.contains("error: users.txt: line 1"), "{wrong}");
    assert_eq!(folder.json("users ls --data-dir data -o json").len(), 1);
    let both = run(&folder, "users ls --users f", 2);
    assert!(both.contains("cannot be used with"), "{both}");
}

#[test]
fn the_store_of_a_running_broker_is_changed_wherever_it_is_and_the_file_while_none_runs() {
    let folder = folder("store");
    std::fs::write(folder.path("elsewhere.jsonl"), "").unwrap();
    let variable = ("THRUM_AUTH__USERS", "elsewhere.jsonl");
    let server = Server::start_with(&folder, "data", Some(variable));
    run(&folder, "users add alice --password-file password", 0);
    let store = std::fs::read_to_string(folder.path("elsewhere.jsonl")).unwrap();
    assert!(store.contains("\"alice\""), "{store}");
    assert!(!folder.path("data/users.jsonl").exists());
    let lines =
        "{\"user\":\"bob\",\"superuser\":true}\n{\"role\":\"ops\",\"rules\":[\"allow sub #\"]}\n";
    std::fs::write(folder.path("more.jsonl"), lines).unwrap();
    assert_eq!(
        run(&folder, "users import more.jsonl --format jsonl", 0),
        "imported 1 user: 1 new, 0 replaced\n"
    );
    let by_name = folder.json("users ls --users elsewhere.jsonl -o json");
    assert_eq!(by_name, folder.json("users ls --data-dir data -o json"));
    let roles = "roles ls --users elsewhere.jsonl -o json";
    assert_eq!(
        folder.json(roles),
        folder.json("roles ls --data-dir data -o json")
    );
    drop(server);
    run(&folder, "users add carol --password-file password", 0);
    let own = std::fs::read_to_string(folder.path("data/users.jsonl")).unwrap();
    assert!(own.contains("\"carol\""), "{own}");
    run(&folder, "bans add --user jo", 0);
    let bans = std::fs::read_to_string(folder.path("data/bans.jsonl")).unwrap();
    assert!(bans.contains("\"jo\""), "{bans}");
}

#[test]
fn access_of_a_broker_elsewhere_is_changed_with_a_key_that_may() {
    let folder = folder("elsewhere");
    let port = ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0");
    let server = Server::start_with(&folder, "data", Some(port));
    let url = url(&folder, &server);
    let writer = key(
        &folder,
        "writer",
        "--scope users:write --scope clients:write",
    );
    let reader = key(&folder, "reader", "--scope users:read --scope clients:read");
    let at = |file: &str| format!("--url {url} --token-file {file}");
    let said =
        |line: &str, code: i32| folder.said(&line.split_whitespace().collect::<Vec<_>>(), code);
    let add = "users add alice --password-file password";
    let denied = said(&format!("{add} {}", at(&reader)), 4);
    assert!(denied.contains("users:write"), "{denied}");
    said(&format!("{add} {}", at(&writer)), 0);
    let users = folder.json(&format!("users ls -o json {}", at(&reader)));
    assert_eq!(users[0]["name"], "alice");
    said(
        &format!("bans add --client-id b --for 1h {}", at(&writer)),
        0,
    );
    let bans = folder.json(&format!("bans ls -o json {}", at(&reader)));
    let by = bans[0]["by"].as_str().unwrap();
    assert!(by.starts_with("key:"), "{by}");
    said(&format!("bans rm --client-id b {}", at(&writer)), 0);
    said("users ls --url http://127.0.0.1:1", 5);
}

#[test]
fn the_deciding_rule_is_that_of_the_running_broker() {
    let folder = folder("acl");
    let server = Server::start(&folder, "data");
    run(&folder, "roles set ops --allow 'sub b/#'", 0);
    let add = "users add alice --role ops --allow 'pubsub a/#' --password-file password";
    run(&folder, add, 0);
    let printed = |line: &str| folder.printed(&format!("acl {line} --data-dir data"));
    assert_eq!(
        printed("test x pub a/1 -u alice"),
        "allowed\n  allow all pubsub a/#   (user alice)\n"
    );
    let denied = folder.thrum("acl explain x pub c -u alice --data-dir data -o json");
    assert_eq!(denied.status.code(), Some(1));
    let denied: Value = serde_json::from_slice(&denied.stdout).unwrap();
    assert_eq!(
        (&denied["verdict"], &denied["rights_of"], &denied["roles"]),
        (&json!("denied"), &json!("store"), &json!(["ops"]))
    );
    let client = connected(&folder, &server, "c1", "alice");
    assert_eq!(
        printed("test c1 sub b/1"),
        "allowed\n  allow all sub b/#   (role ops)\n  these are the rights of its session\n"
    );
    let rules = folder.json("acl ls --client c1 --data-dir data -o json");
    let sources: Vec<&Value> = rules.iter().map(|rule| &rule["source"]).collect();
    assert_eq!(sources, [&json!("user alice"), &json!("role ops")]);
    let table = printed("ls -u alice");
    assert!(table.starts_with("NUMBER  OF      RULE "), "{table}");
    let wrong = run(&folder, "acl test x pub a --listener none", 2);
    assert!(wrong.contains("there is no listener \"none\""), "{wrong}");
    drop(server);
    ended(client);
    let rules = folder.json("acl ls -u alice --data-dir data -o json");
    assert_eq!(rules.len(), 2, "{rules:?}");
    let said = run(&folder, "acl ls", 0);
    assert_eq!(said, "what no rule matches is denied\n");
}

#[test]
fn a_ban_disconnects_or_keeps_as_it_says() {
    let folder = folder("bans");
    let server = Server::start(&folder, "data");
    let add = "users add alice --allow 'pubsub a/#' --password-file password";
    run(&folder, add, 0);
    let kept = connected(&folder, &server, "kept", "alice");
    let other = connected(&folder, &server, "other", "alice");
    run(&folder, "bans add --client-id kept --keep-connected", 0);
    run(&folder, "clients ban other", 0);
    ended(other);
    let rows = folder.json("clients ls --connected --data-dir data -o json");
    let ids: Vec<&Value> = rows.iter().map(|row| &row["client_id"]).collect();
    assert_eq!(ids, [&json!("kept")]);
    let again = format!(
        "pub -p {} -i kept -u alice -P secret -t a/1 -m x",
        server.port
    );
    assert!(!folder.thrum(&again).status.success(), "it is banned");
    let rows = folder.json("bans ls --data-dir data -o json --sort client_id");
    let disconnect: Vec<&Value> = rows.iter().map(|row| &row["disconnect"]).collect();
    assert_eq!(disconnect, [&json!(false), &json!(true)]);
    run(&folder, "bans add --client-id kept", 0);
    ended(kept);
}
