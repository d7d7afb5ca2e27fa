//! Who is meant, on the command line and in a table.

use clap::Args;
use thrum_broker::protection::{Network, Subject};

use crate::command::shown::name;

/// One of three.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(super) struct WhoArgs {
    /// A client identifier.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A user name: every client of that user.
    #[arg(long, value_name = "NAME")]
    user: Option<String>,
    /// An address or a network: 192.0.2.7, 192.0.2.0/24, `2001:db8::/32`.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<Network>,
}

impl WhoArgs {
    /// Who is meant.
    pub(super) fn subject(&self) -> anyhow::Result<Subject> {
        let client_id = self
            .client_id
            .as_deref()
            .map(|id| Subject::ClientId(id.into()));
        let user = self
            .user
            .as_deref()
            .map(|user| Subject::Username(user.into()));
        let found = client_id
            .or(user)
            .or_else(|| self.address.map(Subject::Network));
        // The parser has seen to it.
        found.ok_or_else(|| anyhow::anyhow!("nobody is named"))
    }
}

/// For people: `client meter-7`, `user jo`, `address 192.0.2.0/24`.
pub(super) fn shown(subject: &Subject) -> String {
    match subject {
        Subject::ClientId(id) => format!("client {}", name(id)),
        Subject::Username(user) => format!("user {}", name(user)),
        Subject::Network(network) => format!("address {network}"),
    }
}
