//! `/topics`: the tree of topics with their figures, and one topic in full.

use axum::Json;
use axum::extract::State;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thrum_broker::{TOPIC_HITS_MAX, TopicDetail, TopicLast, TopicOrder, TopicQuery, TopicRow};
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::Asked;
use super::request::{Parameters, page};
use super::{ApiState, Problem};
use crate::login::Scope;
use crate::timestamp::timestamp;

/// A topic, or a level of topics, with everything below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Topic {
    /// Its level.
    pub name: String,
    /// The whole topic.
    pub topic: String,
    /// Topics or levels right below it, as far as one worker of the broker has seen them.
    pub children: u32,
    /// Messages since the observation began, with those of the topics below.
    pub messages: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Messages in a second, of the last seconds.
    pub messages_per_second: f64,
    /// Bytes of payloads in a second, of the last seconds.
    pub bytes_per_second: f64,
    /// When the last message came; null if there was none.
    pub last_at: Option<String>,
    /// The last message with exactly this topic; null if there was none.
    pub value: Option<TopicMessage>,
}

/// A message of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicMessage {
    /// When it came.
    pub at: String,
    /// Its quality of service.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// Its RETAIN flag.
    pub retain: bool,
    /// Messages with exactly this topic since the observation began; null in `values`.
    pub messages: Option<u64>,
    /// Bytes of its payload.
    pub payload_bytes: u32,
    /// The payload, or its beginning, as text; null if it is no text, and without the scope
    /// `messages:read`.
    pub payload: Option<String>,
    /// The same in base64, if it is no text; null without the scope `messages:read`.
    pub payload_base64: Option<String>,
    /// The payload is longer than what is shown.
    pub cut: bool,
    /// Client identifier of its publisher; null if it is not known, or the broker itself.
    #[serde(default)]
    pub publisher: Option<String>,
}

/// A page of topics.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TopicPage {
    /// The topics or levels, in the order of `sort`.
    pub topics: Vec<Topic>,
    /// The level that they are below; null if no message had such a topic.
    pub node: Option<Topic>,
    /// Messages below the level whose topics found no room; null if not all children are here.
    pub others: Option<u64>,
    /// When the observation began.
    pub observed_since: String,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Topics that were found.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TopicHits {
    /// The first ones by name.
    pub topics: Vec<Topic>,
    /// There are more.
    pub cut: bool,
    /// Messages whose topics found no room in the tree, so that they are not found.
    pub untold: u64,
    /// How many times a topic or level was silent for a minute and forgotten for another one: such
    /// topics are not found until their next message. Above 0 only if the tree was full.
    pub forgotten: u64,
    /// When the observation began: what had no message since is not found.
    #[schema(format = DateTime)]
    pub observed_since: String,
}

/// A topic in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TopicInFull {
    /// The topic.
    pub topic: String,
    /// Its figures; null if it had no message since the observation began.
    pub figures: Option<Topic>,
    /// Its last messages since somebody looks at it, at most 20, the oldest first.
    pub values: Vec<TopicMessage>,
    /// Its publishers since then, the most frequent first.
    pub publishers: Vec<TopicPublisher>,
    /// Sessions that are subscribed to it by filters without a group.
    pub subscribers: u64,
    /// Shared groups that are subscribed to it.
    pub groups: u64,
    /// It has a retained message.
    pub retained: bool,
    /// When the observation began.
    pub observed_since: String,
}

/// A publisher of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopicPublisher {
    /// Client identifier; null for the broker itself: wills, events, and messages of the operator.
    pub client_id: Option<String>,
    /// Its messages with this topic.
    pub messages: u64,
}

/// Which part of the tree.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TopicsParameters {
    /// The level whose children are listed, as `site/a` or `site/a/`; all topics if absent.
    under: Option<String>,
    /// `name`, `messages`, `rate`, `bytes` or `last`.
    sort: Option<String>,
    /// The greatest, newest or last one first.
    descending: bool,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// What is searched for.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchParameters {
    /// A part of a topic, in upper or lower case, whose end is in the last level; or a topic filter
    /// with `+` or `#`, which finds topics that had a message. At most 256 bytes.
    text: String,
    /// Topics of the answer; 100 if absent.
    #[param(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// One topic.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct TopicParameters {
    /// The topic, with the mount point in front.
    topic: String,
}

/// The level of a prefix: `site/a` and `site/a/` are the same one, `/` is the empty level, and an
/// empty text stands for all topics.
pub(super) fn level(prefix: &str) -> Option<String> {
    match prefix {
        "" => None,
        "/" => Some(String::new()),
        _ => Some(prefix.strip_suffix('/').unwrap_or(prefix).to_owned()),
    }
}

