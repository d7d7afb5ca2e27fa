//! What would happen to a packet, step by step, without doing it.
//!
//! The functions here take the engine by shared reference and call what the packets of clients go
//! through, so they cannot change a session, a queue, a counter or the turn of a shared group.

mod publish;
mod receivers;
mod subscribe;

use thrum_codec::{QoS, ReasonCode};
use thrum_protocol::limits::QueuePolicy;
use thrum_protocol::server::DropReason;

pub use publish::{PublishAsked, PublishExplained, explain_publish};
pub use receivers::{
    GroupReceiver, RECEIVERS_MAX, ReceiverSearch, Receivers, SessionReceiver, explain_groups,
};
pub use subscribe::{SubscribeAsked, SubscribeExplained, explain_subscribe};

use crate::access::DecidedBy;
use crate::client::Client;
use crate::core::Core;

/// A step of a packet's way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What is looked at.
    pub check: StepCheck,
    /// What comes out.
    pub outcome: StepOutcome,
}

/// What a step looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepCheck {
    /// The rules and backends.
    Access(DecidedBy),
    /// Whether the topic or filter is valid.
    Name,
    /// A limit, by its key in the configuration: what is asked for, and what is allowed.
    Limit {
        /// Key in the configuration.
        key: &'static str,
        /// What the packet has.
        has: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// A limit, by its key in the configuration, that a subscription would exceed; none if it would
    /// exceed none.
    Limits(Option<&'static str>),
    /// The mount point of the listener; the topic or filter behind it.
    Mount {
        /// With the mount point.
        name: Box<str>,
    },
    /// Topics that belong to the broker.
    Reserved,
    /// The disk has room.
    Disk,
    /// The sinks that the message goes to have room.
    Sinks,
}

/// What comes out of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    /// The packet goes on.
    Passes,
    /// The packet is refused; the reason code as in 5.0.
    Refuses(ReasonCode),
    /// It depends on an answer that is not known now.
    Depends,
}

impl Step {
    const fn passes(check: StepCheck) -> Self {
        Self {
            check,
            outcome: StepOutcome::Passes,
        }
    }

    const fn refuses(check: StepCheck, reason: ReasonCode) -> Self {
        Self {
            check,
            outcome: StepOutcome::Refuses(reason),
        }
    }

    /// Whether the packet ends here.
    pub const fn is_refusal(&self) -> bool {
        matches!(self.outcome, StepOutcome::Refuses(_))
    }
}

/// The queue and the window of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The client is connected.
    pub is_connected: bool,
    /// The client does not take its output.
    pub is_congested: bool,
    /// Messages in the queue.
    pub messages: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Limit of messages.
    pub messages_max: u32,
    /// Limit of bytes.
    pub bytes_max: u32,
    /// What happens when it is full.
    pub policy: QueuePolicy,
    /// Messages that were sent and not acknowledged.
    pub inflight: usize,
    /// Messages that may be sent at once.
    pub window: usize,
}

/// What a session would do with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreseen {
    /// It is sent at once.
    Sent,
    /// It waits in the queue.
    Queued,
    /// It waits in the queue, for which older messages are dropped.
    QueuedForOlder,
    /// Its publisher waits for room in the queue.
    Held,
    /// It is dropped.
    Dropped(DropReason),
}

/// The queue and the window of a session.
pub fn queue_state(core: &Core, client: &Client) -> QueueState {
    let session = &client.session;
    let (messages, bytes, inflight) = session.outbound().backlog();
    let limits = &session.limits().queue;
    let is_congested = client
        .connection
        .is_some_and(|key| core.outputs[key].is_congested);
    QueueState {
        is_connected: client.connection.is_some(),
        is_congested,
        messages,
        bytes,
        messages_max: limits.messages_max,
        bytes_max: limits.bytes_max,
        policy: limits.policy,
        inflight,
        window: session.free_window(),
    }
}

/// What a session would do with a message of that quality of service and size now.
pub fn foresee(
    core: &Core,
    client: &Client,
    message: &thrum_protocol::Message,
    qos: QoS,
) -> Foreseen {
    let session = &client.session;
    let state = queue_state(core, client);
    if session.would_queue(qos) {
        if session.has_room_for(message, qos, 0) {
            return Foreseen::Queued;
        }
        return match state.policy {
            QueuePolicy::DropOldest => Foreseen::QueuedForOlder,
            QueuePolicy::Hold if state.is_connected && qos != QoS::AtMostOnce => Foreseen::Held,
            QueuePolicy::Hold | QueuePolicy::RejectNew => Foreseen::Dropped(DropReason::QueueFull),
        };
    }
    match (state.is_connected, state.is_congested) {
        (false, _) => Foreseen::Dropped(DropReason::Offline),
        (true, true) => Foreseen::Dropped(DropReason::SlowConsumer),
        (true, false) => Foreseen::Sent,
    }
}
