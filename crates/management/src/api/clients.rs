//! `/clients`: sessions, with their connections if they have any.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_broker::{
    ClientProblem, Condition, Figure, Presence, SessionFilter, SessionQuery, SessionRow,
    SessionState, SortKey,
};
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, Audited, NotFound};
use super::request::{ClientId, NoParameters, Parameters, page, parsed};
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::timestamp::timestamp;

/// A client: its session, and its connection if it has one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Client {
    /// Client identifier.
    pub client_id: String,
    /// User; null if no user was verified.
    pub user: Option<String>,
    /// It is connected.
    pub connected: bool,
    /// Start of the connection; null while it is disconnected.
    #[schema(format = DateTime)]
    pub connected_at: Option<String>,
    /// End of its connection; null while it is connected.
    #[schema(format = DateTime)]
    pub away_since: Option<String>,
    /// Address and port, or the kind of connection if it has none; null while it is disconnected.
    pub peer: Option<String>,
    /// Name of the listener; null while it is disconnected.
    pub listener: Option<String>,
    /// `3.1`, `3.1.1` or `5.0`.
    pub protocol_version: String,
    /// Seconds that the session outlives its connection; null: it does not expire.
    pub session_expiry_secs: Option<u32>,
    /// Messages in its queue.
    pub queued_messages: u64,
    /// Their bytes.
    pub queued_bytes: u64,
    /// Messages that it has not acknowledged.
    pub inflight: usize,
    /// Subscriptions, shared ones included.
    pub subscriptions: usize,
    /// Messages from it, on this connection or the last one.
    pub messages_received: u32,
    /// Messages to it, on this connection or the last one.
    pub messages_sent: u32,
    /// Messages that it did not get since its session began, or since the start of the broker,
    /// without those of QoS 0 that were published while it was disconnected.
    #[serde(default)]
    pub messages_dropped: u64,
    /// Seconds since its last packet, or since its connection ended.
    #[serde(default)]
    pub idle_secs: u64,
    /// Age of the oldest message in its queue; null if there is none.
    #[serde(default)]
    pub oldest_queued_secs: Option<u64>,
    /// Age of the oldest message that it has not acknowledged; null if there is none, or if the
    /// broker keeps no copy of it, as for sessions that end with their connection.
    #[serde(default)]
    pub oldest_unacknowledged_secs: Option<u64>,
    /// Its problems now: `queue`, `slow`, `dropping`, `limited`, `near_limit`.
    #[serde(default)]
    pub problems: Vec<String>,
}

/// A page of clients.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClientPage {
    /// The clients, in the order of `sort`.
    pub clients: Vec<Client>,
    /// Clients that match the parameters, on all pages together; null with `sort=none`.
    pub matching: Option<u64>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// The effect of a kick.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct Kicked {
    /// It was connected and has been disconnected.
    pub disconnected: bool,
    /// Its session has ended.
    pub session_ended: bool,
}

/// Parameters that select clients.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ClientFilter {
    /// Terms that select clients, such as `user=alice queue>100 state=connected`.
    filter: Option<String>,
    /// Client identifier; `*` stands for any text.
    client: Option<String>,
    /// User; `*` stands for any text.
    user: Option<String>,
    /// Address or network.
    address: Option<String>,
    /// Name of the listener.
    listener: Option<String>,
    /// Protocol version: `3.1`, `3.1.1` or `5.0`.
    version: Option<String>,
    /// `connected`, `disconnected` or `persistent`.
    state: Option<String>,
    /// `state=connected` or `state=disconnected`.
    connected: Option<bool>,
    /// `queue`, `slow`, `dropping`, `limited` or `near_limit`.
    problem: Option<String>,
    /// A topic or filter that the client has subscribed to.
    subscribed: Option<String>,
}

impl ClientFilter {
    /// The filter of a text.
    pub(super) fn of_text(text: &str) -> Result<SessionFilter, Problem> {
        parsed("filter", text)
    }

    pub(super) fn filter(&self) -> Result<SessionFilter, Problem> {
        let mut filter = match &self.filter {
            Some(text) => parsed("filter", text)?,
            None => SessionFilter::default(),
        };
        let state = self.connected.map(|connected| {
            let state = if connected {
                SessionState::Connected
            } else {
                SessionState::Disconnected
            };
            state.name().to_owned()
        });
        for (key, value) in [
            ("client", &self.client),
            ("user", &self.user),
            ("address", &self.address),
            ("listener", &self.listener),
            ("version", &self.version),
            ("state", &state),
            ("state", &self.state),
            ("problem", &self.problem),
            ("subscribed", &self.subscribed),
        ] {
            if let Some(value) = value {
                let condition = Condition::named(key, value);
                filter = filter.and(condition.map_err(Problem::bad_request)?);
            }
        }
        Ok(filter)
    }
}

/// Parameters of a list of clients.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ListParameters {
    /// Terms that select clients, such as `user=alice queue>100 state=connected`.
    filter: Option<String>,
    /// Client identifier; `*` stands for any text.
    client: Option<String>,
    /// User; `*` stands for any text.
    user: Option<String>,
    /// Address or network.
    address: Option<String>,
    /// Name of the listener.
    listener: Option<String>,
    /// Protocol version: `3.1`, `3.1.1` or `5.0`.
    version: Option<String>,
    /// `connected`, `disconnected` or `persistent`.
    state: Option<String>,
    /// `state=connected` or `state=disconnected`.
    connected: Option<bool>,
    /// `queue`, `slow`, `dropping`, `limited` or `near_limit`.
    problem: Option<String>,
    /// A topic or filter that the client has subscribed to.
    subscribed: Option<String>,
    /// Column, such as `queued_messages`; `client_id` if absent, `none` is the quickest.
    sort: Option<String>,
    /// The largest first.
    descending: bool,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

