//! `/clients/facets`: how many clients there are of each kind.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{Facets, UserCount};
use utoipa::ToSchema;

use super::client_detail::Queue;
use super::clients::ClientFilter;
use super::openapi::Asked;
use super::request::Parameters;
use super::{ApiState, Problem};

/// Clients by kind, those that match the parameters.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ClientFacets {
    /// All of them.
    pub matching: u64,
    /// Connected clients by listener.
    pub listeners: Vec<Facet>,
    /// Clients by protocol version.
    pub versions: Vec<Facet>,
    /// Clients by state: `connected`, `disconnected`; `persistent` ones are among these.
    pub states: Vec<Facet>,
    /// Clients by problem; a client may have several.
    pub problems: Vec<Facet>,
    /// The 20 users with the most clients.
    pub users: Vec<UserFacet>,
    /// Users beside these; null if they are too many to be counted.
    pub other_users: Option<u64>,
    /// Clients without a verified user.
    pub without_user: u64,
    /// Messages in all queues, and their bytes.
    pub queued: Queue,
    /// Messages that were sent and not acknowledged.
    pub inflight: u64,
    /// Subscriptions.
    pub subscriptions: u64,
    /// Messages that were dropped.
    pub dropped: u64,
    /// Wills of disconnected clients, which are published later.
    pub delayed_wills: u64,
}

/// A value and the number of its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Facet {
    /// Value, as a filter names it.
    pub value: String,
    /// Clients.
    pub clients: u64,
}

/// A user and the number of its clients.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct UserFacet {
    /// User.
    pub user: String,
    /// Clients.
    pub clients: u64,
    /// How many fewer they may be: above 0 only if there are thousands of users.
    pub at_most_less: u64,
}

/// Counts clients by listener, version, state, problem and user.
#[utoipa::path(
    get,
    path = "/clients/facets",
    operation_id = "count_clients",
    tag = "clients",
    params(ClientFilter),
    responses((status = 200, body = ClientFacets), Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ClientFilter>,
) -> Result<Json<ClientFacets>, Problem> {
    let filter = parameters.filter()?;
    let facets = api.query(move |queries| queries.facets(&filter)).await?;
    Ok(Json(facets.into()))
}

impl From<Facets> for ClientFacets {
    fn from(facets: Facets) -> Self {
        let versions = facets.versions.into_iter();
        let versions = versions.map(|(version, count)| (version.name().to_owned(), count));
        let states = facets.states.into_iter();
        let states = states.map(|(state, count)| (state.name().to_owned(), count));
        let problems = facets.problems.into_iter();
        let problems = problems.map(|(problem, count)| (problem.name().to_owned(), count));
        Self {
            matching: facets.matching,
            listeners: listed(facets.listeners.into_iter()),
            versions: listed(versions),
            states: listed(states),
            problems: listed(problems),
            users: facets.users.into_iter().map(UserFacet::from).collect(),
            other_users: facets.other_users,
            without_user: facets.without_user,
            queued: Queue {
                messages: facets.queued.messages,
                bytes: facets.queued.bytes,
            },
            inflight: facets.inflight,
            subscriptions: facets.subscriptions,
            dropped: facets.dropped,
            delayed_wills: facets.delayed_wills,
        }
    }
}

fn listed(counts: impl Iterator<Item = (String, u64)>) -> Vec<Facet> {
    counts
        .map(|(value, clients)| Facet { value, clients })
        .collect()
}

impl From<UserCount> for UserFacet {
    fn from(count: UserCount) -> Self {
        Self {
            user: count.user.into(),
            clients: count.sessions,
            at_most_less: count.at_most_less,
        }
    }
}
