//! `/logs`: the last events of the log, page by page or as they come; levels for a time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse as _, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use utoipa::ToSchema;

use super::log_stream;
use crate::api::entrance::Sender;
use crate::api::openapi::{Audited, Configured, Programmed};
use crate::api::request::{Body, Parameters, parsed, rows};
use crate::api::stream::{Watcher, wants_events};
use crate::api::{ApiState, Problem};
use crate::audit::Change;
use crate::login::Scope;
use crate::logs::{Levels, LogFilter, LogLevel, LogSlice};
use crate::timestamp::timestamp;

/// Where a browser says up to where it has read.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// An event of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogLine {
    /// Its number since the start of the broker; later ones are higher.
    pub number: u64,
    /// Time.
    #[schema(format = DateTime)]
    pub at: String,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// The part of the program that it is from.
    pub target: String,
    /// Its text.
    pub text: String,
    /// Its fields by name.
    pub fields: BTreeMap<String, String>,
}

/// A part of the log in memory.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LogPage {
    /// The events, the newest first; with `after` the oldest first.
    pub events: Vec<LogLine>,
    /// The `cursor` of the next page; null on the last one. With `after` it is the next `after` if
    /// there is more.
    pub next: Option<String>,
    /// The `after` that goes on behind this page.
    pub last: u64,
    /// With `after`: events behind it that were forgotten before they were read.
    pub missed: u64,
}

/// Levels of the log.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LevelList {
    /// `log.level` of the configuration.
    pub level: String,
    /// Levels that hold for a time instead, at most 16.
    pub raised: Vec<RaisedLevel>,
}

/// A level for a time.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RaisedLevel {
    /// The part of the program; empty for all parts whose names begin with `thrum`.
    pub target: String,
    /// Level.
    pub level: String,
    /// Seconds until the level of the configuration holds again.
    pub seconds_left: u64,
}

/// A level to set.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct LevelChange {
    /// The part of the program, such as `thrum_broker::door`; empty for all of the broker, whose
    /// names begin with `thrum`. Libraries, such as `h2`, are named.
    #[serde(default)]
    pub target: String,
    /// The level; null for that of the configuration.
    pub level: Option<String>,
    /// Seconds until it returns by itself: 1 to 86,400. Default 600.
    #[serde(default)]
    pub seconds: Option<u64>,
}

/// Longest text to look for: each event of the log is searched for it.
const TEXT_LEN_MAX: usize = 256;
/// Seconds of a level without `seconds`.
const LEVEL_SECS: u64 = 600;
/// First and longest wait before a level is taken back again that could not be: a forgotten level
/// fills the disk, and the log says each time that it is still there.
const RETRY_TIME_MIN: Duration = Duration::from_secs(1);
const RETRY_TIME_MAX: Duration = Duration::from_mins(1);

/// Which events are listed.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LogParameters {
    /// This level and more important ones.
    level: Option<String>,
    /// Targets that begin so.
    target: Option<String>,
    /// A part of the text, of a field or of the target, of at most 256 bytes; upper case and lower
    /// case are the same.
    text: Option<String>,
    /// Time of the first event.
    since: Option<String>,
    /// Events behind that number, the oldest first.
    after: Option<u64>,
    /// `next` of the page before.
    cursor: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
}

impl LogParameters {
    fn filter(&self) -> Result<LogFilter, Problem> {
        let level = self.level.as_deref().map(level_named).transpose()?;
        let since = self.since.as_deref();
        let since = since.map(|text| parsed::<Timestamp>("since", text));
        if let Some(text) = self.text.as_ref().filter(|text| text.len() > TEXT_LEN_MAX) {
            let what = format!(
                "text has at most {TEXT_LEN_MAX} bytes, not {}: give a part of it",
                text.len()
            );
            return Err(Problem::bad_request(what));
        }
        Ok(LogFilter {
            level,
            target: self.target.clone(),
            text: self.text.as_ref().map(|text| text.to_lowercase()),
            since: since
                .transpose()?
                .map(|since| u64::try_from(since.as_millisecond()).unwrap_or(0)),
        })
    }
}

fn level_named(name: &str) -> Result<LogLevel, Problem> {
    LogLevel::named(name).ok_or_else(|| {
        let known = LogLevel::ALL.map(LogLevel::name).join(", ");
        Problem::bad_request(format!("level is one of {known}, not {name:?}"))
    })
}

