//! `/alarms`: what somebody has to do something about, now and before.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::alarms::{Past, Standing};
use crate::api::request::{PageParameters, Parameters, parsed, rows};
use crate::api::{ApiState, Problem};
use crate::timestamp::timestamp;

/// An alarm.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Alarm {
    /// Its name, which stays the same in later versions, such as `disk_nearly_full`.
    pub name: String,
    /// `critical` or `warning`.
    pub severity: String,
    /// The listener, sink or file that it is about; null for the node.
    pub of: Option<String>,
    /// What is the case, and why.
    pub what: String,
    /// What to do.
    pub fix: String,
    /// The figures and names of `what` and `fix` by their names, which stay the same in later
    /// versions; with `name` they are enough to say it in another language.
    #[serde(default)]
    pub arguments: BTreeMap<String, Value>,
    /// Lines for a shell that show more, or do it.
    #[serde(default)]
    pub commands: Vec<String>,
    /// The same as requests of this API.
    #[serde(default)]
    pub requests: Vec<String>,
    /// Since when.
    #[schema(format = DateTime)]
    pub raised_at: String,
}

/// Alarms that are raised.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmList {
    /// The most severe first; at most 256, because no more are raised.
    pub alarms: Vec<Alarm>,
}

/// An alarm that was cleared.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PastAlarm {
    /// Its number; later ones are higher.
    pub number: u64,
    /// The alarm as it was last.
    #[serde(flatten)]
    pub alarm: Alarm,
    /// Until when.
    #[schema(format = DateTime)]
    pub cleared_at: String,
}

/// Alarms that were cleared, since the start of the broker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AlarmHistory {
    /// The newest first.
    pub alarms: Vec<PastAlarm>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Lists the alarms that are raised, the most severe first.
#[utoipa::path(
    get,
    path = "/alarms",
    operation_id = "list_alarms",
    tag = "alarms",
    responses((status = 200, body = AlarmList)),
)]
pub(super) async fn list(State(api): State<ApiState>) -> Json<AlarmList> {
    let standing = api.managed.alarms.standing();
    Json(AlarmList {
        alarms: standing.into_iter().map(Alarm::from).collect(),
    })
}

/// Lists alarms that were cleared since the start of the broker, the newest first.
#[utoipa::path(
    get,
    path = "/alarms/history",
    operation_id = "list_past_alarms",
    tag = "alarms",
    params(PageParameters),
    responses((status = 200, body = AlarmHistory)),
)]
pub(super) async fn history(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<PageParameters>,
) -> Result<Json<AlarmHistory>, Problem> {
    let limit = rows(parameters.limit)?;
    let cursor = parameters.cursor.as_deref();
    let before = cursor.map(|text| parsed("cursor", text)).transpose()?;
    let mut past = api.managed.alarms.past(before, limit + 1);
    let is_more = past.len() > limit;
    past.truncate(limit);
    let last = past.last().map(|past| past.number.to_string());
    Ok(Json(AlarmHistory {
        alarms: past.into_iter().map(PastAlarm::from).collect(),
        next: last.filter(|_| is_more),
    }))
}

impl From<Standing> for Alarm {
    fn from(alarm: Standing) -> Self {
        let arguments = alarm.arguments.into_iter();
        let arguments = arguments.map(|(name, value)| (name.to_owned(), value));
        Self {
            name: alarm.name.name().to_owned(),
            severity: alarm.name.severity().name().to_owned(),
            of: (!alarm.of.is_empty()).then_some(alarm.of),
            what: alarm.what,
            fix: alarm.fix,
            arguments: arguments.collect(),
            commands: alarm.commands,
            requests: alarm.requests.into_iter().map(ToOwned::to_owned).collect(),
            raised_at: timestamp(alarm.since),
        }
    }
}

impl From<Past> for PastAlarm {
    fn from(past: Past) -> Self {
        Self {
            number: past.number,
            cleared_at: timestamp(past.until),
            alarm: past.alarm.into(),
        }
    }
}
