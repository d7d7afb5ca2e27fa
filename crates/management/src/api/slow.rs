//! `/slow`: the clients that do not take their messages as fast as they come, the worst first.

use axum::Json;
use axum::extract::State;
use serde::Deserialize;
use thrum_broker::{ClientProblem, Condition, Figure, SessionFilter, SessionQuery, SortKey};

use super::clients::{Client, ClientPage};
use super::openapi::Asked;
use super::request::{Parameters, page, parsed};
use super::{ApiState, Problem};

/// What slow clients are ranked by.
const RANKINGS: [(&str, Figure); 4] = [
    ("queue", Figure::QueuedMessages),
    ("bytes", Figure::QueuedBytes),
    ("oldest", Figure::OldestQueued),
    ("unacknowledged", Figure::OldestUnacknowledged),
];

/// Parameters of a page.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SlowParameters {
    /// `queue`, `bytes`, `oldest` or `unacknowledged`; `queue` if absent.
    by: Option<String>,
    /// Terms that select clients, such as `user=alice queue>100`.
    filter: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Lists clients that do not take their messages as fast as they come, the worst first.
#[utoipa::path(
    get,
    path = "/slow",
    operation_id = "list_slow_clients",
    tag = "diagnosis",
    params(SlowParameters),
    responses((status = 200, body = ClientPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<SlowParameters>,
) -> Result<Json<ClientPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let filter = match &parameters.filter {
        Some(text) => parsed("filter", text)?,
        None => SessionFilter::default(),
    };
    let query = SessionQuery {
        filter: filter.and(Condition::Problem(ClientProblem::Slow)),
        sort: SortKey::Figure(ranking(parameters.by.as_deref())?),
        is_descending: true,
        limit,
        cursor,
    };
    let found = api.query(move |queries| queries.sessions(&query)).await?;
    Ok(Json(ClientPage {
        clients: found.page.rows.into_iter().map(Client::from).collect(),
        matching: found.matching,
        next: found.page.next.map(|next| next.to_string()),
    }))
}

fn ranking(name: Option<&str>) -> Result<Figure, Problem> {
    let name = name.unwrap_or("queue");
    let found = RANKINGS.iter().find(|(known, _)| *known == name);
    found.map(|(_, figure)| *figure).ok_or_else(|| {
        let known = RANKINGS.map(|(name, _)| name).join(", ");
        Problem::bad_request(format!("by is one of {known}, not {name:?}"))
    })
}
