//! Administrators that log in at a real OpenID Connect provider: the `oidc-provider` of npm, and a
//! browser that follows its pages.
#![expect(clippy::unwrap_used, reason = "a failed step of a test should panic")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::header::{COOKIE, HOST, LOCATION, SET_COOKIE};
use axum::http::{Method, Request};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use thrum_backends::node::Node;
use thrum_broker::config::Workers;
use thrum_broker::{Access, Broker, Config};
use thrum_conformance::folder::Folder;
use thrum_management::Security;
use thrum_management::api::{Entrance, Peer, router};
use thrum_management::config::ManagementConfig;
use thrum_management::login::OidcConfig;

const CALLBACK: &str = "http://localhost:9/api/v1/login/oidc/callback";
/// With characters that have to be encoded: RFC 6749 §2.3.1.
const SECRET: &str = "a secret: of+the broker%\n";

/// The provider; it ends with its standard input.
struct Provider {
    child: Child,
    issuer: String,
    /// Open until the end.
    _output: BufReader<ChildStdout>,
}

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("oidc")
}

/// Installs the provider unless it is there.
fn install() {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _installing = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let lock = scripts().join("package-lock.json");
    let installed = scripts().join("node_modules/lock.installed");
    let wanted = std::fs::read(&lock).unwrap();
    if std::fs::read(&installed).is_ok_and(|found| found == wanted) {
        return;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    let status = npm
        .current_dir(scripts())
        .status()
        .expect("npm is installed");
    assert!(status.success(), "npm ci failed");
    std::fs::write(installed, wanted).unwrap();
}

impl Provider {
    fn start() -> Self {
        install();
        let mut child = Command::new("node")
            .args(["provider.mjs", CALLBACK])
            .current_dir(scripts())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is installed");
        let mut issuer = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut issuer).unwrap();
        let issuer = issuer.trim().to_owned();
        assert!(issuer.starts_with("http://127.0.0.1:"), "{issuer:?}");
        Self {
            child,
            issuer,
            _output: output,
        }
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A broker whose administrators log in at a provider.
struct TestApi {
    broker: Option<Broker>,
    router: Router,
}

struct Answer {
    status: u16,
    location: String,
    /// Names and values of the cookies that are set.
    cookies: Vec<String>,
    body: Value,
}

impl TestApi {
    fn new(provider: &Provider, client_id: &str) -> Self {
        let folder = Folder::new("oidc");
        let is_public = client_id == "public";
        let oidc = OidcConfig {
            issuer: provider.issuer.clone(),
            client_id: client_id.to_owned(),
            client_secret_file: if is_public {
                PathBuf::new()
            } else {
                folder.write("secret", SECRET)
            },
            redirect_uri: CALLBACK.to_owned(),
            viewers: vec!["staff".to_owned()],
            administrators: vec!["broker-admins".to_owned()],
            ..OidcConfig::default()
        };
        let settings = ManagementConfig {
            oidc,
            ..ManagementConfig::default()
        };
        let security = Security::open(None, Some(&settings)).unwrap();
        let mut config = Config::default();
        config.node.workers = Workers::Count(1);
        config.listeners.clear();
        let broker = Broker::start(config, Access::default()).unwrap();
        let router = router(broker.queries(), security, Entrance::Port);
        Self {
            broker: Some(broker),
            router,
        }
    }

    async fn get(&self, path: &str, cookies: &[String]) -> Answer {
        let peer = Peer {
            address: "192.0.2.1".parse().unwrap(),
            is_tls: false,
        };
        let request = Request::builder()
            .method(Method::GET)
            .uri(path)
            .header(HOST, "localhost:9")
            .header(COOKIE, cookies.join("; "))
            .extension(peer)
            .body(Body::empty());
        let service = TowerToHyperService::new(self.router.clone());
        let answer = service.call(request.unwrap()).await.unwrap();
        let cookies = answer.headers().get_all(SET_COOKIE).iter();
        let cookies = cookies.map(|cookie| {
            let cookie = cookie.to_str().unwrap();
            cookie.split(';').next().unwrap().to_owned()
        });
        let location = answer.headers().get(LOCATION);
        let location = location.map_or("", |location| location.to_str().unwrap());
        let (location, cookies) = (location.to_owned(), cookies.collect());
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        Answer {
            status,
            location,
            cookies,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    /// Begins a login; returns the cookies, and where the provider sends the browser back to.
    async fn at_the_provider(&self, name: &str) -> (Vec<String>, String) {
        let begun = self.get("/api/v1/login/oidc", &[]).await;
        assert_eq!(begun.status, 303, "{}", begun.body);
        (begun.cookies, visit(&begun.location, name))
    }
}

impl Drop for TestApi {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.stop();
        }
    }
}

/// Does what the person does at the provider; returns the path that the browser is sent back to.
fn visit(location: &str, name: &str) -> String {
    let mut browser = Command::new("node");
    browser.args(["browser.mjs", location, name]);
    let output = browser.current_dir(scripts()).output().unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let path = printed.trim().strip_prefix("http://localhost:9");
    path.unwrap_or_else(|| panic!("{said}{printed}")).to_owned()
}

fn block_on(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(test);
}

/// Logs in at the provider; returns the cookie of the session.
async fn log_in(api: &TestApi, name: &str) -> Vec<String> {
    let (cookies, back) = api.at_the_provider(name).await;
    let mut welcome = api.get(&back, &cookies).await;
    assert_eq!(welcome.status, 200, "{name}: {}", welcome.body);
    assert_eq!(
        welcome.cookies.pop().unwrap(),
        "thrum_oidc=",
        "it is removed"
    );
    assert!(welcome.cookies[0].starts_with("thrum_session="));
    let who = api.get("/api/v1/login", &welcome.cookies).await.body;
    assert_eq!(who["name"], format!("oidc:{name}"));
    let shown = (&who["means"], &who["oidc"]);
    assert_eq!(shown, (&json!("session"), &json!(true)));
    welcome.cookies
}

#[test]
fn a_person_logs_in_at_the_provider_with_the_role_of_its_groups() {
    let provider = Provider::start();
    for client in ["broker", "public"] {
        let api = TestApi::new(&provider, client);
        block_on(async {
            let alice = log_in(&api, "alice").await;
            let log = api.get("/api/v1/audit?limit=1", &alice).await.body;
            let entry = &log["entries"][0];
            let shown = (&entry["who"], &entry["action"]);
            assert_eq!(shown, (&json!("oidc:alice"), &json!("login")));
            assert_eq!(api.get("/api/v1/keys", &alice).await.status, 200);
            let bob = log_in(&api, "bob").await;
            assert_eq!(api.get("/api/v1/keys", &bob).await.status, 403);
            assert_eq!(api.get("/api/v1/status", &bob).await.status, 200);
        });
    }
}

#[test]
fn a_person_without_role_another_browser_and_a_used_code_are_refused() {
    let provider = Provider::start();
    let api = TestApi::new(&provider, "broker");
    block_on(async {
        let (cookies, back) = api.at_the_provider("eve").await;
        let refused = api.get(&back, &cookies).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (403, &json!("no role"))
        );
        assert!(refused.cookies.is_empty());
        let (cookies, back) = api.at_the_provider("alice").await;
        let (other, _) = api.at_the_provider("bob").await;
        for wrong in [&other[..], &[]] {
            let refused = api.get(&back, wrong).await;
            assert_eq!(
                (refused.status, &refused.body["title"]),
                (403, &json!("other login"))
            );
        }
        assert_eq!(api.get(&back, &cookies).await.status, 200);
        let again = api.get(&back, &cookies).await;
        assert_eq!(again.status, 502, "{}", again.body);
        let detail = again.body["detail"].as_str().unwrap();
        assert!(detail.contains("invalid_grant"), "{detail}");
        let denied = api.get(
            "/api/v1/login/oidc/callback?error=access_denied&state=x",
            &cookies,
        );
        let denied = denied.await;
        assert_eq!(denied.status, 401);
        assert!(
            denied.body["detail"]
                .as_str()
                .unwrap()
                .contains("access_denied")
        );
    });
}

#[test]
fn a_code_without_the_verifier_of_its_login_is_worth_nothing() {
    let provider = Provider::start();
    let api = TestApi::new(&provider, "public");
    block_on(async {
        let (cookies, stolen) = api.at_the_provider("alice").await;
        let (own, back) = api.at_the_provider("bob").await;
        let code = |path: &str| {
            path.split("code=")
                .nth(1)
                .unwrap()
                .split('&')
                .next()
                .unwrap()
                .to_owned()
        };
        // Somebody puts the code of another person into a login of its own.
        let injected = back.replace(&code(&back), &code(&stolen));
        let refused = api.get(&injected, &own).await;
        assert_eq!(refused.status, 502, "{}", refused.body);
        assert!(refused.cookies.is_empty());
        drop(cookies);
    });
}

#[test]
fn a_provider_that_does_not_answer_is_an_error_in_time() {
    let provider = Provider::start();
    let api = TestApi::new(&provider, "broker");
    drop(provider);
    block_on(async {
        let refused = api.get("/api/v1/login/oidc", &[]).await;
        assert_eq!(
            (refused.status, &refused.body["title"]),
            (502, &json!("provider not available"))
        );
    });
}

/// The whole program with a configuration file.
struct Program {
    node: Node,
    port: SocketAddr,
}

impl Program {
    fn start(oidc: &Value) -> Self {
        let node = Node::start(&json!({
            "listeners": { "http": { "bind": "127.0.0.1:0" } },
            "management": { "session_idle": "30m", "oidc": oidc },
        }));
        let log = node.process().log();
        let address = log.split("http://").nth(1).unwrap();
        let end = |one: char| one.is_whitespace() || one == '/';
        let address = address.split(end).next().unwrap();
        let port = address.parse().unwrap_or_else(|_| panic!("{log}"));
        Self { node, port }
    }

    /// Status, location, cookies and body of the answer to a GET.
    fn get(&self, path: &str, cookies: &[String]) -> Answer {
        let mut stream = TcpStream::connect(self.port).unwrap();
        let cookies = cookies.join("; ");
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost:9\r\nCookie: {cookies}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let mut lines = head.lines();
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let fields: Vec<(String, &str)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_ascii_lowercase(), value))
            .collect();
        let all = |wanted: &str| {
            let found = fields.iter().filter(|(name, _)| name == wanted);
            found
                .map(|(_, value)| (*value).to_owned())
                .collect::<Vec<_>>()
        };
        let cookie = |value: &String| value.split(';').next().unwrap().to_owned();
        Answer {
            status: status.parse().unwrap(),
            location: all("location").pop().unwrap_or_default(),
            cookies: all("set-cookie").iter().map(cookie).collect(),
            body: serde_json::from_str(body).unwrap_or(Value::Null),
        }
    }
}

