//! `/users`: the users of MQTT clients in the store of the broker.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thrum_access::Secret;
use thrum_auth::config::USERS;
use thrum_auth::users::{PasswordHash, RuleList, User as Stored, UserStore};
use thrum_auth::{Credential, CredentialRecord};
use thrum_broker::{Condition, Presence, SessionFilter, SessionQuery, SessionState, SortKey};
use utoipa::ToSchema;

use super::super::audited::Made;
use super::super::entrance::Sender;
use super::super::openapi::{Asked, Audited, Conflict, Known, NotFound, Preconditioned};
use super::super::precondition::{KnownParameters, Precondition, PreconditionParameters, etag_of};
use super::super::request::{Body, Named, NoParameters, Parameters, SecretText, rows};
use super::super::{ApiState, Problem};
use super::{behind, check_name, missing, names, paged, rules, texts};
use crate::audit::Change;
use crate::thing::Thing;

/// Most bytes of a password: as many as a CONNECT can hold.
const PASSWORD_BYTES_MAX: usize = 65_535;
/// Clients of a user that one request disconnects: each is a question to every worker.
const DISCONNECTED_MAX: usize = 1000;

/// A user; its password is never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// Name.
    pub name: String,
    /// Algorithm of the hash of its password, such as `argon2id`; null if it has none.
    pub password: Option<String>,
    /// It may log in with SCRAM-SHA-256.
    pub scram: bool,
    /// Its roles, without those of its groups.
    pub roles: Vec<String>,
    /// Its groups.
    pub groups: Vec<String>,
    /// Its own rules, which are asked before those of its groups and roles.
    pub rules: Vec<String>,
    /// It may do everything.
    pub superuser: bool,
    /// It may not log in.
    pub disabled: bool,
    /// Names what it is now, for `If-Match`.
    #[serde(default)]
    pub etag: String,
}

/// A page of users in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserPage {
    /// The users.
    pub users: Vec<User>,
    /// Users in the store.
    pub total: usize,
    /// The `cursor` of the next page; null on the last one.
    pub next: Option<String>,
}

/// A user to add.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewUser {
    /// Name.
    name: String,
    /// Null: it cannot log in with a password.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    password: Option<SecretText>,
    /// It may log in with SCRAM-SHA-256 as well.
    #[serde(default)]
    scram: bool,
    /// Its roles.
    #[serde(default)]
    roles: Vec<String>,
    /// Its groups.
    #[serde(default)]
    groups: Vec<String>,
    /// Its own rules, such as `allow pubsub devices/%c/#`.
    #[serde(default)]
    rules: Vec<String>,
    /// It may do everything.
    #[serde(default)]
    superuser: bool,
    /// It may not log in.
    #[serde(default)]
    disabled: bool,
}

/// What changes of a user; null keeps it, and a list replaces the list, but for `add_rules`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct UserChange {
    /// Its roles.
    pub roles: Option<Vec<String>>,
    /// Its groups.
    pub groups: Option<Vec<String>>,
    /// Its own rules.
    pub rules: Option<Vec<String>>,
    /// Rules that its own get: those that deny come first, the others last. Those of others who add
    /// some at the same time stay.
    pub add_rules: Option<Vec<String>>,
    /// It may do everything.
    pub superuser: Option<bool>,
    /// It may not log in; its clients are disconnected.
    pub disabled: Option<bool>,
}

/// Another password of a user.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct UserPassword {
    /// The password.
    #[schema(value_type = String, format = Password)]
    password: SecretText,
    /// It may log in with SCRAM-SHA-256; null keeps that.
    #[serde(default)]
    scram: Option<bool>,
    /// Disconnect its clients, which have logged in with the old one.
    #[serde(default)]
    disconnect: bool,
}

/// What a change did.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct UserChanged {
    /// The user as it is now; null if it was removed.
    pub user: Option<User>,
    /// Its clients that are disconnected because of the change.
    pub disconnected: u64,
    /// Clients with its name that stay connected: ask again, unless another backend admitted them.
    pub left: u64,
}

