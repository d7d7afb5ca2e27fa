//! Who may connect and what clients may do: bans, users, roles, groups, rules, and a login that is
//! tried.

mod bans;
mod import;
mod login_test;
mod members;
mod rules;
mod users;

use std::sync::Arc;

use axum::http::StatusCode;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thrum_auth::users::{RuleList, StoreError, UserStore, name_problem};
use thrum_auth::{AuthService, EditError};
use utoipa_axum::routes;

use super::problem::NO_ROOM_REMEDY;
use super::request::BodyLimit;
use super::routes::Routes;
use super::{ApiState, Problem};
use crate::in_thread::in_thread;
use crate::login::Scope;
use crate::thing::Thing;

pub use bans::{Ban, BanAdded, BanPage, BanToAdd, ClientToBan};
pub use import::UsersImported;
pub use login_test::{LoginTest, LoginTestStep, LoginToTest, TestedIdentity};
pub use members::{Role, RoleList, UserGroup, UserGroupList};
pub use rules::{AccessTest, AccessToTest, DecidingRule, Rule, RulePage};
pub use users::{NewUser, User, UserChange, UserChanged, UserPage, UserPassword};

/// Changes of users and questions to their store at once, each in a thread; more wait. Passwords
/// among them are hashed, which takes a core for some 20 ms.
pub(super) const TASKS_MAX: usize = 2;

/// The listener of a client about which nothing else is said.
const LISTENER: &str = "mqtt";

/// The routes.
pub(super) fn routes(routes: Routes) -> Routes {
    let (read, write) = (Scope::UsersRead, Scope::UsersWrite);
    let (schemas, paths, import) = routes!(import::import);
    let import = import.layer(BodyLimit(import::BODY_BYTES_MAX).layer());
    routes
        .scoped(Scope::ClientsRead, routes!(bans::list))
        .scoped(Scope::ClientsWrite, routes!(bans::add, bans::lift))
        .scoped(Scope::ClientsWrite, routes!(bans::ban_client))
        .scoped(read, routes!(users::list))
        .scoped(write, routes!(users::add))
        .scoped(read, routes!(users::show))
        .scoped(write, routes!(users::change, users::remove))
        .scoped(write, routes!(users::set_password))
        .scoped(write, (schemas, paths, import))
        .scoped(read, routes!(members::list_roles))
        .scoped(read, routes!(members::show_role))
        .scoped(write, routes!(members::set_role, members::remove_role))
        .scoped(read, routes!(members::list_groups))
        .scoped(read, routes!(members::show_group))
        .scoped(write, routes!(members::set_group, members::remove_group))
        .scoped(read, routes!(rules::list))
        .scoped(read, routes!(rules::test))
        .scoped(Scope::Admin, routes!(login_test::test))
}

impl ApiState {
    /// Authentication of clients.
    fn clients(&self) -> Result<&Arc<AuthService>, Problem> {
        let clients = self.security.clients.as_ref();
        clients.ok_or_else(|| no_store("this broker has no authentication"))
    }

    /// The listener that is asked about, `mqtt` if none is named.
    fn listener(&self, named: Option<&str>) -> Result<Arc<str>, Problem> {
        match named {
            Some(name) if !self.clients()?.has_listener(name) => Err(Problem::bad_request(
                format!("there is no listener {name:?}; GET /api/v1/listeners lists them"),
            )),
            Some(name) => Ok(name.into()),
            None => Ok(LISTENER.into()),
        }
    }

    /// Works with it in another thread, which may wait for the disk.
    fn in_access<T: Send + 'static, F>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<T, Problem>> + Send + 'static + use<T, F>
    where
        F: FnOnce(&AuthService) -> Result<T, Problem> + Send + 'static,
    {
        let clients = self.clients().cloned();
        let permits = Arc::clone(&self.access_permits);
        async move {
            let clients = clients?;
            in_thread(&permits, move || work(&clients)).await?
        }
    }