#[test]
fn the_program_logs_people_in_at_the_provider_of_its_configuration_until_a_reload_without_it() {
    let provider = Provider::start();
    let folder = Folder::new("oidc-program");
    let program = Program::start(&json!({
        "issuer": provider.issuer,
        "client_id": "broker",
        "client_secret_file": folder.write("secret", SECRET),
        "redirect_uri": CALLBACK,
        "viewers": ["staff"],
        "administrators": ["broker-admins"],
    }));
    let begun = program.get("/api/v1/login/oidc", &[]);
    assert_eq!(begun.status, 303, "{}", begun.body);
    let back = visit(&begun.location, "alice");
    let welcome = program.get(&back, &begun.cookies);
    assert_eq!(welcome.status, 200, "{}", welcome.body);
    let who = program.get("/api/v1/login", &welcome.cookies).body;
    let shown = (&who["name"], &who["scopes"], &who["oidc"]);
    assert_eq!(
        shown,
        (&json!("oidc:alice"), &json!(["admin"]), &json!(true))
    );
    let begun = program.get("/api/v1/login/oidc", &[]);
    let back = visit(&begun.location, "eve");
    let refused = program.get(&back, &begun.cookies);
    assert_eq!(
        (refused.status, &refused.body["title"]),
        (403, &json!("no role"))
    );
    let file = program.node.folder().path().join("thrum.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let mut settings: toml_edit::DocumentMut = text.parse().unwrap();
    settings["management"]
        .as_table_like_mut()
        .unwrap()
        .remove("oidc");
    std::fs::write(&file, settings.to_string()).unwrap();
    program.node.process().reload();
    while program.get("/api/v1/login", &[]).body["oidc"] == true {
        std::thread::yield_now();
    }
    assert_eq!(program.get("/api/v1/login/oidc", &[]).status, 404);
    let who = program.get("/api/v1/login", &welcome.cookies).body;
    assert_eq!(who["name"], "oidc:alice", "its session stays");
    program.node.assert_sound();
}
