//! `/alarms`: what somebody has to do something about, now and before.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::alarms::Standing;
use crate::api::entrance::Sender;
use crate::api::request::{PageParameters, Parameters, parsed, rows};
use crate::api::{ApiState, Problem};
use crate::login::Scope;
use crate::timestamp::timestamp;

/// The argument that names a client.
const CLIENT: &str = "client_id";

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
pub(super) async fn list(State(api): State<ApiState>, sender: Sender) -> Json<AlarmList> {
    let standing = api.managed.alarms.standing().into_iter();
    let shown = standing.map(|alarm| Alarm::from(alarm).shown_to(&sender, &api));
    Json(AlarmList {
        alarms: shown.collect(),
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
    sender: Sender,
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
        alarms: past
            .into_iter()
            .map(|past| PastAlarm {
                number: past.number,
                cleared_at: timestamp(past.until),
                alarm: Alarm::from(past.alarm).shown_to(&sender, &api),
            })
            .collect(),
        next: last.filter(|_| is_more),
    }))
}

impl Alarm {
    /// Without the names of clients if the caller may not see clients.
    fn shown_to(mut self, sender: &Sender, api: &ApiState) -> Self {
        let names = self.arguments.contains_key(CLIENT);
        if names && sender.check_still(api, Scope::ClientsRead).is_err() {
            self.arguments.remove(CLIENT);
            self.commands.clear();
        }
        self
    }
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

#[cfg(test)]
mod tests {
    use super::super::super::stream::tests::broker_and_api;
    use super::*;
    use crate::login::{Caller, NewKey, ScopeSet};

    #[tokio::test]
    async fn who_may_not_see_clients_reads_alarms_without_their_names() {
        let (broker, api) = broker_and_api();
        let alarm = Alarm {
            name: "queues_nearly_full".to_owned(),
            severity: "warning".to_owned(),
            of: None,
            what: "the queue of a client is full".to_owned(),
            fix: "bring it back".to_owned(),
            arguments: [(CLIENT.to_owned(), "archive".into())].into(),
            commands: vec!["thrum clients get archive".to_owned()],
            requests: Vec::new(),
            raised_at: String::new(),
        };
        let all = Sender::from(Caller::local());
        let shown = alarm.clone().shown_to(&all, &api);
        assert_eq!(shown.arguments[CLIENT], "archive");
        let scopes = ScopeSet::of(&[Scope::MetricsRead]);
        let new = NewKey {
            label: "scraper".to_owned(),
            scopes,
            expires_at: None,
            created_by: "a test".to_owned(),
        };
        let key = api.security.login.add_key(new).await.unwrap();
        let scraper = Sender::from(Caller::key(&key.id, scopes, None));
        let shown = alarm.shown_to(&scraper, &api);
        assert_eq!(shown.what, "the queue of a client is full");
        assert!(!format!("{shown:?}").contains("archive"), "{shown:?}");
        broker.stop();
    }
}
