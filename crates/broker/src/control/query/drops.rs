//! Dropped messages by reason, client and topic, the most frequent first.

use thrum_codec::{TopicFilter, topic};
use thrum_engine::drops::{DROP_KEYS_MAX, DropKey};
use thrum_engine::top_counts::Counted;

use super::best::{Best, Direction, TextBytes, Wanted};
use super::cursor::{Cursor, Listing};
use super::filter::{check_pattern, check_topic_filter};
use super::rank::{Rank, RankRef, TextRef};
use super::sender::QuerySender;
use super::tasks::{TaskProgress, WorkerTask};
use super::wildcard::WildcardText;
use super::{Page, QueryError, page_rows};
use crate::traffic::Traffic;

/// Units of the table of a worker, which is searched at once.
const TABLE_UNITS: u64 = DROP_KEYS_MAX as u64;

/// A request for a page of dropped messages.
#[derive(Clone, Debug, Default)]
pub struct DropQuery {
    /// Name of the reason.
    pub reason: Option<String>,
    /// Client identifier, or the shared filter of a group that could not take a message.
    pub receiver: Option<WildcardText>,
    /// Filter that the topics match.
    pub topic: Option<String>,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// Messages that were dropped for the same reason, client and topic.
#[derive(Clone, Debug)]
pub struct DropRow {
    /// Name of the reason, as in `$SYS/broker/publish/messages/dropped/…`.
    pub reason: &'static str,
    /// Client identifier, or the shared filter of a group that could not take a message; its first
    /// 512 bytes.
    pub receiver: Box<str>,
    /// Topic, its first 512 bytes; none if it is not known.
    pub topic: Option<Box<str>>,
    /// Number of messages since the start of the broker.
    pub messages: u64,
    /// How many fewer they may be, because the combination took the place of another one.
    pub at_most_less: u64,
    /// When the last one was dropped, in milliseconds of the Unix epoch.
    pub last_at: u64,
}

impl TextBytes for DropRow {
    fn text_bytes(&self) -> usize {
        self.receiver.len() + self.topic.as_deref().map_or(0, str::len)
    }
}

/// A page of dropped messages.
#[derive(Clone, Debug)]
pub struct DropPage {
    /// The rows.
    pub page: Page<DropRow>,
    /// Combinations that match, on all pages together.
    pub matching: u64,
    /// Combinations that were left out: others that were more frequent took their places. Their
    /// messages are in the `at_most_less` of those.
    pub left_out: u64,
}

/// See [`Queries::drops`](super::Queries::drops).
pub(super) fn drops(sender: &QuerySender, query: &DropQuery) -> Result<DropPage, QueryError> {
    if let Some(pattern) = &query.receiver {
        check_pattern("clients", pattern)?;
    }
    if let Some(filter) = &query.topic {
        check_topic_filter(filter)?;
        if TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_some()) {
            let what = "dropped messages are found by a filter without $share/GROUP/".to_owned();
            return Err(QueryError::Invalid(what));
        }
    }
    let after = query.cursor.as_ref();
    let after = after.map(|cursor| cursor.rank(Listing::Drops, &[]));
    let wanted = Wanted {
        direction: Direction::Descending,
        limit: page_rows(query.limit),
        after: after.transpose()?,
    };
    let list = || ListDrops {
        query: query.clone(),
        wanted: wanted.clone(),
    };
    let mut best = Best::new(wanted.clone());
    let (mut matching, mut left_out) = (0, 0);
    for found in sender.walk_all(list)? {
        matching += found.matching;
        left_out += found.left_out;
        best.join(found.best);
    }
    let (rows, next) = best.into_page();
    let next = next.map(|rank| Cursor::of_rank(Listing::Drops, &[], &rank));
    Ok(DropPage {
        page: Page { rows, next },
        matching,
        left_out,
    })
}

/// The rows of one worker.
#[derive(Debug)]
struct DropsFound {
    best: Best<Rank, DropRow>,
    matching: u64,
    left_out: u64,
}

/// One worker's search of its table.
#[derive(Debug)]
struct ListDrops {
    query: DropQuery,
    wanted: Wanted<Rank>,
}

impl ListDrops {
    fn is_wanted(&self, key: &DropKey) -> bool {
        let DropQuery {
            reason,
            receiver,
            topic: filter,
            ..
        } = &self.query;
        let receiver = receiver.as_ref();
        reason.as_deref().is_none_or(|reason| reason == key.reason)
            && receiver.is_none_or(|pattern| pattern.matches(&key.receiver))
            && filter.as_deref().is_none_or(|filter| {
                let topic = key.topic.as_deref();
                topic.is_some_and(|topic| topic::matches(filter, topic))
            })
    }
}

impl WorkerTask for ListDrops {
    type Answer = DropsFound;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<DropsFound> {
        let core = &mut traffic.engine.core;
        let mut best = Best::new(self.wanted.clone());
        let mut matching = 0;
        for counted in core
            .drops
            .iter()
            .filter(|counted| self.is_wanted(&counted.key))
        {
            matching += 1;
            let key = &counted.key;
            // The number tells cut texts apart.
            let topic = key.topic.as_deref().unwrap_or("");
            let second = format!("{}\0{topic}\0{:x}", key.reason, key.id());
            let rank = RankRef {
                value: counted.count,
                name: TextRef::new(&key.receiver),
                second: TextRef::new(&second),
            };
            let last_at = core.node.wall.millis(key.last);
            let make = || (rank.to_rank(), row(counted, last_at));
            best.offer(|other| rank.compare(other), make);
        }
        let left_out = core.drops.replaced();
        core.turn.work += TABLE_UNITS.min(1 + core.drops.iter().count() as u64);
        TaskProgress::Done(DropsFound {
            best,
            matching,
            left_out,
        })
    }
}

fn row(counted: &Counted<DropKey>, last_at: u64) -> DropRow {
    let key = &counted.key;
    DropRow {
        reason: key.reason,
        receiver: key.receiver.clone(),
        topic: key.topic.clone(),
        messages: counted.count,
        at_most_less: counted.error,
        last_at,
    }
}
