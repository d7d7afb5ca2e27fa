//! `thrum admin reset-password`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::json;

use crate::command::Failure;
use crate::command::running::{Running, encoded};
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
    let path = format!("/admins/{}/password", encoded(&args.name));
    let () = args.running.send(&path, &body)?;
    let name = &args.name;
    writeln!(
        std::io::stderr(),
        "{name} has a new password; its sessions have ended"
    )?;
    Ok(())
}