/// Parameters of a list.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[serde(default, deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParameters {
    /// A part of the name.
    name: Option<String>,
    /// Users with this role, without those that have it by a group.
    role: Option<String>,
    /// Members of this group.
    group: Option<String>,
    /// Disabled users, or the others.
    disabled: Option<bool>,
    /// Superusers, or the others.
    superuser: Option<bool>,
    /// Rows of the page; 100 if absent.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<usize>,
    /// `next` of the page before.
    cursor: Option<String>,
}

impl ListParameters {
    fn fits(&self, name: &str, user: &Stored) -> bool {
        let has = |names: &[Box<str>], wanted: &Option<String>| {
            wanted
                .as_ref()
                .is_none_or(|wanted| names.iter().any(|name| **name == **wanted))
        };
        self.name.as_ref().is_none_or(|part| name.contains(&**part))
            && has(&user.roles, &self.role)
            && has(&user.groups, &self.group)
            && self
                .disabled
                .is_none_or(|wanted| wanted == user.is_disabled)
            && self
                .superuser
                .is_none_or(|wanted| wanted == user.is_superuser)
    }
}

/// Lists users in the order of their names.
#[utoipa::path(
    get,
    path = "/users",
    operation_id = "list_users",
    tag = "access",
    params(ListParameters),
    responses((status = 200, body = UserPage), Conflict, Asked),
)]
pub(super) async fn list(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ListParameters>,
) -> Result<Json<UserPage>, Problem> {
    let limit = rows(parameters.limit)?;
    let behind = behind(parameters.cursor.as_deref())?;
    let page = api.in_store(move |store| {
        let found = store.users_behind(behind.as_deref());
        let found = found.filter(|(name, user)| parameters.fits(name, user));
        // They begin behind it already.
        let (users, next) = paged(found, limit, None, shown);
        Ok(UserPage {
            users,
            total: store.users().len(),
            next,
        })
    });
    Ok(Json(page.await?))
}

/// Shows a user.
#[utoipa::path(
    get,
    path = "/users/{name}",
    operation_id = "show_user",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the user."),
        KnownParameters,
    ),
    responses((status = 200, body = User), NotFound, Conflict, Known, Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    Named(name): Named,
    known: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Response, Problem> {
    let user = api.in_store(move |store| match store.user(&name) {
        Some(user) => Ok(shown(&name, user)),
        None => Err(missing(Thing::User, &name)),
    });
    let user = user.await?;
    known.show(Thing::User, &user.name, &user.etag, &user)
}

/// Adds a user, who can log in at once.
#[utoipa::path(
    post,
    path = "/users",
    operation_id = "add_user",
    tag = "access",
    request_body = NewUser,
    responses((status = 201, body = User), Conflict, Asked, Audited),
)]
pub(super) async fn add(
    State(api): State<ApiState>,
    sender: Sender,
    Body(body): Body<NewUser>,
) -> Result<impl IntoResponse, Problem> {
    let name = body.name;
    check_name("user", &name)?;
    let mut user = Stored {
        roles: names("role", &body.roles)?,
        groups: names("group", &body.groups)?,
        rules: rules(body.rules, &format!("user {name}"))?,
        is_superuser: body.superuser,
        is_disabled: body.disabled,
        ..Stored::default()
    };
    let password = body.password.map(|SecretText(password)| password);
    if body.scram && password.is_none() {
        return Err(Problem::bad_request("scram needs a password"));
    }
    let change = Change::new("user.add", &name).after(audited(&user));
    let asked = api.clone();
    let make = async move {
        if let Some(password) = password {
            let with_scram = body.scram;
            let hashed = asked.in_access(move |_| Hashed::of(&password, with_scram));
            hashed.await?.put_into(&mut user);
        }
        let add = move |store: &mut UserStore| {
            if store.user(&name).is_some() {
                return Err(exists(&name));
            }
            let added = shown(&name, &user);
            store.set_user(&name, user);
            Ok(added)
        };
        asked.change_store(add).await
    };
    let added = api.audited(&sender, change, make).await?;
    Ok((StatusCode::CREATED, Json(added)))
}

