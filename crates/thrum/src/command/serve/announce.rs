//! The start-up message of a broker: its addresses, its mode, and a first command to try.

use std::fmt::{self, Write as _};
use std::io::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use thrum_auth::config::Anonymous;
use thrum_broker::Listening;
use thrum_broker::config::{Bind, Durability, LogFormat};
use thrum_migrate::mosquitto::Report;

use crate::command::version::VERSION;
use crate::config::Config;

/// Port that the clients take by themselves.
const DEFAULT_PORT: u16 = 1883;

/// A broker that has just started.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// The settings in force.
    pub(super) config: &'a Config,
    /// Listener names and their real addresses.
    pub(super) addresses: &'a [Listening],
    /// Users or backends are set up.
    pub(super) has_users: bool,
    /// A user store without a user is all that is set up.
    pub(super) has_only_an_empty_store: bool,
    /// Makes the first administrator, relative to the address of an HTTP listener.
    pub(super) setup_link: Option<String>,
    /// Started with `--dev`.
    pub(super) dev: bool,
}

/// Reports the result of the import of a configuration of mosquitto: on the terminal all of it, to
/// the log what needs a look.
pub(super) fn imported(report: &Report, format: LogFormat) -> std::io::Result<()> {
    match format {
        LogFormat::Text => write!(std::io::stderr(), "{report}"),
        LogFormat::Json => {
            for warning in report.warnings() {
                tracing::warn!(%warning, "configuration of mosquitto");
            }
            Ok(())
        }
    }
}

