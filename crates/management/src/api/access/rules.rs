//! `/access/rules` and `/access/test`: the rules in force, and which of them decides about a topic.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_access::{Admission, Identity};
use thrum_auth::{AccessQuestion, AuthService};
use thrum_codec::QoS;
use utoipa::ToSchema;

use super::super::openapi::{Asked, Conflict};
use super::super::request::{Body, Parameters, parsed, rows};
use super::super::{ApiState, Problem};

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rule {
    /// Its place in the order in which rules are asked, from 1; the first that matches decides.
    pub position: usize,
    /// The rule as text.
    pub rule: String,
    /// `rules`: for all clients; `client`: the client's own, and those of its groups and roles.
    pub of: String,
    /// Where it stands: a file and its line, `acl.rules[3]`, a user, a role, a backend.
    pub source: String,
}

/// A page of rules.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RulePage {
    /// The rules in their order.
    pub rules: Vec<Rule>,
    /// `allowed` or `denied`: what is decided about topics that no rule matches.
    pub otherwise: String,
    /// The values of `acl.order`: `rules`, `client`, and `remote` for backends that are asked.
    pub order: Vec<String>,
    /// The client may do everything, whatever the rules say.
    pub superuser: bool,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// Parameters of a list: without a client those for all clients.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParameters {
    /// Client identifier; the rules of a client that has a session are those of its session, unless
    /// `user` is named.
    client_id: Option<String>,
    /// User of the store.
    user: Option<String>,
    /// Address of the client.
    address: Option<String>,
    /// Listener of the client; `mqtt` if absent.
    listener: Option<String>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// An action of a client to test.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AccessToTest {
    /// Client identifier. The rights of a client that has a session are those of its session,
    /// unless `user` is named.
    pub client_id: String,
    /// User, whose rights are in the store.
    #[serde(default)]
    pub user: Option<String>,
    /// Address of the client.
    #[serde(default)]
    pub address: Option<String>,
    /// Its listener; `mqtt` if absent.
    #[serde(default)]
    pub listener: Option<String>,
    /// `publish` or `subscribe`.
    pub action: String,
    /// Topic name, or to subscribe a topic filter.
    pub topic: String,
    /// Quality of service; 0 if absent.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub qos: u8,
    /// The message is to be retained.
    #[serde(default)]
    pub retain: bool,
}

/// The decision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AccessTest {
    /// It is allowed, or of a subscription a part.
    pub allowed: bool,
    /// `allowed`, `denied` or `allowed in part`.
    pub verdict: String,
    /// The rules that decided, in their order.
    pub rules: Vec<DecidingRule>,
    /// Why, if no rule decided; null otherwise.
    pub otherwise: Option<String>,
    /// A backend is asked as well where no rule before it decides, and was not asked now.
    pub asks_others: bool,
    /// Whose rights these are: `session`, `store`, or `name` for a user that the store does not
    /// have.
    pub rights_of: String,
    /// Roles of the client.
    pub roles: Vec<String>,
    /// Groups of the client.
    pub groups: Vec<String>,
}

/// A rule that decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DecidingRule {
    /// The rule as text.
    pub rule: String,
    /// Where it stands.
    pub source: String,
}

/// Of whom something is asked.
#[derive(Clone, Debug, Default)]
struct AskedAbout {
    client_id: Option<String>,
    user: Option<String>,
    address: Option<IpAddr>,
    listener: Option<String>,
}

/// A client and its rights.
struct Client {
    admission: Arc<Admission>,
    rights_of: &'static str,
}