    /// Looks into the user store.
    async fn in_store<T: Send + 'static>(
        &self,
        look: impl FnOnce(&UserStore) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.in_access(|clients| clients.with_users(look).unwrap_or_else(|| Err(no_users())))
            .await
    }

    /// Changes the user store: on the disk and in force at the end.
    fn change_store<T: Send + 'static, F>(
        &self,
        change: F,
    ) -> impl Future<Output = Result<T, Problem>> + Send + 'static + use<T, F>
    where
        F: FnOnce(&mut UserStore) -> Result<T, Problem> + Send + 'static,
    {
        self.in_access(|clients| clients.edit_users(change).map_err(edit_problem))
    }
}

/// The rows behind a name, and the name of the last one if there are more.
fn paged<'a, T: 'a, R>(
    all: impl Iterator<Item = (&'a str, &'a T)>,
    limit: usize,
    behind: Option<&str>,
    row: impl Fn(&str, &T) -> R,
) -> (Vec<R>, Option<String>) {
    let mut rest = all.filter(|(name, _)| behind.is_none_or(|behind| *name > behind));
    let page: Vec<(&str, &T)> = rest.by_ref().take(limit).collect();
    let last = page.last().map(|(name, _)| cursor_of(name));
    let has_more = rest.next().is_some();
    let rows = page.into_iter().map(|(name, one)| row(name, one));
    (rows.collect(), last.filter(|_| has_more))
}

fn edit_problem(error: EditError<Problem>) -> Problem {
    match error {
        EditError::Refused(problem) => problem,
        EditError::NoStore => no_users(),
        EditError::NotInForce(why) => Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "users not in force",
            format!("the users are written, but not in force: {why}"),
            "mend the file; its previous contents are in force until then",
        ),
        EditError::Store(error @ StoreError::TooLarge { .. }) => Problem::new(
            StatusCode::BAD_REQUEST,
            "too large for the user store",
            error.to_string(),
            "ask for less; nothing was changed",
        ),
        EditError::Store(error) if error.is_no_room() => Problem::new(
            StatusCode::INSUFFICIENT_STORAGE,
            "no room on the disk",
            error.to_string(),
            NO_ROOM_REMEDY,
        ),
        EditError::Store(error) => {
            let remedy = match &error {
                StoreError::Line { .. } => "correct the line; nothing was changed",
                StoreError::Read { .. }
                | StoreError::Write { .. }
                | StoreError::TooLarge { .. } => {
                    "check the disk and the owner of the file; nothing was changed"
                }
            };
            Problem::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "user store not available",
                error.to_string(),
                remedy,
            )
        }
    }
}

fn no_users() -> Problem {
    no_store("there is no user store: neither auth.users nor node.data_dir is set")
}

fn no_store(what: &str) -> Problem {
    Problem::new(
        StatusCode::CONFLICT,
        "no user store",
        what,
        "set node.data_dir or auth.users in the configuration, and start the broker again",
    )
}

/// Nothing has that name.
fn missing(kind: Thing, name: &str) -> Problem {
    Problem::new(
        StatusCode::NOT_FOUND,
        "not there",
        format!("there is no {kind} {name:?}"),
        kind.listing(),
    )
}

/// Refuses a name that cannot be one.
fn check_name(kind: &str, name: &str) -> Result<(), Problem> {
    match name_problem(name) {
        Some(problem) => Err(Problem::bad_request(format!("{kind} {name:?}: {problem}"))),
        None => Ok(()),
    }
}

/// The cursor behind a name, which may have any character.
fn cursor_of(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}

/// The name that a page begins behind.
fn behind(cursor: Option<&str>) -> Result<Option<String>, Problem> {
    let name = cursor.map(|text| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok();
        let name = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        name.ok_or_else(|| Problem::bad_request("cursor: take it from the page before"))
    });
    name.transpose()
}

/// Names that can be ones.
fn names(kind: &str, names: &[String]) -> Result<Vec<Box<str>>, Problem> {
    let checked = names.iter().map(|name| {
        check_name(kind, name)?;
        Ok(name.as_str().into())
    });
    checked.collect()
}

/// The rules of a user, a role or a group.
fn rules(texts: Vec<String>, source: &str) -> Result<RuleList, Problem> {
    RuleList::parse(texts, source).map_err(Problem::bad_request)
}

fn texts(names: &[Box<str>]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}