/// Changes a user.
///
/// Rights are in force at once, also for connected clients; those of a disabled user are
/// disconnected.
#[utoipa::path(
    patch,
    path = "/users/{name}",
    operation_id = "change_user",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the user."),
        PreconditionParameters,
    ),
    request_body = UserChange,
    responses(
        (status = 200, body = UserChanged),
        NotFound, Conflict, Preconditioned, Asked, Audited,
    ),
)]
pub(super) async fn change(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Body(body): Body<UserChange>,
) -> Result<Json<UserChanged>, Problem> {
    let asked = body.parse(&name)?;
    let before = stored(&api, &name).await?;
    let mut after = before.clone();
    asked.apply(&name, &mut after)?;
    let (disconnected, left) = match body.disabled {
        Some(true) => clients_of(&api, &name).await?,
        _ => (0, 0),
    };
    let entry = Change::new("user.change", &name);
    let entry = entry.before(audited(&before)).after(audited(&after));
    let changing = name.clone();
    let make = api.change_store(move |store| {
        let found = store
            .user(&changing)
            .map(|user| shown(&changing, user).etag);
        precondition.check(Thing::User, &changing, found.as_deref())?;
        asked.make(&changing, store)
    });
    let changed = api.audited_as_made(&sender, entry, make).await?;
    Ok(Json(UserChanged {
        user: Some(changed),
        disconnected,
        left,
    }))
}

/// Removes a user, whose clients are disconnected.
#[utoipa::path(
    delete,
    path = "/users/{name}",
    operation_id = "remove_user",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the user."),
        PreconditionParameters,
    ),
    responses(
        (status = 200, body = UserChanged),
        NotFound, Conflict, Preconditioned, Asked, Audited,
    ),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Parameters(NoParameters {}): Parameters<NoParameters>,
) -> Result<Json<UserChanged>, Problem> {
    let before = stored(&api, &name).await?;
    let (disconnected, left) = clients_of(&api, &name).await?;
    let entry = Change::new("user.remove", &name).before(audited(&before));
    let make = api.change_store(move |store| {
        let user = store.user(&name);
        let user = user.ok_or_else(|| missing(Thing::User, &name))?;
        precondition.check(Thing::User, &name, Some(&shown(&name, user).etag))?;
        let before = audited(user);
        store.remove_user(&name);
        Ok(Made {
            answer: (),
            before,
            after: Value::Null,
        })
    });
    api.audited_as_made(&sender, entry, make).await?;
    Ok(Json(UserChanged {
        user: None,
        disconnected,
        left,
    }))
}

/// Gives a user another password.
#[utoipa::path(
    post,
    path = "/users/{name}/password",
    operation_id = "set_user_password",
    tag = "access",
    params(
        ("name" = String, Path, description = "Name of the user."),
        PreconditionParameters,
    ),
    request_body = UserPassword,
    responses(
        (status = 200, body = UserChanged),
        NotFound, Conflict, Preconditioned, Asked, Audited,
    ),
)]
pub(super) async fn set_password(
    State(api): State<ApiState>,
    sender: Sender,
    Named(name): Named,
    precondition: Precondition,
    Body(body): Body<UserPassword>,
) -> Result<Json<UserChanged>, Problem> {
    let before = stored(&api, &name).await?;
    let with_scram = body.scram.unwrap_or_else(|| before.scram.is_some());
    let password = body.password.0;
    let entry = Change::new("user.password", &name);
    let disconnects = body.disconnect;
    let entry = entry.after(json!({ "scram": with_scram, "disconnect": disconnects }));
    let (asked, changing) = (api.clone(), name.clone());
    let make = async move {
        let hashed = asked.in_access(move |_| Hashed::of(&password, with_scram));
        let hashed = hashed.await?;
        let set = move |store: &mut UserStore| {
            let found = store.user(&changing);
            let found = found.ok_or_else(|| missing(Thing::User, &changing))?;
            precondition.check(Thing::User, &changing, Some(&shown(&changing, found).etag))?;
            let mut user = store
                .remove_user(&changing)
                .ok_or_else(|| missing(Thing::User, &changing))?;
            hashed.put_into(&mut user);
            let changed = shown(&changing, &user);
            store.set_user(&changing, user);
            Ok(changed)
        };
        let changed = asked.change_store(set).await?;
        // Whoever has the old password is disconnected also if the caller has left. The password
        // has changed, whatever becomes of this.
        let clients = if disconnects {
            disconnect(&asked, &name).await
        } else {
            let clients = clients_of(&asked, &name).await;
            clients.map(|(own, others)| (0, own + others))
        };
        Ok((changed, clients))
    };
    let (changed, clients) = api.audited(&sender, entry, make).await?;
    let (disconnected, left) = clients?;
    Ok(Json(UserChanged {
        user: Some(changed),
        disconnected,
        left,
    }))
}

