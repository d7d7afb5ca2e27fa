//! The thread of the control connection: bytes of the socket to messages, and messages to bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream as StdStream;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll};
use thrum_codec::packet::{Publish, SubscriptionOptions, SubscriptionRequest};
use thrum_codec::properties::{PublishProperties, SubscribeProperties};
use thrum_codec::{QoS, ReasonCode, TopicFilter, decode, frame};
use thrum_figures::SECOND_NS;
use thrum_protocol::Time;
use thrum_protocol::client::{Client, Event};
use thrum_transport::Layers;

use super::control_connection::{Incoming, Outgoing, SOCKET};
use super::topic::answer_to;
use crate::clock;

/// Interval of heartbeats.
pub(super) const PULSE_NS: u64 = SECOND_NS;

/// Bytes read from the socket at once.
const READ_BYTES: usize = 128 * 1024;

/// Bytes that may wait for the socket; above, no more messages are taken.
const UNSENT_BYTES_MAX: usize = 1024 * 1024;

/// Longest time for the last messages of a closing connection.
const CLOSE_NS_MAX: u64 = 2 * SECOND_NS;

/// State of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// TLS or WebSocket handshake under way.
    Securing,
    /// CONNECT or SUBSCRIBE sent.
    Connecting,
    /// Messages go both ways.
    Open,
}

/// The connection and its protocol.
pub(super) struct ControlSocket {
    poll: Poll,
    stream: TcpStream,
    layers: Option<Layers>,
    client: Client,
    step: Step,
    filters: Vec<String>,
    pulse: Option<Outgoing>,
    pulse_at_ns: u64,
    /// Signals that the connection is open.
    opened: Option<SyncSender<()>>,
    buffer: Vec<u8>,
    /// Received MQTT that is not a whole packet yet.
    unread: Vec<u8>,
    /// MQTT to send.
    plain: Vec<u8>,
    /// The same after TLS and WebSocket.
    unsent: Vec<u8>,
    /// Received messages that wait for room in the process.
    come: std::collections::VecDeque<Incoming>,
    /// The message that waits for the broker's receive maximum.
    outgoing: Option<Outgoing>,
    closing_since_ns: Option<u64>,
    /// The broker does not admit this client.
    is_refused: bool,
}

impl ControlSocket {
    /// Takes over a connected stream.
    ///
    /// # Errors
    /// The kernel does not watch the socket.
    pub(super) fn new(
        poll: Poll,
        stream: StdStream,
        layers: Option<Layers>,
        client: Client,
    ) -> Result<Self, String> {
        let mut stream = TcpStream::from_std(stream);
        let interests = Interest::READABLE | Interest::WRITABLE;
        let registered = poll.registry().register(&mut stream, SOCKET, interests);
        registered.map_err(|error| error.to_string())?;
        Ok(Self {
            poll,
            stream,
            layers,
            client,
            step: Step::Securing,
            filters: Vec::new(),
            pulse: None,
            pulse_at_ns: 0,
            opened: None,
            buffer: vec![0; READ_BYTES],
            unread: Vec::new(),
            plain: Vec::new(),
            unsent: Vec::new(),
            come: std::collections::VecDeque::new(),
            outgoing: None,
            closing_since_ns: None,
            is_refused: false,
        })
    }

    /// Sets the filters, the heartbeat, and the channel that signals an open connection.
    pub(super) fn with(
        mut self,
        filters: Vec<String>,
        pulse: Option<Outgoing>,
        opened: SyncSender<()>,
    ) -> Self {
        (self.filters, self.pulse, self.opened) = (filters, pulse, Some(opened));
        self
    }

    /// Whether the broker has refused user name, password or their rights.
    pub(super) const fn is_refused(&self) -> bool {
        self.is_refused
    }

    /// Runs until the other end of `outgoing` is dropped and everything is sent.
    ///
    /// # Errors
    /// The connection ended otherwise.
    pub(super) fn run(
        &mut self,
        outgoing: &Receiver<Outgoing>,
        incoming: &SyncSender<Incoming>,
    ) -> Result<(), String> {
        self.begin()?;
        let mut events = Events::with_capacity(8);
        loop {
            self.hand_over(incoming);
            self.take_outgoing(outgoing)?;
            self.beat()?;
            self.write()?;
            if self.is_over()? {
                return Ok(());
            }
            let wait = if self.come.is_empty() { 100 } else { 5 };
            match self
                .poll
                .poll(&mut events, Some(Duration::from_millis(wait)))
            {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            }
            self.read()?;
        }
    }

