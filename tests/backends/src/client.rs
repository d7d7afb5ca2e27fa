//! A service of its own for each test, and clients that knock at it.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};
use thrum_access::{
    Admission, Answer, Gatekeeper, Identity, Login, Question, Resolved, Rules, Secret,
};
use thrum_auth::{AuthService, BackendCounts, Settings};
use thrum_codec::{QoS, ReasonCode, Version};

/// Longest time for an answer: that of all backends together, and some for a busy machine.
pub const ANSWER_MAX: Duration = Duration::from_secs(20);

/// What a client was told.
#[derive(Debug)]
pub enum Told {
    /// Come in.
    In(Box<Admission>),
    /// Stay out, for this reason.
    Out(ReasonCode),
}

/// A service with the backends of one test.
#[derive(Clone)]
pub struct Door {
    service: Arc<AuthService>,
}

/// Someone who wants to come in.
#[derive(Clone, Debug, Default)]
pub struct Visitor {
    /// Client identifier.
    pub client_id: String,
    /// User name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<Vec<u8>>,
    /// A certificate vouches for the user name.
    pub is_verified: bool,
}

impl Visitor {
    /// With a user name that its certificate gives, and no password.
    pub fn with_certificate(username: &str) -> Self {
        Self {
            password: None,
            is_verified: true,
            ..Self::new(username, "")
        }
    }

    /// With user name and password.
    pub fn new(username: &str, password: &str) -> Self {
        Self {
            client_id: format!("client-of-{username}"),
            username: Some(username.to_owned()),
            password: Some(password.as_bytes().to_vec()),
            is_verified: false,
        }
    }
}

impl Door {
    /// Starts a service with this `[auth]`, as it would be written in a file.
    ///
    /// # Panics
    /// The settings are wrong.
    pub fn open(auth: &Value) -> Self {
        let mut settings = Settings::default();
        let mut auth = auth.clone();
        auth["anonymous"] = json!(false);
        settings.auth = serde_json::from_value(auth).expect("settings");
        let service = AuthService::start(&settings).expect("a service");
        Self { service }
    }

    /// What is wrong with these settings.
    ///
    /// # Panics
    /// Nothing is.
    pub fn refusal(auth: Value) -> String {
        let auth = match serde_json::from_value(auth) {
            Ok(auth) => auth,
            Err(error) => return error.to_string(),
        };
        let settings = Settings {
            auth,
            ..Settings::default()
        };
        match AuthService::start(&settings) {
            Ok(_) => panic!("these settings should be refused"),
            Err(error) => error.to_string(),
        }
    }

    /// Knocks.
    ///
    /// # Panics
    /// There is no answer in time.
    pub fn knock(&self, visitor: &Visitor) -> Told {
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |answer| sender.send(answer).unwrap_or_default());
        self.service.login(login(visitor), reply);
        match receiver
            .recv_timeout(ANSWER_MAX)
            .expect("an answer in time")
        {
            Answer::Admit(admission) => Told::In(admission),
            Answer::Deny(denial) => Told::Out(denial.reason),
            other => panic!("neither in nor out: {other:?}"),
        }
    }

    /// Knocks with a user name and a password, and is let in.
    ///
    /// # Panics
    /// It is not.
    pub fn admits(&self, username: &str, password: &str) -> Box<Admission> {
        match self.knock(&Visitor::new(username, password)) {
            Told::In(admission) => admission,
            Told::Out(reason) => panic!("{username} is refused: {reason:?}"),
        }
    }

    /// Knocks with a user name and a password, and is not let in for this reason.
    ///
    /// # Panics
    /// It is, or for another reason.
    pub fn refuses(&self, username: &str, password: &str, expected: ReasonCode) {
        match self.knock(&Visitor::new(username, password)) {
            Told::Out(reason) => assert_eq!(reason, expected, "{username:?}"),
            Told::In(_) => panic!("{username:?} is let in"),
        }
    }

    /// Knocks with a certificate that vouches for the user name, and is let in.
    ///
    /// # Panics
    /// It is not.
    pub fn admits_certificate(&self, username: &str) -> Box<Admission> {
        match self.knock(&Visitor::with_certificate(username)) {
            Told::In(admission) => admission,
            Told::Out(reason) => panic!("{username} is refused: {reason:?}"),
        }
    }

    /// The rules of a client that is in, anew.
    ///
    /// # Panics
    /// There is no answer in time.
    pub fn refresh(&self, identity: &Identity) -> Option<Arc<Rules>> {
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |answer| sender.send(answer).unwrap_or_default());
        self.service.refresh(Arc::new(identity.clone()), reply);
        match receiver
            .recv_timeout(ANSWER_MAX)
            .expect("an answer in time")
        {
            Answer::Admit(admission) => admission.rules,
            other => panic!("no admission: {other:?}"),
        }
    }

    /// Asks whether a client may do something.
    ///
    /// # Panics
    /// There is no answer in time.
    pub fn decides(&self, identity: &Identity, is_publish: bool, topic: &str) -> Option<bool> {
        let (sender, receiver) = mpsc::channel();
        let question = Question {
            identity: Arc::new(identity.clone()),
            is_publish,
            topic: topic.into(),
            qos: QoS::AtLeastOnce,
            retain: false,
        };
        let reply = Box::new(move |answer| sender.send(answer).unwrap_or_default());
        self.service.authorize(question, reply);
        receiver
            .recv_timeout(ANSWER_MAX)
            .expect("an answer in time")
    }

    /// What a backend has said so far.
    pub fn counts(&self, backend: &str) -> BackendCounts {
        let metrics = self.service.metrics();
        let mut all: HashMap<_, _> = metrics
            .backends
            .into_iter()
            .map(|backend| (backend.name, backend.counts))
            .collect();
        all.remove(backend).unwrap_or_default()
    }
}

/// What an admitted client may publish.
pub fn may_publish(admission: &Admission, topic: &str, qos: QoS, retain: bool) -> Option<bool> {
    resolved(admission).publish(topic, qos, retain).allowed
}

/// What its own rules say of it.
///
/// # Panics
/// It has none.
pub fn resolved(admission: &Admission) -> Resolved {
    let mut resolved = Resolved::default();
    let rules = admission.rules.as_ref().expect("rules of its own");
    rules
        .resolve(&admission.identity, &mut resolved)
        .expect("not too many rules");
    resolved
}

/// Writes a file with a secret.
///
/// # Panics
/// It cannot be written.
pub fn secret_file(
    folder: &thrum_conformance::folder::Folder,
    name: &str,
    secret: &str,
) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, format!("{secret}\n")).expect("a file for a secret");
    path
}

fn login(visitor: &Visitor) -> Login {
    Login {
        identity: Identity {
            client_id: visitor.client_id.as_str().into(),
            username: visitor.username.as_deref().map(Into::into),
            address: Some(std::net::Ipv4Addr::new(192, 0, 2, 7).into()),
            listener: "mqtt".into(),
            ..Identity::default()
        },
        is_username_verified: visitor.is_verified,
        is_known_there: false,
        password: visitor.password.as_deref().map(Secret::new),
        version: Version::V5,
        method: None,
    }
}
