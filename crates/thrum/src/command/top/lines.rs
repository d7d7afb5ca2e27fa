//! A line for each interval.

use std::io::Write as _;
use std::time::Instant;

use thrum_figures::{bytes, count, fraction, rate};

use super::TopArgs;
use super::sample::{Look, Rates};
use crate::command::running::Broker;
use crate::command::shown::{NOTHING, now, time};

/// Prints lines until there are enough.
#[expect(
    clippy::disallowed_methods,
    reason = "rates are measured over the time between two looks"
)]
pub(super) fn run(args: &TopArgs, broker: &Broker) -> anyhow::Result<()> {
    let began = Instant::now();
    let mut before = Look::take(broker, began.elapsed(), None, "")?;
    let mut printed = 0;
    loop {
        std::thread::sleep(args.interval);
        let after = Look::take(broker, began.elapsed(), None, "")?;
        let line = line(&after, Rates::between(&before, &after));
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}  {line}", time(now()))?;
        out.flush()?;
        before = after;
        printed += 1;
        if args.lines.is_some_and(|lines| printed >= lines) {
            return Ok(());
        }
    }
}

fn line(look: &Look, rates: Option<Rates>) -> String {
    let status = &look.status;
    let shown = |value: fn(&Rates) -> f64| {
        rates
            .as_ref()
            .map_or_else(|| NOTHING.to_owned(), |rates| rate(value(rates)))
    };
    let memory = status.memory.resident_bytes;
    format!(
        "clients {}  in {}  out {}  dropped {}  subscriptions {}  retained {}  memory {}",
        count(status.clients_connected),
        shown(|rates| rates.received),
        shown(|rates| rates.sent),
        shown(|rates| rates.dropped),
        count(status.subscriptions),
        count(status.retained_messages),
        memory.map_or_else(|| NOTHING.to_owned(), |memory| bytes(fraction(memory)))
    )
}
