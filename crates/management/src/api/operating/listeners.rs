//! `/listeners`: their state, limits and certificates; stop, start, read certificates again.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;
use thrum_broker::config::{ListenerConfig, TlsVersion, Transport, byte_rate_text, rate_text};
use thrum_broker::{ListenerState, ServerCertificate};
use utoipa::ToSchema;

use crate::api::entrance::Sender;
use crate::api::openapi::{Audited, Configured, NotFound, Programmed};
use crate::api::request::{Named, Parameters};
use crate::api::{ApiState, Problem};
use crate::audit::Change;
use crate::program::ListenerOrder;
use crate::timestamp::timestamp;

/// Seconds of a day.
const DAY_SECS: u64 = 86_400;

/// The listeners of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListenerList {
    /// By name; all of them, because a person has written them.
    pub listeners: Vec<ListenerDetail>,
}

/// A listener.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListenerDetail {
    /// Name in the configuration.
    pub name: String,
    /// `open`; `stopped` by the operator until the broker is restarted; `closed` if it has no
    /// address.
    pub state: String,
    /// `tcp`, `websocket`, `quic` or `http`.
    pub transport: String,
    /// URLs for clients; empty unless it is open.
    pub addresses: Vec<String>,
    /// Addresses in the configuration.
    pub bind: Vec<String>,
    /// Connections of clients through it, those in their handshake among them.
    pub connections: u64,
    /// Connections that were refused because of `max_connections`, since the start of the broker.
    pub refused_over_limit: u64,
    /// Its limits.
    pub limits: ListenerLimits,
    /// Its TLS; null without.
    pub tls: Option<ListenerTls>,
}

/// Limits of a listener; null is none.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListenerLimits {
    /// Connections.
    pub max_connections: Option<u32>,
    /// New connections, as the configuration writes a rate.
    pub connect_rate: Option<String>,
    /// PUBLISH packets of all its clients.
    pub messages: Option<String>,
    /// Bytes of all its clients.
    pub bytes: Option<String>,
}

/// TLS of a listener.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ListenerTls {
    /// The listener whose TLS this is; null if it is its own.
    pub from: Option<String>,
    /// Clients get tickets to resume a session.
    pub session_tickets: bool,
    /// Lowest version.
    pub min_version: String,
    /// The certificates that it shows, the one without a name first.
    pub certificates: Vec<Certificate>,
}

/// A certificate of a listener.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Certificate {
    /// Its file.
    pub file: String,
    /// Subject.
    pub subject: String,
    /// Issuer.
    pub issuer: String,
    /// Host names, wildcards among them.
    pub names: Vec<String>,
    /// Serial number in hexadecimal.
    pub serial: String,
    /// It is valid from then on.
    #[schema(format = DateTime)]
    pub not_before: String,
    /// It is valid until then.
    #[schema(format = DateTime)]
    pub not_after: String,
    /// Whole days until then; negative if it has expired.
    pub days_left: i64,
}

/// A listener that was stopped or started.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StoppedListener {
    /// The listener as it is now.
    pub listener: ListenerDetail,
    /// How long that holds; null if it is as configured.
    pub until: Option<String>,
}

/// Certificates that were read again.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct CertificateRenewal {
    /// What cannot be used, a line each; the listeners concerned keep what they have.
    pub failures: Vec<String>,
    /// The listeners with TLS, as they are now.
    pub listeners: Vec<ListenerDetail>,
}

/// How a listener is stopped.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StopParameters {
    /// Disconnect its clients, too.
    disconnect: bool,
}

/// Lists the listeners of the configuration with their state, limits and certificates.
#[utoipa::path(
    get,
    path = "/listeners",
    operation_id = "list_listeners",
    tag = "listeners",
    responses((status = 200, body = ListenerList)),
)]
pub(super) async fn list(State(api): State<ApiState>) -> Json<ListenerList> {
    let listeners = details(&api);
    Json(ListenerList { listeners })
}

/// Shows a listener.
#[utoipa::path(
    get,
    path = "/listeners/{name}",
    operation_id = "show_listener",
    tag = "listeners",
    params(("name" = String, Path, description = "Its name in the configuration.")),
    responses((status = 200, body = ListenerDetail), NotFound),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Named(name): Named,
) -> Result<Json<ListenerDetail>, Problem> {
    Ok(Json(detail(&api, &name)?))
}

/// Stops a listener until it is started, or the broker is: it accepts no connections.
#[utoipa::path(
    post,
    path = "/listeners/{name}/stop",
    operation_id = "stop_listener",
    tag = "listeners",
    params(("name" = String, Path, description = "Its name in the configuration."), StopParameters),
    responses((status = 200, body = StoppedListener), NotFound, Configured, Audited),
)]
pub(super) async fn stop(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    Parameters(StopParameters { disconnect }): Parameters<StopParameters>,
) -> Result<Json<StoppedListener>, Problem> {
    let order = ListenerOrder {
        name,
        opens: false,
        disconnects: disconnect,
    };
    set(api, sender, order).await
}

