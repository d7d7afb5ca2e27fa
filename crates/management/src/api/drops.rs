//! `/drops`: dropped messages by reason, client and topic.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{DropQuery, DropRow, WildcardText};
use utoipa::ToSchema;

use super::client_detail::Dropped;
use super::openapi::Asked;
use super::request::{Parameters, page};
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// The beginning of the names of counters of dropped messages.
const DROPPED: &str = "publish/messages/dropped/";

/// Messages that were dropped for one reason, for one client, of one topic.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Drops {
    /// The reason, as in `$SYS/broker/publish/messages/dropped`.
    pub reason: String,
    /// Client identifier, its first 512 bytes; the shared filter if no member of a group took them.
    pub client_id: String,
    /// Topic, its first 512 bytes; null if it is not known: they were dropped with many others, or
    /// by another worker.
    pub topic: Option<String>,
    /// Number of messages since the start of the broker.
    pub messages: u64,
    /// How many fewer they may be: above 0 only if there are many combinations.
    pub at_most_less: u64,
    /// When the last one was dropped.
    #[schema(format = DateTime)]
    pub last_at: String,
}

/// A page of dropped messages, the most frequent first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropPage {
    /// The combinations of reason, client and topic.
    pub drops: Vec<Drops>,
    /// Combinations that match, on all pages together.
    pub matching: u64,
    /// Combinations that are not listed, because each worker counts only the 1,024 most frequent.
    pub left_out: u64,
    /// All messages that were dropped since the start of the broker, whatever the parameters ask
    /// for, also those that are in no row: with `offline`, and of combinations that are not listed.
    #[serde(default)]
    pub total: u64,
    /// The same by reason, the most frequent first, without those that have none.
    #[serde(default)]
    pub by_reason: Vec<Dropped>,
    /// When the broker started.
    #[serde(default)]
    #[schema(format = DateTime)]
    pub since: String,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DropParameters {
    /// The reason, as in `$SYS/broker/publish/messages/dropped`.
    reason: Option<String>,
    /// Client identifier; `*` stands for any text.
    client: Option<String>,
    /// A filter that the topic matches.
    topic: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists dropped messages by reason, client and topic, the most frequent first.
#[utoipa::path(
    get,
    path = "/drops",
    operation_id = "list_drops",
    tag = "diagnosis",
    params(DropParameters),
    responses((status = 200, body = DropPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<DropParameters>,
) -> Result<Json<DropPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let query = DropQuery {
        reason: parameters.reason,
        client: parameters.client.as_deref().map(WildcardText::new),
        topic: parameters.topic,
        limit,
        cursor,
    };
    let now = api.security.login.now().wall_millis;
    let uptime = api.queries.uptime().as_millis();
    let asked = api.query(move |queries| Ok((queries.drops(&query)?, queries.figures().counters)));
    let (found, counters) = asked.await?;
    let by_reason = by_reason(&counters);
    Ok(Json(DropPage {
        drops: found.page.rows.into_iter().map(Drops::from).collect(),
        matching: found.matching,
        left_out: found.left_out,
        total: by_reason.iter().map(|dropped| dropped.messages).sum(),
        by_reason,
        since: timestamp(now.saturating_sub(u64::try_from(uptime).unwrap_or(u64::MAX))),
        next: found.page.next.map(|next| next.to_string()),
    }))
}

/// The counters of dropped messages, the greatest first.
fn by_reason(counters: &[(String, u64)]) -> Vec<Dropped> {
    let counted = counters.iter().filter(|(_, messages)| *messages > 0);
    let mut found: Vec<Dropped> = counted
        .filter_map(|(name, messages)| {
            Some(Dropped {
                reason: name.strip_prefix(DROPPED)?.to_owned(),
                messages: *messages,
            })
        })
        .collect();
    found.sort_by_key(|dropped| std::cmp::Reverse(dropped.messages));
    found
}

impl From<DropRow> for Drops {
    fn from(row: DropRow) -> Self {
        Self {
            reason: row.reason.to_owned(),
            client_id: row.client.into(),
            topic: row.topic.map(Into::into),
            messages: row.messages,
            at_most_less: row.at_most_less,
            last_at: timestamp(row.last_at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_are_in_no_row_are_in_the_counts_by_reason() {
        let counters = [
            ("publish/messages/dropped", 12),
            ("publish/messages/dropped/queue_full", 5),
            ("publish/messages/dropped/offline", 7),
            ("publish/messages/dropped/expired", 0),
            ("publish/messages/sent", 9),
        ];
        let counters = counters.map(|(name, messages)| (name.to_owned(), messages));
        let found = by_reason(&counters).into_iter();
        let found: Vec<(String, u64)> = found.map(|one| (one.reason, one.messages)).collect();
        let expected = [("offline".to_owned(), 7), ("queue_full".to_owned(), 5)];
        assert_eq!(found, expected);
    }
}
