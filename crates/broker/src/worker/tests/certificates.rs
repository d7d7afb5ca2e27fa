//! Certificates that were verified before a worker accepts the connection: the identity of the
//! admitted client.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_access::{Admission, Answer, Certificate, Gatekeeper, Identity, Login, Reply};
use thrum_codec::packet::{Connect, Packet};
use thrum_codec::properties::ConnectProperties;
use thrum_engine::workers::WorkerId;

use super::{VERSION, bytes, settle, two_workers_with};
use crate::config::CertificateName;

/// Admits every client as the identity it shows, and records them all.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Identity>>);

impl Recorder {
    /// User names and the common names of certificates, in the order of the logins.
    fn seen(&self) -> Vec<(Option<String>, Option<String>)> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |name: Option<&str>| name.map(str::to_owned);
        seen.iter()
            .map(|identity| {
                let certificate = identity.certificate.as_deref();
                let common_name = certificate.and_then(|one| one.common_name.as_deref());
                (text(identity.username.as_deref()), text(common_name))
            })
            .collect()
    }
}

impl Gatekeeper for Recorder {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(login.identity.clone());
        reply(Answer::Admit(Box::new(Admission {
            identity: login.identity,
            ..Admission::default()
        })));
    }
}

fn connect_as(client_id: &str, username: Option<&str>) -> Vec<u8> {
    bytes(&Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: true,
        keep_alive: 60,
        client_id,
        will: None,
        username,
        password: None,
        properties: ConnectProperties::default(),
    }))
}

#[test]
fn a_connection_does_not_get_the_certificate_of_the_one_before_that_went_to_another_worker() {
    let recorder = Arc::new(Recorder::default());
    let mut workers = two_workers_with(|parts| {
        parts.access.gatekeeper = Some(Arc::clone(&recorder) as Arc<dyn Gatekeeper>);
        parts.username = CertificateName::Cn;
    });
    let second = WorkerId::new(1);
    workers[0].node.state.registry.claim("a", second);
    let certificate = Certificate {
        common_name: Some("admin".into()),
        ..Certificate::default()
    };
    let mut admin = workers[0].accepted_with(Some(Arc::new(certificate)));
    admin.write_all(&connect_as("a", None)).unwrap();
    settle(&mut workers);
    let slot = workers[1]
        .traffic
        .engine
        .core
        .sessions
        .find("a")
        .expect("it was handed over");
    let access = workers[1].traffic.engine.core.sessions[slot]
        .access
        .as_deref();
    let identity = &access.expect("there is a gatekeeper").identity;
    assert_eq!(identity.username.as_deref(), Some("admin"));
    assert!(identity.certificate.is_some(), "it goes with the client");

    let mut other = workers[0].accepted();
    other.write_all(&connect_as("b", Some("b"))).unwrap();
    settle(&mut workers);
    let admin = Some("admin".to_owned());
    let expected = [(admin.clone(), admin), (Some("b".to_owned()), None)];
    assert_eq!(recorder.seen(), expected);
}
