//! Tokens, whose keys a service publishes.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use thrum_backends::crowd::{Cast, packet};
use thrum_backends::death::{Freezable as _, Mortal as _};
use thrum_backends::http::HttpService;
use thrum_backends::node::Node;
use thrum_backends::server::Tls;
use thrum_backends::siege::{TIMEOUT, lay};
use thrum_backends::token::Issuer;
use thrum_conformance::clock;
use thrum_conformance::folder::Folder;
use thrum_conformance::packets::{Connect, Version};
use thrum_conformance::wire::Wire;

/// Long ago, and long from now, in seconds of the Unix epoch.
const PAST: u64 = 1_000_000_000;
const FUTURE: u64 = 4_000_000_000;
/// Longest time until keys are looked for again: there are 10 s between two looks.
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

    fn cast(&self) -> Cast {
        let named = |name: &str, token: String| (name.to_owned(), token);
        let everything = json!({ "all": ["#", "$SYS/#"] });
        let root = json!({ "sub": "root", "exp": FUTURE, "acl": everything });
        let expired = json!({ "sub": "ann", "exp": PAST, "acl": everything });
        let mut altered = self.token();
        altered.truncate(altered.len() - 8);
        altered.push_str("AAAAAAAA");
        Cast {
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
            ..Cast::with_passwords()
        }
    }
}

#[test]
fn keys_that_are_known_outlive_the_service_that_publishes_them() {
    let mut keys = Keys::start();
    let node = keys.node(&keys.tls);
    lay(&node, &keys.cast(), "idp", |siege| {
        siege.shuts_unnoticed(|| keys.service.kill());
        siege.opens(|| keys.service.revive());
        siege.shuts_unnoticed(|| keys.service.freeze());
        siege.opens(|| keys.service.thaw());
    });
}

#[test]
fn without_keys_nobody_comes_in_until_there_are_some() {
    let mut keys = Keys::start();
    keys.service.kill();
    let node = keys.node(&keys.tls);
    assert_eq!(told(&node, Version::V5, &keys.token()), 0x88);
    assert_eq!(told(&node, Version::V311, &keys.token()), 3);
    keys.service.revive();
    let deadline = clock::now() + RETURN_MAX;
    while told(&node, Version::V5, &keys.token()) != 0 {
        assert!(clock::now() < deadline, "the keys are not looked for again");
        clock::sleep(Duration::from_millis(100));
    }
    node.assert_sound();
}

#[test]
fn keys_of_another_authority_let_nobody_in() {
    let keys = Keys::start();
    let node = keys.node(&Tls::new());
    assert_eq!(told(&node, Version::V5, &keys.token()), 0x88);
    node.assert_sound();
}

fn told(node: &Node, version: Version, token: &str) -> u8 {
    let mut wire = Wire::open(node.address(), version);
    wire.send(&Connect::new(version).credentials("ann", token).bytes());
    packet(&mut wire, "CONNACK").connack(version).code
}
