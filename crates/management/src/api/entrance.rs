//! Where requests come in, and who sends them.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use thrum_broker::HttpPort;

use super::{ApiState, PREFIX, Problem};
use crate::audit::Change;
use crate::login::{
    Caller, CurrentSession, Identified, Means, Refusal, Scope, Shows, Unidentified,
};

/// Where requests come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entrance {
    /// The control socket: whoever may open it may do everything.
    Local,
    /// A port: senders show a key or the cookie of a session. Each request has a [`Peer`] as an
    /// extension.
    Port,
}

/// The other end of a request at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Address of the sender: what a trusted proxy says, else that of the connection.
    pub address: IpAddr,
    /// It came over TLS, to this broker or to a trusted proxy.
    pub is_tls: bool,
}

/// Who sent a request.
#[derive(Clone)]
pub(super) struct Sender {
    pub(super) caller: Caller,
    pub(super) session: Option<CurrentSession>,
    pub(super) is_tls: bool,
    /// The address that it came in at; none of the control socket.
    pub(super) port: Option<HttpPort>,
}

impl Sender {
    /// The name of an administrator that asks about itself, and its session.
    pub(super) fn administrator(&self) -> Result<(&str, &CurrentSession), Problem> {
        match &self.session {
            Some(session) => Ok((&self.caller.name, session)),
            None if self.caller.means == Means::Anonymous => Err(Refusal::NoProof.into()),
            None => Err(Refusal::NoSession.into()),
        }
    }

    /// Whether it still has a scope: to be asked before each part of what takes long.
    pub(super) fn check_still(&self, api: &ApiState, scope: Scope) -> Result<(), Problem> {
        let login = &api.security.login;
        match login.scopes_now(&self.caller, self.session.as_ref()) {
            Some(scopes) if scopes.allows(scope) => Ok(()),
            Some(_) => Err(Refusal::NoScope(scope).into()),
            None => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "login ended",
                "the session or the key of this request has ended",
                "log in again, or show another key, and repeat the request",
            )),
        }
    }
}

#[cfg(test)]
impl From<Caller> for Sender {
    fn from(caller: Caller) -> Self {
        Self {
            caller,
            session: None,
            is_tls: false,
            port: None,
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Sender {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        // Only a mistake in the router leaves it out.
        let sender = parts.extensions.get::<Self>().cloned();
        sender.ok_or_else(|| Refusal::NoProof.into())
    }
}

/// Finds out who sends a request.
pub(super) async fn identify(
    State(api): State<ApiState>,
    mut request: Request,
    next: Next,
) -> Response {
    let sender = match api.entrance {
        Entrance::Local => Ok(Sender {
            caller: Caller::local(),
            session: None,
            is_tls: false,
            port: None,
        }),
        Entrance::Port => match request.extensions().get::<Peer>().copied() {
            Some(peer) => identify_peer(&api, &request, peer),
            // Without the address wrong logins would not be slowed.
            None => return no_address().into_response(),
        },
    };
    match sender {
        Ok(sender) => {
            request.extensions_mut().insert(sender);
            next.run(request).await
        }
        Err(unidentified) => {
            let Unidentified { caller, refusal } = unidentified;
            let asked = asked(&request, "");
            // The body of a request is bound to one thread.
            drop(request);
            api.refused(&caller, asked, &refusal).await;
            Problem::from(refusal).into_response()
        }
    }
}

fn identify_peer(api: &ApiState, request: &Request, peer: Peer) -> Result<Sender, Unidentified> {
    let login = &api.security.login;
    let identified = login.identify(&Shows {
        headers: request.headers(),
        uri: request.uri(),
        method: request.method(),
        from: Some(peer.address),
        is_tls: peer.is_tls,
    });
    let Identified {
        caller,
        session,
        used_key,
    } = identified?;
    if let Some(used) = used_key {
        // Not waited for: once an hour for each key.
        drop(tokio::spawn(Arc::clone(login).note_use(used)));
    }
    Ok(Sender {
        caller,
        session,
        is_tls: peer.is_tls,
        port: request.extensions().get().cloned(),
    })
}

fn no_address() -> Problem {
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "no address",
        "the address of the sender is not known",
        "report this error of the broker",
    )
}

/// What the sender of a request needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Right {
    /// Nothing.
    Nothing,
    /// It is known who sends it.
    Login,
    /// The session of an administrator.
    Session,
    /// A scope.
    Scope(Scope),
}

impl Right {
    /// Why a sender does not have it.
    fn refusal(self, sender: &Sender) -> Option<Refusal> {
        let is_anonymous = sender.caller.means == Means::Anonymous;
        let has_it = match self {
            Self::Nothing => true,
            Self::Login => !is_anonymous,
            Self::Session => sender.session.is_some(),
            Self::Scope(scope) => sender.caller.may(scope),
        };
        match self {
            _ if has_it => None,
            _ if is_anonymous => Some(Refusal::NoProof),
            Self::Scope(scope) => Some(Refusal::NoScope(scope)),
            Self::Nothing | Self::Login | Self::Session => Some(Refusal::NoSession),
        }
    }
}

/// The right that a route needs.
#[derive(Clone, Debug)]
pub(super) struct Permission {
    pub(super) api: ApiState,
    pub(super) right: Right,
}

/// Refuses who lacks the right that a route needs.
pub(super) async fn permit(
    State(Permission { api, right }): State<Permission>,
    sender: Sender,
    request: Request,
    next: Next,
) -> Response {
    let caller = &sender.caller;
    let Some(refusal) = right.refusal(&sender) else {
        return next.run(request).await;
    };
    // The router has taken the prefix off.
    let asked = asked(&request, PREFIX);
    drop(request);
    api.refused(caller, asked, &refusal).await;
    Problem::from(refusal).into_response()
}

/// What a request asks, without its query, which may contain a secret by mistake.
fn asked(request: &Request, prefix: &str) -> Change {
    let path = request.uri().path();
    Change::new("request", &format!("{} {prefix}{path}", request.method()))
}
