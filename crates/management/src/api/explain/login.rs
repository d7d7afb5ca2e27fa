//! How a client was admitted: the part of its login chain that decided.

use serde::{Deserialize, Serialize};
use thrum_access::Identity;
use thrum_broker::ClientLogin;
use utoipa::ToSchema;

use crate::timestamp::timestamp;

/// How a client was admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedLogin {
    /// Its user; null for an anonymous client.
    pub user: Option<String>,
    /// The backend that accepted it; null for an anonymous client, for one that its certificate
    /// alone admits, and for a session that was restored after a restart.
    pub backend: Option<String>,
    /// Its roles, also those of its groups.
    pub roles: Vec<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// It may do everything.
    pub superuser: bool,
    /// What the backend or a token says of it, as `NAME=VALUE`.
    pub attributes: Vec<String>,
    /// Rules of its own, from the backend or from the store with its groups and roles.
    pub rules: usize,
    /// When its connection began; null while it is disconnected.
    pub since: Option<String>,
    /// All of it in words.
    pub text: String,
}

impl From<ClientLogin> for ExplainedLogin {
    fn from(login: ClientLogin) -> Self {
        let since = login.since.map(timestamp);
        let Some(admission) = login.admission else {
            return Self {
                user: None,
                backend: None,
                roles: Vec::new(),
                groups: Vec::new(),
                superuser: false,
                attributes: Vec::new(),
                rules: 0,
                text: "there are neither users nor rules: every client may connect and do \
                       everything"
                    .to_owned(),
                since,
            };
        };
        let identity = &admission.identity;
        let texts = |names: &[Box<str>]| names.iter().map(ToString::to_string).collect();
        let attributes = identity.claims.iter();
        Self {
            user: identity.username.as_deref().map(ToOwned::to_owned),
            backend: identity.backend.as_deref().map(ToOwned::to_owned),
            roles: texts(&identity.roles),
            groups: texts(&identity.groups),
            superuser: identity.is_superuser,
            attributes: attributes
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            rules: admission.rules.as_ref().map_or(0, |rules| rules.len()),
            text: words(identity, since.as_deref()),
            since,
        }
    }
}

fn words(identity: &Identity, since: Option<&str>) -> String {
    let mut text = match (&identity.backend, &identity.username, &identity.certificate) {
        (Some(backend), Some(user), _) => format!("{backend} accepted the user {user:?}"),
        (Some(backend), None, _) => format!("{backend} accepted the client"),
        (None, Some(user), Some(_)) => format!("the certificate proves the user {user:?}"),
        (None, Some(user), None) => format!("the user is {user:?}"),
        (None, None, _) => "the client is anonymous".to_owned(),
    };
    if identity.is_superuser {
        text.push_str(", who may do everything");
    }
    for (kind, names) in [("role", &identity.roles), ("group", &identity.groups)] {
        if !names.is_empty() {
            let plural = if names.len() == 1 { "" } else { "s" };
            let names = names.join(", ");
            text.extend([", ", kind, plural, " ", names.as_str()]);
        }
    }
    match since {
        Some(since) => text.extend(["; connected since ", since]),
        None => text.push_str("; it is disconnected"),
    }
    text
}
