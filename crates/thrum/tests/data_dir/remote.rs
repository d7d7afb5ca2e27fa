//! Commands that ask a broker over its HTTP port, with an API key, with and without TLS.

use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::authority::Authority;
use crate::folder::Folder;
use crate::server::Server;

/// The URL of the HTTP port of the broker on `data`.
pub(crate) fn url(folder: &Folder, server: &Server) -> String {
    // It is asked by its socket.
    assert!(!server.port.is_empty());
    let status = &folder.json("status --data-dir data -o json")[0];
    let listeners = status["listeners"].as_array().unwrap();
    let mut addresses = listeners.iter().filter_map(|one| one["address"].as_str());
    let address = addresses.find(|address| address.starts_with("http"));
    address.unwrap().to_owned()
}

/// A file with a new key of these scopes.
pub(crate) fn key(folder: &Folder, name: &str, scopes: &str) -> String {
    let made = folder.printed(&format!("keys add {name} {scopes} --data-dir data"));
    let path = folder.path(name);
    std::fs::write(&path, made).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    name.to_owned()
}

fn said(folder: &Folder, line: &str, code: i32) -> String {
    let output = folder.thrum(line);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{line}: {said}");
    said
}

#[test]
fn a_broker_elsewhere_is_asked_with_a_key_and_refuses_without_its_scope() {
    let folder = Folder::empty("remote");
    let port = ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0");
    let server = Server::start_with(&folder, "data", Some(port));
    folder.printed(&format!("sub -p {} -i away -c -q 1 -t t -E", server.port));
    let url = url(&folder, &server);
    let file = key(
        &folder,
        "reader",
        "--scope clients:read --scope metrics:read",
    );
    let at = format!("--url {url} --token-file {file}");
    let rows = folder.json(&format!("clients ls {at} -o json"));
    assert_eq!(rows[0]["client_id"], "away");
    assert!(folder.printed(&format!("status {at}")).contains("1 away"));
    let none = said(&folder, &format!("clients ls --url {url}"), 4);
    assert!(none.contains("--token-file FILE"), "{none}");
    let denied = said(&folder, &format!("clients kick away {at}"), 4);
    assert!(denied.contains("clients:write"), "{denied}");
    let denied = said(&folder, &format!("retained export f {at}"), 4);
    let expected = "error: the request needs the scope messages:read; ask an administrator for another \
                    role, or for a key with this scope\n";
    assert_eq!(denied, expected);
    let missing = said(&folder, &format!("clients get gone {at}"), 3);
    assert!(
        missing.contains("list the clients with thrum clients ls"),
        "{missing}"
    );
    let nobody = said(&folder, "status --url http://127.0.0.1:1", 5);
    assert!(nobody.contains("nothing listens there"), "{nobody}");
    let no_http = format!("status --url http://127.0.0.1:{}", server.port);
    let no_http = said(&folder, &no_http, 5);
    assert!(
        no_http.contains("no answer from the broker at"),
        "{no_http}"
    );
    let no_tls = format!("status --url {}", url.replace("http:", "https:"));
    let no_tls = said(&folder, &no_tls, 5);
    assert!(no_tls.contains("does not speak TLS"), "{no_tls}");
}

