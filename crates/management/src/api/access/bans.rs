//! `/bans`: clients, users and addresses that may not connect.

use std::fmt;
use std::str::FromStr;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_access::Network;
use thrum_broker::{ClientLogin, NewBan};
use thrum_protection::{Ban as Listed, Subject};
use utoipa::ToSchema;

use super::super::entrance::Sender;
use super::super::openapi::{Asked, Audited, NotFound};
use super::super::request::{Body, ClientId, NoParameters, Parameters, parsed, rows};
use super::super::{ApiState, Problem};
use crate::audit::Change;
use crate::timestamp::timestamp;

/// Longest reason in bytes.
const REASON_BYTES_MAX: usize = 1024;
/// Bytes of an identifier or a name: as many as a packet of MQTT can have.
const NAME_BYTES_MAX: usize = 65_535;

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ban {
    /// Client identifier; with `user` or `address` only the client of that user, or the one without
    /// user name from there.
    pub client_id: Option<String>,
    /// User: every client of it, unless `client_id` names one.
    pub user: Option<String>,
    /// Address or network: 192.0.2.7, 192.0.2.0/24.
    pub address: Option<String>,
    /// Why; the client does not see it.
    pub reason: String,
    /// Who added it: an administrator, `key:ID`, `local`, a user of the machine, or `flapping`.
    pub by: String,
    /// When it was added.
    pub since: String,
    /// When it ends; null if it never does.
    pub until: Option<String>,
    /// Connected clients that it names were disconnected; false: it keeps out only those that
    /// connect later.
    pub disconnect: bool,
    /// The broker made it for a time; it ends with the broker.
    pub temporary: bool,
}

/// A page of bans.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BanPage {
    /// The bans in force.
    pub bans: Vec<Ban>,
    /// How many match, on all pages together.
    pub matching: usize,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// A ban to add: of a client identifier, a user or an address, or of one client of a user or from
/// an address.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct BanToAdd {
    /// Client identifier.
    pub client_id: Option<String>,
    /// User.
    pub user: Option<String>,
    /// Address or network.
    pub address: Option<String>,
    /// Why; the client does not see it.
    pub reason: String,
    /// Seconds until it ends; it never ends without `secs` and `until`.
    pub secs: Option<u64>,
    /// When it ends, such as `2030-01-01T00:00:00Z`.
    pub until: Option<String>,
    /// False keeps connected clients, and keeps out those that connect later; they are disconnected
    /// if it is absent.
    pub disconnect: Option<bool>,
}

/// What of a client to ban.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ClientToBan {
    /// `client_id` (the default), `user` or `address`.
    pub by: String,
    /// Why; the client does not see it.
    pub reason: String,
    /// Seconds until it ends; it never ends without `secs` and `until`.
    pub secs: Option<u64>,
    /// When it ends.
    pub until: Option<String>,
    /// False keeps connected clients, and keeps out those that connect later; they are disconnected
    /// if it is absent.
    pub disconnect: Option<bool>,
}

/// A ban that was added.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct BanAdded {
    /// The ban in force.
    pub ban: Ban,
    /// An earlier one of the same, whose place it takes; null if there was none.
    pub replaced: Option<Ban>,
    /// Busy workers that have not yet disconnected its clients; they do it with their next mail.
    #[serde(default)]
    pub late_workers: Vec<String>,
}

/// Parameters of a list.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParameters {
    /// Bans of this client identifier.
    client_id: Option<String>,
    /// Bans of this user, and of its clients.
    user: Option<String>,
    /// Bans of networks that contain this address or network, or are in it.
    address: Option<String>,
    /// Bans that the broker made for a time, or the others.
    temporary: Option<bool>,
    /// `subject` (the default), `since` or `until`.
    sort: Option<String>,
    /// From the highest to the lowest.
    descending: bool,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Whose ban to lift.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct SubjectParameters {
    /// Client identifier.
    client_id: Option<String>,
    /// User.
    user: Option<String>,
    /// Address or network.
    address: Option<String>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Subject,
    Since,
    Until,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "subject" => Ok(Self::Subject),
            "since" => Ok(Self::Since),
            "until" => Ok(Self::Until),
            other => Err(format!("one of subject, since and until, not {other:?}")),
        }
    }
}

impl Order {
    fn of(self, ban: &Listed) -> u64 {
        match self {
            Self::Subject => 0,
            Self::Since => ban.since,
            Self::Until => ban.until.unwrap_or(u64::MAX),
        }
    }
}

