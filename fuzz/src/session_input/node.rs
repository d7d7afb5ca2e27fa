//! A node for one client: the environment of a session in a broker, without sockets and routing.

use std::collections::VecDeque;
use std::sync::Arc;

use thrum_codec::packet::Connect;
use thrum_codec::testing::Choices;
use thrum_codec::{DecodeError, Packet, PacketId, QoS, ReasonCode, Version, decode, frame};
use thrum_protocol::limits::QueueLimits;
use thrum_protocol::message::FrameCache;
use thrum_protocol::server::{
    Action, AuthenticationStep, ConnAckParts, DeliveryOptions, Handshake, Session, Timeout,
    refuse_connect,
};
use thrum_protocol::{Limits, MountPoint, Outgoing, Output, Publication, Time, Violation};

use super::client::{Client, kind};

/// Mount point of every client with a user name, and the prefix of all published messages.
const MOUNT: &str = "m/";

/// Small, so that every limit is reached.
fn limits() -> Limits {
    Limits {
        packet_bytes_max: 16 * 1024,
        client_id_bytes_max: 600,
        receive_maximum: 4,
        inflight_max: 4,
        topic_alias_maximum: 3,
        topic_alias_outbound_max: 2,
        session_expiry_max: 100,
        session_expiry_v3: 50,
        queue: QueueLimits {
            messages_max: 6,
            bytes_max: 4096,
            ..QueueLimits::default()
        },
        ..Limits::default()
    }
}

/// The node, its client, and the behaviour observed so far.
pub(super) struct Node {
    limits: Arc<Limits>,
    now: Time,
    /// Bytes of the client that are not a complete packet yet.
    input: Vec<u8>,
    out: Output,
    frames: FrameCache,
    session: Option<Session>,
    client: Option<Client>,
    /// The handshake between CONNECT and CONNACK.
    arriving: Option<(Handshake, Client)>,
    /// Messages that the node is routing.
    routing: VecDeque<(QoS, Option<PacketId>)>,
    shown: Shown,
}

/// The observed behaviour, as bits and small counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Shown {
    kinds_sent: u16,
    kinds_received: u16,
    violation: Option<&'static str>,
    connections: u8,
    resumed: bool,
    expired: bool,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            limits: Arc::new(limits()),
            now: Time::default(),
            input: Vec::new(),
            out: Output::new(),
            frames: FrameCache::default(),
            session: None,
            client: None,
            arriving: None,
            routing: VecDeque::new(),
            shown: Shown::default(),
        }
    }
}

impl Node {
    pub(super) fn shown(&self) -> Shown {
        self.shown
    }

    /// Handles bytes that arrive.
    pub(super) fn feed(&mut self, bytes: &[u8]) {
        let mut input = core::mem::take(&mut self.input);
        input.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(len) = self.feed_frame(&input[at..]) {
            at += len;
        }
        // A violation has ended the connection and discarded its input.
        if self.has_connection() || self.session.is_none() {
            input.drain(..at);
            self.input = input;
        }
    }

    /// Handles one frame and returns its length; `None` if there was no complete one, or if the
    /// connection ended.
    fn feed_frame(&mut self, stream: &[u8]) -> Option<usize> {
        let frame = match frame::split(stream, self.limits.packet_bytes_max) {
            Ok(frame) => frame?,
            Err(error) => {
                self.refuse(error);
                return None;
            }
        };
        let version = match (&self.arriving, &self.session) {
            (Some((handshake, _)), _) => handshake.version(),
            (None, session) => session
                .as_ref()
                .map_or(Version::V5, |session| session.link().version()),
        };
        match decode(frame, version) {
            Ok(packet) => self.handle(packet),
            Err(error) => self.refuse(error),
        }
        self.has_connection().then_some(frame.len)
    }

    fn has_connection(&self) -> bool {
        self.client.is_some() || self.arriving.is_some()
    }

