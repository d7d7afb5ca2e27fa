//! `/config`: every key with its origin; plan, apply, roll back, reload.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::api::entrance::Sender;
use crate::api::openapi::{Audited, Configured, NotFound, Programmed};
use crate::api::request::{Body, Named, Parameters};
use crate::api::{ApiState, Problem};
use crate::audit::Change;
use crate::login::{Refusal, Scope};
use crate::program::{ChangeOrder, ProgramError, RollbackOrder};

/// Every key of the configuration.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Configuration {
    /// The keys, in the order of the guide.
    pub keys: Vec<ConfigurationKey>,
    /// The files that were read, the lowest layer first.
    pub files: Vec<String>,
    /// The file of keys that are set here; null without a data directory.
    pub managed_file: Option<String>,
    /// Number of the version of that file; 0 if no key was ever set here.
    pub version: u64,
    /// Why the last reload failed; null if it did not. The configuration before it is in force.
    pub reload_failure: Option<String>,
}

/// One key.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about a key"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationKey {
    /// Its name, such as `limits.max_packet`.
    pub key: String,
    /// Its value, without secrets.
    pub value: Value,
    /// Its default; null in a table that has a name of your choice.
    pub default: Option<Value>,
    /// Where the value is from: `default`, `managed` (set here), `file`, `env` or `flag`. Each wins
    /// over those before it.
    pub origin: String,
    /// The same with the place: `thrum.toml:3`, `env THRUM_NODE__NAME`; null for a default.
    pub set_at: Option<String>,
    /// It is set by a file, a variable or a flag, so that it cannot be changed here.
    pub pinned: bool,
    /// A new value takes effect at a restart.
    pub restart: bool,
    /// The value is not in force yet: it waits for a restart.
    pub waits: bool,
    /// What values there are.
    pub expected: String,
    /// What it is for.
    pub description: String,
    /// Its values may hold secrets, which are not shown.
    pub secret: bool,
}

/// A key whose value differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Difference {
    /// Its name.
    pub key: String,
    /// The value before; null if there was none.
    pub before: Option<Value>,
    /// The value after; null if there is none.
    pub after: Option<Value>,
    /// It takes effect at a restart.
    pub restart: bool,
}

/// What a change would do.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    /// What would differ from what is in force. Changes in files since the last reload are among
    /// them.
    pub differences: Vec<Difference>,
    /// Keys that would wait for a restart.
    pub restart: Vec<String>,
    /// Keys among the differences that nobody asked for: files or variables that set them were
    /// edited since the last reload.
    #[serde(default)]
    pub edited: Vec<String>,
    /// Keys of a version that would have no effect.
    #[serde(default)]
    pub overridden: Vec<OverriddenKey>,
    /// For `/config/apply` or `/config/rollback`.
    pub fingerprint: String,
}

/// A key that is set elsewhere, which wins over what is set here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OverriddenKey {
    /// Its name.
    pub key: String,
    /// Where: `thrum.toml:3`, `env THRUM_NODE__NAME`.
    pub set_at: String,
}

/// A change that was made.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Applied {
    /// Number of the new version.
    pub version: u64,
    /// What differs.
    pub differences: Vec<Difference>,
    /// Keys that wait for a restart.
    pub restart: Vec<String>,
}

/// A reload.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Reloaded {
    /// Keys that have changed.
    pub changed: Vec<String>,
    /// Keys that wait for a restart.
    pub restart: Vec<String>,
}

/// A version of the keys that were set here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ConfigurationVersion {
    /// Its number; later ones are higher.
    pub version: u64,
    /// When it was made; null if it is not known.
    #[schema(format = DateTime)]
    pub at: Option<String>,
    /// Who made it; null if it is not known.
    pub by: Option<String>,
    /// It is in force.
    pub current: bool,
    /// The keys that it sets.
    pub keys: usize,
    /// It cannot be read, and so not be returned to.
    #[serde(default)]
    pub damaged: bool,
}

