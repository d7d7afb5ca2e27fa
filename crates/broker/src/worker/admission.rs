//! Who may come in: at once where the broker knows it by itself, else when the gatekeeper has
//! answered.
//!
//! Nothing of a client is read while its answer is awaited; what came behind its CONNECT waits in
//! its connection.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Exchange, Identity, Login, Method, Secret};
use thrum_codec::ReasonCode;
use thrum_codec::packet::Connect;
use thrum_protocol::server::Handshake;
use thrum_protocol::{Time, Violation};

use super::answers::AnswerTo;
use super::handshake::Applicant;
use super::input::Next;
use super::judging::{Judge, shows_something};
use super::lifecycle::Ending;
use super::{Target, Worker};
use crate::config::CertificateName;
use crate::connection::{Connection, Phase};
use crate::ids::{ConnectionId, ConnectionKey};
use crate::metrics::Counter;

/// Longest time that a client waits to be let in. The gatekeeper answers within its own limits,
/// which are shorter.
const WAIT_MAX: Duration = Duration::from_secs(75);

/// A client that is not in yet.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(super) handshake: Handshake,
    pub(crate) awaited: Awaited,
    /// Who is not in by then is closed.
    pub(super) deadline: Time,
}

/// What it waits for.
#[derive(Debug)]
pub(crate) enum Awaited {
    /// The gatekeeper's answer to its login.
    Answer(Claim),
    /// Its own step of enhanced authentication.
    Step(Claim, Exchange),
    /// The gatekeeper's word about its will.
    Will(Box<Admitted>),
    /// The end of a review of its session.
    Review(Box<Admitted>),
}

/// What a client has shown.
#[derive(Debug, Default)]
pub(crate) struct Claim {
    /// The user name that it claims.
    username: Option<Box<str>>,
    /// A password, a token or a key.
    has_secret: bool,
    /// Of the access that it is judged by.
    generation: u64,
}

impl Claim {
    /// The user name that the client claims.
    pub(super) fn username(&self) -> Option<&str> {
        self.username.as_deref()
    }

    /// The client has shown that it is who it says. A token of one user proves nothing about
    /// another whose name was sent with it; without a name in CONNECT there is no password to
    /// guess.
    fn is_proved(&self, identity: &Identity) -> bool {
        self.has_secret && (self.username.is_none() || self.username == identity.username)
    }
}

/// A client that may come in.
#[derive(Debug)]
pub(crate) struct Admitted {
    pub(crate) admission: Admission,
    /// Of the access that it was judged by: there may be another one when it begins its session.
    pub(crate) generation: u64,
    /// It showed credentials, and there was nobody to verify them.
    pub(crate) is_unverified: bool,
    /// The gatekeeper allowed its will.
    pub(crate) is_will_allowed: bool,
    /// There was room for it before it had to wait for the review of its session, maybe that of its
    /// own connection before.
    pub(crate) has_room: bool,
}

impl Worker {
    /// A CONNECT that keeps to the limits; `rest` is what came behind it in the same read.
    pub(super) fn admit(
        &mut self,
        key: ConnectionKey,
        connect: &Connect<'_>,
        (handshake, rest): (Handshake, &[u8]),
    ) -> Next {
        let login = self.login(key, connect, &handshake);
        let judge = self.judge(key, &login);
        let is_unverified = judge == Judge::Anonymous && shows_something(&login);
        let identity = match judge {
            Judge::Gatekeeper => {
                self.ask(key, handshake, login, rest);
                return Next::Stop;
            }
            Judge::Nobody => {
                self.refuse_stranger(key, connect);
                return Next::Stop;
            }
            Judge::Certificate => login.identity,
            // What nobody has verified is not who it is.
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
            generation: self.local.settings.access.generation,
            is_unverified,
            is_will_allowed: false,
            has_room: false,
        };
        self.come_in(key, (handshake, rest), admitted)
    }