/// The place of a ban in a list: the next page begins behind it, also if it is gone by then.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    order: u64,
    subject: String,
    temporary: bool,
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = json!([self.order, self.subject, self.temporary]).to_string();
        formatter.write_str(&URL_SAFE_NO_PAD.encode(text))
    }
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "take it from the page before";
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| WRONG)?;
        let parts = serde_json::from_slice::<Parts>(&bytes).map_err(|_| WRONG)?;
        Ok(Self {
            order: parts.0,
            subject: parts.1,
            temporary: parts.2,
        })
    }
}

/// A [`Place`] as it is written.
#[derive(Deserialize)]
struct Parts(u64, String, bool);

/// Lists the bans in force.
#[utoipa::path(
    get,
    path = "/bans",
    operation_id = "list_bans",
    tag = "access",
    params(ListParameters),
    responses((status = 200, body = BanPage), Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Json<BanPage>, Problem> {
    let limit = rows(parameters.limit)?;
    let order = parameters.sort.as_deref();
    let order = order
        .map(|text| parsed::<Order>("sort", text))
        .transpose()?;
    let behind = parameters.cursor.as_deref();
    let behind = behind.map(|text| parsed::<Place>("cursor", text));
    let behind = behind.transpose()?;
    let wanted = Wanted::new(&parameters)?;
    let order = order.unwrap_or(Order::Subject);
    let is_descending = parameters.descending;
    let found = api.query(move |queries| Ok(queries.bans())).await?;
    let listed = found.listed.into_iter().map(|ban| (ban, false));
    let all = listed.chain(found.temporary.into_iter().map(|ban| (ban, true)));
    let matching = all.filter(|(ban, is_temporary)| wanted.fits(ban, *is_temporary));
    let mut placed: Vec<(Place, Listed)> = matching
        .map(|(ban, temporary)| {
            let place = Place {
                order: order.of(&ban),
                subject: ban.subject.to_string(),
                temporary,
            };
            (place, ban)
        })
        .collect();
    placed.sort_unstable_by(|(one, _), (other, _)| {
        let ascending = one.cmp(other);
        if is_descending {
            ascending.reverse()
        } else {
            ascending
        }
    });
    let count = placed.len();
    let is_behind = |place: &Place| match &behind {
        Some(last) if is_descending => place < last,
        Some(last) => place > last,
        None => true,
    };
    let mut rest = placed.into_iter().filter(|(place, _)| is_behind(place));
    let page: Vec<(Place, Listed)> = rest.by_ref().take(limit).collect();
    let has_more = rest.next().is_some();
    let last = page.last().map(|(place, _)| place.to_string());
    Ok(Json(BanPage {
        matching: count,
        next: last.filter(|_| has_more),
        bans: page
            .into_iter()
            .map(|(place, ban)| shown(ban, place.temporary))
            .collect(),
    }))
}

/// Bans a client, a user or an address.
///
/// A ban of the same takes the place of the one before. It is in force at once, and connected
/// clients that it names are disconnected, unless `disconnect` is false.
#[utoipa::path(
    post,
    path = "/bans",
    operation_id = "add_ban",
    tag = "access",
    request_body = BanToAdd,
    responses((status = 201, body = BanAdded), Asked, Audited),
)]
pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(NoParameters {}): Parameters<NoParameters>,
    Body(body): Body<BanToAdd>,
) -> Result<impl IntoResponse, Problem> {
    let subject = subject(body.client_id, body.user, body.address.as_deref())?;
    let about = About {
        reason: body.reason,
        secs: body.secs,
        until: body.until,
        disconnects: body.disconnect.unwrap_or(true),
    };
    added(&api, &sender, subject, about).await
}

/// Bans a client by its identifier, its user or its address.
#[utoipa::path(
    post,
    path = "/clients/{id}/ban",
    operation_id = "ban_client",
    tag = "access",
    params(ClientId),
    request_body = ClientToBan,
    responses((status = 201, body = BanAdded), NotFound, Asked, Audited),
)]
pub(super) async fn ban_client(
    State(api): State<ApiState>,
    sender: Sender,
    ClientId(client_id): ClientId,
    Body(body): Body<ClientToBan>,
) -> Result<impl IntoResponse, Problem> {
    let subject = match &*body.by {
        "" | "client_id" => subject(Some(client_id), None, None)?,
        by @ ("user" | "address") => {
            let name = client_id.clone();
            let asked = api.clone();
            let found = asked.query(move |queries| queries.client_login(&name));
            let found = found.await?.ok_or_else(|| Problem::no_client(&client_id))?;
            of_client(&found, by).ok_or_else(|| without(&client_id, by, found.since.is_some()))?
        }
        other => {
            let what = format!("by is one of client_id, user and address, not {other:?}");
            return Err(Problem::bad_request(what));
        }
    };
    let about = About {
        reason: body.reason,
        secs: body.secs,
        until: body.until,
        disconnects: body.disconnect.unwrap_or(true),
    };
    added(&api, &sender, subject, about).await
}