/// The versions that can be returned to.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct VersionList {
    /// The newest first; at most 20, because no more are kept.
    pub versions: Vec<ConfigurationVersion>,
}

/// Which keys are listed.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct KeyParameters {
    /// Only keys that begin so.
    prefix: Option<String>,
    /// Only keys of this origin.
    origin: Option<String>,
}

/// Changes to plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PlanRequest {
    /// Keys and their new values; null takes a key back. Without any, what a reload would change.
    #[serde(default)]
    changes: BTreeMap<String, Value>,
    /// A version to return to, instead of changes.
    #[serde(default)]
    version: Option<u64>,
}

/// Changes to put in force.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyRequest {
    /// As planned.
    changes: BTreeMap<String, Value>,
    /// That of the plan.
    fingerprint: String,
}

/// A version to return to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RollbackRequest {
    /// Its number; 0 is no key set here.
    version: u64,
    /// That of the plan. Without it, a return that would take over edits of files is refused.
    #[serde(default)]
    fingerprint: Option<String>,
}

/// Names of keys, and of tables with keys, that decide who may do what, which files are read and
/// written, and where figures, messages and logs go: who sets them could do everything.
const ADMINS_KEYS: [&str; 13] = [
    "acl",
    "anonymous",
    "auth",
    "bans",
    "management",
    "mount_point",
    "node",
    "proxy_from",
    "proxy_protocol",
    "sinks",
    "telemetry",
    "tls",
    "tls_from",
];

/// Origins by name.
const ORIGINS: [&str; 5] = ["default", "managed", "file", "env", "flag"];

/// Lists the keys of the configuration with their values and origins.
#[utoipa::path(
    get,
    path = "/config",
    operation_id = "list_configuration",
    tag = "configuration",
    params(KeyParameters),
    responses((status = 200, body = Configuration), Programmed),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<KeyParameters>,
) -> Result<Json<Configuration>, Problem> {
    let KeyParameters { prefix, origin } = parameters;
    if let Some(origin) = &origin
        && !ORIGINS.contains(&origin.as_str())
    {
        let what = format!("origin is one of {}, not {origin:?}", ORIGINS.join(", "));
        return Err(Problem::bad_request(what));
    }
    let mut configuration = api.program(|program| program.configuration()).await?;
    configuration.keys.retain(|key| {
        let begins = prefix
            .as_ref()
            .is_none_or(|prefix| key.key.starts_with(prefix));
        begins && origin.as_ref().is_none_or(|origin| key.origin == *origin)
    });
    Ok(Json(configuration))
}

/// Shows a key of the configuration.
#[utoipa::path(
    get,
    path = "/config/{name}",
    operation_id = "show_configuration_key",
    tag = "configuration",
    params(("name" = String, Path, description = "Its name, such as `limits.max_packet`.")),
    responses((status = 200, body = ConfigurationKey), NotFound, Programmed),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Named(key): Named,
) -> Result<Json<ConfigurationKey>, Problem> {
    let configuration = api.program(|program| program.configuration()).await?;
    let mut keys = configuration.keys.into_iter();
    let found = keys.find(|one| one.key == key);
    found.map(Json).ok_or_else(|| {
        Problem::new(
            StatusCode::NOT_FOUND,
            "no such key",
            format!("there is no key {key:?}"),
            "list the keys with GET /api/v1/config",
        )
    })
}

/// Shows the schema of a configuration file.
#[utoipa::path(
    get,
    path = "/config/schema",
    operation_id = "show_configuration_schema",
    tag = "configuration",
    responses((status = 200, description = "A JSON Schema.", body = Value), Programmed),
)]
pub(super) async fn schema(State(api): State<ApiState>) -> Result<Json<Value>, Problem> {
    Ok(Json(api.program(|program| Ok(program.schema())).await?))
}

