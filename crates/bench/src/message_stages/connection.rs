//! A connection that subscribes to the stages of a broker.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;

use thrum_codec::packet::{
    Connect, Disconnect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest,
    SubscriptionRequests,
};
use thrum_codec::properties::{ConnectProperties, DisconnectProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, ReasonCode, TopicFilter, Version, decode, encode, frame};
use thrum_load::plan::Plan;
use thrum_protocol::client::ClientOptions;
use thrum_transport::{Connector, Layers};

use crate::clock;
use crate::run::Target;

/// The topic.
const TOPIC: &str = "$SYS/broker/stages";
/// Longest wait for the broker before a run; one that does not stamp answers at once.
const OPENING_NS_MAX: u64 = 2_000_000_000;
/// How long a retained message may follow the answer to a PINGREQ behind the SUBSCRIBE.
const RETAINED_NS_MAX: u64 = 100_000_000;
/// Longest wait for input, after which the thread looks whether it is to end.
const READ_TIMEOUT: Duration = Duration::from_millis(50);
/// Longest packet.
const PACKET_BYTES_MAX: u32 = 1024 * 1024;

/// How the connection presents itself: with the rights of the first client of the run.
#[derive(Clone, Debug)]
pub(super) struct Login {
    client_id: String,
    first: Arc<ClientOptions>,
}

impl Login {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            client_id: format!("bench{}stages", plan.run_tag),
            first: plan.client_options(0, 0),
        }
    }
}

/// A connection that is subscribed to the stages.
#[derive(Debug)]
pub(super) struct StageConnection {
    stream: TcpStream,
    /// TLS and WebSocket.
    layers: Option<Layers>,
    input: Vec<u8>,
    chunk: Box<[u8]>,
}

/// What the broker has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Received {
    Accepted,
    Subscribed,
    Stages(String),
    Pong,
    Other,
}

impl StageConnection {
    /// Connects and subscribes; returns the first reading as well. None if there is no reading, or
    /// the broker refuses.
    pub(super) fn open(target: &Target, login: &Login) -> Option<(Self, String)> {
        if target.endpoint.scheme.is_quic() {
            return None;
        }
        let mut connection = Self::connect(target).ok()?;
        let first = connection.subscribe(login);
        match first {
            Ok(Some(text)) => Some((connection, text)),
            Ok(None) => {
                connection.close();
                None
            }
            Err(_) => None,
        }
    }

    fn connect(target: &Target) -> io::Result<Self> {
        let connector = Connector::new(&target.endpoint, &target.tls).map_err(io::Error::other)?;
        let address = target.endpoint.resolve().map_err(io::Error::other)?;
        let stream = TcpStream::connect_timeout(&address, Duration::from_nanos(OPENING_NS_MAX))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.set_write_timeout(Some(Duration::from_nanos(OPENING_NS_MAX)))?;
        let mut connection = Self {
            stream,
            layers: connector.layers(),
            input: Vec::new(),
            chunk: vec![0; 64 * 1024].into_boxed_slice(),
        };
        let mut wire = Vec::new();
        if let Some(layers) = &mut connection.layers {
            layers.start(&mut wire).map_err(io::Error::other)?;
        }
        connection.stream.write_all(&wire)?;
        let ends_ns = clock::monotonic_ns() + OPENING_NS_MAX;
        while connection
            .layers
            .as_ref()
            .is_some_and(|layers| !layers.is_open())
        {
            connection.fill()?;
            in_time(ends_ns)?;
        }
        Ok(connection)
    }

    /// The first reading; none if the broker has none.
    fn subscribe(&mut self, login: &Login) -> io::Result<Option<String>> {
        self.send(&[Packet::Connect(Connect {
            version: Version::V311,
            is_bridge: false,
            clean_start: true,
            keep_alive: 0,
            client_id: &login.client_id,
            will: None,
            username: login.first.username.as_deref(),
            password: login.first.password.as_deref(),
            properties: ConnectProperties::default(),
        })])?;
        self.wait_for(|received| *received == Received::Accepted)?;
        let filter = TopicFilter::parse(TOPIC).map_err(io::Error::other)?;
        let requests = [SubscriptionRequest {
            filter,
            options: SubscriptionOptions {
                qos: QoS::AtMostOnce,
                ..SubscriptionOptions::default()
            },
        }];
        let subscribe = Subscribe {
            packet_id: PacketId(NonZeroU16::MIN),
            properties: SubscribeProperties::default(),
            requests: SubscriptionRequests::Listed(&requests),
        };
        self.send(&[Packet::Subscribe(subscribe), Packet::PingReq])?;
        let is_known =
            |received: &Received| matches!(received, Received::Stages(_) | Received::Pong);
        if let Received::Stages(text) = self.wait_for(is_known)? {
            return Ok(Some(text));
        }
        let ends_ns = clock::monotonic_ns() + RETAINED_NS_MAX;
        while clock::monotonic_ns() < ends_ns {
            if let Some(text) = self.next_text()? {
                return Ok(Some(text));
            }
        }
        Ok(None)
    }

