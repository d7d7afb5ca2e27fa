//! Messages that were dropped, or refused to their publishers, by reason, client and topic, the
//! most frequent first.

use std::fmt;
use std::hash::Hash;
use std::marker::PhantomData;

use thrum_codec::{TopicFilter, topic};
use thrum_engine::core::Core;
use thrum_engine::refusals::Refusal;
use thrum_engine::top_counts::Counted;
use thrum_engine::undelivered::{MESSAGE_KEYS_MAX, MessageCounts, MessageKey};

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
const TABLE_UNITS: u64 = MESSAGE_KEYS_MAX as u64;

/// A request for a page of dropped or refused messages.
#[derive(Clone, Debug, Default)]
pub struct DropQuery {
    /// Name of the reason.
    pub reason: Option<String>,
    /// Client identifier of who did not get them, or of their publisher; also the shared filter of
    /// a group that could not take a message.
    pub client: Option<WildcardText>,
    /// Filter that the topics match.
    pub topic: Option<String>,
    /// Rows at most, up to [`ROWS_MAX`](super::ROWS_MAX).
    pub limit: usize,
    /// The `next` of the page before.
    pub cursor: Option<Cursor>,
}

/// Messages with the same reason, client and topic.
#[derive(Clone, Debug)]
pub struct UndeliveredRow<R> {
    /// The reason.
    pub reason: R,
    /// Client identifier, or the shared filter of a group that could not take a message; its first
    /// 512 bytes.
    pub client: Box<str>,
    /// Topic, its first 512 bytes; none if it is not known.
    pub topic: Option<Box<str>>,
    /// Number of messages since the start of the broker.
    pub messages: u64,
    /// How many fewer they may be, because the combination took the place of another one.
    pub at_most_less: u64,
    /// When the last one came to this end, in milliseconds of the Unix epoch.
    pub last_at: u64,
}

/// Dropped messages; the reason is named as in `$SYS/broker/publish/messages/dropped/…`.
pub type DropRow = UndeliveredRow<&'static str>;

/// Refused messages.
pub type RefusalRow = UndeliveredRow<Refusal>;

impl<R> TextBytes for UndeliveredRow<R> {
    fn text_bytes(&self) -> usize {
        self.client.len() + self.topic.as_deref().map_or(0, str::len)
    }
}

/// A page of dropped or refused messages.
#[derive(Clone, Debug)]
pub struct UndeliveredPage<R> {
    /// The rows.
    pub page: Page<UndeliveredRow<R>>,
    /// Combinations that match, on all pages together.
    pub matching: u64,
    /// Combinations that were left out: others that were more frequent took their places. Their
    /// messages are in the `at_most_less` of those.
    pub left_out: u64,
}

/// A kind of reason, with the table that counts by it.
pub(super) trait Reason: fmt::Debug + Copy + Hash + Send + Sync + 'static {
    const LISTING: Listing;

    fn counts(core: &Core) -> &MessageCounts<Self>;

    fn name(self) -> &'static str;
}

impl Reason for &'static str {
    const LISTING: Listing = Listing::Drops;

    fn counts(core: &Core) -> &MessageCounts<Self> {
        &core.undelivered.dropped
    }

    fn name(self) -> &'static str {
        self
    }
}

impl Reason for Refusal {
    const LISTING: Listing = Listing::Refusals;

    fn counts(core: &Core) -> &MessageCounts<Self> {
        &core.undelivered.refused
    }

    fn name(self) -> &'static str {
        self.reason.name()
    }
}

/// See [`Queries::drops`](super::Queries::drops) and
/// [`Queries::refusals`](super::Queries::refusals).
pub(super) fn list<R: Reason>(
    sender: &QuerySender,
    query: &DropQuery,
) -> Result<UndeliveredPage<R>, QueryError> {
    if let Some(pattern) = &query.client {
        check_pattern("clients", pattern)?;
    }
    if let Some(filter) = &query.topic {
        check_topic_filter(filter)?;
        if TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_some()) {
            let what = "dropped and refused messages are found by a filter without $share/GROUP/"
                .to_owned();
            return Err(QueryError::Invalid(what));
        }
    }
    let after = query.cursor.as_ref();
    let after = after.map(|cursor| cursor.rank(R::LISTING, &[]));
    let wanted = Wanted {
        direction: Direction::Descending,
        limit: page_rows(query.limit),
        after: after.transpose()?,
    };
    let list = || ListMessages::<R> {
        query: query.clone(),
        wanted: wanted.clone(),
        reasons: PhantomData,
    };
    let mut best = Best::new(wanted.clone());
    let (mut matching, mut left_out) = (0, 0);
    for found in sender.walk_all(list)? {
        matching += found.matching;
        left_out += found.left_out;
        best.join(found.best);
    }
    let (rows, next) = best.into_page();
    let next = next.map(|rank| Cursor::of_rank(R::LISTING, &[], &rank));
    Ok(UndeliveredPage {
        page: Page { rows, next },
        matching,
        left_out,
    })
}

/// The rows of one worker.
#[derive(Debug)]
struct MessagesFound<R> {
    best: Best<Rank, UndeliveredRow<R>>,
    matching: u64,
    left_out: u64,
}

/// One worker's search of its table.
#[derive(Debug)]
struct ListMessages<R> {
    query: DropQuery,
    wanted: Wanted<Rank>,
    reasons: PhantomData<R>,
}

impl<R: Reason> ListMessages<R> {
    fn is_wanted(&self, key: &MessageKey<R>) -> bool {
        let DropQuery {
            reason,
            client,
            topic: filter,
            ..
        } = &self.query;
        let client = client.as_ref();
        reason
            .as_deref()
            .is_none_or(|reason| reason == key.reason.name())
            && client.is_none_or(|pattern| pattern.matches(&key.client))
            && filter.as_deref().is_none_or(|filter| {
                let topic = key.topic.as_deref();
                topic.is_some_and(|topic| topic::matches(filter, topic))
            })
    }
}

impl<R: Reason> WorkerTask for ListMessages<R> {
    type Answer = MessagesFound<R>;

    fn advance(&mut self, traffic: &mut Traffic) -> TaskProgress<MessagesFound<R>> {
        let core = &mut traffic.engine.core;
        let counts = R::counts(core);
        let mut best = Best::new(self.wanted.clone());
        let mut matching = 0;
        for counted in counts.iter().filter(|counted| self.is_wanted(&counted.key)) {
            matching += 1;
            let key = &counted.key;
            // The number tells cut texts apart.
            let topic = key.topic.as_deref().unwrap_or("");
            let second = format!("{}\0{topic}\0{:x}", key.reason.name(), key.id());
            let rank = RankRef {
                value: counted.count,
                name: TextRef::new(&key.client),
                second: TextRef::new(&second),
            };
            let last_at = core.node.wall.millis(key.last);
            let make = || (rank.to_rank(), row(counted, last_at));
            best.offer(|other| rank.compare(other), make);
        }
        let left_out = counts.replaced();
        let units = TABLE_UNITS.min(1 + counts.iter().count() as u64);
        core.turn.work += units;
        TaskProgress::Done(MessagesFound {
            best,
            matching,
            left_out,
        })
    }
}

fn row<R: Copy>(counted: &Counted<MessageKey<R>>, last_at: u64) -> UndeliveredRow<R> {
    let key = &counted.key;
    UndeliveredRow {
        reason: key.reason,
        client: key.client.clone(),
        topic: key.topic.clone(),
        messages: counted.count,
        at_most_less: counted.error,
        last_at,
    }
}
