//! Who may come in: at once where the broker knows it by itself, else when the gatekeeper has answered.
//!
//! Nothing of a client is read while its answer is awaited; what came behind its CONNECT waits in its connection.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Exchange, Identity, Login, Method, Secret};
use thrum_codec::ReasonCode;
use thrum_codec::packet::{Connect, Packet};
use thrum_protocol::server::{AuthenticationStep, Handshake};
use thrum_protocol::{Time, Violation};

use super::answers::AnswerTo;
use super::input::Next;
use super::lifecycle::Ending;
use super::{Target, Worker};
use crate::config::{Anonymous, CertificateName};
use crate::connection::Phase;
use crate::metrics::Counter;

/// The gatekeeper answers within its own limits, which are shorter.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(75);

/// A client that waits for its answer, or whose step is awaited.
#[derive(Debug)]
pub(super) struct Pending {
    serial: u32,
    handshake: Handshake,
    claim: Claim,
    exchange: Option<Exchange>,
    /// Who is not in by then is closed.
    deadline: Time,
}

/// What a client has shown.
#[derive(Debug, Default)]
pub(super) struct Claim {
    /// The user name that it claims.
    username: Option<Box<str>>,
    /// A password, a token or a key.
    has_secret: bool,
}

/// How a client is to be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judge {
    /// It comes in without having shown anything.
    Anonymous,
    /// Its certificate is enough.
    Certificate,
    /// The gatekeeper.
    Gatekeeper,
    /// It has shown nothing, and that is not enough here.
    Nobody,
}

impl Worker {
    /// A CONNECT that keeps to the limits; `rest` is what came behind it in the same read.
    pub(super) fn admit(
        &mut self,
        key: u32,
        connect: &Connect<'_>,
        (handshake, rest): (Handshake, &[u8]),
    ) -> Next {
        let login = self.login(key, connect, &handshake);
        let admission = |identity| Admission {
            identity,
            ..Admission::default()
        };
        let next = match self.judge(key, &login) {
            Judge::Gatekeeper => {
                self.ask(key, handshake, login, rest);
                Next::Stop
            }
            Judge::Certificate => self.come_in(key, (handshake, rest), admission(login.identity)),
            Judge::Anonymous => {
                // What nobody has verified is not who it is.
                let identity = Identity {
                    username: None,
                    ..login.identity
                };
                self.come_in(key, (handshake, rest), admission(identity))
            }
            Judge::Nobody => {
                self.refuse_stranger(key, connect);
                Next::Stop
            }
        };
        if next == Next::Frame {
            self.charge_unread(key, rest);
        }
        next
    }

