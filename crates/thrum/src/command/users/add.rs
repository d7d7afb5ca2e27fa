//! `thrum users add`.

use std::io::Write as _;

use clap::Args;
use thrum_auth::users::User;

use super::password::{PasswordArgs, set};
use super::place::{Place, Store};
#[cfg(feature = "management")]
use super::remote;
use super::rights::{RuleArgs, check_name, describe, names, warn_of_missing_roles};
use super::store_file::StoreFile;
use crate::command::Failure;

/// Arguments of `thrum users add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// User name.
    name: String,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    password: PasswordArgs,
    /// A role of the user; may be given more than once.
    #[arg(long = "role", value_name = "ROLE")]
    roles: Vec<String>,
    /// A group of the user; may be given more than once.
    #[arg(long = "group", value_name = "GROUP")]
    groups: Vec<String>,
    #[command(flatten)]
    rules: RuleArgs,
    /// May do everything.
    #[arg(long)]
    superuser: bool,
    /// May also log in with SCRAM-SHA-256 (MQTT 5.0), where the password is not sent.
    #[arg(long)]
    scram: bool,
}

/// Adds the user.
pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    let name = &args.name;
    check_name(name)?;
    let user = User {
        roles: names(&args.roles)?,
        groups: names(&args.groups)?,
        rules: args.rules.parse(&format!("user {name}"))?,
        is_superuser: args.superuser,
        ..User::default()
    };
    let rights = match args.place.store()? {
        Store::File(file) => add_to_file(args, user, &file)?,
        #[cfg(feature = "management")]
        Store::Broker(broker) => {
            // Before the user types a password in vain.
            if remote::is_taken(&broker, name)? {
                return Err(taken(name));
            }
            let login = remote::NewLogin {
                password: &args.password.read()?,
                with_scram: args.scram,
            };
            let rights = remote::add(&broker, name, &user, &login)?;
            remote::warn_of_missing_roles(&broker, &user.roles)?;
            rights
        }
    };
    let mut errors = std::io::stderr();
    writeln!(errors, "added user {name}")?;
    writeln!(errors, "{rights}")?;
    Ok(())
}

fn add_to_file(args: &AddArgs, mut user: User, file: &StoreFile) -> anyhow::Result<String> {
    let name = &args.name;
    // Before the user types a password in vain, and before the lock that would block other commands
    // meanwhile.
    if file.read()?.user(name).is_some() {
        return Err(taken(name));
    }
    set(&mut user, &args.password.read()?, args.scram)?;
    let mut locked = file.open()?;
    if locked.store.set_user(name, user.clone()).is_some() {
        return Err(taken(name));
    }
    locked.save()?;
    warn_of_missing_roles(&user.roles, |role| locked.store.role(role).is_some())?;
    Ok(describe(name, &user, &locked.store))
}

fn taken(name: &str) -> anyhow::Error {
    let what = format!(
        "there is a user '{name}' already; thrum users passwd and thrum users change change it"
    );
    Failure::with_code(Failure::CONFLICT, what)
}
