//! The target of a command and its transport, from its arguments.

use std::path::PathBuf;

use thrum_transport::{ConnectorError, Endpoint, Scheme, TlsOptions};

use super::url::{Url, localhost};
use super::{ConnectionArgs, Stop};

/// The registered port of MQTT over TLS: naming it turns TLS on, as with the mosquitto commands.
const TLS_PORT: u16 = 8883;

/// Target, source and protocol of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// Host and port, unless there is a Unix socket; the name of the server in any case.
    pub(super) endpoint: Endpoint,
    /// Socket of this machine, in place of host and port.
    pub(super) unix: Option<PathBuf>,
    /// Trust in the server, and the client's own certificate.
    pub(super) tls: TlsOptions,
    pub(super) bind_address: Option<String>,
}

impl Target {
    /// Combines the arguments; returns the topic of `-L` as well.
    ///
    /// # Errors
    /// Arguments that contradict each other, a URL that is none.
    pub(super) fn new(args: &ConnectionArgs) -> Result<(Self, Option<String>), Stop> {
        let url = match (&args.url, &args.unix) {
            (Some(url), _) => Url::parse(url)?,
            (None, Some(_)) => Url {
                endpoint: localhost(scheme(args))?,
                unix: None,
                topic: None,
            },
            (None, None) => Url {
                endpoint: host(args)?,
                unix: None,
                topic: None,
            },
        };
        if url.unix.is_some() && args.unix.is_some() {
            return Err(Stop::usage(
                "two Unix sockets: give one, with --unix or with -L",
            ));
        }
        let target = Self {
            endpoint: url.endpoint,
            unix: url.unix.or_else(|| args.unix.clone()),
            tls: args.tls.options(),
            bind_address: args.bind_address.clone(),
        };
        target.check(args)?;
        Ok((target, url.topic))
    }

    fn check(&self, args: &ConnectionArgs) -> Result<(), Stop> {
        let scheme = self.endpoint.scheme;
        if !scheme.is_tls() && wants_tls(args) {
            return Err(Stop::usage(ConnectorError::NoTls(self.place()).to_string()));
        }
        if self.unix.is_none() {
            return Ok(());
        }
        if scheme.is_quic() {
            return Err(Stop::usage(
                "QUIC goes over UDP, not through a Unix socket: leave out --unix",
            ));
        }
        if self.bind_address.is_some() {
            return Err(Stop::usage(
                "a Unix socket is reached from no address: leave out -A",
            ));
        }
        Ok(())
    }

    /// As it is shown.
    pub(super) fn place(&self) -> String {
        let endpoint = &self.endpoint;
        match &self.unix {
            None => endpoint.to_string(),
            Some(path) if endpoint.scheme == Scheme::Mqtt => format!("unix:{}", path.display()),
            Some(path) => format!("{endpoint} at unix:{}", path.display()),
        }
    }
}

/// Host and port without a URL.
fn host(args: &ConnectionArgs) -> Result<Endpoint, Stop> {
    let host = match &args.host {
        Some(Some(host)) => host.as_str(),
        Some(None) | None => "localhost",
    };
    let endpoint = Endpoint::new(scheme(args), host, args.port);
    endpoint.map_err(|error| Stop::usage(format!("-h: {error}; -L takes a whole URL")))
}

/// Protocol without a URL.
fn scheme(args: &ConnectionArgs) -> Scheme {
    match (args.ws, wants_tls(args) || args.port == Some(TLS_PORT)) {
        (false, false) => Scheme::Mqtt,
        (false, true) => Scheme::Mqtts,
        (true, false) => Scheme::Ws,
        (true, true) => Scheme::Wss,
    }
}

fn wants_tls(args: &ConnectionArgs) -> bool {
    args.tls.is_any() || args.tls_use_os_certs
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        connection: ConnectionArgs,
    }

    fn target(line: &str) -> Result<Target, Stop> {
        let words = std::iter::once("x").chain(line.split_whitespace());
        let args = Line::try_parse_from(words).unwrap().connection;
        Target::new(&args).map(|(target, _)| target)
    }

    #[track_caller]
    fn check(line: &str, place: &str) {
        assert_eq!(target(line).unwrap().place(), place, "{line}");
    }

    #[test]
    fn without_a_url_the_flags_select_the_protocol() {
        check("", "mqtt://localhost:1883");
        check("-h ::1 -p 1884", "mqtt://[::1]:1884");
        check("-h h --cafile ca.pem", "mqtts://h:8883");
        check("-h h -p 1 --cert c --key k", "mqtts://h:1");
        check("-h h --tls-use-os-certs", "mqtts://h:8883");
        check("-h h -p 8883", "mqtts://h:8883");
        check("--tls-version tlsv1.2", "mqtts://localhost:8883");
        check("--ws -p 8083", "ws://localhost:8083/mqtt");
        check("--ws --insecure", "wss://localhost:443/mqtt");
    }

    #[test]
    fn a_url_selects_the_protocol() {
        check("-L mqtt://h:8883", "mqtt://h:8883");
        check("-L wss://h/a --cafile ca.pem", "wss://h:443/a");
        let trusting = target("-L quic://h/t --cafile ca.pem --server-name n --alpn x").unwrap();
        assert_eq!(trusting.tls.ca_file, Some("ca.pem".into()));
        assert_eq!(trusting.tls.server_name.as_deref(), Some("n"));
        assert_eq!(trusting.tls.alpn.as_deref(), Some("x"));
    }

    #[test]
    fn a_unix_socket_takes_the_place_of_host_and_port() {
        check("--unix /run/a.sock", "unix:/run/a.sock");
        check("-L unix:///run/a.sock", "unix:/run/a.sock");
        let secure = "mqtts://h:8883 at unix:/a.sock";
        check("--unix /a.sock -L mqtts://h", secure);
        check("--unix a --ws", "ws://localhost:80/mqtt at unix:a");
        check("--unix a --insecure", "mqtts://localhost:8883 at unix:a");
    }

    #[test]
    fn arguments_that_contradict_each_other_are_refused() {
        for (line, words) in [
            ("-L mqtt://h --cafile ca.pem", "mqtt://h:1883 has no TLS"),
            ("-L ws://h --tls-use-os-certs", "has no TLS"),
            ("-L unix:/a --insecure", "unix:/a has no TLS"),
            ("-L unix:/a --unix /b", "two Unix sockets"),
            ("-L quic://h --unix /b", "QUIC goes over UDP"),
            ("-L unix:/a -A 127.0.0.1", "leave out -A"),
            ("-h mqtt://h", "-L takes a whole URL"),
        ] {
            let stop = target(line).unwrap_err();
            assert_eq!(stop.code, 2, "{line}");
            assert!(stop.message.contains(words), "{}", stop.message);
        }
    }
}
