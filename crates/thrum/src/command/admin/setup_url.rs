//! `thrum admin setup-url`.

use std::io::Write as _;

use clap::Args;
use serde_json::Value;
use thrum_management::api::SetupLink;

use crate::command::running::Running;

/// Arguments of `thrum admin setup-url`.
#[derive(Debug, Args)]
pub(super) struct SetupUrlArgs {
    #[command(flatten)]
    running: Running,
    /// The address at which your browser reaches the broker.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080")]
    url: String,
}

/// Makes a link and prints it.
pub(super) fn run(args: &SetupUrlArgs) -> anyhow::Result<()> {
    let link: SetupLink = args.running.send("/setup-link", &Value::Null)?;
    let url = args.url.trim_end_matches('/');
    writeln!(std::io::stdout(), "{url}/{}", link.path)?;
    Ok(())
}
