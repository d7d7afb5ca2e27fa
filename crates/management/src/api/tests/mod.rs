//! The routes about who may ask, through the whole router, with a clock that tests move.

mod administrators;
mod changes;
mod keys;
mod logins;
mod slowing;
mod totp;

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::{Body, to_bytes};
use axum::http::header::{CONTENT_TYPE, HOST, RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderName, HeaderValue, Method, Request};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use thrum_access::Secret;
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
    body: Value,
}

impl TestApi {
    /// Of a test of this name, without administrators.
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir();
        let folder = folder.join(format!("thrum-api-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        let (clock, millis) = Clock::manual();
        let security = Security {
            login: Arc::new(Login::open(Some(&folder), clock.clone()).unwrap()),
            audit: Arc::new(Audit::open(Some(&folder), clock).unwrap()),
        };
        let mut config = Config::default();
        config.node.workers = Workers::Count(1);
        config.listeners.clear();
        let broker = Broker::start(config, Access::default()).unwrap();
        let router = router(broker.queries(), security.clone(), Entrance::Port);
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
        let api = Self::new(name);
        let made = api
            .security
            .make_first_administrator(&Secret::from(PASSWORD));
        assert!(made.unwrap());
        api
    }

    async fn ask(&self, client: &Client, method: Method, path: &str, body: Value) -> Answer {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{PREFIX}{path}"))
            .header(HOST, "broker.example");
        for (name, value) in &client.fields {
            request = request.header(name, HeaderValue::from_str(value).unwrap());
        }
        let body = if body.is_null() {
            Body::empty()
        } else {
            request = request.header(CONTENT_TYPE, "application/json");
            Body::from(body.to_string())
        };
        let peer = Peer {
            address: client.address,
            is_tls: client.is_tls,
        };
        let request = request.extension(peer).body(body).unwrap();
        let service = TowerToHyperService::new(self.router.clone());
        let answer = service.call(request).await.unwrap();
        let text = |name| {
            answer
                .headers()
                .get(name)
                .map(|one| one.to_str().unwrap().to_owned())
        };
        let (cookie, retry_after) = (text(SET_COOKIE), text(RETRY_AFTER));
        let status = answer.status().as_u16();
        let bytes = to_bytes(answer.into_body(), usize::MAX).await.unwrap();
        Answer {
            status,
            cookie,
            retry_after: retry_after.map(|text| text.parse().unwrap()),
            body: serde_json::from_slice(&bytes).unwrap_or(Value::Null),
        }
    }

    async fn get(&self, client: &Client, path: &str) -> Answer {
        self.ask(client, Method::GET, path, Value::Null).await
    }

    async fn post(&self, client: &Client, path: &str, body: Value) -> Answer {
        self.ask(client, Method::POST, path, body).await
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
