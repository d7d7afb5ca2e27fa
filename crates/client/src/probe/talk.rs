//! One connection of a probe: what it sends, and what comes within the time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use thrum_codec::packet::{ConnAck, Publish, SubscriptionOptions, SubscriptionRequest};
use thrum_codec::properties::{PublishProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, decode, frame};
use thrum_protocol::Time;
use thrum_protocol::client::{Client, ClientOptions, Event};

use super::Probe;
use crate::clock::Clock;
use crate::link::{HANDSHAKE_TIMEOUT, Link};
use crate::{Stop, words};

/// Events that wait to be looked at; later ones are forgotten.
const EVENTS_MAX: usize = 1000;
/// Bytes of a packet that is taken.
const PACKET_BYTES_MAX: u32 = 1024 * 1024;

/// What client and broker agreed on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// From CONNECT to CONNACK.
    pub(super) answered_after: Duration,
    pub(super) session_present: bool,
    pub(super) session_expiry: Option<u32>,
    pub(super) receive_maximum: Option<u16>,
    pub(super) maximum_qos: Option<u8>,
    pub(super) retain_available: Option<bool>,
    pub(super) maximum_packet_size: Option<u32>,
    pub(super) assigned_client_id: Option<String>,
    pub(super) topic_alias_maximum: Option<u16>,
    pub(super) wildcard_available: Option<bool>,
    pub(super) identifiers_available: Option<bool>,
    pub(super) shared_available: Option<bool>,
    pub(super) server_keep_alive: Option<u16>,
    pub(super) response_information: Option<String>,
    pub(super) security: Option<String>,
}

impl Agreement {
    fn new(ack: &ConnAck<'_>) -> Self {
        let properties = &ack.properties;
        Self {
            session_present: ack.session_present,
            session_expiry: properties.session_expiry,
            receive_maximum: properties.receive_maximum.map(Into::into),
            maximum_qos: properties.maximum_qos.map(QoS::as_u8),
            retain_available: properties.retain_available,
            maximum_packet_size: properties.maximum_packet_size,
            assigned_client_id: properties.assigned_client_id.map(ToOwned::to_owned),
            topic_alias_maximum: properties.topic_alias_maximum,
            wildcard_available: properties.wildcard_subscription_available,
            identifiers_available: properties.subscription_identifiers_available,
            shared_available: properties.shared_subscription_available,
            server_keep_alive: properties.server_keep_alive,
            response_information: properties.response_information.map(ToOwned::to_owned),
            ..Self::default()
        }
    }
}

/// A message that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Arrived {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) qos: QoS,
    pub(super) retain: bool,
    pub(super) identifiers: Vec<u32>,
    /// Their number.
    pub(super) user_properties: usize,
}

/// What came from the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    Connected(Box<Agreement>),
    Message(Arrived),
    Acknowledged(PacketId, ReasonCode),
    Subscribed(PacketId, Vec<ReasonCode>),
}

/// A connection.
pub(super) struct Talk {
    link: Link,
    client: Client,
    clock: Clock,
    timeout: Duration,
    answers: VecDeque<Answer>,
}

impl Talk {
    /// Connects, and waits until the broker accepts.
    pub(super) fn connect(
        probe: &Probe,
        options: &ClientOptions,
        client_id: &str,
    ) -> Result<(Self, Agreement), Stop> {
        let link = Link::open(&probe.target)?;
        let mut talk = Self {
            link,
            client: Client::new(Arc::new(options.clone()), client_id),
            clock: probe.clock,
            timeout: probe.timeout,
            answers: VecDeque::new(),
        };
        talk.shake_hands()?;
        let before = talk.clock.elapsed();
        let now = talk.clock.now();
        let begun = talk.client.connect(now, &mut talk.link.output);
        begun.map_err(|error| Stop::usage(format!("cannot connect: {error}")))?;
        let accepted = |answer: &Answer| matches!(answer, Answer::Connected(_));
        let Some(Answer::Connected(agreement)) = talk.wait_for(talk.timeout, accepted)? else {
            return Err(Stop::unreachable("no CONNACK came"));
        };
        let agreement = Agreement {
            answered_after: talk.clock.elapsed().saturating_sub(before),
            security: talk.link.security(),
            ..*agreement
        };
        Ok((talk, agreement))
    }

