//! `thrum serve`: run a broker until a signal ends it.

mod announce;
mod host;
mod preflight;
mod reload;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, ValueEnum};
use thrum_broker::config::LogFormat;
use thrum_broker::config::units;

use super::Failure;
use crate::assemble;
use crate::config::{self, Request};
use crate::logging;
use announce::Start;
use host::Host;
use reload::Reload;
use signals::{Event, Signals};

const EXAMPLES: &str = "\
Examples:
  thrum serve --dev                        try things, on this machine only
  thrum serve                              with /etc/thrum/thrum.toml, if any
  thrum serve --data-dir /var/lib/thrum    sessions and retained messages survive a crash
  thrum serve -c thrum.toml --listen 127.0.0.1:1884
  THRUM_LIMITS__MAX_PACKET=2MB thrum serve

Signals: SIGTERM and SIGINT stop gracefully, SIGHUP reloads the configuration.";

const LOG_LEVEL: &str =
    "Log level: error, warn, info, debug or trace, also by module: info,thrum_broker=debug";

/// Arguments of `thrum serve`.
#[derive(Debug, Default, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// For experiments: every client that reaches it may connect, it listens on port 1883 of this
    /// machine's loopback addresses unless told otherwise, and no file is read unless named.
    #[arg(long)]
    dev: bool,
    /// The file to read, instead of /etc/thrum/thrum.toml; conf.d/*.toml beside it is read after
    /// it. A mosquitto.conf is accepted as well.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port to listen on, or a port for all addresses; may be given more than once.
    #[arg(long, value_name = "ADDRESS", value_parser = parse_listen)]
    listen: Vec<Listen>,
    /// Folder for the state that must survive a restart: durable sessions and retained messages.
    /// Without one, nothing is kept on disk.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Worker threads: a number, or auto for one per core.
    #[arg(long, value_name = "N")]
    workers: Option<String>,
    /// Stamp one of N messages on its way through the broker, for the report of thrum bench.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    stamp_messages: Option<u32>,
    /// Log level: error, warn, info, debug or trace, also by module.
    #[arg(long, value_name = "LEVEL", long_help = LOG_LEVEL)]
    log_level: Option<String>,
    /// Form of a log line; with json nothing else is printed.
    #[arg(long, value_name = "FORMAT", value_enum)]
    log_format: Option<Format>,
}

/// Form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Addresses of one `--listen`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listen(Vec<SocketAddr>);

/// Runs a broker until a signal ends it.
#[expect(
    clippy::disallowed_methods,
    reason = "times the start of the program for its first line"
)]
pub(crate) fn run(args: &ServeArgs) -> anyhow::Result<ExitCode> {
    let began = Instant::now();
    let request = args.request();
    let mut loaded = config::load(&request).map_err(Failure::usage)?;
    let level = logging::init(&loaded.config.log).map_err(Failure::usage)?;
    if let Some(report) = &loaded.imported {
        announce::imported(report, loaded.config.log.format)?;
    }
    let signals = Signals::new()?;
    let prepared = assemble::prepare(&loaded.config).map_err(Failure::usage)?;
    let host = Host::new(&loaded).map_err(Failure::usage)?;
    host.fit(&mut loaded);
    let mut broker =
        assemble::start(&mut loaded, prepared).map_err(|error| Failure::caused(error.as_ref()))?;
    let addresses = broker.addresses();
    let start = Start {
        config: &loaded.config,
        addresses: &addresses,
        has_users: broker.has_users(),
        setup_link: broker.setup_link(),
        dev: args.dev,
    };
    match loaded.config.log.format {
        LogFormat::Text => start.print(began.elapsed())?,
        LogFormat::Json => start.log(began.elapsed()),
    }
    let mut reload = Reload::new(request, host, loaded.config, level);
    signals.serve(reload.look_interval(), |event| {
        match event {
            Event::Reload => reload.run(&mut broker),
            Event::Quiet => broker.look_at_certificates(),
        }
        reload.look_interval()
    });
    broker.stop();
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

impl ServeArgs {
    fn request(&self) -> Request {
        let mut flags = Vec::new();
        if !self.listen.is_empty() {
            let addresses: Vec<String> = self
                .listen
                .iter()
                .flat_map(|Listen(addresses)| addresses)
                .map(|address| format!("{:?}", address.to_string()))
                .collect();
            let list = format!("[{}]", addresses.join(", "));
            flags.push(("listeners.mqtt.bind", list, "--listen"));
        }
        let mut set = |key, value: Option<String>, flag| {
            flags.extend(value.map(|value| (key, value, flag)));
        };
        let data_dir = self.data_dir.as_ref();
        set(
            "node.data_dir",
            data_dir.map(|path| path.to_string_lossy().into_owned()),
            "--data-dir",
        );
        set("node.workers", self.workers.clone(), "--workers");
        set(
            "node.stamp_messages",
            self.stamp_messages.map(|every| every.to_string()),
            "--stamp-messages",
        );
        set("log.level", self.log_level.clone(), "--log-level");
        let format = self.log_format.map(|format| match format {
            Format::Text => "text".to_owned(),
            Format::Json => "json".to_owned(),
        });
        set("log.format", format, "--log-format");
        Request {
            file: self.config.clone(),
            dev: self.dev,
            flags,
        }
    }
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    let expected = "expected address:port, such as 127.0.0.1:1883 or [::1]:1883, or a port";
    units::parse_bind(text)
        .map(Listen)
        .ok_or_else(|| expected.to_owned())
}
