//! The purpose and behaviour of a client.

use thrum_conformance::Version;

use crate::event::{Millis, NEVER};
use crate::random::Random;

/// The role of one client.
#[derive(Clone, Debug)]
pub struct Role {
    /// Client identifier.
    pub name: String,
    /// Protocol version.
    pub version: Version,
    /// Seconds for which its session outlives a connection; 0 or [`NEVER`] before 5.0.
    pub expiry_secs: u32,
    /// Its receive maximum (5.0); 0 is no limit.
    pub receive_maximum: u16,
    /// Longest time before it acknowledges a message, in milliseconds.
    pub answer_max: Millis,
    /// Its publishing.
    pub publishes: Option<Publishes>,
    /// Filters it always subscribes to, with their `QoS`.
    pub filters: Vec<(String, u8)>,
    /// A filter it subscribes to now and then.
    pub fickle: Option<(String, u8)>,
    /// When it is connected.
    pub habit: Habit,
    /// Its will.
    pub will: Option<WillRole>,
    /// Whether it ends its session now and then.
    pub ends_sessions: bool,
}

/// The publishing of a client.
#[derive(Clone, Debug)]
pub struct Publishes {
    /// Topics, taken at random.
    pub topics: Vec<String>,
    /// `QoS`, taken at random.
    pub qos: Vec<u8>,
    /// Whether messages are retained, and some of them empty.
    pub retain: bool,
    /// Messages that may wait for their acknowledgement.
    pub window: usize,
    /// Longest time between two messages, in milliseconds.
    pub pause_max: Millis,
}

/// When a client is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Habit {
    /// Always; it is back at once after a crash.
    Present,
    /// Present in one round of this many, and in quiet moments.
    Absent(u64),
    /// Leaves in all ways and returns, after at most this many milliseconds.
    Restless(Millis),
    /// Like restless, but with a will it often stays disconnected until a client saw it.
    Mourned(Millis),
}

/// The will of a client.
#[derive(Clone, Copy, Debug)]
pub struct WillRole {
    /// Quality of service.
    pub qos: u8,
    /// Whether it is retained.
    pub retain: bool,
    /// Seconds (5.0).
    pub delay_secs: u32,
}

impl Role {
    /// A part that does nothing but be there with a lasting session.
    pub fn new(name: &str, version: Version) -> Self {
        Self {
            name: name.to_owned(),
            version,
            expiry_secs: NEVER,
            receive_maximum: 0,
            answer_max: 0,
            publishes: None,
            filters: Vec::new(),
            fickle: None,
            habit: Habit::Present,
            will: None,
            ends_sessions: false,
        }
    }

    /// Milliseconds between two connections.
    pub(super) fn pause(&self, random: &mut Random) -> Millis {
        match self.habit {
            Habit::Present => random.below(5),
            // Until a round is its own.
            Habit::Absent(_) => Millis::MAX / 2,
            Habit::Restless(longest) | Habit::Mourned(longest) => random.below(longest),
        }
    }
}
