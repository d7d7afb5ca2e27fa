//! Retained messages by page.

use std::net::IpAddr;
use std::sync::Arc;

use thrum_codec::properties::PublishProperties;
use thrum_codec::{QoS, TopicFilter, topic};
use thrum_protocol::Message;
use thrum_routing::retained::Allowance;

use super::best::PAGE_BYTES_MAX;
use super::cursor::{Cursor, Listing};
use super::filter::check_topic_filter;
use super::sender::QuerySender;
use super::{CursorError, Page, QueryError, page_rows};
use crate::node::Node;
use thrum_engine::retained::{Listed, RetainedSource};

/// Messages that are read before their bytes are counted.
const MESSAGES_AT_ONCE: usize = 64;
/// Branches of the store that are visited for one page: some 10 ms. A page of a filter that matches
/// few topics may be short, or empty, and still have a next one.
const VISITS_MAX: usize = 100_000;

/// A page of retained messages, in the order of the store.
#[derive(Clone, Debug)]
pub struct RetainedQuery {
    /// Filter that the topics match; `#` matches all topics that do not begin with `$`.
    pub filter: String,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before, with the same filter.
    pub cursor: Option<Cursor>,
}

/// A retained message. Times are milliseconds of the Unix epoch.
#[derive(Clone, Debug)]
pub struct RetainedRow {
    /// Topic name.
    pub topic: String,
    /// Quality of service as published.
    pub qos: QoS,
    /// Bytes of the payload.
    pub payload_bytes: u64,
    /// Time of publication.
    pub published_at: u64,
    /// Time from which it is no longer delivered.
    pub expires_at: Option<u64>,
    /// Its publisher; none without `acl.check_retained_source`.
    pub publisher: Option<Publisher>,
    /// It is not sent to new subscribers: its publisher may no longer publish it.
    pub is_withheld: bool,
    message: Arc<Message>,
}

impl RetainedRow {
    /// Payload.
    pub fn payload(&self) -> &[u8] {
        self.message.payload()
    }

    /// Properties as published, without the message expiry.
    pub fn properties(&self) -> PublishProperties<'_> {
        self.message.publication().properties
    }
}

/// The publisher of a retained message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publisher {
    /// Client identifier.
    pub client_id: Box<str>,
    /// User; none if no user was verified.
    pub user: Option<Box<str>>,
    /// Its address; none if it is not known.
    pub address: Option<IpAddr>,
}

/// See [`Queries::retained_message`](super::Queries::retained_message).
pub(super) fn retained_message(
    sender: &QuerySender,
    topic: &str,
) -> Result<Option<RetainedRow>, QueryError> {
    if !topic::is_valid_name(topic) {
        return Err(QueryError::Invalid(format!("{topic:?} is no topic name")));
    }
    let node = sender.node();
    let mut listed = Vec::new();
    let mut allowance = Allowance {
        messages: 1,
        visits: VISITS_MAX,
    };
    let retained = &node.state.retained;
    retained.list(topic, None, &mut allowance, &mut listed);
    let now = node.clock.now();
    listed.retain(|listed| !listed.message.is_expired(now));
    Ok(listed.first().map(|listed| row(node, listed)))
}

/// See [`Queries::retained`](super::Queries::retained).
pub(super) fn retained(
    sender: &QuerySender,
    query: &RetainedQuery,
) -> Result<Page<RetainedRow>, QueryError> {
    check_topic_filter(&query.filter)?;
    let filter = TopicFilter::parse(&query.filter);
    if filter.is_ok_and(|filter| filter.shared().is_some()) {
        let what = "retained messages are found by a filter without $share/GROUP/".to_owned();
        return Err(QueryError::Invalid(what));
    }
    let node = sender.node();
    let mut position = match &query.cursor {
        None => None,
        Some(cursor) => {
            let position = cursor.position(Listing::Retained)?;
            let position = node.state.retained.read_place(&query.filter, position);
            Some(position.ok_or(CursorError)?)
        }
    };
    let now = node.clock.now();
    let mut listed = Vec::new();
    let mut visits = VISITS_MAX;
    let limit = page_rows(query.limit);
    loop {
        let messages = (limit - listed.len()).min(MESSAGES_AT_ONCE);
        let mut allowance = Allowance { messages, visits };
        let filter = &query.filter;
        position = node
            .state
            .retained
            .list(filter, position, &mut allowance, &mut listed);
        visits = allowance.visits;
        listed.retain(|listed| !listed.message.is_expired(now));
        let bytes: usize = listed
            .iter()
            .map(|listed| listed.message.topic().len())
            .sum();
        let is_full = listed.len() >= limit || bytes >= PAGE_BYTES_MAX;
        if position.is_none() || visits == 0 || is_full {
            break;
        }
    }
    let next = position.map(|position| node.state.retained.write_place(Some(&position)));
    Ok(Page {
        rows: listed.iter().map(|listed| row(node, listed)).collect(),
        next: next.map(|position| Cursor::new(Listing::Retained, &position)),
    })
}

fn row(node: &Node, listed: &Listed) -> RetainedRow {
    let message = &listed.message;
    let source = listed.source.as_deref().and_then(RetainedSource::client);
    RetainedRow {
        topic: message.topic().to_owned(),
        qos: message.qos(),
        payload_bytes: message.payload().len() as u64,
        published_at: node.state.wall.millis(listed.at),
        expires_at: message.expires_at().map(|at| node.state.wall.millis(at)),
        publisher: source.map(|source| Publisher {
            client_id: source.identity.client_id,
            user: source.identity.username,
            address: source.identity.address,
        }),
        is_withheld: listed.is_withheld,
        message: Arc::clone(message),
    }
}
