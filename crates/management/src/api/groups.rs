//! `/groups`: shared groups with the lag of each member.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{GroupQuery, GroupRow, MemberRow, WildcardText};
use utoipa::ToSchema;

use super::clients::problem_names;
use super::openapi::Asked;
use super::request::{Parameters, page};
use super::{ApiState, Problem};

/// A shared group.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// Its filter, without `$share/GROUP/`.
    pub filter: String,
    /// How it chooses a member, as in the configuration.
    pub strategy: String,
    /// Its members.
    pub members: usize,
    /// Members that are connected.
    pub connected: usize,
    /// Messages in the queues of the members that are listed.
    pub queued_messages: u64,
    /// Messages that these have not acknowledged.
    pub inflight: usize,
    /// The members, at most 1,000.
    pub member_list: Vec<Member>,
}

/// A member of a shared group. Its figures contain those of its other subscriptions.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// Client identifier.
    pub client_id: String,
    /// User; null if no user was verified.
    pub user: Option<String>,
    /// It is connected.
    pub connected: bool,
    /// Messages in its queue.
    pub queued_messages: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Messages that it has not acknowledged.
    pub inflight: usize,
    /// Age of the oldest message in its queue; null if there is none.
    pub oldest_queued_secs: Option<u64>,
    /// Age of the oldest message that it has not acknowledged; null if there is none.
    pub oldest_unacknowledged_secs: Option<u64>,
    /// Seconds since its last packet, or since its connection ended.
    pub idle_secs: u64,
    /// Its problems now.
    pub problems: Vec<String>,
}

/// A page of shared groups, in the order in which they began.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct GroupPage {
    /// The groups.
    pub groups: Vec<Group>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct GroupParameters {
    /// Name of the group; `*` stands for any text.
    group: Option<String>,
    /// Its filter; `*` stands for any text.
    filter: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists shared groups with the lag of each member.
#[utoipa::path(
    get,
    path = "/groups",
    operation_id = "list_groups",
    tag = "subscriptions",
    params(GroupParameters),
    responses((status = 200, body = GroupPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<GroupParameters>,
) -> Result<Json<GroupPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let query = GroupQuery {
        name: parameters.group.as_deref().map(WildcardText::new),
        filter: parameters.filter.as_deref().map(WildcardText::new),
        limit,
        cursor,
    };
    let found = api.query(move |queries| queries.groups(&query)).await?;
    Ok(Json(GroupPage {
        groups: found.rows.into_iter().map(Group::from).collect(),
        next: found.next.map(|next| next.to_string()),
    }))
}

impl From<GroupRow> for Group {
    fn from(row: GroupRow) -> Self {
        let members = row.shown.iter();
        Self {
            group: row.name,
            filter: row.filter,
            strategy: row.strategy.to_owned(),
            members: row.members,
            connected: row.connected,
            queued_messages: members.clone().map(|member| member.queued.messages).sum(),
            inflight: members.map(|member| member.inflight).sum(),
            member_list: row.shown.into_iter().map(Member::from).collect(),
        }
    }
}

impl From<MemberRow> for Member {
    fn from(row: MemberRow) -> Self {
        Self {
            client_id: row.client_id.into(),
            user: row.user.map(Into::into),
            connected: row.is_connected,
            queued_messages: row.queued.messages,
            queued_bytes: row.queued.bytes,
            inflight: row.inflight,
            oldest_queued_secs: row.oldest_queued_secs,
            oldest_unacknowledged_secs: row.oldest_unacknowledged_secs,
            idle_secs: row.idle_secs,
            problems: problem_names(row.problems.iter()),
        }
    }
}