/// Plans a change: checks it, and shows what would differ, without doing it.
///
/// A change of `management`, `auth`, `acl`, `sinks`, `telemetry`, `tls`, `node` or
/// `protection.bans`, and of `tls`, `tls_from`, `auth`, `anonymous`, `mount_point`,
/// `proxy_protocol` or `proxy_from` of a listener, needs the scope `admin`. So does a new listener:
/// what it leaves out decides who may connect there, and to which topics.
#[utoipa::path(
    post,
    path = "/config/plan",
    operation_id = "plan_configuration",
    tag = "configuration",
    request_body = PlanRequest,
    responses((status = 200, body = Plan), NotFound, Configured),
)]
pub(super) async fn plan(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<PlanRequest>,
) -> Result<Json<Plan>, Problem> {
    let PlanRequest { changes, version } = body;
    if let Some(version) = version {
        if changes.is_empty() {
            return plan_rollback(&api, &sender, version).await.map(Json);
        }
        let what = "a plan is of changes or of a version, not of both";
        return Err(Problem::bad_request(what));
    }
    check_keys(&api, &sender, admins_key(&changes)).await?;
    let plan = api.program(move |program| program.plan(changes));
    let plan = plan.await?;
    check_keys(&api, &sender, new_listener(&plan.differences)).await?;
    Ok(Json(plan))
}

/// Makes a planned change, all of it or nothing, and keeps it for later starts.
///
/// The same keys as for a plan need the scope `admin`. What is planned is what is done: if anything
/// has changed since the plan, the answer is 409, and nothing is done.
#[utoipa::path(
    post,
    path = "/config/apply",
    operation_id = "apply_configuration",
    tag = "configuration",
    request_body = ApplyRequest,
    responses((status = 200, body = Applied), Configured, Audited),
)]
pub(super) async fn apply(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<ApplyRequest>,
) -> Result<Json<Applied>, Problem> {
    let ApplyRequest {
        changes,
        fingerprint,
    } = body;
    check_keys(&api, &sender, admins_key(&changes)).await?;
    let planned = changes.clone();
    // What is wrong is refused before it is in the audit log as a change.
    let plan = api.program(move |program| program.plan(planned)).await?;
    check_keys(&api, &sender, new_listener(&plan.differences)).await?;
    // What is checked here is what is done, also if the configuration changes and changes back.
    if plan.fingerprint != fingerprint {
        return Err(ProgramError::Changed.into());
    }
    let change = audited("config.apply", "", &plan.differences);
    let order = ChangeOrder {
        changes,
        fingerprint,
        by: sender.caller.name.to_string(),
    };
    let make = api.program(move |program| program.apply(order));
    Ok(Json(api.audited(&sender, change, make).await?))
}

/// Lists the versions of the keys that were set here, the newest first.
#[utoipa::path(
    get,
    path = "/config/versions",
    operation_id = "list_configuration_versions",
    tag = "configuration",
    responses((status = 200, body = VersionList), Programmed),
)]
pub(super) async fn versions(State(api): State<ApiState>) -> Result<Json<VersionList>, Problem> {
    let versions = api.program(|program| program.versions()).await?;
    Ok(Json(VersionList { versions }))
}

/// Returns to an earlier version of the keys that were set here, as a new version.
///
/// If keys differ that need the scope `admin` in a plan, they need it here, too. What is planned is
/// what is done: if anything has changed since the plan, the answer is 409, and nothing is done.
#[utoipa::path(
    post,
    path = "/config/rollback",
    operation_id = "roll_back_configuration",
    tag = "configuration",
    request_body = RollbackRequest,
    responses((status = 200, body = Applied), NotFound, Configured, Audited),
)]
pub(super) async fn roll_back(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<RollbackRequest>,
) -> Result<Json<Applied>, Problem> {
    let RollbackRequest {
        version,
        fingerprint,
    } = body;
    let plan = plan_rollback(&api, &sender, version).await?;
    match fingerprint {
        Some(seen) if seen != plan.fingerprint => return Err(ProgramError::Changed.into()),
        None if !plan.edited.is_empty() => return Err(ProgramError::Edited(plan.edited).into()),
        _ => {}
    }
    let change = audited("config.rollback", &version.to_string(), &plan.differences);
    let order = RollbackOrder {
        version,
        fingerprint: plan.fingerprint,
        by: sender.caller.name.to_string(),
    };
    let make = api.program(move |program| program.roll_back(order));
    Ok(Json(api.audited(&sender, change, make).await?))
}

