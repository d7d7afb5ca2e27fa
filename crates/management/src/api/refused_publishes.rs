//! `/refused-publishes`: messages that were refused to their publishers, by reason, client and
//! topic.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{DropQuery, PublishRefusal, RefusalRow, WildcardText};
use utoipa::ToSchema;

use super::openapi::Asked;
use super::request::{Parameters, page};
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// The beginning of the names of counters of refused messages.
const REFUSED: &str = "publish/messages/refused/";
/// The counter of those whose publisher was not told.
const UNTOLD: &str = "publish/messages/refused_untold";

/// Messages of one client and topic that were refused for one reason.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedPublishes {
    /// The reason, as in `$SYS/broker/publish/messages/refused`.
    pub reason: String,
    /// Client identifier of the publisher, its first 512 bytes.
    pub client_id: String,
    /// Topic as the client wrote it, its first 512 bytes.
    pub topic: Option<String>,
    /// The publisher was told, by a reason code or by the end of its connection. It was not with
    /// QoS 0, and MQTT 3.1.1 has no reason code.
    pub told: bool,
    /// Number of messages since the start of the broker.
    pub messages: u64,
    /// How many fewer they may be: above 0 only if there are many combinations.
    pub at_most_less: u64,
    /// When the last one was refused.
    #[schema(format = DateTime)]
    pub last_at: String,
}

/// Messages that were refused for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedForReason {
    /// The reason, as in `$SYS/broker/publish/messages/refused`.
    pub reason: String,
    /// Reason code of the PUBACK or PUBREC, if the publisher gets one.
    pub code: u8,
    /// Number of messages.
    pub messages: u64,
}

/// A page of refused messages, the most frequent first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RefusedPublishPage {
    /// The combinations of reason, client and topic.
    pub refused: Vec<RefusedPublishes>,
    /// Combinations that match, on all pages together.
    pub matching: u64,
    /// Combinations that are not listed, because each worker counts only the 1,024 most frequent.
    pub left_out: u64,
    /// All messages that were refused since the start of the broker, whatever the parameters ask
    /// for.
    pub total: u64,
    /// Of these, those whose publisher was not told.
    pub untold: u64,
    /// All by reason, the most frequent first, without reasons that have none.
    pub by_reason: Vec<RefusedForReason>,
    /// When the broker started.
    #[schema(format = DateTime)]
    pub since: String,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct RefusedParameters {
    /// The reason, as in `$SYS/broker/publish/messages/refused`.
    reason: Option<String>,
    /// Client identifier of the publisher; `*` stands for any text.
    client: Option<String>,
    /// A filter that the topic matches.
    topic: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists messages that were refused to their publishers, the most frequent first.
///
/// A refused message is not a dropped one: a publisher that is told still has it. A message whose
/// receivers were all full is counted for them at `/drops` as well.
#[utoipa::path(
    get,
    path = "/refused-publishes",
    operation_id = "list_refused_publishes",
    tag = "diagnosis",
    params(RefusedParameters),
    responses((status = 200, body = RefusedPublishPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<RefusedParameters>,
) -> Result<Json<RefusedPublishPage>, Problem> {
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
    let asked =
        api.query(move |queries| Ok((queries.refusals(&query)?, queries.figures().counters)));
    let (found, counters) = asked.await?;
    let by_reason = by_reason(&counters);
    Ok(Json(RefusedPublishPage {
        refused: found.page.rows.into_iter().map(Into::into).collect(),
        matching: found.matching,
        left_out: found.left_out,
        total: by_reason.iter().map(|refused| refused.messages).sum(),
        untold: counted(&counters, UNTOLD),
        by_reason,
        since: timestamp(now.saturating_sub(u64::try_from(uptime).unwrap_or(u64::MAX))),
        next: found.page.next.map(|next| next.to_string()),
    }))
}

/// The value of a counter.
fn counted(counters: &[(String, u64)], name: &str) -> u64 {
    let mut found = counters.iter().filter(|(known, _)| known == name);
    found.next().map_or(0, |(_, count)| *count)
}

/// The counters of refused messages, the greatest first.
fn by_reason(counters: &[(String, u64)]) -> Vec<RefusedForReason> {
    let all = PublishRefusal::ALL.iter().map(|reason| RefusedForReason {
        reason: reason.name().to_owned(),
        code: reason.code().as_u8(),
        messages: counted(counters, &format!("{REFUSED}{}", reason.name())),
    });
    let mut found: Vec<_> = all.filter(|refused| refused.messages > 0).collect();
    found.sort_by_key(|refused| std::cmp::Reverse(refused.messages));
    found
}

impl From<RefusalRow> for RefusedPublishes {
    fn from(row: RefusalRow) -> Self {
        Self {
            reason: row.reason.reason.name().to_owned(),
            client_id: row.client.into(),
            topic: row.topic.map(Into::into),
            told: row.reason.is_told,
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
    fn counts_by_reason_are_of_all_refused_messages_and_of_no_dropped_one() {
        let counters = [
            ("publish/messages/dropped/memory_short", 12),
            ("publish/messages/refused", 9),
            ("publish/messages/refused/not_allowed", 2),
            ("publish/messages/refused/queues_full", 7),
            ("publish/messages/refused/disk_full", 0),
            ("publish/messages/refused_untold", 3),
        ];
        let counters = counters.map(|(name, messages)| (name.to_owned(), messages));
        let found = by_reason(&counters).into_iter();
        let found: Vec<(String, u8, u64)> = found
            .map(|one| (one.reason, one.code, one.messages))
            .collect();
        let expected = [
            ("queues_full".to_owned(), 0x97, 7),
            ("not_allowed".to_owned(), 0x87, 2),
        ];
        assert_eq!(found, expected);
        assert_eq!(counted(&counters, UNTOLD), 3);
    }
}