/// A change whose names and rules are valid.
#[derive(Clone)]
struct Parsed {
    roles: Option<Vec<Box<str>>>,
    groups: Option<Vec<Box<str>>>,
    rules: Option<RuleList>,
    added_rules: Option<RuleList>,
    is_superuser: Option<bool>,
    is_disabled: Option<bool>,
}

impl UserChange {
    fn parse(&self, name: &str) -> Result<Parsed, Problem> {
        let of = |kind: &str, given: &Option<Vec<String>>| {
            let given = given.as_deref().map(|given| names(kind, given));
            given.transpose()
        };
        let list = |texts: &Option<Vec<String>>| {
            let texts = texts.clone();
            let parsed = texts.map(|texts| rules(texts, &format!("user {name}")));
            parsed.transpose()
        };
        let parsed = Parsed {
            roles: of("role", &self.roles)?,
            groups: of("group", &self.groups)?,
            rules: list(&self.rules)?,
            added_rules: list(&self.add_rules)?,
            is_superuser: self.superuser,
            is_disabled: self.disabled,
        };
        if parsed.is_empty() {
            return Err(Problem::bad_request(
                "nothing to change; name roles, groups, rules, add_rules, superuser or disabled",
            ));
        }
        Ok(parsed)
    }
}

impl Parsed {
    const fn is_empty(&self) -> bool {
        self.roles.is_none()
            && self.groups.is_none()
            && self.rules.is_none()
            && self.added_rules.is_none()
            && self.is_superuser.is_none()
            && self.is_disabled.is_none()
    }

    /// Makes the change.
    fn make(&self, name: &str, store: &mut UserStore) -> Result<Made<User>, Problem> {
        let found = store.user(name);
        let mut user = found.ok_or_else(|| missing(Thing::User, name))?.clone();
        let before = audited(&user);
        self.apply(name, &mut user)?;
        let made = Made {
            answer: shown(name, &user),
            before,
            after: audited(&user),
        };
        store.set_user(name, user);
        Ok(made)
    }

    fn apply(&self, name: &str, user: &mut Stored) -> Result<(), Problem> {
        if let Some(roles) = &self.roles {
            user.roles.clone_from(roles);
        }
        if let Some(groups) = &self.groups {
            user.groups.clone_from(groups);
        }
        if let Some(rules) = &self.rules {
            user.rules.clone_from(rules);
        }
        if let Some(added) = &self.added_rules {
            let all = user.rules.with(added, &format!("user {name}"));
            user.rules = all.map_err(Problem::bad_request)?;
        }
        user.is_superuser = self.is_superuser.unwrap_or(user.is_superuser);
        user.is_disabled = self.is_disabled.unwrap_or(user.is_disabled);
        Ok(())
    }
}

/// A password as it is stored.
struct Hashed {
    password: PasswordHash,
    scram: Option<Credential>,
}

impl Hashed {
    fn of(password: &Secret, with_scram: bool) -> Result<Self, Problem> {
        let bytes = password.expose();
        if bytes.is_empty() || bytes.len() > PASSWORD_BYTES_MAX {
            let what = format!("a password has 1 to {PASSWORD_BYTES_MAX} bytes");
            return Err(Problem::bad_request(what));
        }
        let broken = |error: &dyn std::fmt::Display| Problem::bad_request(error.to_string());
        let scram = with_scram.then(|| {
            let text = password.expose_str().unwrap_or_default();
            Credential::of(text).map_err(|error| broken(&error))
        });
        Ok(Self {
            password: PasswordHash::of(bytes).map_err(|error| broken(&error))?,
            scram: scram.transpose()?,
        })
    }

