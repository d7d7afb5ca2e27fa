//! `thrum admin change`.

use std::io::Write as _;

use clap::builder::NonEmptyStringValueParser;
use clap::{ArgAction, Args};
use serde_json::json;
use thrum_management::StoppedChange;
use thrum_management::login::Role;

use super::place::{Asked, path_of};
use crate::command::Failure;
use crate::command::running::{Method, Running};

/// Arguments of `thrum admin change`.
#[derive(Debug, Args)]
pub(super) struct ChangeArgs {
    /// Name of the administrator.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    /// viewer, operator or administrator; in force with the next request.
    #[arg(long, value_name = "ROLE")]
    role: Option<Role>,
    /// May not log in, or may again; its sessions end.
    #[arg(long, value_name = "BOOL", action = ArgAction::Set)]
    disabled: Option<bool>,
    /// Log in without a one-time code from now on: the app and the recovery codes are lost.
    #[arg(long)]
    remove_totp: bool,
    #[command(flatten)]
    running: Running,
}

/// Changes what is named.
pub(super) fn run(args: &ChangeArgs) -> anyhow::Result<()> {
    let ChangeArgs {
        name,
        role,
        disabled,
        remove_totp,
        running,
    } = args;
    if role.is_none() && disabled.is_none() && !remove_totp {
        return Err(Failure::usage(
            "nothing to change; name it with --role, --disabled or --remove-totp",
        ));
    }
    let asked = Asked {
        method: Method::Patch,
        path: path_of(name),
        body: json!({
            "role": role.map(Role::name),
            "disabled": disabled,
            "remove_totp": remove_totp,
        }),
        stopped: StoppedChange::Change {
            role: *role,
            disabled: *disabled,
            remove_totp: *remove_totp,
        },
        name,
    };
    asked.carry_out(running)?;
    writeln!(std::io::stderr(), "changed {name}")?;
    Ok(())
}
