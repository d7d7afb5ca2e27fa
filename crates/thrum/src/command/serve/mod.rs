//! `thrum serve`: run a broker until a signal ends it.

mod announce;
#[cfg(all(feature = "bench", feature = "management"))]
mod benchmarks;
#[cfg(all(not(feature = "bench"), feature = "management"))]
#[path = "benchmarks_left_out.rs"]
mod benchmarks;
#[cfg(feature = "management")]
mod configuring;
mod host;
mod preflight;
#[cfg(feature = "management")]
mod program;
mod reload;
mod signals;
mod tasks;
#[cfg(feature = "management")]
mod versions;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use thrum_broker::config::LogFormat;
use thrum_broker::config::units;

use super::Failure;
use super::backup::finish_restore;
use crate::assemble;
use crate::config::{self, Config, Request};
use crate::logging;
use announce::Start;
#[cfg(feature = "management")]
pub(crate) use benchmarks::HostedBenchmarks;
use host::Host;
#[cfg(feature = "management")]
pub(crate) use program::Operated;
use reload::Reload;
pub(crate) use reload::needs_restart;
use signals::{Event, Signals};
pub(crate) use tasks::{Around, Serving};

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
    // A part of the configuration is in there, and the old one may be damaged.
    let given = config::Given::read(&request).map_err(Failure::usage)?;
    finish_restore(&given.data_dir(&request))?;
    let mut loaded = given.load(&request).map_err(Failure::usage)?;
    if let Some(unread) = &loaded.unread {
        return Err(Failure::usage(format!(
            "{unread}, and the keys set with thrum config set are in it; give the file to the user of the broker"
        )));
    }
    let log = logging::init(&loaded.config.log).map_err(Failure::usage)?;
    let _ending = log.ending;
    let level = log.level;
    if let Some(report) = &loaded.imported {
        announce::imported(report, loaded.config.log.format)?;
    }
    let signals = Signals::new()?;
    let prepared = assemble::prepare(&loaded.config).map_err(Failure::usage)?;
    let host = Host::new(&loaded).map_err(Failure::usage)?;
    host.fit(&mut loaded);
    #[cfg(feature = "management")]
    let around = Around {
        ask: signals.ask(),
        level: level.clone(),
    };
    #[cfg(not(feature = "management"))]
    let around = Around;
    let broker = assemble::start(&mut loaded, prepared, &around)
        .map_err(|error| Failure::caused(error.as_ref()))?;
    let addresses = broker.addresses();
    let start = Start {
        config: &loaded.config,
        addresses: &addresses,
        has_users: broker.has_users(),
        has_only_an_empty_store: broker.has_only_an_empty_store(),
        setup_link: broker.setup_link(),
        dev: args.dev,
    };
    match loaded.config.log.format {
        LogFormat::Text => start.print(began.elapsed())?,
        LogFormat::Json => start.log(began.elapsed()),
    }
    let mut serving = Serving {
        broker,
        reload: Reload::new(request, host, loaded, level),
    };
    let mut due = Due::default();
    let pause = due.pause(&serving, began.elapsed());
    signals.serve(pause, |event| {
        match event {
            Event::Reload => drop(serving.reload.run(&mut serving.broker)),
            #[cfg(feature = "management")]
            Event::Task(task) => task.run(&mut serving),
            Event::Quiet => {}
        }
        due.look(&mut serving, began.elapsed());
        due.pause(&serving, began.elapsed())
    });
    serving.broker.stop();
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

/// Alarms are looked at at this interval: often enough for a person, and no more wake-ups than
/// `$SYS` has.
const ALARM_INTERVAL: Duration = Duration::from_secs(10);

/// When files and alarms were looked at last, as times since the start.
#[derive(Debug, Default)]
struct Due {
    certificates: Duration,
    alarms: Duration,
    /// The last reload had failed then.
    has_failed: bool,
}

impl Due {
    /// Does what is due, however many signals and tasks have arrived meanwhile.
    fn look(&mut self, serving: &mut Serving, now: Duration) {
        let interval = serving.reload.look_interval();
        if !interval.is_zero() && now >= self.certificates + interval {
            self.certificates = now;
            serving.broker.look_at_certificates();
        }
        let has_failed = serving.reload.failure.is_some();
        let is_due = now >= self.alarms + ALARM_INTERVAL || has_failed != self.has_failed;
        if serving.broker.has_alarms() && is_due {
            (self.alarms, self.has_failed) = (now, has_failed);
            serving.reload.look_at_alarms(&serving.broker);
        }
    }

    /// Time until something is due; zero if nothing ever is.
    fn pause(&self, serving: &Serving, now: Duration) -> Duration {
        let interval = serving.reload.look_interval();
        let certificates = (!interval.is_zero()).then_some(self.certificates + interval);
        let alarms = self.alarms + ALARM_INTERVAL;
        let alarms = serving.broker.has_alarms().then_some(alarms);
        let next = certificates.into_iter().chain(alarms).min();
        let pause = next.map(|next| next.saturating_sub(now));
        // Zero would wait without a limit.
        pause.map_or(Duration::ZERO, |pause| pause.max(Duration::from_millis(1)))
    }
}

/// Tries every address of a configuration for a moment; `optional` names a listener that the broker
/// starts without.
///
/// # Errors
/// The addresses that cannot be listened on, as text.
pub(super) fn try_addresses(config: &Config, optional: Option<&str>) -> Result<(), String> {
    let tried = preflight::check(config, optional);
    tried.map(drop).map_err(|refused| refused.to_string())
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
            data_dir: None,
        }
    }
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    let expected = "expected address:port, such as 127.0.0.1:1883 or [::1]:1883, or a port";
    units::parse_bind(text)
        .map(Listen)
        .ok_or_else(|| expected.to_owned())
}
