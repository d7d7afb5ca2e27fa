//! Messages to and from one partner over a link.

use serde::Serialize;
use serde::de::DeserializeOwned;
use thrum_codec::QoS;

use super::link::{Letter, Link, LinkError, Post};
use super::message::written;
use super::parcel::{Packer, ParcelError, Unpacker, express};
use crate::units::SECOND_NS;

/// Silence of coordinator or agent after which it counts as lost: five signs of life.
pub(super) const SILENCE_NS_MAX: u64 = 5 * SECOND_NS;

/// Why a partner cannot be talked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChannelError {
    /// The connection is over.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// A message is too big or incomplete.
    #[error(transparent)]
    Parcel(#[from] ParcelError),
    /// Not a message that this version knows.
    #[error("a message makes no sense here: {0}")]
    Unreadable(#[from] serde_json::Error),
}

/// A message, if a letter completed one, and what to confirm: parcel and letters of it that have
/// come.
pub(super) type Taken<M> = (Option<M>, Option<(u32, u32)>);

/// One partner.
#[derive(Debug)]
pub(super) struct Channel {
    topic: String,
    packer: Packer,
    unpacker: Unpacker,
}

impl Channel {
    /// A partner who listens to a topic.
    pub(super) fn new(topic: String) -> Self {
        Self {
            topic,
            packer: Packer::default(),
            unpacker: Unpacker::default(),
        }
    }

    /// Sends a message after those before it.
    pub(super) fn say(
        &mut self,
        link: &Link,
        message: &impl Serialize,
    ) -> Result<(), ChannelError> {
        self.packer.add(written(message))?;
        self.go_on(link)
    }

    /// Sends a small message at once.
    pub(super) fn confirm(&self, link: &Link, message: &impl Serialize) -> Result<(), LinkError> {
        link.send(express_post(&self.topic, message))
    }

    /// The partner has got so many letters of a message.
    pub(super) fn confirmed(
        &mut self,
        link: &Link,
        parcel: u32,
        letters: u32,
    ) -> Result<(), ChannelError> {
        self.packer.confirm(parcel, letters);
        self.go_on(link)
    }

    /// Takes a letter; a message if it is complete with that, and what to confirm.
    pub(super) fn take<M: DeserializeOwned>(
        &mut self,
        letter: &Letter,
    ) -> Result<Taken<M>, ChannelError> {
        let unpacked = self.unpacker.take(&letter.payload)?;
        let message = unpacked
            .message
            .map(|message| serde_json::from_slice(&message))
            .transpose()?;
        Ok((message, unpacked.confirm))
    }

    fn go_on(&mut self, link: &Link) -> Result<(), ChannelError> {
        while let Some(payload) = self.packer.next_letter() {
            link.send(Post {
                topic: self.topic.clone(),
                payload,
                qos: QoS::AtLeastOnce,
            })?;
        }
        Ok(())
    }
}

/// A small message as a letter of its own.
pub(super) fn express_post(topic: &str, message: &impl Serialize) -> Post {
    Post {
        topic: topic.to_owned(),
        payload: express(&written(message)),
        qos: QoS::AtLeastOnce,
    }
}
