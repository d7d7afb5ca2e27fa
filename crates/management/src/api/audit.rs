//! `/audit`: who changed what.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::openapi::Audited;
use super::request::{Parameters, parsed, rows};
use super::{ApiState, Problem};
use crate::audit::{AuditQuery, Entry, Outcome};
use crate::timestamp::timestamp;

/// A line of the audit log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number; later ones are higher.
    pub number: u64,
    /// Time.
    #[schema(format = DateTime)]
    pub at: String,
    /// Name of the administrator, `key:ID`, `local` or `anonymous`.
    pub who: String,
    /// `session`, `key`, `local` or `anonymous`.
    pub means: String,
    /// Address of the caller; null over the control socket.
    pub address: Option<String>,
    /// What was done, such as `client.kick`.
    pub action: String,
    /// To what.
    pub target: String,
    /// The state before, without secrets; null if there was none.
    pub before: Option<Value>,
    /// The state after, without secrets; null if there is none.
    pub after: Option<Value>,
    /// `done`, `failed`, `refused`; `unknown` if it is under way, or the broker ended within
    /// it.
    pub outcome: String,
    /// Why it failed or was refused; null otherwise.
    pub detail: Option<String>,
}

/// A page of the audit log, the newest entry first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The entries; fewer than `limit`, or none, if the parameters match few of many.
    pub entries: Vec<AuditEntry>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
    /// Lines in the files of this page that cannot be read: torn by a crash, or changed.
    pub damaged_lines: u64,
}

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AuditParameters {
    /// Name of the caller.
    who: Option<String>,
    /// What was done; `client.*` is every action on clients.
    action: Option<String>,
    /// RFC 3339; older entries are left out.
    since: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists changes, logins and refusals, the newest first.
#[utoipa::path(
    get,
    path = "/audit",
    operation_id = "list_audit",
    tag = "status",
    params(AuditParameters),
    responses((status = 200, body = AuditPage), Audited),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<AuditParameters>,
) -> Result<Json<AuditPage>, Problem> {
    let since = parameters.since.as_deref();
    let since = since.map(|text| parsed::<Timestamp>("since", text));
    let cursor = parameters.cursor.as_deref();
    let query = AuditQuery {
        who: parameters.who,
        action: parameters.action,
        since: since
            .transpose()?
            .map(|since| u64::try_from(since.as_millisecond()).unwrap_or(0)),
        before: cursor.map(|text| parsed("cursor", text)).transpose()?,
        limit: rows(parameters.limit)?,
    };
    let found = api.in_log(move |audit| audit.page(&query)).await?;
    Ok(Json(AuditPage {
        entries: found.entries.into_iter().map(AuditEntry::from).collect(),
        next: found.next.map(|number| number.to_string()),
        damaged_lines: found.damaged,
    }))
}

impl From<Entry> for AuditEntry {
    fn from(entry: Entry) -> Self {
        let outcome = match entry.outcome {
            Outcome::Unknown => "unknown",
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Refused => "refused",
        };
        Self {
            number: entry.number,
            at: timestamp(entry.at),
            who: entry.who,
            means: entry.means,
            address: entry.from,
            action: entry.action,
            target: entry.target,
            before: entry.before,
            after: entry.after,
            outcome: outcome.to_owned(),
            detail: entry.detail,
        }
    }
}