    fn begin(&mut self) -> Result<(), String> {
        let Some(layers) = &mut self.layers else {
            return self.connect();
        };
        let started = layers.start(&mut self.unsent);
        started.map_err(|error| error.to_string())
    }

    fn connect(&mut self) -> Result<(), String> {
        self.step = Step::Connecting;
        let written = self.client.connect(now(), &mut self.plain);
        written.map_err(|error| error.to_string())
    }

    /// Reads all that the socket has, as long as the process takes the messages.
    fn read(&mut self) -> Result<(), String> {
        while self.come.is_empty() || self.closing_since_ns.is_some() {
            let read = match self.stream.read(&mut self.buffer) {
                Ok(0) => return Err("closed by the broker".to_owned()),
                Ok(read) => read,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.to_string()),
            };
            let at_ns = clock::monotonic_ns();
            match &mut self.layers {
                None => self.unread.extend_from_slice(&self.buffer[..read]),
                Some(layers) => layers
                    .receive(&mut self.buffer[..read], &mut self.unread, &mut self.unsent)
                    .map_err(|error| error.to_string())?,
            }
            let is_secured = self.layers.as_ref().is_none_or(Layers::is_open);
            if self.step == Step::Securing && is_secured {
                self.connect()?;
            }
            self.handle_packets(at_ns)?;
            self.write()?;
        }
        Ok(())
    }

    fn handle_packets(&mut self, at_ns: u64) -> Result<(), String> {
        let bytes = std::mem::take(&mut self.unread);
        let options = self.client.options();
        let (version, packet_bytes_max) = (options.version, options.packet_bytes_max());
        let mut at = 0;
        while let Some(frame) =
            frame::split(&bytes[at..], packet_bytes_max).map_err(|error| error.to_string())?
        {
            at += frame.len;
            let packet = decode(frame, version).map_err(|error| error.to_string())?;
            let event = self.client.handle_packet(packet, now(), &mut self.plain);
            let event = event.map_err(|violation| violation.what.to_owned())?;
            self.handle_event(&event, at_ns)?;
        }
        self.unread = bytes;
        self.unread.drain(..at);
        Ok(())
    }

    fn handle_event(&mut self, event: &Event<'_>, at_ns: u64) -> Result<(), String> {
        match event {
            Event::Connected(_) => self.subscribe(),
            Event::Refused(ack) => {
                let admission = [ReasonCode::BadUserNameOrPassword, ReasonCode::NotAuthorized];
                self.is_refused = admission.contains(&ack.reason);
                Err(format!("the broker refuses: {:?}", ack.reason))
            }
            Event::Subscribed(ack) => {
                if let Some(code) = ack.codes.iter().find(|code| code.is_error()) {
                    return Err(format!("the broker refuses a subscription: {code:?}"));
                }
                self.step = Step::Open;
                // A receiver that stopped waiting closes the connection.
                self.opened.take().map(|opened| opened.try_send(()).ok());
                Ok(())
            }
            Event::Message { publish, .. } => {
                self.handle_message(publish.topic, publish.payload, at_ns);
                Ok(())
            }
            Event::Acknowledged { reason, .. } if reason.is_error() => {
                Err(format!("the broker refuses a message: {reason:?}"))
            }
            Event::Disconnected(disconnect) => Err(format!(
                "ended by the broker: {:?} {}",
                disconnect.reason,
                disconnect.properties.reason_string.unwrap_or_default()
            )),
            Event::Acknowledged { .. }
            | Event::None
            | Event::Released
            | Event::Unsubscribed(_)
            | Event::Pong
            | Event::Authenticate(_) => Ok(()),
        }
    }

    fn handle_message(&mut self, topic: &str, payload: &[u8], at_ns: u64) {
        let Some(topic_of_answer) = answer_to(topic) else {
            self.come.push_back(Incoming {
                topic: topic.to_owned(),
                payload: payload.to_vec(),
                at_ns,
            });
            return;
        };
        let mut answer = payload.to_vec();
        answer.extend_from_slice(format!(" {at_ns} {}", clock::monotonic_ns()).as_bytes());
        self.publish(&Outgoing {
            topic: topic_of_answer,
            payload: answer,
            qos: QoS::AtMostOnce,
        });
    }

    fn subscribe(&mut self) -> Result<(), String> {
        let options = SubscriptionOptions {
            qos: QoS::AtLeastOnce,
            ..SubscriptionOptions::default()
        };
        let requests: Vec<_> = self
            .filters
            .iter()
            .filter_map(|filter| TopicFilter::parse(filter).ok())
            .map(|filter| SubscriptionRequest { filter, options })
            .collect();
        let written = self.client.subscribe(
            SubscribeProperties::default(),
            &requests,
            now(),
            &mut self.plain,
        );
        written.map(|_| ()).map_err(|error| error.to_string())
    }

    /// Hands messages to the rest of the process.
    fn hand_over(&mut self, incoming: &SyncSender<Incoming>) {
        while let Some(message) = self.come.pop_front() {
            match incoming.try_send(message) {
                Ok(()) => {}
                // The receiver is gone: the connection is being closed.
                Err(TrySendError::Disconnected(_)) => self.come.clear(),
                Err(TrySendError::Full(message)) => {
                    self.come.push_front(message);
                    return;
                }
            }
        }
    }

    /// Takes messages to send as long as the broker has room for them.
    fn take_outgoing(&mut self, outgoing: &Receiver<Outgoing>) -> Result<(), String> {
        while self.unsent.len() < UNSENT_BYTES_MAX {
            let Some(message) = self.next_outgoing(outgoing) else {
                return Ok(());
            };
            let has_room = message.qos == QoS::AtMostOnce || self.client.window() > 0;
            if self.step != Step::Open || !has_room {
                self.outgoing = Some(message);
                return Ok(());
            }
            if !self.publish(&message) {
                return Err("the broker does not take messages of this size".to_owned());
            }
            self.write()?;
        }
        Ok(())
    }

    /// The message that had no room, or the next one; begins to close after the last.
    fn next_outgoing(&mut self, outgoing: &Receiver<Outgoing>) -> Option<Outgoing> {
        if let Some(message) = self.outgoing.take() {
            return Some(message);
        }
        match outgoing.try_recv() {
            Ok(message) => Some(message),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => {
                self.closing_since_ns
                    .get_or_insert_with(clock::monotonic_ns);
                None
            }
        }
    }

    /// Returns false if the broker does not allow it.
    fn publish(&mut self, message: &Outgoing) -> bool {
        let publish = Publish {
            dup: false,
            qos: message.qos,
            retain: false,
            topic: &message.topic,
            packet_id: None,
            properties: PublishProperties::default(),
            payload: &message.payload,
        };
        let written = self.client.publish(&publish, now(), &mut self.plain);
        written.is_ok()
    }

    /// Sends heartbeats to the peer and to the broker.
    fn beat(&mut self) -> Result<(), String> {
        let now_ns = clock::monotonic_ns();
        if self.step == Step::Open && now_ns >= self.pulse_at_ns {
            self.pulse_at_ns = now_ns + PULSE_NS;
            if let Some(pulse) = self.pulse.take() {
                self.publish(&pulse);
                self.pulse = Some(pulse);
            }
        }
        let is_due = self.client.next_deadline().is_some_and(|at| at <= now());
        if is_due {
            let beaten = self.client.handle_timeout(now(), &mut self.plain);
            beaten.map_err(|violation| violation.what.to_owned())?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), String> {
        if !self.plain.is_empty() {
            match &mut self.layers {
                None => self.unsent.append(&mut self.plain),
                Some(layers) => {
                    let sent = layers.send(&self.plain, &mut self.unsent);
                    sent.map_err(|error| error.to_string())?;
                    self.plain.clear();
                }
            }
        }
        let mut at = 0;
        while at < self.unsent.len() {
            match self.stream.write(&self.unsent[at..]) {
                Ok(written) => at += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.to_string()),
            }
        }
        self.unsent.drain(..at);
        Ok(())
    }

    /// Disconnects once everything is sent and acknowledged.
    fn is_over(&mut self) -> Result<bool, String> {
        let Some(since_ns) = self.closing_since_ns else {
            return Ok(false);
        };
        let waits =
            self.step == Step::Open && (self.client.inflight() > 0 || !self.unsent.is_empty());
        if waits && clock::monotonic_ns().saturating_sub(since_ns) < CLOSE_NS_MAX {
            return Ok(false);
        }
        self.client
            .disconnect(ReasonCode::Success, None, &mut self.plain);
        self.write()?;
        Ok(true)
    }
}

fn now() -> Time {
    Time::from_millis(clock::monotonic_ns() / 1_000_000)
}
