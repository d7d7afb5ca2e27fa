//! The routes about who may ask, through the whole router, with a clock that tests move.

mod access;
mod administrators;
mod bans;
mod changes;
mod keys;
mod live;
mod logins;
mod members;
mod openapi;
mod operating;
mod operations;
mod slowing;
mod totp;
mod transfers;
mod users;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::header::{ALLOW, CONTENT_TYPE, HOST, RETRY_AFTER, SET_COOKIE};
use axum::http::request::Builder;
use axum::http::{HeaderName, HeaderValue, Method, Request};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use thrum_access::Secret;
use thrum_auth::AuthService;
use thrum_broker::config::Workers;
use thrum_broker::{Access, Broker, Config};

use super::*;
use crate::audit::Audit;
use crate::clock::Clock;
use crate::login::{Login, TOKEN_HEADER};

/// A password that is long enough.
const PASSWORD: &str = "correct horse battery";

/// The interface of a broker without listeners, at a port.
struct TestApi {
    broker: Option<Broker>,
    security: Security,
    router: Router,
    millis: Arc<AtomicU64>,
    folder: PathBuf,
}

/// A browser or a program at an address.
#[derive(Clone, Debug)]
struct Client {
    address: IpAddr,
    is_tls: bool,
    fields: Vec<(HeaderName, String)>,
}

#[derive(Debug)]
struct Answer {
    status: u16,
    cookie: Option<String>,
    retry_after: Option<u64>,
    allow: Option<String>,
    kind: Option<String>,
    body: Value,
}

impl TestApi {
    /// Of a test of this name, without administrators.
    fn new(name: &str) -> Self {
        Self::of(name, Managed::from)
    }

