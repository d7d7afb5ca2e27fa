//! `thrum admin add`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use thrum_management::StoppedChange;
use thrum_management::login::Role;

use super::place::Asked;
use crate::command::Failure;
use crate::command::running::{Method, Running};
use crate::command::users::PasswordArgs;

/// Arguments of `thrum admin add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Name: letters, digits, and characters of -._@
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// viewer, operator or administrator.
    #[arg(long, value_name = "ROLE")]
    role: Role,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    password: PasswordArgs,
}

/// Adds it.
pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    let (name, role) = (&args.name, args.role);
    let password = args.password.read()?;
    let text = password.expose_str();
    let text = text.ok_or_else(|| Failure::usage("the password is not text in UTF-8"))?;
    let asked = Asked {
        method: Method::Post,
        path: "/admins".to_owned(),
        body: json!({ "name": name, "role": role.name(), "password": text }),
        stopped: StoppedChange::Add {
            role,
            password: password.clone(),
        },
        name,
    };
    asked.carry_out(&args.running)?;
    writeln!(std::io::stderr(), "added {name} with the role {role}")?;
    Ok(())
}
