//! `thrum bench relay`.

use std::io::Write as _;
use std::net::SocketAddr;

use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use thrum_bench::preflight;
use thrum_relay::{Relay, THREADS_MAX};

use super::complaint::{Complaint, FAILED, USAGE};

const EXAMPLES: &str = "\
Examples:
  thrum bench relay --listen 127.0.0.1:1884                  then, in another terminal:
  thrum bench run p2p-1K --target mqtt://127.0.0.1:1884
  thrum bench versus --brokers thrum,relay,mosquitto --scenario p2p-1K";

const ABOUT: &str = "\
Not a broker: it has no sessions, queues, windows, retained messages, wills or keep alive, and its route
is the number at the end of a topic, without the text before it. A filter without such a number, or with a
wildcard, gets everything. The difference in CPU to a broker is the cost of the broker's features.";

/// Arguments of `thrum bench relay`.
#[derive(Debug, Args)]
#[command(before_help = EXAMPLES, after_help = ABOUT, help_template = super::TEMPLATE)]
pub(super) struct RelayArgs {
    /// Address to accept MQTT over TCP; port 0 for a free one.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:1883", value_parser = address)]
    listen: SocketAddr,
    /// Threads, each with its own event loop and a part of the connections.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u16).range(1..=i64::from(THREADS_MAX)),
    )]
    threads: u16,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let form = "write an address and a port, like 127.0.0.1:1883 or [::1]:1883";
    text.parse().map_err(|_| form.to_owned())
}

/// Relays until a signal ends it.
pub(super) fn run(args: &RelayArgs) -> anyhow::Result<u8> {
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    preflight::raise_open_files(preflight::clients_max())
        .map_err(|error| Complaint::new(error, USAGE))?;
    let relay = Relay::start(args.listen, args.threads).map_err(|error| {
        let listen = args.listen;
        let cure = "end the program that listens there, or give another --listen";
        Complaint::usage(format!("cannot listen on {listen}: {error}; {cure}"))
    })?;
    let threads = match args.threads {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    };
    let address = relay.address();
    writeln!(
        std::io::stdout(),
        "reference relay, not a broker: mqtt://{address}, {threads}; ^C ends it"
    )?;
    signals.forever().next();
    let totals = relay.stop().map_err(|error| {
        Complaint::new(format!("the relay failed while it ran: {error}"), FAILED)
    })?;
    writeln!(std::io::stdout(), "{totals}")?;
    Ok(0)
}