    /// What the client shows.
    fn login(&mut self, key: u32, connect: &Connect<'_>, handshake: &Handshake) -> Login {
        let connection = &self.local.connections[key as usize];
        let (number, address) = (connection.gate, connection.peer.address());
        let known = self.certificates.get(&key).cloned();
        let of_layers = || connection.layered.as_ref()?.certificate();
        let certificate = known.or_else(of_layers);
        let gate = self.local.gate(number);
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
        Login {
            is_username_verified: named.is_some(),
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

    fn judge(&mut self, key: u32, login: &Login) -> Judge {
        let has_gatekeeper = self.local.settings.access.access.gatekeeper.is_some();
        let shows_something = login.identity.username.is_some() || login.password.is_some();
        if login.method.is_some() || (shows_something && has_gatekeeper) {
            return Judge::Gatekeeper;
        }
        if login.is_username_verified {
            return Judge::Certificate;
        }
        let connection = &self.local.connections[key as usize];
        let (number, is_loopback) = (connection.gate, connection.peer.is_loopback());
        let of_node = self.local.settings.anonymous;
        let of_gate = self.local.gate(number).anonymous;
        match of_gate.unwrap_or(of_node) {
            Anonymous::Everyone => Judge::Anonymous,
            Anonymous::Loopback if is_loopback => Judge::Anonymous,
            Anonymous::Loopback | Anonymous::Nobody => Judge::Nobody,
        }
    }

    fn refuse_stranger(&mut self, key: u32, connect: &Connect<'_>) {
        if self.may_log() {
            let connection = &self.local.connections[key as usize];
            let (peer, client_id) = (connection.peer, connect.client_id);
            if self.local.settings.access.access.gatekeeper.is_some() {
                tracing::warn!(%peer, client_id, "refused: it shows no credentials, and anonymous clients are not \
                     admitted from here (auth.anonymous)");
            } else {
                tracing::warn!(%peer, client_id, "refused: no users are set up and anonymous clients are allowed \
                     from this machine only; add one with: thrum users add NAME, or set auth.anonymous = true to let \
                     every client in");
            }
        }
        let what = "not authorized: the broker admits no clients without credentials from here \
                    (auth.anonymous in its configuration)";
        let violation = Violation::new(ReasonCode::NotAuthorized, what);
        self.refuse(key, connect, &violation);
    }

    fn ask(&mut self, key: u32, handshake: Handshake, login: Login, rest: &[u8]) {
        let Some(gatekeeper) = self.local.settings.access.access.gatekeeper.clone() else {
            let what = "no enhanced authentication is set up";
            let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
            self.refuse_pending(key, &handshake, &violation);
            return;
        };
        let claim = Claim {
            username: login.identity.username.clone(),
            has_secret: login.password.is_some() || login.method.is_some(),
        };
        let serial = self.wait_for_answer(key, (handshake, claim), rest);
        gatekeeper.login(login, self.reply(AnswerTo::Connection { key, serial }));
    }

    /// Nothing is read until the answer is there.
    fn wait_for_answer(
        &mut self,
        key: u32,
        (handshake, claim): (Handshake, Claim),
        rest: &[u8],
    ) -> u32 {
        let connection = &mut self.local.connections[key as usize];
        connection.phase = Phase::Admission;
        connection.partial = rest.to_vec();
        let serial = connection.serial;
        let deadline = self.local.now.plus(ANSWER_TIME_MAX);
        let pending = Pending {
            serial,
            handshake,
            claim,
            exchange: None,
            deadline,
        };
        self.admissions.insert(key, pending);
        serial
    }

    /// The gatekeeper has answered about a connection that is not in yet.
    pub(super) fn answered(&mut self, key: u32, serial: u32, answer: Answer) {
        let connection = self.local.connections.get(key as usize);
        let is_waiting = connection.is_some_and(|connection| {
            connection.serial == serial && connection.phase == Phase::Admission
        });
        let Some(pending) = self.admissions.remove(&key).filter(|_| is_waiting) else {
            return;
        };
        match answer {
            Answer::Admit(admission) => {
                if pending.claim.has_secret {
                    self.login_succeeded(
                        key,
                        &pending.handshake,
                        pending.claim.username.as_deref(),
                    );
                }
                let partial = std::mem::take(&mut self.local.connections[key as usize].partial);
                let next = self.come_in(key, (pending.handshake, &partial), *admission);
                self.local.end_unit();
                if next == Next::Frame {
                    self.charge_bytes(key, partial.len());
                    self.go_on_reading(key, &partial);
                }
            }
            Answer::Deny(denial) => {
                self.note_denial(key, &pending, &denial);
                self.deny(key, &pending.handshake, &denial);
            }
            Answer::Challenge { data, exchange } => self.challenge(key, pending, &data, exchange),
            Answer::Unchanged => {}
        }
    }

    /// What is wrong with the client counts against its address, what is wrong with a backend does not.
    fn note_denial(&mut self, key: u32, pending: &Pending, denial: &Denial) {
        let is_of_client = matches!(
            denial.reason,
            ReasonCode::BadUserNameOrPassword
                | ReasonCode::NotAuthorized
                | ReasonCode::BadAuthenticationMethod
        );
        if is_of_client {
            self.login_failed(key, &pending.handshake, pending.claim.username.as_deref());
        }
    }

    fn deny(&mut self, key: u32, handshake: &Handshake, denial: &Denial) {
        if self.may_log() {
            let peer = self.local.connections[key as usize].peer;
            let client_id = handshake.client_id();
            tracing::info!(%peer, client_id, reason = %denial.detail, "not admitted");
        }
        let violation = Violation::new(denial.reason, denial.what);
        self.refuse_pending(key, handshake, &violation);
    }

    /// CONNACK with an error for a client whose CONNECT is no longer at hand.
    fn refuse_pending(&mut self, key: u32, handshake: &Handshake, violation: &Violation) {
        let out = &mut self.local.connections[key as usize].out;
        handshake.refuse(violation, out);
        self.refused(key, violation);
    }

    /// The client has to take a step of enhanced authentication.
    fn challenge(&mut self, key: u32, mut pending: Pending, data: &[u8], exchange: Exchange) {
        let connection = &mut self.local.connections[key as usize];
        if let Err(violation) = pending.handshake.challenge(data, &mut connection.out) {
            self.refuse_pending(key, &pending.handshake, &violation);
            return;
        }
        connection.phase = Phase::Challenged;
        let partial = std::mem::take(&mut connection.partial);
        pending.exchange = Some(exchange);
        pending.deadline = self.local.now.plus(self.local.settings.connect_timeout);
        self.timers.insert(
            pending.deadline,
            Target::Connection {
                key,
                serial: pending.serial,
            },
        );
        self.admissions.insert(key, pending);
        self.local.wrote(key);
        self.go_on_reading(key, &partial);
    }

    /// A packet of a client whose step is awaited.
    pub(super) fn challenged(&mut self, key: u32, packet: &Packet<'_>, rest: &[u8]) -> Next {
        let Some(mut pending) = self.admissions.remove(&key) else {
            self.lost(key, Ending::ClosedByPeer);
            return Next::Stop;
        };
        match pending.handshake.authentication_step(packet) {
            Err(violation) => {
                self.local.row().add(Counter::Violations, 1);
                self.refuse_pending(key, &pending.handshake, &violation);
            }
            Ok(AuthenticationStep::Disconnected) => self.lost(key, Ending::Disconnected),
            Ok(AuthenticationStep::Data(data)) => {
                let gatekeeper = self.local.settings.access.access.gatekeeper.clone();
                let Some((gatekeeper, exchange)) = gatekeeper.zip(pending.exchange.take()) else {
                    let what = "enhanced authentication is no longer set up";
                    let violation = Violation::new(ReasonCode::BadAuthenticationMethod, what);
                    self.refuse_pending(key, &pending.handshake, &violation);
                    return Next::Stop;
                };
                let standing = (pending.handshake, pending.claim);
                let serial = self.wait_for_answer(key, standing, rest);
                let reply = self.reply(AnswerTo::Connection { key, serial });
                gatekeeper.step(exchange, data.to_vec(), reply);
            }
        }
        Next::Stop
    }

    /// A client that is not in yet has some time left.
    pub(super) fn is_in_time(&self, key: u32) -> bool {
        let pending = self.admissions.get(&key);
        pending.is_some_and(|pending| pending.deadline > self.local.now)
    }

    /// Looks at a client that is not in yet again, when its time is over.
    pub(super) fn wait_for_admission(&mut self, key: u32, serial: u32) {
        if let Some(pending) = self.admissions.get(&key) {
            self.timers
                .insert(pending.deadline, Target::Connection { key, serial });
        }
    }

    /// The client may come in: to its session, here or on another worker.
    fn come_in(
        &mut self,
        key: u32,
        (mut handshake, rest): (Handshake, &[u8]),
        admission: Admission,
    ) -> Next {
        let may_be = self
            .may_enter(key, &handshake, &admission.identity)
            .and_then(|()| self.mount(key, &mut handshake, &admission.identity));
        if let Err(violation) = may_be {
            self.refuse_pending(key, &handshake, &violation);
            return Next::Stop;
        }
        let owner = self.owner(handshake.client_id());
        if owner != self.local.id || self.has_older_mail(handshake.client_id()) {
            let unread = rest.to_vec();
            self.hand_connection_over(key, owner, (handshake, Box::new(admission)), unread);
            return Next::Stop;
        }
        self.attach(key, handshake, admission)
    }

    /// Puts the client behind the listener's mount point, if it has one.
    fn mount(
        &mut self,
        key: u32,
        handshake: &mut Handshake,
        identity: &Identity,
    ) -> Result<(), Violation> {
        let number = self.local.connections[key as usize].gate;
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
    pub(super) fn go_on_reading(&mut self, key: u32, partial: &[u8]) {
        let Some(connection) = self.local.connections.get(key as usize) else {
            return;
        };
        let serial = connection.serial;
        if !partial.is_empty() {
            self.metered(key, |worker| worker.input(key, partial));
        }
        let connection = self.local.connections.get(key as usize);
        if connection.is_some_and(|connection| connection.serial == serial) {
            // The end of the stream may have been signalled meanwhile.
            self.read(key, true);
        }
    }
}
