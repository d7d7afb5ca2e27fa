//! An application message: borrowed while it passes through, owned once something must keep it.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, Version};

use crate::time::Time;

/// Number of a session that published a message, unique on the node; 0 is the node itself.
pub type PublisherId = u64;

/// A message on its way, borrowed from a read buffer or from a [`Message`].
#[derive(Clone, Copy, Debug)]
pub struct Publication<'a> {
    /// Topic name; never empty.
    pub topic: &'a str,
    /// Payload.
    pub payload: &'a [u8],
    /// As published, without topic alias, subscription identifiers and message expiry.
    pub properties: PublishProperties<'a>,
    /// Quality of service as published.
    pub qos: QoS,
    /// Retain flag as published.
    pub retain: bool,
    /// When the message is no longer to be delivered.
    pub expires_at: Option<Time>,
    /// Who published it (for no local).
    pub publisher: PublisherId,
}

/// A message that is kept: queued, inflight, retained or on its way to another worker. One allocation for all its text.
#[derive(Debug)]
pub struct Message {
    bytes: Box<[u8]>,
    topic_len: u32,
    properties_len: u32,
    qos: QoS,
    retain: bool,
    expires_at: Option<Time>,
    publisher: PublisherId,
}

impl Message {
    /// Copies a publication.
    pub fn new(_publication: &Publication<'_>) -> Self {
        todo!()
    }
    /// Borrows it again.
    pub fn publication(&self) -> Publication<'_> {
        todo!()
    }
    /// Topic name.
    pub fn topic(&self) -> &str {
        todo!()
    }
    /// Bytes that count against queue limits: topic, properties and payload.
    pub fn bytes_len(&self) -> usize {
        self.bytes.len()
    }
    /// Whether the message's expiry has passed.
    pub fn is_expired(&self, now: Time) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// A publication on its way to many sessions: the encoded frames are made once per (version, QoS, retain) and
/// the owned form once, when the first session has to keep it.
#[derive(Debug)]
pub struct Outgoing<'a> {
    publication: Publication<'a>,
    owned: Option<Arc<Message>>,
    frames: &'a mut FrameCache,
}

/// Encoded forms of the publication at hand; the caller keeps one and reuses its memory.
#[derive(Debug, Default)]
pub struct FrameCache {
    bytes: Vec<u8>,
    // one entry per (version, qos, retain) that was asked for
}

impl<'a> Outgoing<'a> {
    /// Starts with an empty frame cache.
    pub fn new(_publication: Publication<'a>, _frames: &'a mut FrameCache) -> Self {
        todo!()
    }
    /// Starts from a message that is owned already.
    pub fn from_message(_message: &'a Arc<Message>, _frames: &'a mut FrameCache) -> Self {
        todo!()
    }
    /// The publication.
    pub fn publication(&self) -> &Publication<'a> {
        &self.publication
    }
    /// The owned form, made at the first call.
    pub fn message(&mut self) -> &Arc<Message> {
        todo!()
    }
}