#[test]
fn a_context_names_the_broker_and_keeps_the_key_to_itself() {
    let folder = Folder::empty("contexts");
    let port = ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0");
    let server = Server::start_with(&folder, "data", Some(port));
    let url = url(&folder, &server);
    let file = key(&folder, "all", "--scope admin");
    folder.printed(&format!("context add prod --url {url} --token-file {file}"));
    let taken = said(&folder, &format!("context add prod --url {url}"), 6);
    assert!(taken.contains("--force replaces it"), "{taken}");
    let stored = folder.thrum_with(
        &format!("context add own --url {url} --token-stdin"),
        "x_y_z\n",
    );
    assert_eq!(stored.status.code(), Some(0), "{stored:?}");
    let mode = |name: &str| {
        let found = std::fs::metadata(folder.path("config/thrum").join(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(
        (mode("contexts.json"), mode("token-own"), mode("")),
        (0o600, 0o600, 0o700)
    );
    let wrong = said(&folder, "status --context own", 4);
    assert!(wrong.contains("thrum keys"), "{wrong}");
    folder.printed("status --context prod");
    folder.printed("context use prod");
    let status = folder.json("status -o json");
    assert_eq!(status[0]["workers"], 2);
    let list = folder.printed("context ls");
    assert!(list.contains("*  prod  http://127.0.0.1:"), "{list}");
    let key = std::fs::read_to_string(folder.path(&file)).unwrap();
    for line in [
        "context ls -o json",
        "context show prod",
        "context show -o json",
    ] {
        assert!(!folder.printed(line).contains(key.trim()), "{line}");
    }
    // A key that is not in use any longer goes.
    let by_file = format!("context add own --force --url {url} --token-file {file}");
    folder.printed(&by_file);
    assert!(!folder.path("config/thrum/token-own").exists());
    std::fs::write(folder.path("config/thrum/token-own"), "left").unwrap();
    folder.printed("context rm prod own");
    assert!(!folder.path("config/thrum/token-own").exists());
    assert!(folder.path(&file).exists(), "it was only named");
    let gone = said(&folder, "status --context prod", 3);
    assert!(gone.contains("there is no context 'prod'"), "{gone}");
}

#[test]
fn a_broker_behind_tls_is_trusted_by_its_authority_only() {
    let folder = Folder::empty("remote-tls");
    let authority = Authority::new(&folder.0, "ca");
    authority.sign("cert", "localhost", (2020, 2999), 1);
    let cert = folder.path("cert.pem").display().to_string();
    let key_file = folder.path("cert.key").display().to_string();
    let variables = [
        ("THRUM_LISTENERS__HTTP__BIND", "127.0.0.1:0"),
        ("THRUM_LISTENERS__HTTP__TLS__CERT", &cert),
        ("THRUM_LISTENERS__HTTP__TLS__KEY", &key_file),
    ];
    let server = Server::start_with(&folder, "data", variables);
    let url = url(&folder, &server).replace("127.0.0.1", "localhost");
    let file = key(&folder, "all", "--scope admin");
    let at = format!("--url {url} --token-file {file}");
    assert!(
        folder
            .printed(&format!("status {at} --cafile ca.pem"))
            .contains("workers")
    );
    folder.printed(&format!("status {at} --insecure"));
    let untrusted = said(&folder, &format!("status {at}"), 5);
    assert!(untrusted.contains("--cafile"), "{untrusted}");
    let other = format!(
        "status {} --cafile ca.pem",
        at.replace("localhost", "127.0.0.1")
    );
    let other = said(&folder, &other, 5);
    assert!(
        other.contains("not for '127.0.0.1' but for localhost"),
        "{other}"
    );
    let as_named = at.replace("localhost", "127.0.0.1");
    folder.printed(&format!(
        "status {as_named} --cafile ca.pem --server-name localhost"
    ));
    let plain = said(
        &folder,
        &format!("status {}", at.replace("https", "http")),
        5,
    );
    assert!(plain.contains("no answer from the broker"), "{plain}");
    // Many records of TLS, both ways.
    let lines: Vec<String> = (0..2000)
        .map(|number| {
            let payload = "x".repeat(100);
            format!("{{\"topic\": \"long/topic/{number}\", \"text\": \"{payload}\"}}\n")
        })
        .collect();
    std::fs::write(folder.path("many.jsonl"), lines.concat()).unwrap();
    folder.printed(&format!("retained import many.jsonl {at} --cafile ca.pem"));
    let lines = folder.json(&format!("retained export - {at} --cafile ca.pem"));
    assert_eq!(lines.len(), 2000);
    std::fs::write(
        folder.path("wrong.jsonl"),
        "{\"topic\": \"new\", \"text\": \"\"}\n{}\n",
    )
    .unwrap();
    let wrong = format!("retained import wrong.jsonl {at} --cafile ca.pem");
    let wrong = said(&folder, &wrong, 2);
    assert!(wrong.contains("wrong.jsonl:2: "), "{wrong}");
    let lines = folder.json(&format!("retained export - {at} --cafile ca.pem"));
    assert_eq!(lines.len(), 2000, "nothing was changed");
}

#[test]
fn any_request_can_be_sent() {
    let folder = Folder::empty("api");
    let server = Server::start(&folder, "data");
    for id in ["a", "b", "c"] {
        folder.printed(&format!("sub -p {} -i {id} -c -q 1 -t t -E", server.port));
    }
    let api = |line: &str| folder.json(&format!("api {line} --data-dir data"));
    assert_eq!(api("get /status")[0]["workers"], 2);
    let pages = api("get /api/v1/clients -q limit=2 --paginate");
    assert_eq!(pages.len(), 2);
    let rows = |page: &Value| page["clients"].as_array().unwrap().len();
    assert_eq!((rows(&pages[0]), rows(&pages[1])), (2, 1));
    std::fs::write(
        folder.path("body"),
        r#"{"topic": "x", "payload": "on", "retain": true}"#,
    )
    .unwrap();
    assert_eq!(
        api("post /publish -d @body")[0]["outcome"],
        "no_subscribers"
    );
    let message = &api("get /retained/message -q topic=x")[0];
    assert_eq!(message["content"]["text"], "on");
    let refused = folder.thrum("api get /clients/none --data-dir data");
    assert_eq!(refused.status.code(), Some(3));
    let problem: Value = serde_json::from_slice(&refused.stdout).unwrap();
    assert_eq!(problem["status"], 404);
    let wrong = said(&folder, "api get /status --paginate --data-dir data", 2);
    assert!(wrong.contains("not a list with pages"), "{wrong}");
}
