//! `/subscriptions`, and those of one client.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{SubscriptionQuery, SubscriptionRow};
use utoipa::ToSchema;

use super::openapi::{Asked, NotFound};
use super::request::{ClientId, FilterParameters, PageParameters, Parameters, page};
use super::{ApiState, Problem};

/// A subscription.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Subscription {
    /// Client identifier of its session.
    pub client_id: String,
    /// The filter with the mount point of the client, and with `$share/GROUP/` if it is shared.
    pub filter: String,
    /// Quality of service that was granted.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// The client does not receive its own messages.
    pub no_local: bool,
    /// Messages keep their retain flag.
    pub retain_as_published: bool,
    /// 0: retained messages at each SUBSCRIBE, 1: if it is new, 2: never.
    pub retain_handling: u8,
    /// Subscription identifier; null if there is none.
    pub identifier: Option<u32>,
}

/// A page of subscriptions, by client identifier and then by filter.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SubscriptionPage {
    /// The subscriptions.
    pub subscriptions: Vec<Subscription>,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Lists subscriptions, by client identifier and then by filter.
#[utoipa::path(
    get,
    path = "/subscriptions",
    operation_id = "list_subscriptions",
    tag = "subscriptions",
    params(FilterParameters),
    responses((status = 200, body = SubscriptionPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<FilterParameters>,
) -> Result<Json<SubscriptionPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let query = SubscriptionQuery {
        client_id: None,
        filter: parameters.filter,
        limit,
        cursor,
    };
    found(api, query).await
}

/// Lists the subscriptions of a client, by filter.
#[utoipa::path(
    get,
    path = "/clients/{id}/subscriptions",
    operation_id = "list_client_subscriptions",
    tag = "clients",
    params(ClientId, PageParameters),
    responses((status = 200, body = SubscriptionPage), NotFound, Asked),
)]
pub(super) async fn of_client(
    State(api): State<ApiState>,
    ClientId(client_id): ClientId,
    Parameters(parameters): Parameters<PageParameters>,
) -> Result<Json<SubscriptionPage>, Problem> {
    let (limit, cursor) = page(parameters.limit, parameters.cursor.as_deref())?;
    let name = client_id.clone();
    let exists = api
        .clone()
        .query(move |queries| queries.session(&name))
        .await?;
    if exists.is_none() {
        return Err(Problem::no_client(&client_id));
    }
    let query = SubscriptionQuery {
        client_id: Some(client_id),
        filter: None,
        limit,
        cursor,
    };
    found(api, query).await
}

async fn found(api: ApiState, query: SubscriptionQuery) -> Result<Json<SubscriptionPage>, Problem> {
    let page = api
        .query(move |queries| queries.subscriptions(&query))
        .await?;
    Ok(Json(SubscriptionPage {
        subscriptions: page.rows.into_iter().map(Subscription::from).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

impl From<SubscriptionRow> for Subscription {
    fn from(row: SubscriptionRow) -> Self {
        Self {
            client_id: row.client_id.into(),
            filter: row.filter.into(),
            qos: row.options.qos.as_u8(),
            no_local: row.options.no_local,
            retain_as_published: row.options.retain_as_published,
            retain_handling: row.options.retain_handling as u8,
            identifier: row.identifier,
        }
    }
}
