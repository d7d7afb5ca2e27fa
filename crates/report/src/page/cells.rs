//! The cells of a row.

use std::fmt::Write as _;

use super::{Columns, PageRow};
use crate::metric::{Better, Unit};
use crate::versus::{Column, VersusBroker, counted};
use thrum_figures::latency;

const fn column(name: &'static str, unit: Unit, metric: &'static str) -> Column {
    Column {
        name,
        unit,
        better: Better::Neither,
        chart: false,
        metric,
    }
}

const MESSAGES: [Column; 8] = [
    column("received", Unit::PerSecond, "rate.received"),
    column("p50", Unit::Nanoseconds, "e2e.p50"),
    column("p99", Unit::Nanoseconds, "e2e.p99"),
    column("mean", Unit::Nanoseconds, "e2e.mean"),
    column(
        "CPU per message",
        Unit::Microseconds,
        "broker.cpu_per_message",
    ),
    column("cores", Unit::Cores, "broker.cores"),
    PER_CONNECTION,
    KERNEL,
];

const CONNECTIONS: [Column; 7] = [
    column("connected", Unit::PerSecond, "connect.rate"),
    column("connect p50", Unit::Nanoseconds, "connect.p50"),
    column("connect p99", Unit::Nanoseconds, "connect.p99"),
    column("cores", Unit::Cores, "broker.cores"),
    column("most memory", Unit::Bytes, "broker.rss"),
    PER_CONNECTION,
    KERNEL,
];

const PER_CONNECTION: Column = column(
    "memory per connection",
    Unit::Bytes,
    "broker.bytes_per_connection",
);

const KERNEL: Column = column(
    "kernel memory per connection",
    Unit::Bytes,
    "machine.kernel_bytes_per_connection",
);

const AVAILABILITY: [Column; 9] = [
    column("delivered", Unit::Share, "delivered"),
    column("lost", Unit::Count, "lost"),
    column("twice", Unit::Count, "duplicated"),
    column("out of order", Unit::Count, "reordered"),
    column("p50", Unit::Nanoseconds, "e2e.p50"),
    column("p99", Unit::Nanoseconds, "e2e.p99"),
    column("connections lost", Unit::Count, "connections.lost"),
    column("back p50", Unit::Nanoseconds, "reconnect.p50"),
    column("back p99", Unit::Nanoseconds, "reconnect.p99"),
];

/// The figures of a table.
pub(super) fn columns(columns: Columns, connections_only: bool) -> Vec<Column> {
    match (columns, connections_only) {
        (Columns::Availability, _) => AVAILABILITY.to_vec(),
        (Columns::Load, true) => CONNECTIONS.to_vec(),
        (Columns::Load, false) => MESSAGES.to_vec(),
    }
}

/// Its first line.
pub(super) fn headings(columns: &[Column]) -> Vec<String> {
    let names = columns.iter().map(|column| column.name);
    let names = ["scenario", "broker"].into_iter().chain(names);
    names
        .chain(["rounds", "promises"])
        .map(str::to_owned)
        .collect()
}

/// A broker in a scenario.
pub(super) fn row(row: &PageRow, broker: &VersusBroker, columns: &[Column]) -> Vec<String> {
    let mut cells = vec![row.label.clone(), broker.name.clone()];
    cells.extend(columns.iter().map(|column| cell(broker, column)));
    let (valid, all) = broker.valid();
    let mut rounds = if broker.is_void() {
        format!("INVALID, {all} of {all}")
    } else {
        format!("{valid} of {all} VALID")
    };
    match row.failures_of(broker) {
        0 => {}
        number => {
            write!(rounds, ", {number} without figures").ok();
        }
    }
    let (passed, all) = broker.passed();
    cells.extend([rounds, format!("{passed} of {all}")]);
    cells
}

/// `90µs (≤ 20µs) [80µs..110µs]`.
fn cell(broker: &VersusBroker, column: &Column) -> String {
    let Some(spread) = column.spread(broker) else {
        let runs = counted(&broker.runs, |run| run.validity.valid);
        let is_withheld = runs.iter().any(|run| run.withholds(column.metric));
        return if is_withheld { "withheld" } else { "–" }.to_owned();
    };
    let mut text = spread.text(column.unit);
    if let Some(bound) = column.bound(broker) {
        write!(text, " (≤ {})", latency(bound)).ok();
    }
    let range = spread.range_text(column.unit);
    if !range.is_empty() {
        write!(text, " {range}").ok();
    }
    let rounds = counted(&broker.runs, |run| run.validity.valid).len();
    if spread.rounds < rounds {
        write!(text, " ({} of {rounds})", spread.rounds).ok();
    }
    text
}