/// Lists the rules in force in the order in which they are asked.
///
/// Without a client those for all clients.
#[utoipa::path(
    get,
    path = "/access/rules",
    operation_id = "list_rules",
    tag = "access",
    params(ListParameters),
    responses((status = 200, body = RulePage), Conflict, Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Json<RulePage>, Problem> {
    let limit = rows(parameters.limit)?;
    let skip = parameters.cursor.as_deref();
    let skip = skip.map(|text| parsed::<usize>("cursor", text));
    let skip = skip.transpose()?.unwrap_or(0);
    let is_of_all = parameters.client_id.is_none() && parameters.user.is_none();
    let asked = AskedAbout {
        client_id: parameters.client_id,
        user: parameters.user,
        address: address(parameters.address.as_deref())?,
        listener: parameters.listener,
    };
    let client = if is_of_all {
        None
    } else {
        Some(client(&api, asked).await?)
    };
    let page = api.in_access(move |clients| {
        let admission = client.as_ref().map(|client| &*client.admission);
        Ok(page(clients, admission, skip, limit))
    });
    Ok(Json(page.await?))
}

fn page(clients: &AuthService, client: Option<&Admission>, skip: usize, limit: usize) -> RulePage {
    let policy = clients.policy();
    let (rules, has_more) = clients.rules_in_order(client, skip, limit);
    let otherwise = if policy.allows_by_default {
        "allowed"
    } else {
        "denied"
    };
    let next = has_more.then(|| (skip + rules.len()).to_string());
    let rules = rules.into_iter().enumerate().map(|(place, rule)| Rule {
        position: skip + place + 1,
        rule: rule.text,
        of: rule.of.to_owned(),
        source: rule.source,
    });
    RulePage {
        rules: rules.collect(),
        otherwise: otherwise.to_owned(),
        order: policy.order.iter().map(|of| of.name().to_owned()).collect(),
        superuser: client.is_some_and(|client| client.identity.is_superuser),
        next,
    }
}

/// Tests what a client may do, and names the rules that decide.
#[utoipa::path(
    post,
    path = "/access/test",
    operation_id = "test_access",
    tag = "access",
    request_body = AccessToTest,
    responses((status = 200, body = AccessTest), Conflict, Asked),
)]
pub(super) async fn test(
    State(api): State<ApiState>,
    Body(body): Body<AccessToTest>,
) -> Result<Json<AccessTest>, Problem> {
    let question = question(&body)?;
    let asked = AskedAbout {
        client_id: Some(body.client_id),
        user: body.user,
        address: address(body.address.as_deref())?,
        listener: body.listener,
    };
    let Client {
        admission,
        rights_of,
    } = client(&api, asked).await?;
    let tested = api.in_access(move |clients| {
        let tested = clients.test_access(&admission, &question);
        let rules = tested.rules.into_iter().map(|rule| DecidingRule {
            rule: rule.text,
            source: rule.source,
        });
        Ok(AccessTest {
            allowed: tested.is_allowed,
            verdict: tested.verdict.to_owned(),
            rules: rules.collect(),
            otherwise: tested.otherwise.map(ToOwned::to_owned),
            asks_others: tested.asks_others,
            rights_of: rights_of.to_owned(),
            roles: super::texts(&admission.identity.roles),
            groups: super::texts(&admission.identity.groups),
        })
    });
    Ok(Json(tested.await?))
}

fn question(body: &AccessToTest) -> Result<AccessQuestion, Problem> {
    let qos = match body.qos {
        0 => QoS::AtMostOnce,
        1 => QoS::AtLeastOnce,
        2 => QoS::ExactlyOnce,
        other => {
            let what = format!("qos is 0, 1 or 2, and not {other}");
            return Err(Problem::bad_request(what));
        }
    };
    let question = match &*body.action {
        "publish" => AccessQuestion::Publish {
            topic: body.topic.clone(),
            qos,
            retain: body.retain,
        },
        "subscribe" => AccessQuestion::Subscribe {
            filter: body.topic.clone(),
            qos,
        },
        other => {
            let what = format!("action is publish or subscribe, not {other:?}");
            return Err(Problem::bad_request(what));
        }
    };
    let checked = question.check();
    checked.map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(question)
}

/// The client that is asked about: that of a session, or one of the store.
async fn client(api: &ApiState, asked: AskedAbout) -> Result<Client, Problem> {
    if let (Some(client_id), None) = (asked.client_id.clone(), &asked.user) {
        let api = api.clone();
        let login = api.query(move |queries| queries.client_login(&client_id));
        if let Some(admission) = login.await?.and_then(|login| login.admission) {
            return Ok(Client {
                admission,
                rights_of: "session",
            });
        }
    }
    let listener = api.listener(asked.listener.as_deref())?;
    let identity = Identity {
        client_id: asked.client_id.unwrap_or_default().into(),
        username: asked.user.map(Into::into),
        address: asked.address,
        listener,
        ..Identity::default()
    };
    let found = api.in_access(move |clients| {
        let found = clients.admission_of(identity);
        found.map_err(Problem::bad_request)
    });
    let admission = found.await?;
    let is_of_store = admission.identity.backend.is_some();
    Ok(Client {
        admission: Arc::new(admission),
        rights_of: if is_of_store { "store" } else { "name" },
    })
}

fn address(text: Option<&str>) -> Result<Option<IpAddr>, Problem> {
    let address = text.map(|text| parsed::<IpAddr>("address", text));
    address.transpose()
}
