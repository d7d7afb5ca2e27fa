//! A list of bans as text, with a line of JSON for each ban.

use std::io;

use serde::{Deserialize, Serialize};
use thrum_access::Network;

use super::list::{Ban, BanList, Subject};

/// A line that is not a ban.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BanLineError {
    /// Number of the line, from 1.
    pub line: usize,
    /// The error.
    pub what: String,
}

impl BanList {
    /// Reads the lines of a text. Empty lines are skipped, and of two bans of one subject the last
    /// one applies.
    ///
    /// # Errors
    /// The first line that is not a ban.
    pub fn parse(text: &str) -> Result<Self, BanLineError> {
        let mut list = Self::default();
        for (number, line) in text.lines().enumerate() {
            if line.trim().is_empty() {
                continue;
            }
            let read = serde_json::from_str::<BanLine>(line).map_err(|error| error.to_string());
            let ban = read
                .and_then(BanLine::into_ban)
                .map_err(|what| BanLineError {
                    line: number + 1,
                    what,
                })?;
            list.insert(ban);
        }
        Ok(list)
    }

    /// Writes a line for each ban, ordered by kind and name.
    ///
    /// # Errors
    /// The errors of the writer.
    pub fn write_to(&self, mut to: impl io::Write) -> io::Result<()> {
        for ban in self.sorted() {
            serde_json::to_writer(&mut to, &BanLine::new(ban))?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// A ban as a line; times are seconds of the Unix epoch.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BanLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_id: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    username: Option<Box<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    reason: Box<str>,
    #[serde(default, skip_serializing_if = "str::is_empty")]
    by: Box<str>,
    #[serde(default)]
    since: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<u64>,
    /// Absent in the lines of earlier versions, which disconnect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    disconnect: Option<bool>,
}

impl BanLine {
    fn new(ban: &Ban) -> Self {
        let mut line = Self {
            reason: ban.reason.clone(),
            by: ban.by.clone(),
            since: ban.since,
            until: ban.until,
            disconnect: (!ban.disconnects).then_some(false),
            ..Self::default()
        };
        match &ban.subject {
            Subject::ClientId(id) => line.client_id = Some(id.clone()),
            Subject::Username(name) => line.username = Some(name.clone()),
            Subject::Network(network) => line.address = Some(network.to_string()),
            Subject::ClientOfUser {
                client_id,
                username,
            } => {
                line.client_id = Some(client_id.clone());
                line.username = Some(username.clone());
            }
            Subject::ClientFrom { client_id, network } => {
                line.client_id = Some(client_id.clone());
                line.address = Some(network.to_string());
            }
        }
        line
    }

    fn into_ban(self) -> Result<Ban, String> {
        let network = |address: String| {
            let network = address.parse::<Network>();
            network.map_err(|error| format!("address {address:?}: {error}"))
        };
        let subject = match (self.client_id, self.username, self.address) {
            (Some(id), None, None) => Subject::ClientId(id),
            (None, Some(name), None) => Subject::Username(name),
            (None, None, Some(address)) => Subject::Network(network(address)?),
            (Some(client_id), Some(username), None) => Subject::ClientOfUser {
                client_id,
                username,
            },
            (Some(client_id), None, Some(address)) => {
                // The look-up is by the network of a client's site, never by a wider network.
                let network = network(address)?;
                let site = Network::of_client(network.address());
                if network != site && network != Network::of_address(network.address()) {
                    return Err(
                        "a client_id with an address takes one address, and no network".to_owned(),
                    );
                }
                Subject::ClientFrom {
                    client_id,
                    network: site,
                }
            }
            _ => {
                return Err(
                    "expected client_id, username or address, or client_id with one of the others"
                        .to_owned(),
                );
            }
        };
        Ok(Ban {
            subject,
            reason: self.reason,
            by: self.by,
            since: self.since,
            until: self.until,
            disconnects: self.disconnect.unwrap_or(true),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_values_read_back() {
        let subjects = [
            Subject::ClientId("meter-7".into()),
            Subject::Username("j\u{f6}".into()),
            Subject::Network("192.0.2.0/24".parse().unwrap()),
            Subject::Network("2001:db8::1".parse().unwrap()),
            Subject::ClientOfUser {
                client_id: "meter-7".into(),
                username: "jo".into(),
            },
            Subject::ClientFrom {
                client_id: "meter-7".into(),
                network: Network::of_client("2001:db8::1".parse().unwrap()),
            },
        ];
        let bans = subjects.map(|subject| Ban {
            subject,
            reason: "spreads \"noise\"\n".into(),
            by: "jo".into(),
            since: 1_790_000_000,
            until: Some(1_790_003_600),
            disconnects: false,
        });
        let mut text = Vec::new();
        BanList::from_iter(bans.clone())
            .write_to(&mut text)
            .unwrap();
        let read = BanList::parse(&String::from_utf8(text).unwrap()).unwrap();
        assert_eq!(read.sorted(), bans.iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_line_says_no_more_than_it_has_to() {
        let text = "{\"client_id\":\"a\",\"since\":0}\n";
        let list = BanList::parse("\n{\"client_id\":\"a\"}\n").unwrap();
        let mut written = Vec::new();
        list.write_to(&mut written).unwrap();
        assert_eq!(written, text.as_bytes());
        assert!(list.sorted()[0].disconnects);
    }

    #[test]
    fn a_wrong_line_is_named() {
        let combination =
            "expected client_id, username or address, or client_id with one of the others";
        for (text, line, expected) in [
            ("\n{}", 2, combination),
            (
                "{\"address\":\"192.0.2.1\",\"username\":\"b\"}",
                1,
                combination,
            ),
            (
                "{\"client_id\":\"a\",\"address\":\"192.0.2.0/24\"}",
                1,
                "a client_id with an address takes one address, and no network",
            ),
            (
                "{\"address\":\"here\"}",
                1,
                "address \"here\": expected an address such as 192.0.2.7 or 2001:db8::1, or a \
                 network such as 192.0.2.0/24",
            ),
            ("{\"clientid\":\"a\"}", 1, "unknown field `clientid`"),
            ("no", 1, "expected"),
        ] {
            let error = BanList::parse(text).unwrap_err();
            assert_eq!(error.line, line);
            assert!(error.what.starts_with(expected), "{error}");
        }
    }
}