impl Start<'_> {
    /// Prints it for people.
    pub(super) fn print(&self, took: Duration) -> std::io::Result<()> {
        std::io::stdout().write_all(self.text(took).as_bytes())
    }

    /// Logs it for machines.
    pub(super) fn log(&self, took: Duration) {
        for address in self.addresses {
            tracing::info!(listener = %address.listener, %address, "listening");
        }
        if let (Some(address), Some(link)) = (self.http().next(), &self.setup_link) {
            let link = format!("{address}/{link}");
            tracing::warn!(link, "there is no administrator: the link makes one, once");
        }
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        tracing::info!(
            version = VERSION,
            node = %self.config.node.name,
            mode = self.mode(),
            start_ms = millis,
            "ready"
        );
    }

    fn text(&self, took: Duration) -> String {
        let mut text = String::new();
        self.write(&mut text, took)
            .expect("writing to a String does not fail");
        text
    }

    fn write(&self, text: &mut String, took: Duration) -> fmt::Result {
        let name = match self.config.node.name.as_str() {
            "thrum" => String::new(),
            name => format!(" ({name})"),
        };
        writeln!(
            text,
            "thrum {VERSION}{name} ready in {} ms",
            took.as_millis().max(1)
        )?;
        let mqtt = self.addresses.iter().filter(|one| !is_http(one));
        for (number, address) in mqtt.enumerate() {
            let label = if number == 0 { "Listening" } else { "" };
            writeln!(text, "  {label:<9}  {address}  ({})", address.listener)?;
        }
        for (number, address) in self.http().enumerate() {
            let label = if number == 0 { "Dashboard" } else { "" };
            write!(text, "  {label:<9}  {address}/")?;
            match self.setup_link.as_ref().filter(|_| number == 0) {
                Some(link) => writeln!(text, "{link}  (works once: choose a password)")?,
                None => writeln!(text)?,
            }
        }
        writeln!(text, "  Mode       {}", self.mode())?;
        if let Some(target) = self.target() {
            let user = if self.needs_user() {
                " -u NAME --password-file FILE"
            } else {
                ""
            };
            writeln!(text, "  Try        thrum sub{target}{user} -t '#' -v")?;
            writeln!(
                text,
                "             thrum pub{target}{user} -t hello -m world"
            )?;
            if cfg!(feature = "management") {
                writeln!(text, "             {}", self.status())?;
            }
        }
        Ok(())
    }

    /// How this broker is asked: commands reach it by the control socket in its data directory.
    fn status(&self) -> String {
        let data_dir = &self.config.node.data_dir;
        if data_dir.as_os_str().is_empty() {
            let dev = if self.dev { " --dev" } else { "" };
            return format!(
                "thrum status --data-dir DIR  (of a broker that was started with thrum serve{dev} --data-dir DIR)"
            );
        }
        format!("thrum status --data-dir {}", data_dir.display())
    }

    /// Addresses of the management interface.
    fn http(&self) -> impl Iterator<Item = &Listening> {
        self.addresses.iter().filter(|one| is_http(one))
    }

    fn mode(&self) -> String {
        let who = match (self.dev, self.config.auth.anonymous, self.has_users) {
            (true, ..) => "dev: every client that reaches it may connect",
            (false, Anonymous::Allow, false) => "every client that reaches it may connect",
            (false, Anonymous::Allow, true) => {
                "users may connect, and others too (auth.anonymous = true)"
            }
            (false, Anonymous::Loopback, false) => {
                "clients of this machine may connect (for others: thrum users add NAME)"
            }
            (false, Anonymous::Loopback, true) => {
                "users may connect, and clients of this machine (auth.anonymous = \"loopback\")"
            }
            (false, Anonymous::Deny, false) => {
                "no client can connect: there are no users (thrum users add NAME)"
            }
            (false, Anonymous::Deny, true) => "users may connect",
        };
        let nothing = if self.has_only_an_empty_store && !self.dev {
            "; no user exists any more, and without a rule acl.default decides what clients may do (remove users.jsonl to begin anew)"
        } else {
            ""
        };
        format!("{who}{nothing}, {}", self.kept())
    }

    /// Without rules for anonymous clients, a node with users denies them everything.
    fn needs_user(&self) -> bool {
        self.has_users && !self.dev
    }

    fn kept(&self) -> String {
        let data_dir = &self.config.node.data_dir;
        let durability = self.config.storage.durability;
        if data_dir.as_os_str().is_empty() || durability == Durability::Memory {
            return "nothing is kept on disk".to_owned();
        }
        let safe = match durability {
            Durability::Fsync => "",
            Durability::Os | Durability::Memory => " (without fsync)",
        };
        format!("state is kept in {}{safe}", data_dir.display())
    }

    /// Options that lead a client on this machine here; nothing where its defaults do. None if it
    /// would need certificates.
    fn target(&self) -> Option<String> {
        self.tcp()
            .or_else(|| self.unix())
            .or_else(|| self.websocket())
    }

    fn unix(&self) -> Option<String> {
        let plain = self.addresses.iter().filter(|one| one.scheme == "mqtt");
        let mut paths = plain.filter_map(|one| match &one.address {
            Bind::Unix(path) => Some(path),
            Bind::Address(_) => None,
        });
        Some(format!(" --unix {}", paths.next()?.display()))
    }

    fn websocket(&self) -> Option<String> {
        let mut plain = self.addresses.iter().filter(|one| one.scheme == "ws");
        let (address, path) = plain.find_map(|one| Some((one.socket_address()?, &one.path)))?;
        let port = address.port();
        Some(match address.ip() {
            ip if ip.is_unspecified() => format!(" -L ws://localhost:{port}{path}"),
            _ => format!(" -L ws://{address}{path}"),
        })
    }

    fn tcp(&self) -> Option<String> {
        let reach = |address: &SocketAddr| match address.ip() {
            ip if ip.is_loopback() || ip.is_unspecified() => 0,
            _ => 1,
        };
        let plain = self.addresses.iter().filter(|one| one.scheme == "mqtt");
        let addresses = plain.filter_map(|one| match &one.address {
            Bind::Address(address) => Some(address),
            Bind::Unix(_) => None,
        });
        let address = addresses.min_by_key(|address| (reach(address), address.is_ipv6()))?;
        let host = match address.ip() {
            ip if reach(address) == 1 => Some(ip.to_string()),
            IpAddr::V6(ip) => ip.is_loopback().then(|| ip.to_string()),
            IpAddr::V4(_) => None,
        };
        let host = host.map_or_else(String::new, |host| format!(" -h {host}"));
        let port = match address.port() {
            DEFAULT_PORT => String::new(),
            port => format!(" -p {port}"),
        };
        Some(host + &port)
    }
}

fn is_http(listening: &Listening) -> bool {
    matches!(listening.scheme, "http" | "https")
}

#[cfg(test)]
mod tests {
    use thrum_broker::config::{ListenerConfig, Transport};

    use super::*;

