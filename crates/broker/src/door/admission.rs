//! Admission of clients: at once where the broker can decide alone, else after the gatekeeper's
//! answer.
//!
//! The broker reads nothing from a client while it awaits the answer; bytes behind the CONNECT stay
//! in the connection.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Denial, Exchange, Identity, Login, Method, Secret};
use thrum_codec::ReasonCode;
use thrum_codec::packet::Connect;
use thrum_engine::Engine;
use thrum_engine::ids::{ConnectionId, ConnectionKey};
use thrum_engine::node::metrics::Counter;
use thrum_engine::timers::Target;
use thrum_engine::workers::WorkerId;
use thrum_protocol::server::Handshake;
use thrum_protocol::{Time, Violation};

use super::Door;
use super::answers::{AnswerTo, reply};
use super::attaching::{Applicant, Entering};
use super::judging::{Judge, NO_CREDENTIALS, has_credentials};
use super::wills::will_question;
use crate::config::CertificateName;
use crate::connection::{Connection, Phase};
use crate::edge::Edge;
use crate::traffic::Next;

/// Longest time that a client waits for its admission. The gatekeeper answers within its own
/// limits, which are shorter.
const WAIT_MAX: Duration = Duration::from_secs(75);

/// A client whose admission is pending.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) handshake: Handshake,
    pub(crate) awaited: Awaited,
    /// The connection is closed if the client is not admitted by then.
    pub(crate) deadline: Time,
}

/// The event that a pending client waits for.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// The gatekeeper's answer to its login.
    Answer(Claim),
    /// The client's next step of enhanced authentication.
    Step(Claim, Exchange),
    /// The gatekeeper's decision about the client's will.
    Will(Box<Admitted>),
    /// The end of a review of its session.
    Review(Box<Admitted>),
}

/// The credentials of a client.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    /// The user name that the client claims.
    username: Option<Box<str>>,
    /// Whether the client sent a password, a token or a key.
    has_secret: bool,
    /// Generation of the access that judges the client.
    generation: u64,
}

impl Claim {
    /// The user name that the client claims.
    pub(super) fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The client has proved its identity. A token of one user proves nothing about another user
    /// whose name was sent with it; a CONNECT without a user name holds no password to guess.
    fn is_proved(&self, identity: &Identity) -> bool {
        self.has_secret && (self.username.is_none() || self.username == identity.username)
    }
}

/// A client that is admitted.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) admission: Admission,
    /// Generation of the access that judged the client: it may be outdated when the session begins.
    pub(crate) generation: u64,
    /// The client sent credentials, and no backend exists to verify them.
    pub(crate) is_unverified: bool,
    /// The gatekeeper allowed its will.
    pub(crate) is_will_allowed: bool,
    /// The limits had room for the client before it had to wait for the review of its session,
    /// perhaps room left by its own earlier connection.
    pub(crate) has_room: bool,
}

/// The next step for a client that asks for admission.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// Its session belongs to this worker.
    Attach {
        handshake: Handshake,
        admitted: Box<Admitted>,
    },
    /// Its session belongs to another worker, or it has to queue behind this worker's own mail.
    HandOver {
        owner: WorkerId,
        handshake: Handshake,
        admitted: Box<Admitted>,
    },
    /// CONNACK with an error.
    Refuse {
        handshake: Handshake,
        user: Option<Box<str>>,
        violation: Violation,
    },
    /// The client waits and is not read until then.
    Wait {
        handshake: Handshake,
        awaited: Awaited,
    },
}

impl Outcome {
    fn refuse(handshake: Handshake, user: Option<&str>, violation: Violation) -> Self {
        Self::Refuse {
            handshake,
            user: user.map(Into::into),
            violation,
        }
    }
}