impl ListParameters {
    fn query(self) -> Result<SessionQuery, Problem> {
        let (limit, cursor) = page(self.limit, self.cursor.as_deref())?;
        let sort = self.sort.as_deref().map(sort).transpose()?;
        let parameters = ClientFilter {
            filter: self.filter,
            client: self.client,
            user: self.user,
            address: self.address,
            listener: self.listener,
            version: self.version,
            state: self.state,
            connected: self.connected,
            problem: self.problem,
            subscribed: self.subscribed,
        };
        Ok(SessionQuery {
            filter: parameters.filter()?,
            sort: sort.unwrap_or_default(),
            is_descending: self.descending,
            limit,
            cursor,
        })
    }
}

/// Lists clients, filtered and sorted.
#[utoipa::path(
    get,
    path = "/clients",
    operation_id = "list_clients",
    tag = "clients",
    params(ListParameters),
    responses((status = 200, body = ClientPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Json<ClientPage>, Problem> {
    let query = parameters.query()?;
    let found = api.query(move |queries| queries.sessions(&query)).await?;
    Ok(Json(ClientPage {
        clients: found.page.rows.into_iter().map(Client::from).collect(),
        matching: found.matching,
        next: found.page.next.map(|next| next.to_string()),
    }))
}

/// Parameters of a kick: whether the session ends too.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KickParameters {
    /// The session ends too.
    session: bool,
}

/// Disconnects a client, and ends its session if it is asked to.
#[utoipa::path(
    delete,
    path = "/clients/{id}",
    operation_id = "kick_client",
    tag = "clients",
    params(ClientId, KickParameters),
    responses((status = 200, body = Kicked), NotFound, Asked, Audited),
)]
pub(super) async fn kick(
    State(api): State<ApiState>,
    sender: Sender,
    ClientId(client_id): ClientId,
    Parameters(KickParameters { session }): Parameters<KickParameters>,
) -> Result<Json<Kicked>, Problem> {
    disconnect(api, sender, client_id, session).await
}

/// Ends the session of a client, which is disconnected.
#[utoipa::path(
    delete,
    path = "/clients/{id}/session",
    operation_id = "end_client_session",
    tag = "clients",
    params(ClientId),
    responses((status = 200, body = Kicked), NotFound, Asked, Audited),
)]
pub(super) async fn end_session(
    State(api): State<ApiState>,
    sender: Sender,
    ClientId(client_id): ClientId,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Json<Kicked>, Problem> {
    disconnect(api, sender, client_id, true).await
}

async fn disconnect(
    api: ApiState,
    sender: Sender,
    client_id: String,
    session: bool,
) -> Result<Json<Kicked>, Problem> {
    let change = Change::new("client.kick", &client_id);
    let change = change.after(json!({ "session": session }));
    let name = client_id.clone();
    let asked = api.clone();
    let kicked = api.audited(&sender, change, async move {
        let kicked = asked
            .query(move |queries| queries.kick(&name, session))
            .await?;
        kicked.ok_or_else(|| Problem::no_client(&client_id))
    });
    let kicked = kicked.await?;
    Ok(Json(Kicked {
        disconnected: kicked.was_connected,
        session_ended: kicked.session_ended,
    }))
}

/// The names of sort keys that are not figures.
const SORT_KEYS: [(&str, SortKey); 8] = [
    ("client_id", SortKey::ClientId),
    ("user", SortKey::User),
    ("address", SortKey::Address),
    ("listener", SortKey::Listener),
    ("protocol_version", SortKey::Version),
    ("connected_at", SortKey::ConnectedSince),
    ("away_since", SortKey::AwaySince),
    ("none", SortKey::Unsorted),
];

pub(super) fn sort(name: &str) -> Result<SortKey, Problem> {
    let mut keys = SORT_KEYS.iter();
    let found = keys.find(|(known, _)| *known == name).map(|(_, key)| *key);
    let found = found.or_else(|| Figure::named(name).map(SortKey::Figure));
    found.ok_or_else(|| {
        let known = SORT_KEYS.iter().map(|(name, _)| *name);
        let known: Vec<_> = known.chain(Figure::ALL.map(Figure::name)).collect();
        let known = known.join(", ");
        Problem::bad_request(format!("sort is one of {known}, not {name:?}"))
    })
}

/// Problems as they are listed.
pub(super) fn problem_names(problems: impl Iterator<Item = ClientProblem>) -> Vec<String> {
    problems.map(|problem| problem.name().to_owned()).collect()
}

impl From<SessionRow> for Client {
    fn from(row: SessionRow) -> Self {
        let (connected_at, away_since, peer, listener) = match row.presence {
            Presence::Connected {
                since,
                peer,
                listener,
            } => (Some(since), None, Some(peer), Some(listener.to_string())),
            Presence::Away { since } => (None, Some(since), None, None),
        };
        Self {
            client_id: row.client_id.into(),
            user: row.user.map(Into::into),
            connected: connected_at.is_some(),
            connected_at: connected_at.map(timestamp),
            away_since: away_since.map(timestamp),
            peer,
            listener,
            protocol_version: row.version.name().to_owned(),
            session_expiry_secs: Some(row.expiry_secs).filter(|secs| *secs != u32::MAX),
            queued_messages: row.queued.messages,
            queued_bytes: row.queued.bytes,
            inflight: row.inflight,
            subscriptions: row.subscriptions,
            messages_received: row.messages_received,
            messages_sent: row.messages_sent,
            messages_dropped: row.dropped,
            idle_secs: row.idle_secs,
            oldest_queued_secs: row.oldest_queued_secs,
            oldest_unacknowledged_secs: row.oldest_unacknowledged_secs,
            problems: problem_names(row.problems.iter()),
        }
    }
}
