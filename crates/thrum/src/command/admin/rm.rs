//! `thrum admin rm`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use serde_json::Value;
use thrum_management::StoppedChange;

use super::place::{Asked, path_of};
use crate::command::running::{Method, Running};

/// Arguments of `thrum admin rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// Name of the administrator.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    name: String,
    #[command(flatten)]
    running: Running,
}

/// Removes it.
pub(super) fn run(args: &RmArgs) -> anyhow::Result<()> {
    let name = &args.name;
    let asked = Asked {
        method: Method::Delete,
        path: path_of(name),
        body: Value::Null,
        stopped: StoppedChange::Remove,
        name,
    };
    asked.carry_out(&args.running)?;
    writeln!(
        std::io::stderr(),
        "removed {name}; its sessions have ended, and the API keys that it made stay (thrum keys ls)"
    )?;
    Ok(())
}