    #[expect(
        clippy::large_types_passed_by_value,
        reason = "the session takes it by value"
    )]
    fn handle(&mut self, packet: Packet<'_>) {
        self.shown.kinds_received |= 1 << kind(&packet);
        if let Some((handshake, client)) = self.arriving.take() {
            self.go_on(handshake, client, &packet);
            return;
        }
        if self.client.is_none() {
            if let Packet::Connect(connect) = packet {
                self.connect(&connect);
            }
            // Any other packet closes the connection before it starts.
            return;
        }
        let (Some(session), Some(client)) = (&mut self.session, &mut self.client) else {
            return;
        };
        client.sends(&packet);
        match session.handle_packet(packet, self.now, &mut self.out) {
            Ok(Action::None) => {}
            Ok(Action::Authenticate(auth)) => {
                // A client without further data is authenticated.
                let step = auth.properties.authentication_data.unwrap_or_default();
                let answered = if step.is_empty() {
                    session.link_mut().authenticate_done(None, &mut self.out)
                } else {
                    session
                        .link_mut()
                        .authenticate_continue(step, &mut self.out)
                };
                answered.unwrap_or_else(|violation| self.end(violation));
            }
            Ok(Action::Publish { publish, alias }) => {
                assert!(!publish.topic.is_empty() || alias.is_some_and(|topic| !topic.is_empty()));
                self.routing.push_back((publish.qos, publish.packet_id));
            }
            Ok(Action::Subscribe(subscribe)) => {
                let codes: Vec<_> = subscribe
                    .requests
                    .iter()
                    .map(|request| request.options.qos.granted())
                    .collect();
                session
                    .link_mut()
                    .suback(subscribe.packet_id, &codes, None, &mut self.out);
            }
            Ok(Action::Unsubscribe(unsubscribe)) => {
                let codes = vec![ReasonCode::NoSubscriptionExisted; unsubscribe.filters.len()];
                session
                    .link_mut()
                    .unsuback(unsubscribe.packet_id, &codes, &mut self.out);
            }
            Ok(Action::Disconnected) => self.lose_connection(),
            Err(violation) => self.end(violation),
        }
    }

    fn connect(&mut self, connect: &Connect<'_>) {
        let client = Client::new(connect, self.limits.inflight_max);
        let handshake =
            Handshake::new(connect, "assigned", &self.limits).and_then(|mut handshake| {
                if connect.username.is_some() {
                    handshake.mount(MountPoint::parse(MOUNT).expect("a mount point"))?;
                }
                Ok(handshake)
            });
        match handshake {
            Ok(handshake) => {
                let step = connect.properties.authentication_data.unwrap_or_default();
                self.answer_step(handshake, client, step);
            }
            Err(violation) => {
                refuse_connect(connect, &violation, &mut self.out);
                self.turned_away(client, violation);
            }
        }
    }

    /// Handles a packet before CONNACK.
    fn go_on(&mut self, mut handshake: Handshake, client: Client, packet: &Packet<'_>) {
        match handshake.authentication_step(packet) {
            Ok(AuthenticationStep::Data(step)) => self.answer_step(handshake, client, step),
            Ok(AuthenticationStep::Disconnected) => self.lose_connection(),
            Err(violation) => {
                handshake.refuse(&violation, &mut self.out);
                self.turned_away(client, violation);
            }
        }
    }

    /// Accepts a client without further data, and challenges any other.
    fn answer_step(&mut self, mut handshake: Handshake, mut client: Client, step: &[u8]) {
        if step.is_empty() {
            self.accept(handshake, client);
            return;
        }
        match handshake.challenge(step, &mut self.out) {
            Ok(()) => {
                self.shown.kinds_sent |= client.reads(&self.out.to_vec());
                self.out.clear();
                self.arriving = Some((handshake, client));
            }
            Err(violation) => {
                handshake.refuse(&violation, &mut self.out);
                self.turned_away(client, violation);
            }
        }
    }

    fn turned_away(&mut self, mut client: Client, violation: Violation) {
        self.shown.violation = Some(violation.what);
        client.reads(&self.out.to_vec());
        self.out.clear();
    }

    fn accept(&mut self, handshake: Handshake, client: Client) {
        let kept = self.session.take().filter(|session| {
            !handshake.clean_start() && session.client_id() == handshake.client_id()
        });
        let session_present = kept.is_some();
        if !session_present {
            self.routing.clear();
        }
        let mut session = kept.unwrap_or_else(|| Session::new(1, &handshake, &self.limits));
        let parts = ConnAckParts {
            session_present,
            response_information: Some("answers/"),
            ..ConnAckParts::default()
        };
        session.connect(handshake, parts, self.now, &mut self.out);
        self.session = Some(session);
        self.client = Some(client);
        self.shown.connections = self.shown.connections.saturating_add(1).min(3);
        self.shown.resumed |= session_present;
    }

    fn refuse(&mut self, error: DecodeError) {
        self.end(Violation::from(error));
    }

    fn end(&mut self, violation: Violation) {
        self.shown.violation = Some(violation.what);
        if let Some(session) = &mut self.session {
            session.disconnect(violation.reason, Some(violation.what), &mut self.out);
        }
        self.lose_connection();
    }

    /// Handles the loss of the connection.
    pub(super) fn lose_connection(&mut self) {
        self.read_out();
        self.client = None;
        self.arriving = None;
        self.input.clear();
        let Some(session) = &mut self.session else {
            return;
        };
        let end = session.connection_lost(self.now);
        assert!(!session.link().is_connected());
        if end.session_ended {
            assert!(!session.lifetime().is_persistent());
            session.outbound_mut().take_shared(None);
            self.session = None;
            self.routing.clear();
        }
    }

    /// Finishes the oldest message.
    pub(super) fn finish_publish(&mut self, choice: u8) {
        const OUTCOMES: [ReasonCode; 4] = [
            ReasonCode::Success,
            ReasonCode::NoMatchingSubscribers,
            ReasonCode::NotAuthorized,
            ReasonCode::QuotaExceeded,
        ];
        let (Some(session), Some((qos, packet_id))) = (&mut self.session, self.routing.pop_front())
        else {
            return;
        };
        let outcome = OUTCOMES[usize::from(choice) % OUTCOMES.len()];
        session.publish_done(qos, packet_id, outcome, &mut self.out);
    }

    /// Delivers a message to the client.
    pub(super) fn deliver(&mut self, choices: &mut Choices<'_>) {
        let Some(session) = &mut self.session else {
            return;
        };
        let topic = format!("{MOUNT}{}", choices.topic());
        let qos = choices.one_of(&[QoS::AtLeastOnce, QoS::ExactlyOnce, QoS::AtMostOnce]);
        // Some payloads are small, some too large to be copied.
        let payload = vec![0x55; usize::from(choices.byte()) * 12];
        let publication = Publication {
            expires_at: choices.maybe(|choices| self.now.plus_secs(u32::from(choices.byte()))),
            publisher: 2,
            ..Publication::new(&topic, &payload, qos)
        };
        let options = DeliveryOptions {
            qos,
            retain: false,
            identifiers: if choices.flag() { &[7] } else { &[] },
            group: choices.maybe(|_| 3),
            is_acknowledged: false,
        };
        let mut outgoing = Outgoing::new(publication, &mut self.frames);
        session.deliver(&mut outgoing, options, self.now, &mut self.out);
    }

    pub(super) fn pass_time(&mut self, seconds: u64) {
        self.now = self.now.plus(core::time::Duration::from_secs(seconds));
        let Some(session) = &mut self.session else {
            return;
        };
        match session.handle_timeout(self.now) {
            Timeout::Pending | Timeout::Will(_) => {}
            Timeout::KeepAlive => {
                let reason = ReasonCode::KeepAliveTimeout;
                self.end(Violation::new(reason, "keep alive"));
            }
            Timeout::NotAuthorized => {
                let reason = ReasonCode::NotAuthorized;
                self.end(Violation::new(reason, "time limit of the connection"));
            }
            Timeout::Expired(_) => {
                self.shown.expired = true;
                self.session = None;
                self.routing.clear();
            }
        }
    }

    pub(super) fn set_congested(&mut self, congested: bool) {
        if let Some(session) = &mut self.session {
            session.link_mut().set_congested(congested);
        }
    }

    pub(super) fn pump(&mut self) {
        if let Some(session) = &mut self.session {
            session.pump(self.now, 2048, &mut self.out);
        }
    }

    /// Checks that hold between any two steps.
    pub(super) fn check(&mut self) {
        self.read_out();
        let Some(session) = &mut self.session else {
            return;
        };
        assert_eq!(session.link().is_connected(), self.client.is_some());
        let (queued, queued_bytes, inflight) = session.outbound().backlog();
        assert!(queued <= usize::try_from(self.limits.queue.messages_max).unwrap_or(usize::MAX));
        assert!(queued_bytes <= usize::try_from(self.limits.queue.bytes_max).unwrap_or(usize::MAX));
        assert!(
            inflight <= usize::from(self.limits.inflight_max),
            "{inflight} inflight"
        );
        session.outbound_mut().take_dropped().for_each(drop);
        // A deadline that has passed is handled at once.
        if session.next_deadline().is_some_and(|at| at <= self.now) {
            self.pass_time(0);
        }
    }

    /// Passes the output to the client.
    fn read_out(&mut self) {
        match &mut self.client {
            Some(client) => self.shown.kinds_sent |= client.reads(&self.out.to_vec()),
            None => assert!(self.out.is_empty(), "written without a connection"),
        }
        self.out.clear();
    }
}