/// The order of that name.
pub(super) fn order(name: Option<&str>) -> Result<TopicOrder, Problem> {
    let Some(name) = name else {
        return Ok(TopicOrder::default());
    };
    let found = TopicOrder::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, order)| *order).ok_or_else(|| {
        let known = TopicOrder::ALL.map(|(known, _)| known).join(", ");
        Problem::bad_request(format!("sort is one of {known}, not {name:?}"))
    })
}

/// Lists the topics below a level with their figures, which are counted from the first request on.
///
/// Counting ends a minute after the last request or stream. In the order of names a whole listing
/// is complete; in another one each worker tells its first 2,048 rows. Payloads need the scope
/// `messages:read` as well.
#[utoipa::path(
    get,
    path = "/topics",
    operation_id = "list_topics",
    tag = "live",
    params(TopicsParameters),
    responses((status = 200, body = TopicPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<TopicsParameters>,
) -> Result<Json<TopicPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let query = TopicQuery {
        under: level(parameters.under.as_deref().unwrap_or_default()),
        order: order(parameters.sort.as_deref())?,
        is_descending: parameters.descending,
        limit,
        cursor,
    };
    let under = query.under.clone();
    let found = api
        .query(move |queries| queries.topics().list(&query))
        .await?;
    let payloads = sender.caller.may(Scope::MessagesRead);
    let rows = found.rows.into_iter();
    Ok(Json(TopicPage {
        topics: rows
            .map(|row| Topic::below(under.as_deref(), row, payloads))
            .collect(),
        node: found.node.map(|row| Topic::whole(row, payloads)),
        others: found.others,
        observed_since: timestamp(found.observed_since),
        next: found.next.map(|next| next.to_string()),
    }))
}

/// Searches the tree of topics, all of its levels, the first topics by name first.
///
/// Topics are known that had a message since the observation began, which a search begins as a
/// listing does. A tree that is full forgets silent topics for others (`forgotten`), or has no room
/// for new ones (`untold`). Payloads need the scope `messages:read` as well.
#[utoipa::path(
    get,
    path = "/topics/search",
    operation_id = "search_topics",
    tag = "live",
    params(SearchParameters),
    responses((status = 200, body = TopicHits), Asked),
)]
pub(super) async fn search(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(SearchParameters { text, limit }): Parameters<SearchParameters>,
) -> Result<Json<TopicHits>, Problem> {
    let limit = limit.unwrap_or(TOPIC_HITS_MAX);
    if !(1..=TOPIC_HITS_MAX).contains(&limit) {
        let what = format!("limit is a number from 1 to {TOPIC_HITS_MAX}, not {limit}");
        return Err(Problem::bad_request(what));
    }
    let asked = api.query(move |queries| queries.topics().search(&text, limit));
    let found = asked.await?;
    let payloads = sender.caller.may(Scope::MessagesRead);
    let rows = found.rows.into_iter();
    Ok(Json(TopicHits {
        topics: rows.map(|row| Topic::whole(row, payloads)).collect(),
        cut: found.is_cut,
        untold: found.untold,
        forgotten: found.forgotten,
        observed_since: timestamp(found.observed_since),
    }))
}

/// Shows a topic with its last values, publishers and subscribers.
///
/// Values and publishers are kept from the first request on. Payloads need the scope
/// `messages:read` as well.
#[utoipa::path(
    get,
    path = "/topics/topic",
    operation_id = "show_topic",
    tag = "live",
    params(TopicParameters),
    responses((status = 200, body = TopicInFull), Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(TopicParameters { topic }): Parameters<TopicParameters>,
) -> Result<Json<TopicInFull>, Problem> {
    let payloads = sender.caller.may(Scope::MessagesRead);
    let name = topic.clone();
    let found = api
        .query(move |queries| queries.topics().show(&name))
        .await?;
    Ok(Json(TopicInFull::new(topic, found, payloads)))
}

impl Topic {
    /// A child of a level.
    pub(super) fn below(under: Option<&str>, row: TopicRow, payloads: bool) -> Self {
        let topic = match under {
            Some(under) => format!("{under}/{}", row.name),
            None => row.name.to_string(),
        };
        Self::new(topic, row, payloads)
    }

    /// A level whose name is the whole topic.
    pub(super) fn whole(row: TopicRow, payloads: bool) -> Self {
        let topic = row.name.to_string();
        let name = topic.rsplit('/').next().unwrap_or_default().into();
        Self::new(topic, TopicRow { name, ..row }, payloads)
    }