    fn put_into(self, user: &mut Stored) {
        user.password = Some(self.password);
        user.scram = self.scram;
    }
}

async fn stored(api: &ApiState, name: &str) -> Result<Stored, Problem> {
    let name = name.to_owned();
    let found = api.in_store(move |store| match store.user(&name) {
        Some(user) => Ok(user.clone()),
        None => Err(missing(Thing::User, &name)),
    });
    found.await
}

/// Connected clients with the name of a user: those that the store admitted, and the others.
async fn clients_of(api: &ApiState, name: &str) -> Result<(u64, u64), Problem> {
    let query = |filter| SessionQuery {
        filter,
        sort: SortKey::ClientId,
        limit: 1,
        ..SessionQuery::default()
    };
    let (own, all) = (query(own_of(name)), query(connected_of(name)));
    let counts = api.clone().query(move |queries| {
        let count = |query| queries.sessions(query).map(|found| found.matching);
        Ok((count(&own)?.unwrap_or(0), count(&all)?.unwrap_or(0)))
    });
    let (own, all) = counts.await?;
    Ok((own, all.saturating_sub(own)))
}

/// Disconnects the clients of a user that the store admitted; returns how many, and how many with
/// its name are left.
async fn disconnect(api: &ApiState, name: &str) -> Result<(u64, u64), Problem> {
    let query = SessionQuery {
        filter: own_of(name),
        sort: SortKey::ClientId,
        limit: DISCONNECTED_MAX,
        ..SessionQuery::default()
    };
    let (own, others) = clients_of(api, name).await?;
    let (asked, name) = (api.clone(), name.to_owned());
    let done = asked.query(move |queries| {
        let found = queries.sessions(&query)?;
        let mut disconnected = 0;
        let is_own = |row: &&thrum_broker::SessionRow| {
            row.user.as_deref() == Some(&*name)
                && matches!(row.presence, Presence::Connected { .. })
        };
        for row in found.page.rows.iter().filter(is_own) {
            let kicked = queries.kick(&row.client_id, false)?;
            disconnected += u64::from(kicked.is_some_and(|kicked| kicked.was_connected));
        }
        let all = found.matching.unwrap_or(own) + others;
        Ok((disconnected, all.saturating_sub(disconnected)))
    });
    done.await
}

/// Clients that the store admitted with the name of a user.
fn own_of(name: &str) -> SessionFilter {
    connected_of(name).and(Condition::Backend(USERS.into()))
}

fn connected_of(name: &str) -> SessionFilter {
    let connected = Condition::State(SessionState::Connected);
    let filter = SessionFilter::default().and(Condition::UserNamed(name.into()));
    filter.and(connected)
}

fn exists(name: &str) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "exists already",
        format!("there is a user {name:?} already"),
        "change it with PATCH /api/v1/users/NAME, its password with POST /api/v1/users/NAME/password",
    )
}

/// What the audit log shows of a user.
fn audited(user: &Stored) -> Value {
    json!({
        "roles": user.roles,
        "groups": user.groups,
        "rules": user.rules.texts(),
        "superuser": user.is_superuser,
        "disabled": user.is_disabled,
    })
}

fn shown(name: &str, user: &Stored) -> User {
    let password = user.password.as_ref();
    // The hash and what is kept for SCRAM have random salts: their digest tells nothing about the
    // password, and differs for another user of the same name.
    let hash = password.map(PasswordHash::expose);
    let scram = user.scram.as_ref().map(CredentialRecord::from);
    let is = (hash, scram, audited(user));
    let password = password.map(|hash| hash.algorithm().to_owned());
    User {
        etag: etag_of(&(name, is)),
        name: name.to_owned(),
        password,
        scram: user.scram.is_some(),
        roles: texts(&user.roles),
        groups: texts(&user.groups),
        rules: user.rules.texts().to_vec(),
        superuser: user.is_superuser,
        disabled: user.is_disabled,
    }
}
