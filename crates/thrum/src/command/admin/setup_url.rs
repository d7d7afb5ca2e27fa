//! `thrum admin setup-url`.

use std::io::Write as _;

use clap::Args;
use thrum_management::api::{SetupLink, Status};

use crate::command::Failure;
use crate::command::running::{Broker, Local, Method};

/// Arguments of `thrum admin setup-url`.
#[derive(Debug, Args)]
pub(super) struct SetupUrlArgs {
    #[command(flatten)]
    local: Local,
    /// The address at which your browser reaches the broker. Default: that of its HTTP port.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
}

/// Makes a link and prints it.
pub(super) fn run(args: &SetupUrlArgs) -> anyhow::Result<()> {
    let broker = args.local.broker()?;
    let url = match &args.url {
        Some(url) => url.clone(),
        None => of_port(&broker)?,
    };
    let link: SetupLink = broker.call(Method::Post, "/setup-link", "")?;
    let url = url.trim_end_matches('/');
    writeln!(std::io::stdout(), "{url}/{}", link.path)?;
    Ok(())
}

/// The address of the HTTP port of the broker; on this machine if it is on all addresses.
fn of_port(broker: &Broker) -> anyhow::Result<String> {
    let status: Status = broker.call(Method::Get, "/status", "")?;
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
