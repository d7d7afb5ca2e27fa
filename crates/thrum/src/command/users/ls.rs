//! `thrum users ls`, and what it has in common with the lists of roles and groups.

use clap::Args;
use serde_json::{Value, json};
use thrum_auth::users::{PasswordHash, User, UserStore};
use thrum_storage::WallMillis;

use super::place::{Place, Store};
use crate::command::listing::{
    self, Cell, Column, FilterArgs, ListArgs, ListForm, Listing, Row, View,
};
use crate::command::shown::NOTHING;

/// Arguments of these lists.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    place: Place,
    /// The same as -o json.
    #[arg(long, conflicts_with = "form")]
    json: bool,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

static USERS: Listing = Listing {
    member: "users",
    columns: &[
        Column::new("name", "NAME", Cell::Text(0)),
        Column::new("password", "PASSWORD", Cell::Own(password)),
        Column::new("disabled", "STATE", Cell::Own(state)),
        Column::new("roles", "ROLES", Cell::Text(0)),
        Column::new("groups", "GROUPS", Cell::Text(0)),
        Column::new("rules", "RULES", Cell::Own(rules)),
    ],
    one: "user",
    many: "users",
    aliases: &[("user", "name"), ("state", "disabled")],
    identity: "name",
    sum: "",
};

/// Lists users.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    list(args, &USERS, "/users", |store| {
        let users = store.users();
        users.map(|(name, user)| row(name, user)).collect()
    })
}

/// Lists what a running broker shows at the path, or what is in the file.
#[cfg_attr(
    not(feature = "management"),
    expect(unused_variables, reason = "a running broker is asked with it")
)]
pub(super) fn list(
    args: &LsArgs,
    listing: &Listing,
    path: &str,
    rows: impl Fn(&UserStore) -> Vec<Value>,
) -> anyhow::Result<()> {
    let mut list = args.list.unlimited();
    if args.json {
        list = list.in_form(ListForm::Json);
    }
    let view = View::filtered(listing, &list, &args.filter);
    match args.place.store()? {
        Store::File(file) => listing::run_rows(&view, || {
            let rows = rows(&file.read()?);
            let rows = rows.iter().map(Row::of);
            Ok(rows.collect::<serde_json::Result<_>>()?)
        }),
        #[cfg(feature = "management")]
        Store::Broker(broker) => {
            // A file has no tags, and no command takes one.
            let question = listing::Question::new(path).without("etag");
            listing::run_at(&broker, &view, &question)
        }
    }
}

/// The rules of a row.
pub(super) fn rules(row: &Value, _now: WallMillis) -> String {
    let rules = row.get("rules").and_then(Value::as_array);
    let rules = rules.into_iter().flatten().filter_map(Value::as_str);
    let rules: Vec<&str> = rules.collect();
    or_nothing(rules.join("; "))
}

/// The ways to log in.
fn password(user: &Value, _now: WallMillis) -> String {
    let algorithm = user.get("password").and_then(Value::as_str);
    let has_scram = user.get("scram") == Some(&Value::Bool(true));
    let ways = algorithm.into_iter().chain(has_scram.then_some("scram"));
    let ways: Vec<&str> = ways.collect();
    or_nothing(ways.join("+"))
}

fn state(user: &Value, _now: WallMillis) -> String {
    let is = |key: &str| user.get(key) == Some(&Value::Bool(true));
    let state = match (is("disabled"), is("superuser")) {
        (true, _) => "disabled",
        (false, true) => "superuser",
        (false, false) => NOTHING,
    };
    state.to_owned()
}

fn or_nothing(text: String) -> String {
    if text.is_empty() {
        return NOTHING.to_owned();
    }
    text
}

/// As a running broker shows it.
fn row(name: &str, user: &User) -> Value {
    json!({
        "name": name,
        "password": user.password.as_ref().map(PasswordHash::algorithm),
        "scram": user.scram.is_some(),
        "roles": user.roles,
        "groups": user.groups,
        "rules": user.rules.texts(),
        "superuser": user.is_superuser,
        "disabled": user.is_disabled,
    })
}