/// Starts a listener that was stopped.
#[utoipa::path(
    post,
    path = "/listeners/{name}/start",
    operation_id = "start_listener",
    tag = "listeners",
    params(("name" = String, Path, description = "Its name in the configuration.")),
    responses((status = 200, body = StoppedListener), NotFound, Configured, Audited),
)]
pub(super) async fn start(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
) -> Result<Json<StoppedListener>, Problem> {
    let order = ListenerOrder {
        name,
        opens: true,
        disconnects: false,
    };
    set(api, sender, order).await
}

async fn set(
    api: ApiState,
    sender: Sender,
    order: ListenerOrder,
) -> Result<Json<StoppedListener>, Problem> {
    let (name, opens) = (order.name.clone(), order.opens);
    let before = detail(&api, &name)?;
    let action = if opens {
        "listener.start"
    } else {
        "listener.stop"
    };
    let change = Change::new(action, &name)
        .before(json!({ "state": before.state, "connections": before.connections }))
        .after(json!({ "disconnect": order.disconnects }));
    let make = api.program(move |program| program.set_listener(order));
    api.audited(&sender, change, make).await?;
    Ok(Json(StoppedListener {
        listener: detail(&api, &name)?,
        until: (!opens).then(|| "the next start of the broker".to_owned()),
    }))
}

/// Reads the files of TLS again, for later connections.
#[utoipa::path(
    post,
    path = "/listeners/reload-certificates",
    operation_id = "reload_certificates",
    tag = "listeners",
    responses((status = 200, body = CertificateRenewal), Programmed, Audited),
)]
pub(super) async fn reload_certificates(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<Json<CertificateRenewal>, Problem> {
    let make = api.program(|program| program.renew_certificates());
    let change = Change::new("certificates.reload", "");
    let failures = api.audited(&sender, change, make).await?;
    let mut listeners = details(&api);
    listeners.retain(|listener| listener.tls.is_some());
    Ok(Json(CertificateRenewal {
        failures,
        listeners,
    }))
}

fn detail(api: &ApiState, name: &str) -> Result<ListenerDetail, Problem> {
    let mut all = details(api).into_iter();
    all.find(|listener| listener.name == name).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no such listener",
            format!("the configuration has no listener {name:?}"),
            "list them with GET /api/v1/listeners",
        )
    })
}

fn details(api: &ApiState) -> Vec<ListenerDetail> {
    let now_secs = api.security.login.now().wall_millis / 1000;
    let states = api.queries.listeners().into_iter();
    states.map(|state| described(state, now_secs)).collect()
}

fn described(state: ListenerState, now_secs: u64) -> ListenerDetail {
    let config = &state.config;
    let is_open = !state.addresses.is_empty();
    ListenerDetail {
        state: match (state.is_stopped, is_open) {
            (true, _) => "stopped",
            (false, true) => "open",
            (false, false) => "closed",
        }
        .to_owned(),
        transport: match config.transport {
            Transport::Tcp => "tcp",
            Transport::WebSocket => "websocket",
            Transport::Quic => "quic",
            Transport::Http => "http",
        }
        .to_owned(),
        addresses: state.addresses.iter().map(ToString::to_string).collect(),
        bind: config.bind.iter().map(ToString::to_string).collect(),
        connections: state.connections,
        refused_over_limit: state.over_limit,
        limits: limits(config),
        tls: tls(config, &state.certificates, now_secs),
        name: state.name,
    }
}

fn limits(config: &ListenerConfig) -> ListenerLimits {
    ListenerLimits {
        max_connections: (config.max_connections > 0).then_some(config.max_connections),
        connect_rate: rate_text(&config.connect_rate),
        messages: rate_text(&config.messages),
        bytes: byte_rate_text(&config.bytes),
    }
}

fn tls(
    config: &ListenerConfig,
    certificates: &[ServerCertificate],
    now_secs: u64,
) -> Option<ListenerTls> {
    if certificates.is_empty() {
        return None;
    }
    let version = match config.tls.min_version {
        TlsVersion::V12 => "1.2",
        TlsVersion::V13 => "1.3",
    };
    let certificates = certificates.iter();
    Some(ListenerTls {
        from: (!config.tls_from.is_empty()).then(|| config.tls_from.clone()),
        session_tickets: config.tls.session_tickets,
        min_version: version.to_owned(),
        certificates: certificates
            .map(|certificate| shown(certificate, now_secs))
            .collect(),
    })
}

fn shown(certificate: &ServerCertificate, now_secs: u64) -> Certificate {
    let (identity, validity) = (&certificate.identity, &certificate.validity);
    let signed = |secs: u64| i64::try_from(secs).unwrap_or(i64::MAX);
    let left = signed(validity.until) - signed(now_secs);
    Certificate {
        file: certificate.file.display().to_string(),
        subject: identity.subject.clone(),
        issuer: identity.issuer.clone(),
        names: identity.names.clone(),
        serial: identity.serial.clone(),
        not_before: timestamp(validity.since.saturating_mul(1000)),
        not_after: timestamp(validity.until.saturating_mul(1000)),
        days_left: left.div_euclid(signed(DAY_SECS)),
    }
}