/// Lifts a ban.
#[utoipa::path(
    delete,
    path = "/bans",
    operation_id = "lift_ban",
    tag = "access",
    params(SubjectParameters),
    responses((status = 204), NotFound, Asked, Audited),
)]
pub(super) async fn lift(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<SubjectParameters>,
) -> Result<StatusCode, Problem> {
    let SubjectParameters {
        client_id,
        user,
        address,
    } = parameters;
    let subject = subject(client_id, user, address.as_deref())?;
    let change = Change::new("ban.remove", &subject.to_string());
    let asked = api.clone();
    let lift = async move {
        let name = subject.to_string();
        let lifted = asked.query(move |queries| queries.lift_ban(&subject));
        if lifted.await? {
            return Ok(());
        }
        Err(Problem::new(
            StatusCode::NOT_FOUND,
            "not banned",
            format!("{name} is not banned"),
            "list the bans with GET /api/v1/bans, and name one exactly: a network with its length",
        ))
    };
    api.audited(&sender, change, lift).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why, how long, and what becomes of connected clients.
struct About {
    reason: String,
    secs: Option<u64>,
    until: Option<String>,
    disconnects: bool,
}

async fn added(
    api: &ApiState,
    sender: &Sender,
    subject: Subject,
    about: About,
) -> Result<(StatusCode, Json<BanAdded>), Problem> {
    let now = api.security.login.now().wall_millis / 1000;
    let secs = about.secs(now)?;
    if parts(&subject).0.is_some_and(|id| id.contains('\0')) {
        let what = "client_id has no character U+0000: no client can have such an identifier";
        return Err(Problem::bad_request(what));
    }
    let change = Change::new("ban.add", &subject.to_string());
    let disconnects = about.disconnects;
    let after = json!({ "reason": about.reason, "secs": secs, "disconnect": disconnects });
    let change = change.after(after);
    let new = NewBan {
        subject,
        reason: about.reason.into(),
        by: (&*sender.caller.name).into(),
        secs,
        disconnects,
    };
    let asked = api.clone();
    let ban = async move { asked.query(move |queries| queries.ban(new)).await };
    let added = api.audited(sender, change, ban).await?;
    let answer = BanAdded {
        ban: shown(added.ban, false),
        replaced: added.replaced.map(|ban| shown(ban, false)),
        late_workers: added.late_workers,
    };
    Ok((StatusCode::CREATED, Json(answer)))
}

impl About {
    /// Seconds until the end.
    fn secs(&self, now: u64) -> Result<Option<u64>, Problem> {
        if self.reason.len() > REASON_BYTES_MAX {
            let what = format!("reason has at most {REASON_BYTES_MAX} bytes");
            return Err(Problem::bad_request(what));
        }
        let secs = match (self.secs, self.until.as_deref()) {
            (Some(_), Some(_)) => {
                return Err(Problem::bad_request("name one of secs and until, not both"));
            }
            (Some(secs), None) => Some(secs),
            (None, Some(until)) => {
                let until = end_of(until)?.as_second();
                Some(u64::try_from(until).unwrap_or(0).saturating_sub(now))
            }
            (None, None) => None,
        };
        if secs == Some(0) {
            return Err(Problem::bad_request(
                "the ban would have ended already; without secs and until it never ends",
            ));
        }
        Ok(secs)
    }
}

/// The time in `until`. Times have the years that the list can show in any time zone.
fn end_of(until: &str) -> Result<Timestamp, Problem> {
    until.parse().map_err(|_| {
        Problem::bad_request(format!(
            "until: expected a time such as 2027-01-31T12:00:00Z, before {}, not {until:?}; without secs and until \
             the ban never ends",
            Timestamp::MAX.strftime("%Y-%m-%d")
        ))
    })
}

/// The subject of a ban.
fn subject(
    client_id: Option<String>,
    user: Option<String>,
    address: Option<&str>,
) -> Result<Subject, Problem> {
    for (field, name) in [("client_id", &client_id), ("user", &user)] {
        let len = name.as_ref().map_or(1, String::len);
        if len == 0 || len > NAME_BYTES_MAX {
            let what = format!("{field} has 1 to {NAME_BYTES_MAX} bytes");
            return Err(Problem::bad_request(what));
        }
    }
    let network = address.map(|text| parsed::<Network>("address", text));
    match (client_id, user, network.transpose()?) {
        (Some(client_id), None, None) => Ok(Subject::ClientId(client_id.into())),
        (None, Some(user), None) => Ok(Subject::Username(user.into())),
        (None, None, Some(network)) => Ok(Subject::Network(network)),
        (Some(client_id), Some(user), None) => Ok(Subject::ClientOfUser {
            client_id: client_id.into(),
            username: user.into(),
        }),
        (Some(client_id), None, Some(network)) => Ok(Subject::ClientFrom {
            client_id: client_id.into(),
            network: site(network)?,
        }),
        (_, Some(_), Some(_)) | (None, None, None) => Err(Problem::bad_request(
            "name client_id, user or address, or client_id with one of the others",
        )),
    }
}

/// The broker's unit for the address of a single client.
fn site(network: Network) -> Result<Network, Problem> {
    let site = Network::of_client(network.address());
    if network != site && network != Network::of_address(network.address()) {
        return Err(Problem::bad_request(
            "client_id with address takes one address, and no network",
        ));
    }
    Ok(site)
}

/// The user or the address of a client.
fn of_client(login: &ClientLogin, by: &str) -> Option<Subject> {
    let identity = &login.admission.as_ref()?.identity;
    if by == "user" {
        return identity.username.clone().map(Subject::Username);
    }
    identity
        .address
        .map(|address| Subject::Network(Network::of_client(address)))
}

/// Nothing is known by which a client would be banned.
fn without(client_id: &str, by: &str, is_connected: bool) -> Problem {
    let why = if is_connected {
        format!("the client {client_id:?} has no {by}")
    } else {
        format!("the client {client_id:?} is not connected, so its {by} is not known")
    };
    Problem::new(
        StatusCode::BAD_REQUEST,
        "bad request",
        why,
        &format!("ban its client_id, or the {by} itself with POST /api/v1/bans"),
    )
}

/// Which bans are wanted.
struct Wanted {
    client_id: Option<String>,
    user: Option<String>,
    /// Bans of networks that contain it, or are contained in it.
    network: Option<Network>,
    is_temporary: Option<bool>,
}

impl Wanted {
    fn new(parameters: &ListParameters) -> Result<Self, Problem> {
        let network = parameters.address.as_deref();
        let network = network.map(|text| parsed::<Network>("address", text));
        Ok(Self {
            client_id: parameters.client_id.clone(),
            user: parameters.user.clone(),
            network: network.transpose()?,
            is_temporary: parameters.temporary,
        })
    }

    fn fits(&self, ban: &Listed, is_temporary: bool) -> bool {
        let (client_id, user, network) = parts(&ban.subject);
        let same = |wanted: &Option<String>, found: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == found
        };
        let overlaps = |wanted: &Network| {
            network.is_some_and(|found| {
                found.contains(wanted.address()) || wanted.contains(found.address())
            })
        };
        same(&self.client_id, client_id)
            && same(&self.user, user)
            && self.network.as_ref().is_none_or(overlaps)
            && self
                .is_temporary
                .is_none_or(|wanted| wanted == is_temporary)
    }
}

/// Client identifier, user and network of a subject.
fn parts(subject: &Subject) -> (Option<&str>, Option<&str>, Option<Network>) {
    match subject {
        Subject::ClientId(client_id) => (Some(client_id), None, None),
        Subject::Username(user) => (None, Some(user), None),
        Subject::Network(network) => (None, None, Some(*network)),
        Subject::ClientOfUser {
            client_id,
            username,
        } => (Some(client_id), Some(username), None),
        Subject::ClientFrom { client_id, network } => (Some(client_id), None, Some(*network)),
    }
}

fn shown(ban: Listed, temporary: bool) -> Ban {
    let (client_id, user, network) = parts(&ban.subject);
    let time = |secs: u64| timestamp(secs.saturating_mul(1000));
    Ban {
        client_id: client_id.map(ToOwned::to_owned),
        user: user.map(ToOwned::to_owned),
        address: network.map(|network| network.to_string()),
        since: time(ban.since),
        until: ban.until.map(time),
        reason: ban.reason.into(),
        by: ban.by.into(),
        disconnect: ban.disconnects,
        temporary,
    }
}