    /// The handshakes of TLS and WebSocket.
    fn shake_hands(&mut self) -> Result<(), Stop> {
        let end = self.clock.now().plus(HANDSHAKE_TIMEOUT);
        while !self.link.is_open() {
            let now = self.clock.now();
            if now >= end {
                return Err(self.link.unanswered());
            }
            self.link.flush()?;
            if self.link.wait(Some(end.since(now)), None)?.socket {
                self.link.fill()?;
            }
        }
        Ok(())
    }

    /// Waits for an answer of a kind; others stay.
    fn wait_for(
        &mut self,
        timeout: Duration,
        wanted: impl Fn(&Answer) -> bool,
    ) -> Result<Option<Answer>, Stop> {
        let end = self.clock.now().plus(timeout);
        loop {
            if let Some(place) = self.answers.iter().position(&wanted) {
                return Ok(self.answers.remove(place));
            }
            let now = self.clock.now();
            if now >= end {
                return Ok(None);
            }
            self.turn(end.since(now))?;
        }
    }

    /// Sends what is there, and takes what comes within the time.
    fn turn(&mut self, timeout: Duration) -> Result<(), Stop> {
        self.link.flush()?;
        // A message of a time in the middle of a millisecond is not late.
        let timeout = timeout + Duration::from_millis(1);
        if !self.link.wait(Some(timeout), None)?.socket {
            return Ok(());
        }
        let filled = self.link.fill();
        // Bytes before the end of the connection are handled before the end.
        self.take_packets()?;
        filled
    }

    fn take_packets(&mut self) -> Result<(), Stop> {
        let broken = |what: &dyn std::fmt::Display| {
            Stop::failed(format!("the broker broke the protocol: {what}"))
        };
        let input = std::mem::take(&mut self.link.input);
        let version = self.client.options().version;
        let now = self.clock.now();
        let mut rest = &input[..];
        while let Some(frame) =
            frame::split(rest, PACKET_BYTES_MAX).map_err(|error| broken(&error))?
        {
            rest = &rest[frame.len..];
            let packet = decode(frame, version).map_err(|error| broken(&error))?;
            let event = self
                .client
                .handle_packet(packet, now, &mut self.link.output)
                .map_err(|violation| broken(&violation))?;
            if let Some(answer) = answer(&event)?
                && self.answers.len() < EVENTS_MAX
            {
                self.answers.push_back(answer);
            }
        }
        self.link.input = rest.to_vec();
        Ok(())
    }

    /// Subscribes; the granted quality of service.
    pub(super) fn subscribe(
        &mut self,
        filter: &str,
        options: SubscriptionOptions,
        identifier: Option<u32>,
    ) -> Result<QoS, Stop> {
        let parsed = TopicFilter::parse(filter);
        let request = SubscriptionRequest {
            filter: parsed.map_err(|_| Stop::usage(format!("{filter:?} is no filter")))?,
            options,
        };
        let properties = SubscribeProperties {
            subscription_identifier: identifier,
            ..SubscribeProperties::default()
        };
        let now = self.clock.now();
        let output = &mut self.link.output;
        let sent = self.client.subscribe(properties, &[request], now, output);
        let sent = sent.map_err(|error| Stop::unsupported(error.to_string()))?;
        let wanted = |answer: &Answer| matches!(answer, Answer::Subscribed(id, _) if *id == sent);
        let Some(Answer::Subscribed(_, codes)) = self.wait_for(self.timeout, wanted)? else {
            return Err(Stop::unreachable("no SUBACK came"));
        };
        match codes.first() {
            Some(ReasonCode::Success) => Ok(QoS::AtMostOnce),
            Some(ReasonCode::GrantedQoS1) => Ok(QoS::AtLeastOnce),
            Some(ReasonCode::GrantedQoS2) => Ok(QoS::ExactlyOnce),
            // 3.x has no reason: it may be one of rights.
            Some(ReasonCode::NotAuthorized | ReasonCode::UnspecifiedError) => Err(Stop::denied(
                format!("the subscription to {filter} is denied"),
            )),
            Some(code) => Err(Stop::unsupported(words(*code))),
            None => Err(Stop::failed("the SUBACK is empty")),
        }
    }