impl Door<'_> {
    /// Handles a CONNECT that is within the limits.
    pub(super) fn admit(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        handshake: Handshake,
    ) -> Outcome {
        let login = self.login(key, connect, &handshake);
        let judge = self.checks().judge(key, &login);
        let is_unverified = judge == Judge::Anonymous && has_credentials(&login);
        let identity = match judge {
            Judge::Gatekeeper => return self.ask(key, handshake, login),
            Judge::Refused => {
                self.checks().log_no_credentials(key, &handshake);
                return Outcome::refuse(handshake, connect.username, NO_CREDENTIALS);
            }
            Judge::Certificate => login.identity,
            // An unverified name is no identity.
            Judge::Anonymous => Identity {
                username: None,
                ..login.identity
            },
        };
        let admitted = Admitted {
            admission: Admission {
                identity,
                ..Admission::default()
            },
            generation: self.engine.core.settings.access.generation,
            is_unverified,
            is_will_allowed: false,
            has_room: false,
        };
        self.check_and_admit(key, handshake, admitted)
    }

    /// The credentials that the client presents.
    fn login(&mut self, key: ConnectionKey, connect: &Connect<'_>, handshake: &Handshake) -> Login {
        let connection = &self.edge.connections[key];
        let (number, address) = (connection.gate, connection.peer.own_address());
        let known = match &connection.phase {
            Phase::Handshake(certificate) => certificate.clone(),
            _ => None,
        };
        let of_layers = || connection.layered.as_ref()?.certificate();
        let certificate = known.or_else(of_layers);
        let gate = Arc::clone(self.edge.gates.get(number));
        let named = certificate
            .as_deref()
            .and_then(|certificate| match gate.username {
                CertificateName::None => None,
                CertificateName::Cn => certificate.common_name.clone(),
                CertificateName::Dn => Some(certificate.subject.clone()),
                CertificateName::Dns => certificate.dns_names.first().cloned(),
                CertificateName::Email => certificate.emails.first().cloned(),
                CertificateName::Uri => certificate.uris.first().cloned(),
            });
        let properties = &connect.properties;
        let username = named.as_deref().or(connect.username);
        Login {
            is_username_verified: named.is_some(),
            is_known_there: self.guard().is_known_there(key, username),
            identity: Identity {
                client_id: handshake.client_id().into(),
                username: named.or_else(|| connect.username.map(Into::into)),
                address,
                listener: Arc::clone(&gate.name),
                certificate,
                ..Identity::default()
            },
            password: connect.password.map(Secret::new),
            version: connect.version,
            method: properties.authentication_method.map(|name| Method {
                name: name.into(),
                data: Secret::new(properties.authentication_data.unwrap_or_default()),
            }),
        }
    }

    /// Asks the gatekeeper.
    fn ask(&mut self, key: ConnectionKey, handshake: Handshake, login: Login) -> Outcome {
        let Some(gatekeeper) = self.engine.core.settings.access.access.gatekeeper.clone() else {
            let what = "no enhanced authentication is set up";
            let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
            let user = login.identity.username.as_deref();
            return Outcome::refuse(handshake, user, violation);
        };
        let claim = Claim {
            username: login.identity.username.clone(),
            has_secret: login.password.is_some() || login.method.is_some(),
            generation: self.engine.core.settings.access.generation,
        };
        let connection = self.engine.core.outputs.id(key);
        gatekeeper.login(
            login,
            reply(self.edge, self.engine, AnswerTo::Connection(connection)),
        );
        Outcome::Wait {
            handshake,
            awaited: Awaited::Answer(claim),
        }
    }

    /// Carries out an outcome: the client begins its session, waits, or is refused. `rest` holds
    /// the bytes behind its CONNECT.
    pub(crate) fn carry_out(&mut self, key: ConnectionKey, outcome: Outcome, rest: &[u8]) -> Next {
        match outcome {
            Outcome::Attach {
                handshake,
                admitted,
            } => return self.attach(key, handshake, *admitted, rest),
            Outcome::HandOver {
                owner,
                handshake,
                admitted,
            } => {
                let entering = Entering {
                    handshake,
                    admitted,
                    unread: rest.to_vec(),
                };
                self.hand_connection_over(key, owner, entering);
            }
            Outcome::Refuse {
                handshake,
                user,
                violation,
            } => self.refuse_pending(key, &handshake, user.as_deref(), &violation),
            Outcome::Wait { handshake, awaited } => {
                self.hold(key, handshake, awaited, rest);
            }
        }
        Next::Stop
    }

    /// Stops reading the client until the answer arrives.
    pub(super) fn hold(
        &mut self,
        key: ConnectionKey,
        handshake: Handshake,
        awaited: Awaited,
        rest: &[u8],
    ) {
        let connection = &mut self.edge.connections[key];
        connection.partial.put(rest.to_vec());
        let deadline = self.engine.core.turn.now.plus(WAIT_MAX);
        let pending = Pending {
            handshake,
            awaited,
            deadline,
        };
        connection.phase = Phase::Admission(Some(Box::new(pending)));
    }

    /// The client has returned to a session that needs a long review first.
    pub(super) fn await_review(
        &mut self,
        key: ConnectionKey,
        handshake: Handshake,
        admitted: Admitted,
        rest: &[u8],
    ) {
        self.engine.core.row().add(Counter::ReviewsAwaited, 1);
        let awaited = Awaited::Review(Box::new(admitted));
        self.hold(key, handshake, awaited, rest);
        // A connection that another worker accepted has no timer here.
        self.wait_for_admission(self.engine.core.outputs.id(key));
    }

    /// Refuses a client that has waited for too long. The review of its session continues.
    pub(crate) fn refuse_after_wait(&mut self, id: ConnectionId) {
        let what = "the rules have changed and the broker is reviewing the client's subscriptions: try again later";
        self.refuse_returning(id, &Violation::new(ReasonCode::ServerBusy, what));
    }

    /// Refuses a waiting client: another connection has arrived for its session.
    pub(crate) fn refuse_taken_over(&mut self, id: ConnectionId) {
        self.engine.core.row().add(Counter::Takeovers, 1);
        let what = "another connection uses this client identifier";
        self.refuse_returning(id, &Violation::new(ReasonCode::SessionTakenOver, what));
    }

    /// Refuses a waiting client on request of the operator.
    pub(crate) fn kick_returning(&mut self, id: ConnectionId, what: &'static str) {
        self.refuse_returning(id, &Violation::new(ReasonCode::AdministrativeAction, what));
    }

    fn refuse_returning(&mut self, id: ConnectionId, violation: &Violation) {
        let pending = self.take_waiting(id, |awaited| matches!(awaited, Awaited::Review(_)));
        if let Some(pending) = pending {
            self.refuse_pending(id.key, &pending.handshake, None, violation);
        }
    }

    /// Removes a pending client, if it waits for this event.
    pub(crate) fn take_waiting(
        &mut self,
        id: ConnectionId,
        is_it: impl Fn(&Awaited) -> bool,
    ) -> Option<Pending> {
        let connection = self.edge.connection_mut(self.engine, id)?;
        connection.take_pending_if(is_it)
    }

    /// A denial for which the client is to blame counts against its address, a failure of a backend
    /// does not.
    pub(crate) fn deny(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        claim: &Claim,
        denial: &Denial,
    ) {
        let user = claim.username();
        if is_of_client(denial) {
            let client_id = sent_client_id(handshake);
            self.guard().login_failed(key, client_id, user);
        }
        if self.engine.core.may_log() {
            let peer = self.edge.connections[key].peer;
            let client_id = handshake.client_id();
            tracing::info!(%peer, client_id, user, reason = %denial.detail, "not admitted");
        }
        let violation = Violation::new(denial.reason, denial.what);
        self.refuse_pending(key, handshake, user, &violation);
    }

    /// Sends CONNACK with an error to a client whose CONNECT is no longer available.
    pub(crate) fn refuse_pending(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        user: Option<&str>,
        violation: &Violation,
    ) {
        handshake.refuse(violation, self.engine.core.outputs.buffer(Some(key)));
        // An identifier that the broker has assigned is no one's.
        let is_sent = !handshake.is_client_id_assigned();
        let applicant = Applicant {
            client_id: is_sent.then(|| handshake.client_id()),
            user,
        };
        self.refused(key, applicant, violation);
    }

    /// Checks a pending client again at its deadline.
    pub(crate) fn wait_for_admission(&mut self, id: ConnectionId) {
        if let Some(pending) = self.edge.connections[id.key].pending() {
            self.engine
                .core
                .timers
                .insert(pending.deadline, Target::Connection(id));
        }
    }

    /// The gatekeeper has admitted a client.
    pub(crate) fn proved(
        &mut self,
        key: ConnectionKey,
        handshake: Handshake,
        claim: &Claim,
        admission: Admission,
    ) -> Outcome {
        let admitted = Admitted {
            admission,
            generation: claim.generation,
            is_unverified: false,
            is_will_allowed: false,
            has_room: false,
        };
        self.check_and_admit(key, handshake, admitted)
    }

    /// The client has proved its identity: its earlier failures are forgiven.
    pub(crate) fn note_proof(
        &mut self,
        key: ConnectionKey,
        handshake: &Handshake,
        claim: &Claim,
        admission: &Admission,
    ) {
        if claim.is_proved(&admission.identity) {
            let client_id = sent_client_id(handshake);
            self.guard()
                .login_succeeded(key, client_id, claim.username());
        }
    }

    /// Completes the admission of a client, unless a check forbids it.
    fn check_and_admit(
        &mut self,
        key: ConnectionKey,
        mut handshake: Handshake,
        admitted: Admitted,
    ) -> Outcome {
        let identity = &admitted.admission.identity;
        let may_be = self
            .checks()
            .may_use_identifier(&handshake, identity)
            .and_then(|()| self.guard().may_enter(key, &handshake, identity))
            .and_then(|()| self.mount(key, &mut handshake, identity));
        if let Err(violation) = may_be {
            return Outcome::refuse(handshake, identity.username.as_deref(), violation);
        }
        match will_question(self.engine, &handshake, &admitted.admission) {
            None => self.direct_to_session(handshake, admitted),
            Some(question) => {
                self.authorizing().ask_to_decide(key, question);
                Outcome::Wait {
                    handshake,
                    awaited: Awaited::Will(Box::new(admitted)),
                }
            }
        }
    }

    /// Directs the client to its session, here or on another worker.
    pub(crate) fn direct_to_session(&self, handshake: Handshake, admitted: Admitted) -> Outcome {
        let client_id = handshake.client_id();
        let (owner, here) = (self.owner(client_id), self.engine.core.id);
        let admitted = Box::new(admitted);
        if owner == here && !self.has_older_mail(client_id) {
            return Outcome::Attach {
                handshake,
                admitted,
            };
        }
        Outcome::HandOver {
            owner,
            handshake,
            admitted,
        }
    }

    /// Applies the listener's mount point to the client, if it has one.
    fn mount(
        &mut self,
        key: ConnectionKey,
        handshake: &mut Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let number = self.edge.connections[key].gate;
        let Some(mount) = &self.edge.gates.get(number).mount else {
            return Ok(());
        };
        let Some(mount) = mount.point_of(identity) else {
            let what = "the listener's mount point needs a name that this client does not have, or that no topic can hold";
            return Err(Violation::new(ReasonCode::NotAuthorized, what));
        };
        handshake.mount(mount)
    }
}

/// The client identifier that the client sent; one that the broker assigns differs each time and
/// identifies no client.
fn sent_client_id(handshake: &Handshake) -> &str {
    if handshake.is_client_id_assigned() {
        return "";
    }
    handshake.client_id()
}

/// Whether the client is to blame for a denial, and not a backend.
pub(crate) fn is_of_client(denial: &Denial) -> bool {
    matches!(
        denial.reason,
        ReasonCode::BadUserNameOrPassword
            | ReasonCode::NotAuthorized
            | ReasonCode::BadAuthenticationMethod
    )
}

/// The connection exists, and its client waits for the review of its session.
pub(crate) fn awaits_review(edge: &Edge, engine: &Engine, id: ConnectionId) -> bool {
    let connection = edge.connection(engine, id);
    let pending = connection.and_then(Connection::pending);
    pending.is_some_and(|pending| matches!(pending.awaited, Awaited::Review(_)))
}