    /// What the client shows.
    fn login(&mut self, key: ConnectionKey, connect: &Connect<'_>, handshake: &Handshake) -> Login {
        let connection = &self.local.connections[key];
        let (number, address) = (connection.gate, connection.peer.own_address());
        let known = match &connection.phase {
            Phase::Handshake(certificate) => certificate.clone(),
            _ => None,
        };
        let of_layers = || connection.layered.as_ref()?.certificate();
        let certificate = known.or_else(of_layers);
        let gate = Arc::clone(self.local.gate(number));
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
            is_known_there: self.is_known_there(key, username),
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

    fn ask(&mut self, key: ConnectionKey, handshake: Handshake, login: Login, rest: &[u8]) {
        let Some(gatekeeper) = self.local.settings.access.access.gatekeeper.clone() else {
            let what = "no enhanced authentication is set up";
            let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
            let user = login.identity.username.as_deref();
            self.refuse_pending(key, (&handshake, user), &violation);
            return;
        };
        let claim = Claim {
            username: login.identity.username.clone(),
            has_secret: login.password.is_some() || login.method.is_some(),
            generation: self.local.settings.access.generation,
        };
        let connection = self.hold(key, (handshake, Awaited::Answer(claim)), rest);
        gatekeeper.login(login, self.reply(AnswerTo::Connection(connection)));
    }

    /// Nothing is read until the answer is there.
    pub(super) fn hold(
        &mut self,
        key: ConnectionKey,
        (handshake, awaited): (Handshake, Awaited),
        rest: &[u8],
    ) -> ConnectionId {
        let connection = &mut self.local.connections[key];
        connection.partial.put(rest.to_vec());
        let deadline = self.local.now.plus(WAIT_MAX);
        let pending = Pending {
            handshake,
            awaited,
            deadline,
        };
        connection.phase = Phase::Admission(Some(Box::new(pending)));
        connection.id(key)
    }

    /// The gatekeeper has answered about a connection that is not in yet.
    pub(super) fn answered(&mut self, id: ConnectionId, answer: Answer) {
        let key = id.key;
        let Some(Pending {
            handshake,
            awaited: Awaited::Answer(claim),
            ..
        }) = self.take_waiting(id, |awaited| matches!(awaited, Awaited::Answer(_)))
        else {
            return;
        };
        match answer {
            Answer::Admit(admission) => {
                if claim.is_proved(&admission.identity) {
                    let client_id = sent_client_id(&handshake);
                    self.login_succeeded(key, client_id, claim.username.as_deref());
                }
                let admitted = Admitted {
                    admission: *admission,
                    generation: claim.generation,
                    is_unverified: false,
                    is_will_allowed: false,
                    has_room: false,
                };
                self.after_wait(key, |worker, rest| {
                    worker.come_in(key, (handshake, rest), admitted)
                });
            }
            Answer::Deny(denial) => {
                self.note_denial(key, (&handshake, &claim), &denial);
                let user = claim.username.as_deref();
                self.deny(key, (&handshake, user), &denial);
            }
            Answer::Challenge { data, exchange } => {
                self.challenge(key, (handshake, claim), &data, exchange);
            }
            Answer::Unchanged => {}
        }
    }

    /// The client has come back to a session that is reviewed first, which takes long.
    pub(super) fn await_review(
        &mut self,
        key: ConnectionKey,
        (handshake, admitted): (Handshake, Admitted),
        rest: &[u8],
    ) {
        self.local.row().add(Counter::ReviewsAwaited, 1);
        let awaited = Awaited::Review(Box::new(admitted));
        let connection = self.hold(key, (handshake, awaited), rest);
        // One that another worker has accepted has no timer here.
        self.wait_for_admission(connection);
    }

    /// The connection is there, and its client waits for the review of its session.
    pub(super) fn awaits_review(&self, id: ConnectionId) -> bool {
        let connection = self.local.connection(id);
        let pending = connection.and_then(Connection::pending);
        pending.is_some_and(|pending| matches!(pending.awaited, Awaited::Review(_)))
    }

    /// The session has been reviewed. Its client is looked at from the beginning: much may be
    /// otherwise by now.
    pub(super) fn go_in_after_review(&mut self, id: ConnectionId) {
        let Some(Pending {
            handshake,
            awaited: Awaited::Review(admitted),
            ..
        }) = self.take_waiting(id, |awaited| matches!(awaited, Awaited::Review(_)))
        else {
            return;
        };
        self.after_wait(id.key, |worker, rest| {
            worker.go_in(id.key, (handshake, rest), *admitted)
        });
    }

    /// The client has waited for long enough. Its session is reviewed all the same.
    pub(super) fn refuse_after_wait(&mut self, id: ConnectionId) {
        let what = "the broker looks at the client's subscriptions, as the rules have changed: try again later";
        self.refuse_returning(id, &Violation::new(ReasonCode::ServerBusy, what));
    }

    /// Another connection has come for the session that this one waits for.
    pub(super) fn dismiss_returning(&mut self, id: ConnectionId) {
        self.local.row().add(Counter::Takeovers, 1);
        let what = "another connection uses this client identifier";
        self.refuse_returning(id, &Violation::new(ReasonCode::SessionTakenOver, what));
    }

    fn refuse_returning(&mut self, id: ConnectionId, violation: &Violation) {
        let pending = self.take_waiting(id, |awaited| matches!(awaited, Awaited::Review(_)));
        if let Some(pending) = pending {
            self.refuse_pending(id.key, (&pending.handshake, None), violation);
        }
    }

    /// Takes out a client that is not in yet, if it waits for that.
    fn take_waiting(
        &mut self,
        id: ConnectionId,
        is_it: impl Fn(&Awaited) -> bool,
    ) -> Option<Pending> {
        let connection = self.local.connection_mut(id)?;
        connection.take_pending_if(is_it)
    }

    /// Lets a client in that had to wait and is still there, and then handles what came behind its
    /// CONNECT.
    pub(super) fn after_wait(
        &mut self,
        key: ConnectionKey,
        enter: impl FnOnce(&mut Self, &[u8]) -> Next,
    ) {
        if self.has_left(key) {
            self.lost(key, Ending::ClosedByPeer);
            return;
        }
        let partial = self.local.connections[key].partial.take();
        let next = enter(self, &partial);
        self.local.end_unit();
        if next == Next::Frame {
            self.go_on_reading(key, &partial);
        }
    }

    /// What is wrong with the client counts against its address, what is wrong with a backend does
    /// not.
    fn note_denial(
        &mut self,
        key: ConnectionKey,
        (handshake, claim): (&Handshake, &Claim),
        denial: &Denial,
    ) {
        if is_of_client(denial) {
            self.login_failed(key, sent_client_id(handshake), claim.username.as_deref());
        }
    }

    fn deny(
        &mut self,
        key: ConnectionKey,
        (handshake, user): (&Handshake, Option<&str>),
        denial: &Denial,
    ) {
        if self.may_log() {
            let peer = self.local.connections[key].peer;
            let client_id = handshake.client_id();
            tracing::info!(%peer, client_id, user, reason = %denial.detail, "not admitted");
        }
        let violation = Violation::new(denial.reason, denial.what);
        self.refuse_pending(key, (handshake, user), &violation);
    }

    /// CONNACK with an error for a client whose CONNECT is no longer at hand.
    pub(super) fn refuse_pending(
        &mut self,
        key: ConnectionKey,
        (handshake, user): (&Handshake, Option<&str>),
        violation: &Violation,
    ) {
        handshake.refuse(violation, self.local.output(key));
        let applicant = Applicant {
            client_id: Some(handshake.client_id()),
            user,
        };
        self.refused(key, applicant, violation);
    }

    /// A client that is not in yet has some time left.
    pub(super) fn is_in_time(&self, key: ConnectionKey) -> bool {
        let pending = self.local.connections[key].pending();
        pending.is_some_and(|pending| pending.deadline > self.local.now)
    }

    /// Looks at a client that is not in yet again, when its time is over.
    pub(super) fn wait_for_admission(&mut self, id: ConnectionId) {
        if let Some(pending) = self.local.connections[id.key].pending() {
            self.timers.insert(pending.deadline, Target::Connection(id));
        }
    }

    /// The client may come in, if nothing else is against it.
    fn come_in(
        &mut self,
        key: ConnectionKey,
        (mut handshake, rest): (Handshake, &[u8]),
        admitted: Admitted,
    ) -> Next {
        let identity = &admitted.admission.identity;
        let may_be = self
            .may_be_called(&handshake, identity)
            .and_then(|()| self.may_enter(key, &handshake, identity))
            .and_then(|()| self.mount(key, &mut handshake, identity));
        if let Err(violation) = may_be {
            let user = identity.username.as_deref();
            self.refuse_pending(key, (&handshake, user), &violation);
            return Next::Stop;
        }
        match self.will_question(&handshake, &admitted.admission) {
            None => self.go_in(key, (handshake, rest), admitted),
            Some(question) => {
                let awaited = Awaited::Will(Box::new(admitted));
                self.hold(key, (handshake, awaited), rest);
                self.ask_to_decide(key, question);
                Next::Stop
            }
        }
    }

    /// To its session, here or on another worker.
    pub(super) fn go_in(
        &mut self,
        key: ConnectionKey,
        (handshake, rest): (Handshake, &[u8]),
        admitted: Admitted,
    ) -> Next {
        let owner = self.owner(handshake.client_id());
        if owner != self.local.id || self.has_older_mail(handshake.client_id()) {
            let unread = rest.to_vec();
            self.hand_connection_over(key, owner, (handshake, Box::new(admitted)), unread);
            return Next::Stop;
        }
        self.attach(key, (handshake, rest), admitted)
    }

    /// Puts the client behind the listener's mount point, if it has one.
    fn mount(
        &mut self,
        key: ConnectionKey,
        handshake: &mut Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let number = self.local.connections[key].gate;
        let Some(mount) = &self.local.gate(number).mount else {
            return Ok(());
        };
        let Some(mount) = mount.point_of(identity) else {
            let what = "the listener's mount point needs a name that this client does not have, or that no topic can hold";
            return Err(Violation::new(ReasonCode::NotAuthorized, what));
        };
        handshake.mount(mount)
    }

    /// What waited while the client was not read, and what came meanwhile.
    pub(super) fn go_on_reading(&mut self, key: ConnectionKey, partial: &[u8]) {
        let Some(connection) = self.local.connections.get(key) else {
            return;
        };
        let id = connection.id(key);
        if !partial.is_empty() {
            self.input(key, partial);
        }
        if self.local.connection(id).is_some() {
            self.read_socket(key);
        }
    }
}

/// One that the broker gives is another one each time: nobody is known by it.
fn sent_client_id(handshake: &Handshake) -> &str {
    if handshake.is_client_id_ours() {
        return "";
    }
    handshake.client_id()
}

/// Whether the client is to blame for a denial, and not a backend.
pub(super) fn is_of_client(denial: &Denial) -> bool {
    matches!(
        denial.reason,
        ReasonCode::BadUserNameOrPassword
            | ReasonCode::NotAuthorized
            | ReasonCode::BadAuthenticationMethod
    )
}
