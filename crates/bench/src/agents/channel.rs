//! Messages to and from one peer over the control connection.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thrum_codec::QoS;
use thrum_figures::SECOND_NS;

use super::control_connection::{ControlConnection, ControlError, Incoming, Outgoing};
use super::fragment::{FragmentError, Fragmenter, Reassembler, single_fragment};
use super::message::written;

/// Silence after which a coordinator or agent counts as lost: five heartbeats.
pub(super) const SILENCE_NS_MAX: u64 = 5 * SECOND_NS;

/// Why messages to or from a peer fail.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The connection is over.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A message is too big or incomplete.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// This version does not know the message.
    #[error("a message cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// The message, if its last fragment arrived, and what to confirm: the number of the message and
/// how many of its fragments have arrived.
pub(super) type Taken<M> = (Option<M>, Option<(u32, u32)>);

/// One peer.
#[derive(Debug)]
pub(super) struct Channel {
    topic: String,
    fragmenter: Fragmenter,
    reassembler: Reassembler,
}

impl Channel {
    /// A peer that subscribes to a topic.
    pub(super) fn new(topic: String) -> Self {
        Self {
            topic,
            fragmenter: Fragmenter::default(),
            reassembler: Reassembler::default(),
        }
    }

    /// Sends a message after the waiting ones.
    pub(super) fn say(
        &mut self,
        connection: &ControlConnection,
        message: &impl Serialize,
    ) -> Result<(), ChannelError> {
        self.fragmenter.add(written(message))?;
        self.send_fragments(connection)
    }

    /// Sends a small message at once.
    pub(super) fn confirm(
        &self,
        connection: &ControlConnection,
        message: &impl Serialize,
    ) -> Result<(), ControlError> {
        connection.send(unfragmented(&self.topic, message))
    }

    /// The peer has received this many fragments of a message.
    pub(super) fn confirmed(
        &mut self,
        connection: &ControlConnection,
        message_id: u32,
        fragments: u32,
    ) -> Result<(), ChannelError> {
        self.fragmenter.confirm(message_id, fragments);
        self.send_fragments(connection)
    }

    /// Takes a fragment; returns the message if it is complete, and what to confirm.
    pub(super) fn take<M: DeserializeOwned>(
        &mut self,
        incoming: &Incoming,
    ) -> Result<Taken<M>, ChannelError> {
        let reassembled = self.reassembler.take(&incoming.payload)?;
        let message = reassembled
            .message
            .map(|message| serde_json::from_slice(&message))
            .transpose()?;
        Ok((message, reassembled.confirm))
    }

    fn send_fragments(&mut self, connection: &ControlConnection) -> Result<(), ChannelError> {
        while let Some(payload) = self.fragmenter.next_fragment() {
            connection.send(Outgoing {
                topic: self.topic.clone(),
                payload,
                qos: QoS::AtLeastOnce,
            })?;
        }
        Ok(())
    }
}

/// A small message as one fragment.
pub(super) fn unfragmented(topic: &str, message: &impl Serialize) -> Outgoing {
    Outgoing {
        topic: topic.to_owned(),
        payload: single_fragment(&written(message)),
        qos: QoS::AtLeastOnce,
    }
}
