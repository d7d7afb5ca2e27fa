//! The subject of a ban, on the command line and in a table.

use clap::Args;
use thrum_access::Network;
use thrum_protection::Subject;

use crate::command::Failure;
use crate::command::shown::name;

/// The subject: a client, a user or an address.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(super) struct SubjectArgs {
    /// A client identifier; with --user or --address only the client of that user, or from there
    /// without user name.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    /// A user name: every client of that user.
    #[arg(long, value_name = "NAME", conflicts_with = "address")]
    user: Option<String>,
    /// An address or a network: 192.0.2.7, 192.0.2.0/24, `2001:db8::/32`.
    #[arg(long, value_name = "ADDRESS")]
    address: Option<Network>,
}

impl SubjectArgs {
    /// The subject of a ban.
    pub(super) fn subject(&self) -> anyhow::Result<Subject> {
        let names = (self.client_id.as_deref(), self.user.as_deref());
        Ok(match (names, self.address) {
            ((Some(id), None), None) => Subject::ClientId(id.into()),
            ((None, Some(user)), None) => Subject::Username(user.into()),
            ((None, None), Some(network)) => Subject::Network(network),
            ((Some(id), Some(user)), None) => Subject::ClientOfUser {
                client_id: id.into(),
                username: user.into(),
            },
            ((Some(id), None), Some(network)) => Subject::ClientFrom {
                client_id: id.into(),
                network: site(network)?,
            },
            // The parser has seen to it.
            ((_, Some(_)), Some(_)) | ((None, None), None) => {
                anyhow::bail!("no subject is named")
            }
        })
    }
}

/// For people: `client meter-7`, `user jo`, `address 192.0.2.0/24`.
pub(super) fn shown(subject: &Subject) -> String {
    match subject {
        Subject::ClientId(id) => format!("client {}", name(id)),
        Subject::Username(user) => format!("user {}", name(user)),
        Subject::Network(network) => format!("address {network}"),
        Subject::ClientOfUser {
            client_id,
            username,
        } => format!("client {} of user {}", name(client_id), name(username)),
        Subject::ClientFrom { client_id, network } => {
            format!("client {} from {network}", name(client_id))
        }
    }
}

/// The names of a subject, by the keys of a running broker.
pub(super) fn parts(subject: &Subject) -> Vec<(&'static str, String)> {
    match subject {
        Subject::ClientId(id) => vec![("client_id", id.to_string())],
        Subject::Username(user) => vec![("user", user.to_string())],
        Subject::Network(network) => vec![("address", network.to_string())],
        Subject::ClientOfUser {
            client_id,
            username,
        } => vec![
            ("client_id", client_id.to_string()),
            ("user", username.to_string()),
        ],
        Subject::ClientFrom { client_id, network } => vec![
            ("client_id", client_id.to_string()),
            ("address", network.to_string()),
        ],
    }
}

/// The broker's unit for a single client's address.
fn site(network: Network) -> anyhow::Result<Network> {
    let site = Network::of_client(network.address());
    if network != site && network != Network::of_address(network.address()) {
        return Err(Failure::usage(
            "--client-id with --address takes one address, and no network",
        ));
    }
    Ok(site)
}
