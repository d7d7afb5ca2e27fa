//! `thrum admin reset-password`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;
use thrum_management::StoppedChange;

use super::place::Asked;
use crate::command::Failure;
use crate::command::running::{Method, Running, encoded};
use crate::command::users::PasswordArgs;

/// Arguments of `thrum admin reset-password`.
#[derive(Debug, Args)]
pub(super) struct ResetPasswordArgs {
    /// Name of the administrator.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// Log in without a one-time code from now on: the app and the recovery codes are lost.
    #[arg(long)]
    remove_totp: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    password: PasswordArgs,
}

/// Sets another password.
pub(super) fn run(args: &ResetPasswordArgs) -> anyhow::Result<()> {
    let password = args.password.read()?;
    let text = password.expose_str();
    let text = text.ok_or_else(|| Failure::usage("the password is not text in UTF-8"))?;
    let body = json!({ "password": text, "remove_totp": args.remove_totp });
    let name = &args.name;
    let asked = Asked {
        method: Method::Post,
        path: format!("/admins/{}/password", encoded(name)),
        body,
        stopped: StoppedChange::Password {
            password: password.clone(),
            remove_totp: args.remove_totp,
        },
        name,
    };
    asked.carry_out(&args.running)?;
    writeln!(
        std::io::stderr(),
        "{name} has a new password; its sessions have ended"
    )?;
    Ok(())
}