    /// With what is managed beside a broker.
    fn of(name: &str, managed: impl FnOnce(Queries) -> Managed) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-api-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        Self::on(folder, None, managed)
    }

    /// With the administrator `admin`, and the user store of a broker in its data directory.
    fn with_users(name: &str) -> Self {
        let folder = Self::new(name).folder.clone();
        std::fs::create_dir_all(&folder).unwrap();
        let settings = thrum_auth::Settings {
            data_dir: folder.clone(),
            ..thrum_auth::Settings::default()
        };
        let api = Self::on(
            folder,
            Some(AuthService::start(&settings).unwrap()),
            Managed::from,
        );
        let password = Secret::from(PASSWORD);
        assert!(api.security.make_first_administrator(&password).unwrap());
        api
    }

    fn on(
        folder: PathBuf,
        clients: Option<Arc<AuthService>>,
        managed: impl FnOnce(Queries) -> Managed,
    ) -> Self {
        let (clock, millis) = Clock::manual();
        let security = Security {
            login: Arc::new(Login::open(Some(&folder), clock.clone()).unwrap()),
            audit: Arc::new(Audit::open(Some(&folder), clock).unwrap()),
            counts: Arc::default(),
            clients,
        };
        let mut config = Config::default();
        config.node.workers = Workers::Count(1);
        config.listeners.clear();
        let broker = Broker::start(config, Access::default()).unwrap();
        let managed = managed(broker.queries());
        let router = router(managed, security.clone(), Entrance::Port);
        Self {
            broker: Some(broker),
            security,
            router,
            millis,
            folder,
        }
    }

    /// With the administrator `admin`.
    fn with_admin(name: &str) -> Self {
        Self::new(name).and_admin()
    }

    fn and_admin(self) -> Self {
        let api = self;
        let made = api
            .security
            .make_first_administrator(&Secret::from(PASSWORD));
        assert!(made.unwrap());
        api
    }

    async fn ask(&self, client: &Client, method: Method, path: &str, body: Value) -> Answer {
        let request = client.request(method, path);
        let request = if body.is_null() {
            request.body(Body::empty())
        } else {
            let request = request.header(CONTENT_TYPE, "application/json");
            request.body(Body::from(body.to_string()))
        };
        self.answer(request.unwrap()).await
    }

    /// Sends a text.
    async fn send(&self, client: &Client, method: Method, path: &str, body: &str) -> Answer {
        let request = client.request(method, path);
        let request = request.body(Body::from(body.to_owned()));
        self.answer(request.unwrap()).await
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let service = TowerToHyperService::new(self.router.clone());
        let answer = service.call(request).await.unwrap();
        let text = |name| {
            answer
                .headers()
                .get(name)
                .map(|one| one.to_str().unwrap().to_owned())
        };
        let (cookie, retry_after) = (text(SET_COOKIE), text(RETRY_AFTER));
        let (allow, kind) = (text(ALLOW), text(CONTENT_TYPE));
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        Answer {
            status,
            cookie,
            retry_after: retry_after.map(|text| text.parse().unwrap()),
            allow,
            kind,
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    /// The document of the routes as the code has it.
    fn document(&self) -> Value {
        let queries = self.broker.as_ref().unwrap().queries();
        let api = ApiState::new(queries, self.security.clone(), Entrance::Port);
        let text = all_routes(&api).get_openapi().to_json().unwrap();
        // The registry of formats has another name for what utoipa calls u-int64.
        serde_json::from_str(&text.replace("\"u-int", "\"uint")).unwrap()
    }

    async fn get(&self, client: &Client, path: &str) -> Answer {
        self.ask(client, Method::GET, path, Value::Null).await
    }

    async fn post(&self, client: &Client, path: &str, body: Value) -> Answer {
        self.ask(client, Method::POST, path, body).await
    }

    async fn patch(&self, client: &Client, path: &str, body: Value) -> Answer {
        self.ask(client, Method::PATCH, path, body).await
    }

    async fn put(&self, client: &Client, path: &str, body: Value) -> Answer {
        self.ask(client, Method::PUT, path, body).await
    }

    async fn delete(&self, client: &Client, path: &str) -> Answer {
        self.ask(client, Method::DELETE, path, Value::Null).await
    }

    async fn log_in(&self, client: &Client, name: &str, password: &str) -> Answer {
        let body = json!({ "name": name, "password": password });
        self.post(client, "/login", body).await
    }

    /// A browser with a session of `admin`.
    async fn admin(&self) -> Client {
        self.session(&Client::browser("192.0.2.1"), "admin", PASSWORD)
            .await
    }

    /// A browser with a new session.
    async fn session(&self, browser: &Client, name: &str, password: &str) -> Client {
        let answer = self.log_in(browser, name, password).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        browser.with_session(&answer)
    }

    /// Adds an administrator with [`PASSWORD`].
    async fn add(&self, admin: &Client, name: &str, role: &str) {
        let body = json!({ "name": name, "role": role, "password": PASSWORD });
        let added = self.post(admin, "/admins", body).await;
        assert_eq!(added.status, 201, "{}", added.body);
    }

    /// A program with a key that has these scopes.
    async fn key(&self, admin: &Client, scopes: &[&str]) -> Client {
        let body = json!({ "label": "test", "scopes": scopes, "expires_secs": null });
        let made = self.post(admin, "/keys", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        Client::program("192.0.2.7").with_key(made.body["key"].as_str().unwrap())
    }

    /// Every row of a list, by pages of `limit`.
    async fn pages(&self, client: &Client, path: &str, rows: &str) -> Vec<Value> {
        let mut all = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(client, &format!("{path}{cursor}")).await;
            assert_eq!(page.status, 200, "{path}{cursor}: {}", page.body);
            all.extend(page.body[rows].as_array().unwrap().clone());
            let Some(next) = page.body["next"].as_str() else {
                return all;
            };
            cursor = format!("&cursor={next}");
        }
    }

    /// Action, target, outcome and detail of the newest entries of the audit log.
    async fn audit(&self, admin: &Client, limit: usize) -> Vec<Value> {
        let page = self.get(admin, &format!("/audit?limit={limit}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let entries = page.body["entries"].as_array().unwrap();
        let short = |entry: &Value| {
            json!([
                entry["who"],
                entry["action"],
                entry["target"],
                entry["outcome"]
            ])
        };
        entries.iter().map(short).collect()
    }

    fn move_on(&self, duration: Duration) {
        let millis = u64::try_from(duration.as_millis()).unwrap();
        self.millis.fetch_add(millis, Ordering::SeqCst);
    }
}

impl Drop for TestApi {
    fn drop(&mut self) {
        if let Some(broker) = self.broker.take() {
            broker.stop();
        }
        std::fs::remove_dir_all(&self.folder).ok();
    }
}

impl Client {
    /// A browser that shows a page of the broker.
    fn browser(address: &str) -> Self {
        Self::program(address).with("sec-fetch-site", "same-origin")
    }

    /// A program, which sends none of a browser's headers.
    fn program(address: &str) -> Self {
        Self {
            address: address.parse().unwrap(),
            is_tls: false,
            fields: Vec::new(),
        }
    }

    /// With a header, instead of others of that name.
    fn with(&self, name: &'static str, value: &str) -> Self {
        let name = HeaderName::from_static(name);
        let mut client = self.without(&name);
        client.fields.push((name, value.to_owned()));
        client
    }

    fn without(&self, name: &HeaderName) -> Self {
        let mut client = self.clone();
        client.fields.retain(|(other, _)| other != name);
        client
    }

    fn request(&self, method: Method, path: &str) -> Builder {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{PREFIX}{path}"))
            .header(HOST, "broker.example");
        for (name, value) in &self.fields {
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        request.extension(Peer {
            address: self.address,
            is_tls: self.is_tls,
        })
    }

    fn with_session(&self, answer: &Answer) -> Self {
        let cookie = answer.cookie.as_deref().unwrap();
        let cookie = cookie.split(';').next().unwrap();
        let token = answer.body["token"].as_str().unwrap();
        self.with(TOKEN_HEADER, token).with("cookie", cookie)
    }

    fn with_key(&self, key: &str) -> Self {
        self.with("authorization", &format!("Bearer {key}"))
    }
}
