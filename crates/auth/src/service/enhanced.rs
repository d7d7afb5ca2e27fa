//! Enhanced authentication: SCRAM-SHA-256 against the user store.

use std::sync::Arc;

use thrum_access::{Answer, Denial, Exchange, Login};
use thrum_codec::ReasonCode;
use thrum_scram::server::{self, Started};
use thrum_scram::{Credential, METHOD};

use super::chain::denied;
use super::state::State;
use crate::config::USERS;

/// A login between two steps.
struct Step {
    login: Login,
    started: Started,
    credential: Credential,
}

/// Answers the client's first message.
pub(super) fn start(state: &State, login: Login) -> Answer {
    let Some(method) = &login.method else {
        return Answer::Deny(unknown_method(""));
    };
    let chain = state.chain(&login.identity.listener);
    let has_store = chain.links.iter().any(|link| &*link.name == USERS);
    let Some(users) = state.users.as_ref().filter(|_| has_store) else {
        return Answer::Deny(unknown_method(&method.name));
    };
    if &*method.name != METHOD {
        return Answer::Deny(unknown_method(&method.name));
    }
    match server::start(method.data.expose(), |name| users.credential(name)) {
        Ok((data, started, credential)) => Answer::Challenge {
            data,
            exchange: Exchange(Box::new(Step {
                login,
                started,
                credential,
            })),
        },
        Err(refused) => Answer::Deny(denied(METHOD, &refused.to_string())),
    }
}

/// Answers the client's last message.
pub(super) fn finish(state: &Arc<State>, exchange: Exchange, data: &[u8]) -> Answer {
    let Ok(step) = exchange.0.downcast::<Step>() else {
        return Answer::Deny(unknown_method(""));
    };
    let login = &step.login;
    let link = state.links.iter().find(|link| &*link.name == USERS);
    let verified = verify(state, &step, data);
    if let Some(link) = link {
        link.decided(verified.is_ok());
    }
    match verified {
        Ok((admitted, data)) => {
            let mut admission = state.admission(login.clone(), admitted);
            admission.data = Some(data);
            Answer::Admit(Box::new(admission))
        }
        Err(denial) => Answer::Deny(denial),
    }
}

fn verify(
    state: &State,
    step: &Step,
    data: &[u8],
) -> Result<(super::chain::Admitted, Vec<u8>), Denial> {
    let username = &step.started.username;
    let end = step.started.finish(data, &step.credential);
    let end = end.map_err(|refused| denied(METHOD, &refused.to_string()))?;
    // The user name beside the method, and the verified one in a re-authentication.
    let claimed = step.login.identity.username.as_deref();
    if claimed.is_some_and(|claimed| claimed != username) {
        return Err(denied(METHOD, "another user name than that of the client"));
    }
    // Between the two messages the user may have been removed or have changed its password.
    let users = state.users.as_ref();
    if users.is_none_or(|users| users.credential(username) != step.credential) {
        return Err(denied(METHOD, "the user has changed"));
    }
    let admitted = state.user(username);
    let admitted = admitted.map_err(|denial| denied(METHOD, &denial.detail))?;
    Ok((admitted, end.data))
}

/// The client may try without it, or with another.
fn unknown_method(name: &str) -> Denial {
    Denial {
        reason: ReasonCode::BadAuthenticationMethod,
        what: "authentication method not supported",
        detail: format!("method {name:?}; {METHOD} is known, for the user store").into(),
    }
}