/// Lists the last events of the log, or sends them as they come (`Accept: text/event-stream`).
#[utoipa::path(
    get,
    path = "/logs",
    operation_id = "list_logs",
    tag = "logs",
    params(LogParameters),
    responses((status = 200, description = "The events.", content(
        (LogPage = "application/json"),
        (String = "text/event-stream"),
    ))),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<LogParameters>,
    sender: Sender,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let filter = parameters.filter()?;
    let limit = rows(parameters.limit)?;
    if wants_events(&headers) {
        let watcher = Watcher::begin(&api, sender, vec![Scope::LogsRead])?;
        let resumed = headers.get(LAST_EVENT_ID);
        let resumed = resumed.and_then(|id| id.to_str().ok()?.parse().ok());
        let after = resumed.or(parameters.after);
        let logs = Arc::clone(&api.managed.logs);
        return Ok(log_stream::events_of(logs, watcher, filter, after));
    }
    let logs = &api.managed.logs;
    let slice = match (parameters.after, &parameters.cursor) {
        (Some(_), Some(_)) => {
            let what =
                "after goes on behind an event, and cursor back before one: give one of them";
            return Err(Problem::bad_request(what));
        }
        (Some(after), None) => logs.after(after, &filter, limit),
        (None, cursor) => {
            let before = cursor.as_deref().map(|text| parsed("cursor", text));
            logs.before(before.transpose()?, &filter, limit)
        }
    };
    Ok(Json(LogPage {
        events: lines(&slice),
        next: slice.next.map(|number| number.to_string()),
        last: slice.last,
        missed: slice.missed,
    })
    .into_response())
}

pub(super) fn lines(slice: &LogSlice) -> Vec<LogLine> {
    let events = slice.events.iter();
    events
        .map(|numbered| {
            let event = &numbered.event;
            let fields = event.fields.iter();
            LogLine {
                number: numbered.number,
                at: timestamp(event.at),
                level: event.level.name().to_owned(),
                target: event.target.clone(),
                text: event.text.clone(),
                fields: fields
                    .map(|(name, value)| ((*name).to_owned(), value.clone()))
                    .collect(),
            }
        })
        .collect()
}

/// Shows the level of the log, and levels that hold for a time.
#[utoipa::path(
    get,
    path = "/logs/level",
    operation_id = "show_log_level",
    tag = "logs",
    responses((status = 200, body = LevelList), Programmed),
)]
pub(super) async fn levels(State(api): State<ApiState>) -> Result<Json<LevelList>, Problem> {
    level_list(&api).await.map(Json)
}

async fn level_list(api: &ApiState) -> Result<LevelList, Problem> {
    let level = api.program(|program| Ok(program.log_level())).await?;
    let now = api.security.login.now().uptime;
    let levels = api.managed.logs.levels().clone();
    let raised = levels
        .all()
        .iter()
        .filter(|raised| raised.until > now)
        .map(|raised| RaisedLevel {
            target: raised.target.clone(),
            level: raised.level.name().to_owned(),
            seconds_left: raised.until.saturating_sub(now).as_secs().max(1),
        });
    Ok(LevelList {
        level,
        raised: raised.collect(),
    })
}

/// Sets the level of the log for a time, for all of the broker or a part of it.
#[utoipa::path(
    put,
    path = "/logs/level",
    operation_id = "set_log_level",
    tag = "logs",
    request_body = LevelChange,
    responses((status = 200, body = LevelList), Configured, Audited),
)]
pub(super) async fn set_level(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<LevelChange>,
) -> Result<Json<LevelList>, Problem> {
    let level = body.level.as_deref().map(level_named).transpose()?;
    let time = Duration::from_secs(body.seconds.unwrap_or(LEVEL_SECS));
    let change = Change::new("log.level", &body.target).after(json!({
        "level": body.level,
        "seconds": time.as_secs(),
    }));
    // All of it is one change: a level that is in force has to be known here, and to return, also
    // if its client has left.
    let asked = api.clone();
    let make = async move {
        let change = asked.managed.logs.change_levels().await;
        let mut levels = asked.managed.logs.levels().clone();
        let now = asked.security.login.now().uptime;
        let set = levels.set(&body.target, level, time, now);
        set.map_err(|error| Problem::bad_request(error.to_string()))?;
        put_in_force(&asked, levels).await?;
        drop(change);
        if level.is_some() {
            drop(tokio::spawn(take_back_after(asked, time)));
        }
        Ok(())
    };
    api.audited(&sender, change, make).await?;
    level_list(&api).await.map(Json)
}

async fn take_back_after(api: ApiState, time: Duration) {
    tokio::time::sleep(time).await;
    let mut wait = RETRY_TIME_MIN;
    while let Err(problem) = take_back(&api).await {
        tracing::error!(
            error = problem.detail,
            retry_secs = wait.as_secs(),
            "a level of the log cannot be taken back"
        );
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(RETRY_TIME_MAX);
    }
}

/// Ends levels whose time is over. If that fails they stay, and are ended by the next call.
async fn take_back(api: &ApiState) -> Result<(), Problem> {
    let _change = api.managed.logs.change_levels().await;
    let now = api.security.login.now().uptime;
    let mut levels = api.managed.logs.levels().clone();
    if !levels.expire(now) {
        return Ok(());
    }
    put_in_force(api, levels).await?;
    tracing::info!("a level of the log has returned to that of the configuration");
    Ok(())
}

async fn put_in_force(api: &ApiState, levels: Levels) -> Result<(), Problem> {
    let directives = levels.directives();
    let set = api.program(move |program| program.set_log_directives(directives));
    set.await?;
    *api.managed.logs.levels() = levels;
    Ok(())
}
