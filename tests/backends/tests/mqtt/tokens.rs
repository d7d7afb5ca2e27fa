//! Tokens with keys published by a service.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use thrum_backends::brief_clients::{Accounts, packet};
use thrum_backends::http::HttpService;
use thrum_backends::node::Node;
use thrum_backends::outage::{TIMEOUT, run_outage};
use thrum_backends::restart::{Freezable as _, Restartable as _};
use thrum_backends::server::Tls;
use thrum_backends::token::Issuer;
use thrum_conformance::clock;
use thrum_conformance::folder::Folder;
use thrum_conformance::packets::{Connect, Version};
use thrum_conformance::wire::Wire;

/// A past and a future time, in seconds of the Unix epoch.
const PAST: u64 = 1_000_000_000;
const FUTURE: u64 = 4_000_000_000;
/// Longest time until keys are fetched again: the interval is 10 s.
const RETURN_MAX: Duration = Duration::from_secs(40);

/// Publishes the key of an issuer over HTTPS.
struct Keys {
    issuer: Arc<Issuer>,
    service: HttpService,
    tls: Tls,
    folder: Folder,
}

impl Keys {
    fn start() -> Self {
        let (issuer, tls) = (Arc::new(Issuer::new("known")), Tls::new());
        let published = issuer.key_set();
        let service = HttpService::start_tls(&tls, move |_| (200, published.clone()));
        Self {
            issuer,
            service,
            tls,
            folder: Folder::new("mqtt-keys"),
        }
    }

    fn node(&self, tls: &Tls) -> Node {
        Node::start(&json!({ "auth": { "jwt": { "idp": {
            "jwks": self.service.url("/keys"),
            "ca": self.folder.write("ca.pem", &tls.certificate),
            "timeout": TIMEOUT,
        }}}}))
    }

    fn token(&self) -> String {
        let rules = json!({ "pub": ["up/%u/#"], "sub": ["down/%c/+"] });
        let claims = json!({ "sub": "ann", "exp": FUTURE, "acl": rules });
        self.issuer.sign(&claims)
    }

    fn accounts(&self) -> Accounts {
        let named = |name: &str, token: String| (name.to_owned(), token);
        let everything = json!({ "all": ["#", "$SYS/#"] });
        let root = json!({ "sub": "root", "exp": FUTURE, "acl": everything });
        let expired = json!({ "sub": "ann", "exp": PAST, "acl": everything });
        let mut altered = self.token();
        altered.truncate(altered.len() - 8);
        altered.push_str("AAAAAAAA");
        Accounts {
            ann: named("ann", self.token()),
            root: named("root", self.issuer.sign(&root)),
            wrong: vec![
                named("ann", self.issuer.sign(&expired)),
                named("ann", altered),
                named("root", "secret".to_owned()),
                named("root", Issuer::new("known").sign(&root)),
                named("root", Issuer::new("unknown").sign(&root)),
            ],
            outlives_backend: true,
            ..Accounts::with_passwords()
        }
    }
}

#[test]
fn keys_that_are_known_outlive_the_service_that_publishes_them() {
    let mut keys = Keys::start();
    let node = keys.node(&keys.tls);
    run_outage(&node, &keys.accounts(), "idp", |outage| {
        outage.begin_unnoticed(|| keys.service.kill());
        outage.end(|| keys.service.restart());
        outage.begin_unnoticed(|| keys.service.freeze());
        outage.end(|| keys.service.thaw());
    });
}

#[test]
fn without_keys_every_login_is_refused() {
    let mut keys = Keys::start();
    keys.service.kill();
    let node = keys.node(&keys.tls);
    assert_eq!(connack_code(&node, Version::V5, &keys.token()), 0x88);
    assert_eq!(connack_code(&node, Version::V311, &keys.token()), 3);
    keys.service.restart();
    let deadline = clock::now() + RETURN_MAX;
    while connack_code(&node, Version::V5, &keys.token()) != 0 {
        assert!(clock::now() < deadline, "the keys are not fetched again");
        clock::sleep(Duration::from_millis(100));
    }
    node.assert_sound();
}

#[test]
fn keys_of_another_authority_admit_no_client() {
    let keys = Keys::start();
    let node = keys.node(&Tls::new());
    assert_eq!(connack_code(&node, Version::V5, &keys.token()), 0x88);
    node.assert_sound();
}

fn connack_code(node: &Node, version: Version, token: &str) -> u8 {
    let mut wire = Wire::open(node.address(), version);
    wire.send(&Connect::new(version).credentials("ann", token).bytes());
    packet(&mut wire, "CONNACK").connack(version).code
}
