//! The interface between a command and its connection.

use std::os::fd::BorrowedFd;

use thrum_codec::packet::Publish;
use thrum_codec::{Packet, PacketId, Version, decode, frame};
use thrum_protocol::Time;
use thrum_protocol::client::{Client, Event, PublishError};

use super::{Console, Stop};

/// Unsent bytes from which on a command waits before it publishes more.
const OUTPUT_BYTES_SOFT_MAX: usize = 256 * 1024;

/// Whether a command has done its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Not yet.
    Continue,
    /// Send DISCONNECT and end.
    Done,
}

/// The client as a command sees it: its output goes to the broker with the next turn.
pub(crate) struct Outbox<'a> {
    /// Protocol state.
    pub(crate) client: &'a mut Client,
    /// Bytes to send.
    pub(crate) bytes: &'a mut Vec<u8>,
    /// The time of this turn.
    pub(crate) now: Time,
    /// For warnings.
    pub(crate) console: Console,
}

impl Outbox<'_> {
    /// The connection takes more at the moment.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes.len() < OUTPUT_BYTES_SOFT_MAX
    }

    /// Publishes; none if the window is full for now.
    pub(crate) fn publish(&mut self, publish: &Publish<'_>) -> Result<Option<Sent>, Stop> {
        match self.client.publish(publish, self.now, self.bytes) {
            Ok(packet_id) => Ok(Some(Sent { packet_id })),
            Err(PublishError::WindowFull | PublishError::NotConnected) => Ok(None),
            Err(error) => Err(refused_publish(publish.topic, error)),
        }
    }
}

/// A message that is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Named by its acknowledgement; none with QoS 0.
    pub(crate) packet_id: Option<PacketId>,
}

fn refused_publish(topic: &str, error: PublishError) -> Stop {
    let fix = match error {
        PublishError::QoSNotSupported => "; use a lower -q",
        PublishError::RetainNotSupported => "; leave out -r",
        PublishError::TopicInvalid => "; a topic is not empty and has no + or #",
        PublishError::TopicAliasInvalid => "; leave out the topic-alias property",
        _ => "",
    };
    Stop::failed(format!("cannot publish to {topic:?}: {error}{fix}"))
}

/// A command: takes events and returns the next action.
pub(crate) trait Application {
    /// The broker accepted the connection, the first one or a later one.
    fn handle_connected(&mut self, outbox: &mut Outbox<'_>) -> Result<(), Stop>;

    /// A message or an answer.
    fn handle_event(
        &mut self,
        event: &Event<'_>,
        outbox: &mut Outbox<'_>,
    ) -> Result<Progress, Stop>;

    /// Called once a turn while connected: sends pending messages.
    fn advance(&mut self, _outbox: &mut Outbox<'_>) -> Result<Progress, Stop> {
        Ok(Progress::Continue)
    }

    /// Everything that was received is handled: write out what is buffered.
    fn flush(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// The time of the next [`Application::handle_timeout`].
    fn next_deadline(&self) -> Option<Time> {
        None
    }

    /// Time has passed.
    fn handle_timeout(&mut self, _now: Time) -> Result<(), Stop> {
        Ok(())
    }

    /// An input to wait for in addition to the socket.
    fn input(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// That input has something, or ended.
    fn handle_input(&mut self) -> Result<(), Stop> {
        Ok(())
    }

    /// A connection that is lost is made again.
    fn reconnects(&self) -> bool {
        false
    }
}

/// Tells `-d` which packets these bytes are.
pub(super) fn trace(mut written: &[u8], version: Version, console: Console) {
    if !console.debug {
        return;
    }
    while let Ok(Some(frame)) = frame::split(written, u32::MAX) {
        if let Ok(packet) = decode(frame, version) {
            console.debug(|| format!("sent {}, {} bytes", name(&packet), frame.len));
        }
        written = &written[frame.len..];
    }
}

/// The name of a packet, for `-d`.
pub(super) fn name(packet: &Packet<'_>) -> &'static str {
    match packet {
        Packet::Connect(_) => "CONNECT",
        Packet::ConnAck(_) => "CONNACK",
        Packet::Publish(_) => "PUBLISH",
        Packet::PubAck(_) => "PUBACK",
        Packet::PubRec(_) => "PUBREC",
        Packet::PubRel(_) => "PUBREL",
        Packet::PubComp(_) => "PUBCOMP",
        Packet::Subscribe(_) => "SUBSCRIBE",
        Packet::SubAck(_) => "SUBACK",
        Packet::Unsubscribe(_) => "UNSUBSCRIBE",
        Packet::UnsubAck(_) => "UNSUBACK",
        Packet::PingReq => "PINGREQ",
        Packet::PingResp => "PINGRESP",
        Packet::Disconnect(_) => "DISCONNECT",
        Packet::Auth(_) => "AUTH",
    }
}