/// What a return to a version would do, if the caller may do it.
async fn plan_rollback(api: &ApiState, sender: &Sender, version: u64) -> Result<Plan, Problem> {
    let plan = api.program(move |program| program.plan_rollback(version));
    let plan = plan.await?;
    let mut keys = plan.differences.iter().map(|difference| &difference.key);
    let key = keys.find(|key| is_admins(key));
    let key = key.or_else(|| new_listener(&plan.differences));
    check_keys(api, sender, key).await?;
    Ok(plan)
}

/// Reads configuration files and variables again, as SIGHUP does.
#[utoipa::path(
    post,
    path = "/config/reload",
    operation_id = "reload_configuration",
    tag = "configuration",
    responses((status = 200, body = Reloaded), Configured, Audited),
)]
pub(super) async fn reload(
    State(api): State<ApiState>,
    sender: Sender,
) -> Result<Json<Reloaded>, Problem> {
    let make = api.program(|program| program.reload());
    let change = Change::new("config.reload", "");
    Ok(Json(api.audited(&sender, change, make).await?))
}

/// The first key of a change that only `admin` may change.
fn admins_key(changes: &BTreeMap<String, Value>) -> Option<&String> {
    let mut changes = changes.iter();
    let found = changes.find(|(key, value)| is_admins(key) || has_admins(value));
    found.map(|(key, _)| key)
}

fn is_admins(key: &str) -> bool {
    key.split('.').any(|name| ADMINS_KEYS.contains(&name))
}

/// The address of a listener that is new: without a mount point, for example, its clients would see
/// the topics of all others.
fn new_listener(differences: &[Difference]) -> Option<&String> {
    let mut differences = differences.iter();
    let found = differences.find(|difference| {
        let Difference {
            key, before, after, ..
        } = difference;
        let name = key.strip_prefix("listeners.");
        let is_address = name.is_some_and(|name| name.split('.').next_back() == Some("bind"));
        is_address && before.is_none() && after.is_some()
    });
    found.map(|difference| &difference.key)
}

/// A table may be the value of a change; it is not deep, because a request is read so.
fn has_admins(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| is_admins(name) || has_admins(value)),
        Value::Array(values) => values.iter().any(has_admins),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Refuses a caller without `admin` if there is such a key.
async fn check_keys(api: &ApiState, sender: &Sender, key: Option<&String>) -> Result<(), Problem> {
    let Some(key) = key.filter(|_| !sender.caller.may(Scope::Admin)) else {
        return Ok(());
    };
    let refusal = Refusal::NoScope(Scope::Admin);
    let change = Change::new("config.change", key);
    api.refused(&sender.caller, change, &refusal).await;
    Err(Problem {
        detail: format!("a change of {key} needs the scope {}", Scope::Admin),
        ..refusal.into()
    })
}

/// A change with the values of its keys before and after it.
fn audited(action: &'static str, target: &str, differences: &[Difference]) -> Change {
    let of = |value: fn(&Difference) -> &Option<Value>| {
        let fields = differences.iter().map(|difference| {
            let value = value(difference).clone().unwrap_or_default();
            (difference.key.clone(), value)
        });
        Value::Object(fields.collect::<Map<_, _>>())
    };
    let keys: Vec<&str> = differences.iter().map(|one| one.key.as_str()).collect();
    let target = if target.is_empty() {
        keys.join(", ")
    } else {
        target.to_owned()
    };
    Change::new(action, &target)
        .before(of(|difference| &difference.before))
        .after(of(|difference| &difference.after))
}
