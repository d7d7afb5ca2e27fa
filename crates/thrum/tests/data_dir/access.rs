//! Users, bans and administrators: by the interface, by the commands, and both at once, beside a
//! real broker and without one.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::process::Child;

use serde_json::{Value, json};

use crate::folder::Folder;
use crate::server::Server;

/// The answer of the broker at its control socket.
fn ask(folder: &Folder, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = UnixStream::connect(folder.path("data/control.sock")).unwrap();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let request = format!(
        "{method} /api/v1{path} HTTP/1.1\r\nHost: thrum\r\nConnection: close\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// A client that ends when the broker disconnects it.
fn connected(folder: &Folder, server: &Server, client_id: &str, user: &str) -> Child {
    let line = format!(
        "sub -p {} -i {client_id} -u {user} -P secret -q 1 -t a/#",
        server.port
    );
    let child = folder.start(&line);
    let is_there = || {
        let (_, list) = ask(folder, "GET", "/clients?connected=true", &Value::Null);
        let mut clients = list["clients"].as_array().unwrap().iter();
        clients.any(|client| client["client_id"] == client_id)
    };
    while !is_there() {
        std::thread::yield_now();
    }
    child
}

/// Waits until a client has been disconnected, and returns what it said.
fn ended(child: Child) -> String {
    let output = child.wait_with_output().unwrap();
    assert!(!output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn add_user(folder: &Folder, name: &str) {
    let user = json!({ "name": name, "password": "secret", "rules": ["allow pubsub a/#"] });
    let (status, added) = ask(folder, "POST", "/users", &user);
    assert_eq!(status, 201, "{added}");
}

#[test]
fn a_user_of_the_interface_logs_in_at_once_and_is_disconnected_with_its_removal() {
    let folder = Folder::empty("access-users");
    let server = Server::start(&folder, "data");
    add_user(&folder, "alice");
    let (status, roles) = ask(
        &folder,
        "PUT",
        "/roles/ops",
        &json!({ "rules": ["allow sub b/#"] }),
    );
    assert_eq!(status, 200, "{roles}");
    let (_, changed) = ask(
        &folder,
        "PATCH",
        "/users/alice",
        &json!({ "roles": ["ops"] }),
    );
    assert_eq!(changed["user"]["roles"], json!(["ops"]));
    let client = connected(&folder, &server, "c1", "alice");
    let question = json!({ "client_id": "c1", "topic": "a/1" });
    let (_, explained) = ask(&folder, "POST", "/explain/publish", &question);
    let login = &explained["login"];
    assert_eq!(
        (&login["backend"], &login["user"]),
        (&json!("users"), &json!("alice"))
    );
    assert_eq!(login["roles"], json!(["ops"]));
    let words = login["text"].as_str().unwrap();
    assert!(
        words.starts_with("users accepted the user \"alice\", role ops; connected since 20"),
        "{words}"
    );
    let (_, page) = ask(&folder, "GET", "/access/rules?client_id=c1", &Value::Null);
    let sources: Vec<_> = page["rules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| &rule["source"])
        .collect();
    assert_eq!(sources, [&json!("user alice"), &json!("role ops")]);
    let test = json!({ "client_id": "c1", "action": "subscribe", "topic": "b/#" });
    let (_, tested) = ask(&folder, "POST", "/access/test", &test);
    assert_eq!(
        (&tested["allowed"], &tested["rights_of"]),
        (&json!(true), &json!("session"))
    );
    // The command sees the user, and changes it too.
    let listed = folder.json("users ls --data-dir data --json");
    assert_eq!(listed[0]["name"], "alice");
    let (_, removed) = ask(&folder, "DELETE", "/users/alice", &Value::Null);
    assert_eq!(removed["disconnected"], 1);
    let said = ended(client);
    assert!(!said.is_empty());
    let refused = folder.thrum(&format!(
        "pub -p {} -u alice -P secret -t a/1 -m x",
        server.port
    ));
    assert!(!refused.status.success(), "it cannot log in any more");
}

#[test]
fn another_password_disconnects_the_clients_of_a_user_on_demand() {
    let folder = Folder::empty("access-password");
    let server = Server::start(&folder, "data");
    add_user(&folder, "alice");
    add_user(&folder, "bob");
    let alice = connected(&folder, &server, "c1", "alice");
    let bob = connected(&folder, &server, "c2", "bob");
    let password = json!({ "password": "other" });
    let (_, kept) = ask(&folder, "POST", "/users/alice/password", &password);
    assert_eq!(
        (&kept["disconnected"], &kept["left"]),
        (&json!(0), &json!(1))
    );
    let password = json!({ "password": "another", "disconnect": true });
    let (_, ended_now) = ask(&folder, "POST", "/users/alice/password", &password);
    assert_eq!(
        (&ended_now["disconnected"], &ended_now["left"]),
        (&json!(1), &json!(0))
    );
    ended(alice);
    let (_, facets) = ask(&folder, "GET", "/clients?connected=true", &Value::Null);
    assert_eq!(facets["clients"][0]["client_id"], "c2", "{facets}");
    let (_, disabled) = ask(&folder, "PATCH", "/users/bob", &json!({ "disabled": true }));
    assert_eq!(disabled["disconnected"], 1);
    ended(bob);
}

#[test]
fn a_ban_of_the_interface_disconnects_and_is_one_with_those_of_the_command() {
    let folder = Folder::empty("access-bans");
    let server = Server::start(&folder, "data");
    add_user(&folder, "alice");
    let client = connected(&folder, &server, "c1", "alice");
    folder.thrum("bans add --client-id by-command --data-dir data");
    let ban = json!({ "by": "user", "reason": "sends garbage", "secs": 3600 });
    let (status, added) = ask(&folder, "POST", "/clients/c1/ban", &ban);
    assert_eq!(
        (status, &added["ban"]["user"]),
        (201, &json!("alice")),
        "{added}"
    );
    ended(client);
    let listed = folder.json("bans ls --data-dir data --json");
    let shown: Vec<_> = listed
        .iter()
        .map(|ban| [&ban["client_id"], &ban["user"], &ban["by"]])
        .collect();
    let by_user = std::env::var("USER").unwrap_or_default();
    assert_eq!(shown.len(), 2, "{by_user}: {listed:?}");
    assert!(
        shown.contains(&[&Value::Null, &json!("alice"), &json!("local")]),
        "{listed:?}"
    );
    let line = format!(
        "pub -p {} -i c9 -u alice -P secret -t a/1 -m x",
        server.port
    );
    assert!(!folder.thrum(&line).status.success(), "the user is banned");
    let (status, _) = ask(&folder, "DELETE", "/bans?user=alice", &Value::Null);
    assert_eq!(status, 204);
    folder.printed(&line);
    let (_, page) = ask(&folder, "GET", "/bans", &Value::Null);
    assert_eq!(page["matching"], 1);
    assert_eq!(page["bans"][0]["client_id"], "by-command");
}

#[test]
fn administrators_are_added_changed_and_removed_with_a_broker_and_without() {
    let folder = Folder::empty("access-admins");
    std::fs::create_dir(folder.path("data")).unwrap();
    std::fs::write(folder.path("password"), "correct horse battery\n").unwrap();
    let change = |line: &str, is_stopped: bool| {
        let output = folder.thrum(line);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        assert_eq!(
            said.contains("no broker runs on data"),
            is_stopped,
            "{line}: {said}"
        );
    };
    let add = |name: &str, role: &str| {
        format!("admin add {name} --role {role} --data-dir data --password-file password")
    };
    change(&add("alice", "administrator"), true);
    change(&add("bob", "viewer"), true);
    change("admin change bob --role operator --data-dir data", true);
    change(
        "admin reset-password bob --data-dir data --password-file password --remove-totp",
        true,
    );
    folder.check_fails(
        "admin rm alice --data-dir data",
        6,
        "error: \"alice\" is the last administrator that is enabled and has the role administrator; add another \
         administrator first\n",
    );
    let no_eve =
        "error: there is no administrator \"eve\"; list the administrators with thrum admin ls\n";
    folder.check_fails("admin rm eve --data-dir data", 3, no_eve);
    let again = folder.thrum(&add("bob", "viewer"));
    assert_eq!(again.status.code(), Some(6), "{again:?}");
    let server = Server::start(&folder, "data");
    folder.check_fails("admin rm eve --data-dir data", 3, no_eve);
    let listed = || {
        let rows = folder.json("admin ls --data-dir data -o json");
        let rows = rows
            .iter()
            .map(|row| json!([row["name"], row["role"], row["disabled"]]));
        rows.collect::<Vec<_>>()
    };
    let alice = json!(["alice", "administrator", false]);
    assert_eq!(listed(), [alice.clone(), json!(["bob", "operator", false])]);
    change(&add("carol", "viewer"), false);
    change(
        "admin change bob --role viewer --disabled true --data-dir data",
        false,
    );
    change("admin rm carol --data-dir data", false);
    assert_eq!(listed(), [alice.clone(), json!(["bob", "viewer", true])]);
    drop(server);
    change("admin rm bob --data-dir data", true);
    let _server = Server::start(&folder, "data");
    assert_eq!(listed(), [alice]);
    check_audit(&folder);
}

/// The changes of the test above, which commands and a broker have written down.
fn check_audit(folder: &Folder) {
    let rows = folder.json("audit ls --data-dir data -o json");
    let actions: Vec<_> = rows
        .iter()
        .rev()
        .map(|row| row["action"].as_str().unwrap())
        .collect();
    assert_eq!(
        actions,
        [
            "administrator.add",
            "administrator.add",
            "administrator.change",
            "password.reset",
            "administrator.remove",
            "administrator.remove",
            "administrator.add",
            "administrator.add",
            "administrator.change",
            "administrator.remove",
            "administrator.remove",
        ]
    );
}

#[test]
fn wrong_changes_of_administrators_are_refused_with_what_is_wrong() {
    let folder = Folder::empty("access-admins-wrong");
    std::fs::create_dir(folder.path("data")).unwrap();
    for (line, said) in [
        (
            "admin change bob --data-dir data",
            "nothing to change; name it with --role",
        ),
        ("admin rm bob --data-dir none", "there is no directory none"),
        ("admin add x --role king --data-dir data", "king"),
    ] {
        let output = folder.thrum(line);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.code() == Some(2) && text.contains(said),
            "{line}: {text}"
        );
    }
}

#[test]
fn settings_of_the_interface_are_checked_before_a_start() {
    let folder = Folder::empty("access-settings");
    let write = |text: &str| std::fs::write(folder.path("thrum.toml"), text).unwrap();
    for (text, said) in [
        ("[management]\nsession_idle = \"1s\"", "at least 1m"),
        ("[management]\naudit = \"1MiB\"", "at least 2MiB"),
        (
            "[management.oidc]\nclient_id = \"x\"",
            "management.oidc: issuer is missing",
        ),
        (
            "[management.oidc]\nissuer = \"http://idp.example\"\nclient_id = \"x\"\nviewers = [\"a\"]",
            "management.oidc: issuer: expected https://",
        ),
        (
            "[management.oidc]\nissuer = \"https://idp.example\"\nclient_id = \"x\"",
            "no group has a role",
        ),
    ] {
        write(text);
        let output = folder.thrum("config check -c thrum.toml");
        let mut shown = String::from_utf8_lossy(&output.stderr).into_owned();
        shown.push_str(&String::from_utf8_lossy(&output.stdout));
        assert!(
            !output.status.success() && shown.contains(said),
            "{text}: {shown}"
        );
    }
    write(
        "[management]\nsession_idle = \"10m\"\naudit = \"8MiB\"\n[management.oidc]\nissuer = \"https://idp.example\"\n\
         client_id = \"x\"\noperators = [\"ops team\"]\nredirect_uri = \"https://b.example/api/v1/login/oidc/callback\"\n",
    );
    folder.printed("config check -c thrum.toml");
    let shown = folder.printed("config show -c thrum.toml");
    assert!(shown.contains("operators = [\"ops team\"]"), "{shown}");
}