    /// The next reading, if one arrives soon.
    pub(super) fn next_text(&mut self) -> io::Result<Option<String>> {
        let received = match self.take()? {
            None => {
                self.fill()?;
                self.take()?
            }
            received => received,
        };
        Ok(match received {
            Some(Received::Stages(text)) => Some(text),
            _ => None,
        })
    }

    /// Disconnects.
    pub(super) fn close(mut self) {
        // The broker may have closed the connection.
        self.send(&[Packet::Disconnect(Disconnect {
            reason: ReasonCode::Success,
            properties: DisconnectProperties::default(),
        })])
        .ok();
    }

    fn wait_for(&mut self, is_it: impl Fn(&Received) -> bool) -> io::Result<Received> {
        let ends_ns = clock::monotonic_ns() + OPENING_NS_MAX;
        loop {
            match self.take()? {
                Some(received) if is_it(&received) => return Ok(received),
                Some(_) => {}
                None => self.fill()?,
            }
            in_time(ends_ns)?;
        }
    }

    fn send(&mut self, packets: &[Packet<'_>]) -> io::Result<()> {
        let mut plain = Vec::new();
        for packet in packets {
            encode(packet, Version::V311, &mut plain).map_err(io::Error::other)?;
        }
        let Some(layers) = &mut self.layers else {
            return self.stream.write_all(&plain);
        };
        let mut wire = Vec::new();
        layers.send(&plain, &mut wire).map_err(io::Error::other)?;
        self.stream.write_all(&wire)
    }

    /// Reads what has arrived, if something arrives soon.
    fn fill(&mut self) -> io::Result<()> {
        let len = match self.stream.read(&mut self.chunk) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => len,
            Err(error) if is_nothing_yet(&error) => return Ok(()),
            Err(error) => return Err(error),
        };
        let bytes = &mut self.chunk[..len];
        let Some(layers) = &mut self.layers else {
            self.input.extend_from_slice(bytes);
            return Ok(());
        };
        let mut wire = Vec::new();
        let received = layers.receive(bytes, &mut self.input, &mut wire);
        self.stream.write_all(&wire)?;
        received.map_err(io::Error::other)
    }

    /// Takes the next packet of the input.
    fn take(&mut self) -> io::Result<Option<Received>> {
        let split = frame::split(&self.input, PACKET_BYTES_MAX).map_err(io::Error::other)?;
        let Some(frame) = split else { return Ok(None) };
        let len = frame.len;
        let received = match decode(frame, Version::V311).map_err(io::Error::other)? {
            Packet::ConnAck(answer) if answer.reason == ReasonCode::Success => Received::Accepted,
            Packet::ConnAck(_) => return Err(ErrorKind::PermissionDenied.into()),
            Packet::SubAck(_) => Received::Subscribed,
            Packet::PingResp => Received::Pong,
            Packet::Publish(publish) if publish.topic == TOPIC && !publish.payload.is_empty() => {
                Received::Stages(String::from_utf8_lossy(publish.payload).into_owned())
            }
            _ => Received::Other,
        };
        self.input.drain(..len);
        Ok(Some(received))
    }
}

fn is_nothing_yet(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

fn in_time(ends_ns: u64) -> io::Result<()> {
    if clock::monotonic_ns() < ends_ns {
        Ok(())
    } else {
        Err(ErrorKind::TimedOut.into())
    }
}

#[cfg(test)]
mod tests {
    use thrum_load::scenario::find;

    use super::*;

    #[test]
    fn the_reader_has_the_rights_of_the_first_client_and_a_name_of_its_run() {
        let mut scenario = find("p2p-1K").unwrap();
        for group in &mut scenario.groups {
            group.client.username = Some("user-{i}".to_owned());
            group.client.password = Some("{run}-{i}".to_owned());
        }
        let login = Login::new(&crate::plan(scenario, "abc").unwrap());
        assert_eq!(login.client_id, "benchabcstages");
        assert_eq!(login.first.username.as_deref(), Some("user-1"));
        assert_eq!(login.first.password.as_deref(), Some(&b"abc-1"[..]));
    }
}
