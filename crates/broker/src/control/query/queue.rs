//! The messages that one session holds for its client.

use std::sync::Arc;

use thrum_codec::QoS;
use thrum_engine::ids::Slot;
use thrum_protocol::Message;
use thrum_protocol::server::{Awaiting, HeldMessage, HeldStage};

use super::best::PAGE_BYTES_MAX;
use super::cursor::{Cursor, Listing};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::{CursorError, Page, QueryError, page_rows};
use crate::traffic::Traffic;

/// Messages from the first one in flight that are listed: each page begins at the first one, as a
/// queue has no other order that lasts.
const HELD_LISTED_MAX: u64 = 10_000;
/// Messages that are passed in the time of a unit.
const PASSED_OF_UNIT: u64 = 64;
/// Units of a message that is listed.
const LISTED_UNITS: u64 = 2;

/// A request for a page of the messages that a session holds.
#[derive(Clone, Debug, Default)]
pub struct HeldQuery {
    /// Client identifier.
    pub client_id: String,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// A message that a session holds. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug)]
pub struct HeldRow {
    /// How far its delivery is.
    pub stage: DeliveryStage,
    /// Packet identifier, if it was sent.
    pub packet_id: Option<u16>,
    /// The message; none if the session did not keep it, because it will not send it again.
    pub message: Option<HeldContent>,
}

/// How far the delivery of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryStage {
    /// It waits to be sent.
    Queued,
    /// It was sent, and PUBACK is expected.
    AwaitsPubAck,
    /// It was sent, and PUBREC is expected.
    AwaitsPubRec,
    /// The client has it, and PUBCOMP is expected.
    AwaitsPubComp,
}

/// A message and its delivery.
#[derive(Clone, Debug)]
pub struct HeldContent {
    /// Quality of service of the delivery.
    pub qos: QoS,
    /// Retain flag of the delivery.
    pub retain: bool,
    /// When the session got it, in whole seconds.
    pub since: u64,
    /// Seconds since then.
    pub age_secs: u64,
    /// Time from which it is no longer delivered.
    pub expires_at: Option<u64>,
    /// The shared filter, if the session was chosen of a group that still exists.
    pub group: Option<String>,
    message: Arc<Message>,
}

impl HeldContent {
    /// Topic name.
    pub fn topic(&self) -> &str {
        self.message.topic()
    }

    /// Payload.
    pub fn payload(&self) -> &[u8] {
        self.message.payload()
    }
}

/// See [`Queries::held`](super::Queries::held).
pub(super) fn held(
    sender: &QuerySender,
    query: &HeldQuery,
) -> Result<Option<Page<HeldRow>>, QueryError> {
    let task = ListHeld::new(query)?;
    let answers = sender.query_all(|| task.clone())?;
    Ok(answers.into_iter().flatten().next())
}

/// The messages of one session from a position on.
#[derive(Clone, Debug)]
pub(crate) struct ListHeld {
    client_id: Box<str>,
    first: u64,
    limit: usize,
}

impl ListHeld {
    pub(super) fn new(query: &HeldQuery) -> Result<Self, QueryError> {
        let first = query.cursor.as_ref().map(read_position).transpose()?;
        Ok(Self {
            client_id: query.client_id.as_str().into(),
            first: first.unwrap_or(0),
            limit: page_rows(query.limit),
        })
    }
}

fn read_position(cursor: &Cursor) -> Result<u64, CursorError> {
    let position = cursor.position(Listing::Held)?;
    let position = position.try_into().map_err(|_| CursorError)?;
    let position = u64::from_le_bytes(position);
    let is_listed = position < HELD_LISTED_MAX;
    is_listed.then_some(position).ok_or(CursorError)
}

impl WorkerTask for ListHeld {
    type Answer = Option<Page<HeldRow>>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<Self::Answer> {
        let slot = traffic.engine.core.sessions.find(&self.client_id);
        let Some(slot) = slot else {
            return TaskProgress::Done(None);
        };
        let page = self.page(traffic, slot);
        let listed = page.rows.len() as u64;
        traffic.engine.core.turn.work += LISTED_UNITS * listed + self.first / PASSED_OF_UNIT;
        TaskProgress::Done(Some(page))
    }
}

impl ListHeld {
    fn page(&self, traffic: &Traffic, slot: Slot) -> Page<HeldRow> {
        let core = &traffic.engine.core;
        let outbound = core.sessions[slot].session.outbound();
        let first = usize::try_from(self.first).unwrap_or(usize::MAX);
        let mut held = outbound.held_messages().skip(first).peekable();
        let (mut rows, mut bytes) = (Vec::new(), 0);
        while rows.len() < self.limit && bytes < PAGE_BYTES_MAX {
            let Some(one) = held.next() else { break };
            bytes += one.kept.map_or(0, |kept| {
                kept.message.topic().len() + kept.message.payload().len()
            });
            rows.push(row(traffic, &one));
        }
        let next = self.first + rows.len() as u64;
        let has_more = held.peek().is_some() && next < HELD_LISTED_MAX;
        Page {
            rows,
            next: has_more.then(|| Cursor::new(Listing::Held, &next.to_le_bytes())),
        }
    }
}

fn row(traffic: &Traffic, held: &HeldMessage<'_>) -> HeldRow {
    let core = &traffic.engine.core;
    let (stage, packet_id) = match held.stage {
        HeldStage::Queued => (DeliveryStage::Queued, None),
        HeldStage::Sent {
            packet_id,
            awaiting,
        } => {
            let stage = match awaiting {
                Awaiting::PubAck => DeliveryStage::AwaitsPubAck,
                Awaiting::PubRec => DeliveryStage::AwaitsPubRec,
                Awaiting::PubComp => DeliveryStage::AwaitsPubComp,
            };
            (stage, Some(packet_id.as_u16()))
        }
    };
    let message = held.kept.map(|kept| {
        let wall = &core.node.wall;
        let group = kept.group.and_then(|group| core.node.interest.group(group));
        HeldContent {
            qos: kept.qos,
            retain: kept.retain,
            since: wall.millis(kept.since),
            age_secs: core.turn.now.since(kept.since).as_secs(),
            expires_at: kept.message.expires_at().map(|at| wall.millis(at)),
            group: group.map(|group| group.text().to_owned()),
            message: Arc::clone(kept.message),
        }
    });
    HeldRow {
        stage,
        packet_id,
        message,
    }
}