    /// Publishes, and waits until it is acknowledged; the time to the acknowledgement.
    pub(super) fn publish(&mut self, publish: &Publish<'_>) -> Result<Duration, Stop> {
        let before = self.clock.elapsed();
        let now = self.clock.now();
        let sent = self.client.publish(publish, now, &mut self.link.output);
        let sent = sent.map_err(|error| Stop::unsupported(error.to_string()))?;
        let Some(id) = sent else {
            self.link.flush()?;
            return Ok(Duration::ZERO);
        };
        let wanted = |answer: &Answer| matches!(answer, Answer::Acknowledged(one, _) if *one == id);
        let Some(Answer::Acknowledged(_, reason)) = self.wait_for(self.timeout, wanted)? else {
            return Err(Stop::unreachable("no acknowledgement came"));
        };
        match reason {
            ReasonCode::NotAuthorized => Err(Stop::denied("the PUBLISH is denied")),
            reason if reason.is_error() => Err(Stop::failed(words(reason))),
            _ => Ok(self.clock.elapsed().saturating_sub(before)),
        }
    }

    /// The next message of that topic; none within the time.
    pub(super) fn message(&mut self, topic: &str) -> Result<Option<Arrived>, Stop> {
        let timeout = self.timeout;
        self.message_within(timeout, |one| one == topic)
    }

    /// The next message whose topic is wanted.
    pub(super) fn message_within(
        &mut self,
        timeout: Duration,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Option<Arrived>, Stop> {
        let is_wanted =
            |answer: &Answer| matches!(answer, Answer::Message(arrived) if wanted(&arrived.topic));
        match self.wait_for(timeout, is_wanted)? {
            Some(Answer::Message(arrived)) => Ok(Some(arrived)),
            _ => Ok(None),
        }
    }

    /// Ends with DISCONNECT.
    pub(super) fn end(mut self) {
        let output = &mut self.link.output;
        self.client.disconnect(ReasonCode::Success, None, output);
        self.link.close();
    }

    /// Ends as a lost connection does.
    pub(super) fn lose(self) {
        drop(self.link);
    }

    /// Time since the probe began.
    pub(super) fn now(&self) -> Time {
        self.clock.now()
    }
}

/// The answer that an event is; none for those that nobody waits for.
fn answer(event: &Event<'_>) -> Result<Option<Answer>, Stop> {
    Ok(Some(match event {
        Event::Connected(ack) => Answer::Connected(Box::new(Agreement::new(ack))),
        Event::Refused(ack) => {
            let why = ack.properties.reason_string;
            if ack.reason == ReasonCode::UnsupportedProtocolVersion {
                return Err(Stop::unsupported(words(ack.reason)));
            }
            return Err(Stop::refused("refused", ack.reason, why));
        }
        Event::Disconnected(disconnect) => {
            let why = disconnect.properties.reason_string;
            return Err(Stop::refused("disconnected", disconnect.reason, why));
        }
        Event::Message { publish, alias } => Answer::Message(Arrived {
            topic: alias.as_deref().unwrap_or(publish.topic).to_owned(),
            payload: publish.payload.to_vec(),
            qos: publish.qos,
            retain: publish.retain,
            identifiers: publish.properties.subscription_identifiers.iter().collect(),
            user_properties: publish.properties.user.iter().count(),
        }),
        Event::Acknowledged { packet_id, reason } => Answer::Acknowledged(*packet_id, *reason),
        Event::Subscribed(ack) => Answer::Subscribed(ack.packet_id, ack.codes.iter().collect()),
        _ => return Ok(None),
    }))
}

/// A message of a probe.
pub(super) fn message<'a>(topic: &'a str, qos: QoS, payload: &'a [u8]) -> Publish<'a> {
    Publish {
        dup: false,
        qos,
        retain: false,
        topic,
        packet_id: None,
        properties: PublishProperties::default(),
        payload,
    }
}
