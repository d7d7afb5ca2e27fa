//! The arguments that all client commands share: target, credentials, will and properties.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args};
use thrum_codec::{QoS, Version};

use super::TlsArgs;

/// Target and credentials.
#[derive(Debug, Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ConnectionArgs {
    /// Show every packet on standard error
    #[arg(short, long)]
    pub(super) debug: bool,

    /// No warnings, and no errors except those of wrong usage
    #[arg(long)]
    pub(super) quiet: bool,

    /// Accepted for old scripts: small packets are never held back
    #[arg(long, hide = true)]
    nodelay: bool,

    /// Print help
    #[arg(long, action = ArgAction::Help)]
    help: Option<bool>,

    /// Host to connect to [default: localhost]; without a value, print this help
    #[arg(short = 'h', long, value_name = "HOST", help_heading = "Connection")]
    #[expect(
        clippy::option_option,
        reason = "absent, without a value, with one: how clap tells them apart"
    )]
    pub(super) host: Option<Option<String>>,

    /// Port to connect to [default: 1883; with TLS 8883, with --ws 80 or 443]
    #[arg(short, long, value_parser = clap::value_parser!(u16).range(1..), help_heading = "Connection")]
    pub(super) port: Option<u16>,

    /// Everything at once: `mqtt://[user[:password]@]host[:port]/topic`, the same with `mqtts:` and
    /// `quic:`; `ws://host/path`, `wss:`; `unix:///path`
    #[arg(short = 'L', long, value_name = "URL", conflicts_with_all = ["host", "port"], help_heading = "Connection")]
    pub(super) url: Option<String>,

    /// Connect through this Unix socket; -L may set its protocol, such as `ws://host/path`
    #[arg(long, value_name = "PATH", conflicts_with_all = ["host", "port", "bind_address"], help_heading = "Connection")]
    pub(super) unix: Option<PathBuf>,

    /// MQTT in a WebSocket, on the path /mqtt (-L has others)
    #[arg(long, conflicts_with = "url", help_heading = "Connection")]
    pub(super) ws: bool,

    /// Local address or host name to connect from
    #[arg(short = 'A', value_name = "ADDRESS", help_heading = "Connection")]
    pub(super) bind_address: Option<String>,

    /// Protocol version: 5, 311, 31 or mqttv5, mqttv311, mqttv31
    #[arg(short = 'V', long, value_name = "VERSION", value_parser = parse_version, help_heading = "Connection")]
    pub(super) protocol_version: Option<Version>,

    /// Seconds of silence after which the broker is pinged; 0 turns it off
    #[arg(
        short,
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "Connection"
    )]
    pub(super) keepalive: u16,

    #[command(flatten, next_help_heading = "TLS")]
    pub(super) tls: TlsArgs,

    /// Turn TLS on and trust the authorities of the system; without -L port 8883 and every other
    /// flag of TLS turn it on too
    #[arg(long, conflicts_with = "cafile", help_heading = "TLS")]
    pub(super) tls_use_os_certs: bool,

    /// Client identifier
    #[arg(
        short,
        long,
        allow_hyphen_values = true,
        conflicts_with = "id_prefix",
        help_heading = "Session"
    )]
    pub(super) id: Option<String>,

    /// Client identifier made of this and the number of the process
    #[arg(
        short = 'I',
        long,
        value_name = "PREFIX",
        allow_hyphen_values = true,
        help_heading = "Session"
    )]
    pub(super) id_prefix: Option<String>,

    /// Keep the session between connections; needs -i
    #[arg(short = 'c', long, help_heading = "Session")]
    pub(super) disable_clean_session: bool,

    /// Seconds that the broker keeps the session after the connection; -1 for ever (5.0)
    #[arg(
        short = 'x',
        long,
        value_name = "SECONDS",
        allow_hyphen_values = true,
        value_parser = parse_expiry,
        help_heading = "Session",
    )]
    pub(super) session_expiry_interval: Option<u32>,

    /// Most messages of QoS 1 and 2 that are under way at the same time [default: 20]
    #[arg(
        short = 'M',
        long,
        value_name = "COUNT",
        value_parser = clap::value_parser!(u16).range(1..),
        help_heading = "Session",
    )]
    pub(super) max_inflight: Option<u16>,

    /// User name
    #[arg(short, long, allow_hyphen_values = true, help_heading = "Credentials")]
    pub(super) username: Option<String>,

    /// Password; other users of this machine can see it, so rather use --password-file or
    /// `THRUM_PASSWORD`
    #[arg(
        short = 'P',
        long = "pw",
        value_name = "PASSWORD",
        allow_hyphen_values = true,
        help_heading = "Credentials"
    )]
    pub(super) password: Option<OsString>,

    /// File whose first line is the password
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "password",
        help_heading = "Credentials"
    )]
    pub(super) password_file: Option<PathBuf>,

    /// Prove the password to the broker and the broker to this client, without sending the password
    /// (SCRAM-SHA-256, 5.0)
    #[arg(long, help_heading = "Credentials")]
    pub(super) scram: bool,

    /// Property of a packet (5.0): PACKET PROPERTY VALUE, or PACKET user-property NAME VALUE; may
    /// be repeated
    #[arg(
        short = 'D',
        long = "property",
        num_args = 3..=4,
        value_names = ["PACKET", "PROPERTY", "VALUE"],
        action = ArgAction::Append,
        help_heading = "Properties",
    )]
    pub(super) properties: Vec<String>,

    /// Topic of the message that the broker publishes if this client disappears
    #[arg(long, value_name = "TOPIC", help_heading = "Will")]
    pub(super) will_topic: Option<String>,

    /// Payload of the will [default: empty]
    #[arg(
        long,
        value_name = "TEXT",
        allow_hyphen_values = true,
        requires = "will_topic",
        help_heading = "Will"
    )]
    pub(super) will_payload: Option<OsString>,

    /// QoS of the will
    #[arg(long, value_name = "QOS", value_parser = parse_qos, requires = "will_topic", help_heading = "Will")]
    pub(super) will_qos: Option<QoS>,

    /// The will is published as retained
    #[arg(long, requires = "will_topic", help_heading = "Will")]
    pub(super) will_retain: bool,
}

impl ConnectionArgs {
    /// As `-L` does.
    pub(crate) fn set_url(&mut self, url: String) {
        self.url = Some(url);
    }

    /// `-h` without a host.
    pub(crate) fn wants_help(&self) -> bool {
        matches!(self.host, Some(None))
    }

    /// No warnings and errors are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }
}

/// Reads 0, 1 or 2.
pub(crate) fn parse_qos(text: &str) -> Result<QoS, String> {
    let qos = text.parse().ok().and_then(QoS::from_u8);
    qos.ok_or_else(|| "must be 0, 1 or 2".to_owned())
}

fn parse_version(text: &str) -> Result<Version, String> {
    match text {
        "5" | "mqttv5" => Ok(Version::V5),
        "311" | "mqttv311" => Ok(Version::V311),
        "31" | "mqttv31" => Ok(Version::V31),
        _ => Err("must be 5, 311, 31, mqttv5, mqttv311 or mqttv31".to_owned()),
    }
}

fn parse_expiry(text: &str) -> Result<u32, String> {
    match text {
        "-1" | "∞" => Ok(u32::MAX),
        _ => text
            .parse()
            .map_err(|_| "must be a number of seconds, or -1 for ever".to_owned()),
    }
}