    fn new(topic: String, row: TopicRow, payloads: bool) -> Self {
        let figures = row.figures;
        Self {
            name: row.name.into(),
            topic,
            children: row.children,
            messages: figures.messages,
            payload_bytes: figures.payload_bytes,
            messages_per_second: rounded(figures.messages_per_second),
            bytes_per_second: rounded(figures.bytes_per_second),
            last_at: (figures.last_at > 0).then(|| timestamp(figures.last_at)),
            value: row.last.map(|last| TopicMessage::last(&last, payloads)),
        }
    }
}

/// A rate as it can be known.
pub(super) fn rounded(rate: f64) -> f64 {
    (rate * 100.0).round() / 100.0
}

impl TopicMessage {
    fn last(last: &TopicLast, payloads: bool) -> Self {
        let shown = Shown::new(&last.preview, last.payload_bytes, payloads);
        Self {
            at: timestamp(last.at),
            qos: last.qos.as_u8(),
            retain: last.retain,
            messages: Some(last.messages),
            payload_bytes: last.payload_bytes,
            payload: shown.text,
            payload_base64: shown.base64,
            cut: shown.is_cut,
            publisher: None,
        }
    }
}

/// The payload of a message, as far as the caller may see it.
struct Shown {
    text: Option<String>,
    base64: Option<String>,
    is_cut: bool,
}

impl Shown {
    fn new(preview: &[u8], payload_bytes: u32, payloads: bool) -> Self {
        let is_cut = preview.len() < payload_bytes as usize;
        // A text may be cut within a character.
        let text = match std::str::from_utf8(preview) {
            Ok(text) => Some(text),
            Err(error) if is_cut && error.error_len().is_none() => {
                std::str::from_utf8(&preview[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let text = text.filter(|text| !text.contains('\0'));
        Self {
            text: text.filter(|_| payloads).map(ToOwned::to_owned),
            base64: (payloads && text.is_none()).then(|| STANDARD.encode(preview)),
            is_cut,
        }
    }
}

impl TopicInFull {
    /// As a caller may see it.
    pub(super) fn new(topic: String, found: TopicDetail, payloads: bool) -> Self {
        let values = found.values.into_iter().map(|(at, value)| {
            let shown = Shown::new(&value.preview, value.payload_bytes, payloads);
            TopicMessage {
                at: timestamp(at),
                qos: value.qos.as_u8(),
                retain: value.retain,
                messages: None,
                payload_bytes: value.payload_bytes,
                payload: shown.text,
                payload_base64: shown.base64,
                cut: shown.is_cut,
                publisher: value.publisher.map(Into::into),
            }
        });
        let publishers = found.publishers.into_iter();
        Self {
            topic,
            figures: found.row.map(|row| Topic::whole(row, payloads)),
            values: values.collect(),
            publishers: publishers
                .map(|(name, messages)| TopicPublisher {
                    client_id: Some(String::from(name)).filter(|name| !name.is_empty()),
                    messages,
                })
                .collect(),
            subscribers: found.subscribers,
            groups: found.groups,
            retained: found.is_retained,
            observed_since: timestamp(found.observed_since),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_a_level_with_or_without_its_slash() {
        assert_eq!(level(""), None);
        assert_eq!(level("/"), Some(String::new()));
        for prefix in ["site/a", "site/a/"] {
            assert_eq!(level(prefix).as_deref(), Some("site/a"));
        }
        assert_eq!(level("site//").as_deref(), Some("site/"));
    }

    #[test]
    fn payloads_are_text_or_base64_and_neither_without_the_scope() {
        let shown = |bytes: &[u8], len, payloads| {
            let Shown {
                text,
                base64,
                is_cut,
            } = Shown::new(bytes, len, payloads);
            (text, base64, is_cut)
        };
        assert_eq!(shown(b"21.5", 4, true), (Some("21.5".into()), None, false));
        assert_eq!(shown(b"21.5", 4, false), (None, None, false));
        assert_eq!(
            shown(&[0xFF, 0], 2, true),
            (None, Some("/wA=".into()), false)
        );
        assert_eq!(shown(&[0xFF, 0], 2, false), (None, None, false));
        assert!(shown("a\u{e4}".as_bytes(), 9, true).2);
        // The last character is cut.
        assert_eq!(
            shown(&"a\u{e4}".as_bytes()[..2], 9, true).0,
            Some("a".into())
        );
        assert_eq!(shown(&"a\u{e4}".as_bytes()[..2], 2, true).0, None);
    }
}
