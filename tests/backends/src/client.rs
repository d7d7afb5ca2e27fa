//! An authentication service for each test, and logins at it.

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

/// Longest time for an answer: the sum of all backends, and a margin for a busy machine.
pub const ANSWER_MAX: Duration = Duration::from_secs(20);

/// Result of a login.
#[derive(Debug)]
pub enum LoginResult {
    /// Admitted.
    Admitted(Box<Admission>),
    /// Denied, with this reason.
    Denied(ReasonCode),
}

/// A service with the backends of one test.
#[derive(Clone)]
pub struct Authenticator {
    service: Arc<AuthService>,
}

/// The credentials of a login.
#[derive(Clone, Debug, Default)]
pub struct LoginAttempt {
    /// Client identifier.
    pub client_id: String,
    /// User name.
    pub username: Option<String>,
    /// Password.
    pub password: Option<Vec<u8>>,
    /// The user name comes from a verified certificate.
    pub is_verified: bool,
}

impl LoginAttempt {
    /// A login with the user name of a certificate and no password.
    pub fn with_certificate(username: &str) -> Self {
        Self {
            password: None,
            is_verified: true,
            ..Self::new(username, "")
        }
    }

    /// A login with user name and password.
    pub fn new(username: &str, password: &str) -> Self {
        Self {
            client_id: format!("client-of-{username}"),
            username: Some(username.to_owned()),
            password: Some(password.as_bytes().to_vec()),
            is_verified: false,
        }
    }
}

impl Authenticator {
    /// Starts a service with this `[auth]`, in the form of a file.
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

    /// The error for these settings.
    ///
    /// # Panics
    /// The settings are valid.
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

    /// Logs in.
    ///
    /// # Panics
    /// No answer arrives in time.
    pub fn log_in(&self, attempt: &LoginAttempt) -> LoginResult {
        let (sender, receiver) = mpsc::channel();
        let reply = Box::new(move |answer| sender.send(answer).unwrap_or_default());
        self.service.login(login(attempt), reply);
        match receiver
            .recv_timeout(ANSWER_MAX)
            .expect("an answer in time")
        {
            Answer::Admit(admission) => LoginResult::Admitted(admission),
            Answer::Deny(denial) => LoginResult::Denied(denial.reason),
            other => panic!("neither admitted nor denied: {other:?}"),
        }
    }

    /// Asserts that a user name and password are admitted.
    ///
    /// # Panics
    /// They are denied.
    pub fn admits(&self, username: &str, password: &str) -> Box<Admission> {
        match self.log_in(&LoginAttempt::new(username, password)) {
            LoginResult::Admitted(admission) => admission,
            LoginResult::Denied(reason) => panic!("{username} is refused: {reason:?}"),
        }
    }

    /// Asserts that a user name and password are denied with this reason.
    ///
    /// # Panics
    /// They are admitted, or denied with another reason.
    pub fn refuses(&self, username: &str, password: &str, expected: ReasonCode) {
        match self.log_in(&LoginAttempt::new(username, password)) {
            LoginResult::Denied(reason) => assert_eq!(reason, expected, "{username:?}"),
            LoginResult::Admitted(_) => panic!("{username:?} is admitted"),
        }
    }

    /// Asserts that a verified user name is admitted without a password.
    ///
    /// # Panics
    /// It is denied.
    pub fn admits_certificate(&self, username: &str) -> Box<Admission> {
        match self.log_in(&LoginAttempt::with_certificate(username)) {
            LoginResult::Admitted(admission) => admission,
            LoginResult::Denied(reason) => panic!("{username} is refused: {reason:?}"),
        }
    }

    /// The current rules of an admitted client.
    ///
    /// # Panics
    /// No answer arrives in time.
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
    /// No answer arrives in time.
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

    /// Counts of a backend.
    pub fn counts(&self, backend: &str) -> BackendCounts {
        self.service.counts_of(backend)
    }
}

/// Topics that an admitted client may publish to.
pub fn may_publish(admission: &Admission, topic: &str, qos: QoS, retain: bool) -> Option<bool> {
    resolved(admission).publish(topic, qos, retain).allowed
}

/// The client's own rules, resolved.
///
/// # Panics
/// It has no own rules.
pub fn resolved(admission: &Admission) -> Resolved {
    let mut resolved = Resolved::default();
    let rules = admission.rules.as_ref().expect("rules of its own");
    resolved
        .add_set(rules, &admission.identity)
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

fn login(attempt: &LoginAttempt) -> Login {
    Login {
        identity: Identity {
            client_id: attempt.client_id.as_str().into(),
            username: attempt.username.as_deref().map(Into::into),
            address: Some(std::net::Ipv4Addr::new(192, 0, 2, 7).into()),
            listener: "mqtt".into(),
            ..Identity::default()
        },
        is_username_verified: attempt.is_verified,
        is_known_there: false,
        password: attempt.password.as_deref().map(Secret::new),
        version: Version::V5,
        method: None,
    }
}
