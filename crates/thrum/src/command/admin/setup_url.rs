//! `thrum admin setup-url`.

use std::io::Write as _;

use clap::Args;
use serde_json::Value;
use thrum_management::api::{SetupLink, Status};

use crate::command::Failure;
use crate::command::running::{Method, Running};

/// Arguments of `thrum admin setup-url`.
#[derive(Debug, Args)]
pub(super) struct SetupUrlArgs {
    #[command(flatten)]
    running: Running,
    /// The address at which your browser reaches the broker. Default: that of its HTTP port.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Makes a link and prints it.
pub(super) fn run(args: &SetupUrlArgs) -> anyhow::Result<()> {
    let url = match &args.url {
        Some(url) => url.clone(),
        None => of_port(&args.running)?,
    };
    let link: SetupLink = args.running.send("/setup-link", &Value::Null)?;
    let url = url.trim_end_matches('/');
    writeln!(std::io::stdout(), "{url}/{}", link.path)?;
    Ok(())
}

/// The address of the HTTP port of the broker; on this machine if it is on all addresses.
fn of_port(running: &Running) -> anyhow::Result<String> {
    let status: Status = running.ask(Method::Get, "/status")?;
    let addresses = status.listeners.iter().map(|listener| &listener.address);
    let mut of_http = addresses.filter(|address| address.starts_with("http"));
    let address = of_http.next().ok_or_else(|| {
        Failure::usage(
            "the broker has no HTTP port (listeners.http.bind): configure one, or name the address at which your browser \
             reaches the broker with --url URL",
        )
    })?;
    let address = address.replace("//0.0.0.0:", "//127.0.0.1:");
    Ok(address.replace("//[::]:", "//[::1]:"))
}