    fn check(addresses: &[&str], (dev, has_users): (bool, bool), expected: &str) {
        let config = ListenerConfig::default();
        let bind = |address: &&str| Bind::Address(address.parse().unwrap());
        let addresses: Vec<Listening> = addresses
            .iter()
            .map(|address| Listening::new("mqtt", &config, &bind(address)))
            .collect();
        let start = Start {
            config: &Config::default(),
            addresses: &addresses,
            has_users,
            has_only_an_empty_store: false,
            setup_link: None,
            dev,
        };
        let status = if cfg!(feature = "management") {
            format!("             {}\n", start.status())
        } else {
            String::new()
        };
        let expected = expected.replace("VERSION", VERSION);
        let expected = expected.replace("STATUS", &status);
        assert_eq!(start.text(Duration::from_millis(12)), expected);
    }

    #[test]
    fn dev_mode_announces_its_address_and_commands_to_try() {
        check(
            &["127.0.0.1:1883", "[::1]:1883"],
            (true, false),
            "\
thrum VERSION ready in 12 ms
  Listening  mqtt://127.0.0.1:1883  (mqtt)
             mqtt://[::1]:1883  (mqtt)
  Mode       dev: every client that reaches it may connect, nothing is kept on disk
  Try        thrum sub -t '#' -v
             thrum pub -t hello -m world
STATUS",
        );
    }

    #[test]
    fn commands_to_try_name_the_host_and_port_where_they_must() {
        check(
            &["10.0.0.5:2883"],
            (false, false),
            "\
thrum VERSION ready in 12 ms
  Listening  mqtt://10.0.0.5:2883  (mqtt)
  Mode       clients of this machine may connect (for others: thrum users add NAME), nothing is kept on disk
  Try        thrum sub -h 10.0.0.5 -p 2883 -t '#' -v
             thrum pub -h 10.0.0.5 -p 2883 -t hello -m world
STATUS",
        );
    }

    #[test]
    fn a_broker_is_asked_at_its_data_directory_and_without_one_not_at_all() {
        let status = |data_dir: &str| {
            let mut config = Config::default();
            config.node.data_dir = data_dir.into();
            Start {
                config: &config,
                addresses: &[],
                has_users: false,
                has_only_an_empty_store: false,
                setup_link: None,
                dev: true,
            }
            .status()
        };
        assert_eq!(status("d"), "thrum status --data-dir d");
        let without = status("");
        assert!(
            without.ends_with("with thrum serve --dev --data-dir DIR)"),
            "{without}"
        );
    }

    #[test]
    fn a_store_whose_last_user_was_removed_is_announced() {
        let mode = |dev| {
            Start {
                config: &Config::default(),
                addresses: &[],
                has_users: true,
                has_only_an_empty_store: true,
                setup_link: None,
                dev,
            }
            .mode()
        };
        let said = mode(false);
        assert!(
            said.contains("acl.default decides what clients may do (remove users.jsonl"),
            "{said}"
        );
        assert!(!mode(true).contains("nothing until"));
    }

    #[test]
    fn commands_to_try_use_the_existing_listeners() {
        let listening = |transport, bind| {
            let config = ListenerConfig {
                transport,
                ..ListenerConfig::default()
            };
            Listening::new("one", &config, &bind)
        };
        let web = |address: &str| {
            let address = Bind::Address(address.parse().unwrap());
            listening(Transport::WebSocket, address)
        };
        let unix = listening(Transport::Tcp, Bind::Unix("/run/thrum.sock".into()));
        for (addresses, target) in [
            (vec![web("0.0.0.0:8083")], " -L ws://localhost:8083/mqtt"),
            (vec![web("[::1]:8083")], " -L ws://[::1]:8083/mqtt"),
            (vec![web("[::1]:8083"), unix], " --unix /run/thrum.sock"),
        ] {
            let start = Start {
                config: &Config::default(),
                addresses: &addresses,
                has_users: false,
                has_only_an_empty_store: false,
                setup_link: None,
                dev: false,
            };
            assert_eq!(start.target().as_deref(), Some(target));
        }
    }

    #[test]
    fn with_users_the_announcement_says_how_to_connect() {
        check(
            &["127.0.0.1:1883"],
            (false, true),
            "\
thrum VERSION ready in 12 ms
  Listening  mqtt://127.0.0.1:1883  (mqtt)
  Mode       users may connect, and clients of this machine (auth.anonymous = \"loopback\"), nothing is kept on disk
  Try        thrum sub -u NAME --password-file FILE -t '#' -v
             thrum pub -u NAME --password-file FILE -t hello -m world
STATUS",
        );
    }
}
