//! The lines under RESULTS.

use std::fmt::Write as _;
use std::time::Duration;

use super::is_without_figures;
use crate::result::{Agent, Broker, Distribution, RunResult, Usage};
use crate::stages::stage_lines;
use thrum_figures::{bytes, count, figure, fraction, latency, percent, rate, span};

/// The subject and the text of each line.
pub(crate) fn result_lines(run: &RunResult) -> Vec<(String, String)> {
    let latencies = &run.latency_ns;
    let mut lines = Vec::new();
    let mut add = |subject: &str, text: Option<String>| {
        lines.extend(text.map(|text| (subject.to_owned(), text)));
    };
    let rows = |subject: &str, name: &str, all: &[&str]| -> Vec<(String, String)> {
        let found = latencies.find(name);
        found.map_or_else(Vec::new, |found| latency_rows(subject, found, all))
    };
    let has_figures = run.has_load() && !is_without_figures(run);
    if has_figures {
        add("rate", Some(rate_text(run)));
        lines.extend(rows("e2e", "e2e", &FIGURES));
        lines.extend(rows("service", "service", &FIGURES));
        if latencies.e2e.is_none() {
            lines.extend(rows("response", "publish_response", &FIGURES));
        }
        lines.extend(rows("ack", "publish_ack", &FIGURES));
    }
    let is_main = latencies.e2e.is_none() && latencies.publish_ack.is_none();
    let figures: &[&str] = if is_main { &FIGURES } else { &FEW_FIGURES };
    if has_figures {
        lines.extend(stage_lines(run));
    }
    lines.extend(rows("connect", "connect", figures));
    lines.extend(rows("subscribe", "subscribe", &FEW_FIGURES));
    lines.extend(rows("reconnect", "reconnect", &FEW_FIGURES));
    let mut add = |subject: &str, text: Option<String>| {
        lines.extend(text.map(|text| (subject.to_owned(), text)));
    };
    add("clients", Some(clients_text(run)));
    if has_figures {
        add("delivery", Some(delivery_text(run)));
    }
    if run.brokers.is_empty() {
        let text = "not measured (give --pid PID if the broker runs on this machine)";
        add("broker", Some(text.to_owned()));
    }
    for broker in &run.brokers {
        add("broker", Some(broker_text(run, broker)));
    }
    add("generator", Some(generator_text(run)));
    add("agents", agents_text(&run.agents));
    lines
}

/// The figures of a distribution that the run is about.
const FIGURES: [&str; 8] = ["p50", "p75", "p90", "p95", "p99", "p99.9", "max", "mean"];

/// The figures of the other distributions.
const FEW_FIGURES: [&str; 3] = ["p50", "p99", "max"];

/// The figures of a distribution, and below each what of it may be the generator's.
fn latency_rows(subject: &str, of: &Distribution, figures: &[&str]) -> Vec<(String, String)> {
    let cells: Vec<(String, String)> = figures
        .iter()
        .map(|name| {
            let bound = of.bound_of(name);
            let bound = bound.map_or_else(String::new, |bound| format!("≤{}", latency(bound)));
            (format!("{name} {}", of.figure_text(name)), bound)
        })
        .collect();
    let row = |cell: fn(&(String, String)) -> &String| {
        let mut text = String::new();
        for cells in &cells {
            let width = cells.0.chars().count().max(cells.1.chars().count());
            write!(text, "{:<width$}  ", cell(cells)).ok();
        }
        text.trim_end().to_owned()
    };
    let mut rows = vec![(subject.to_owned(), row(|cells| &cells.0))];
    if of.bound.is_some() {
        rows.push(("generator".to_owned(), row(|cells| &cells.1)));
    }
    rows
}

/// Seconds as a span: `5m00s`.
pub(super) fn seconds(seconds: f64) -> String {
    // Milliseconds are more detail than a person reads.
    let rounded = (seconds.clamp(0.0, 1e9) * 1e3).round() / 1e3;
    span(Duration::try_from_secs_f64(rounded).unwrap_or_default())
}

fn rate_text(run: &RunResult) -> String {
    let rates = &run.rates;
    let mut text = format!(
        "{} achieved of {} offered · {} received",
        rate(rates.sent),
        rate(rates.offered),
        rate(rates.received)
    );
    if rates.held_back_messages > 0 {
        let held_back = count(rates.held_back_messages);
        write!(text, " · {held_back} held back by the broker").ok();
    }
    text
}

fn clients_text(run: &RunResult) -> String {
    let clients = &run.clients;
    let mut text = format!(
        "{} connected · failures {}",
        rate(clients.connect_rate),
        count(clients.failed)
    );
    if clients.lost > 0 {
        write!(text, " · {} lost afterwards", count(clients.lost)).ok();
    }
    if run.latency_ns.reconnect.is_some() {
        let gone = count(clients.cut + clients.lost);
        write!(
            text,
            " · {} of {gone} reconnected",
            count(clients.reconnected)
        )
        .ok();
    }
    text
}

fn delivery_text(run: &RunResult) -> String {
    let delivery = &run.delivery;
    let mut text = format!(
        "lost {}  duplicated {}  out of order {}",
        count(delivery.lost),
        count(delivery.duplicated),
        count(delivery.reordered)
    );
    for (number, what) in [
        (delivery.misdelivered, "to a subscriber that did not ask"),
        (delivery.wrong_qos, "with the wrong QoS"),
        (delivery.wrong_topic, "on the wrong topic"),
        (delivery.wrong_retain, "wrongly marked as retained"),
        (delivery.wrong_payload, "with an altered payload"),
        (delivery.refused, "refused by the broker"),
        (delivery.excused, "not delivered and not promised"),
        (delivery.late, "later than the longest drain"),
        (delivery.foreign, "messages not of this run ignored"),
        (
            delivery.downgraded_subscriptions,
            "subscriptions granted with a lower QoS",
        ),
    ] {
        if number > 0 {
            write!(text, " · {} {what}", count(number)).ok();
        }
    }
    text
}

/// The figures of a broker that may be withheld.
pub(super) const OF_BROKER: [&str; 7] = [
    "broker.cores",
    "broker.cores.max",
    "broker.cpu_per_message",
    "machine.cpu_per_message",
    "broker.messages_per_core",
    "broker.rss",
    "broker.bytes_per_connection",
];

/// The figures of the generator that may be withheld.
pub(super) const OF_GENERATOR: [&str; 3] = [
    "generator.cores",
    "generator.cpu_per_message",
    "generator.bytes_per_connection",
];

fn broker_text(run: &RunResult, broker: &Broker) -> String {
    let usage = &broker.usage;
    let mut parts = Vec::new();
    if run.brokers.len() > 1 {
        parts.push(broker.target.clone());
    }
    parts.extend(cpu_parts(run, usage, "broker"));
    if let Some(each) = usage.machine.cpu_us_per_message {
        // With what the kernel did for the broker in other processes, the generator's work too.
        let each = run
            .validity
            .unless_withheld("machine.cpu_per_message", format!("{}µs", figure(each)));
        parts.push(format!("whole machine {each}/message"));
    }
    if let Some(each) = usage.messages_per_core_second {
        let each = run
            .validity
            .unless_withheld("broker.messages_per_core", rate(each));
        parts.push(format!("{each} per core"));
    }
    let most = bytes(fraction(usage.rss_max_bytes));
    parts.push(format!(
        "rss max {}",
        run.validity.unless_withheld("broker.rss", most)
    ));
    if let Some(each) = usage.bytes_per_connection {
        let each = run
            .validity
            .unless_withheld("broker.bytes_per_connection", bytes(each));
        parts.push(format!("{each}/connection"));
    }
    if let Some(each) = usage.machine.kernel_bytes_per_connection {
        // Both ends of each connection, if the generator is on the same machine.
        parts.push(format!("kernel {}/connection", bytes(each)));
    }
    if let Some(why) = run.validity.reasons_withheld(&OF_BROKER) {
        parts.push(format!("withheld: {why}"));
    }
    if usage.network_out_bytes > 0.0 {
        // The kernel counts per interface, so traffic of other processes is included.
        let out = bytes(usage.network_out_bytes);
        parts.push(format!("machine's net out {out}/s, all processes"));
    }
    if broker.pid > 0 {
        parts.push(format!("pid {}", broker.pid));
    }
    if !broker.host.is_empty() {
        parts.push(format!("on {}", broker.host));
    }
    parts.join(" · ")
}

fn generator_text(run: &RunResult) -> String {
    let usage = run.generator.usage.as_ref();
    let mut parts = usage.map_or_else(
        || vec!["cpu not measured".to_owned()],
        |usage| cpu_parts(run, usage, "generator"),
    );
    if let Some(each) = usage.and_then(|usage| usage.bytes_per_connection) {
        let each = run
            .validity
            .unless_withheld("generator.bytes_per_connection", bytes(each));
        parts.push(format!("{each}/connection"));
    }
    if let Some(why) = usage.and_then(|_| run.validity.reasons_withheld(&OF_GENERATOR)) {
        parts.push(format!("withheld: {why}"));
    }
    if let Some(stolen) = usage
        .map(|usage| usage.machine.stolen)
        .filter(|part| *part > 0.0)
    {
        parts.push(format!("{} of the CPU kept by the host", percent(stolen)));
    }
    if let Some(threads) = run.busiest_threads() {
        parts.push(format!("busiest thread {}", percent(threads.busy)));
        parts.push(format!(
            "waited for a core {}",
            percent(threads.waited_for_core)
        ));
    }
    parts.join(" · ")
}

/// CPU of broker or generator; figures that are withheld as such.
fn cpu_parts(run: &RunResult, usage: &Usage, whose: &str) -> Vec<String> {
    let of = |name: &str, text: String| {
        run.validity
            .unless_withheld(&format!("{whose}.{name}"), text)
    };
    let average = of("cores", format!("{} cores", figure(usage.cores_avg)));
    let max = of("cores.max", figure(usage.cores_max));
    let mut parts = vec![format!("cpu avg {average} max {max}")];
    if let Some(each) = usage.cpu_us_per_message {
        let each = of("cpu_per_message", format!("{}µs", figure(each)));
        parts.push(format!("{each}/message"));
    }
    parts
}

fn agents_text(agents: &[Agent]) -> Option<String> {
    let clients: u64 = agents.iter().map(|agent| agent.clients).sum();
    let error = agents.iter().map(|agent| agent.clock_error_ns).max()?;
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    Some(format!(
        "{} · {} clients · clocks within {}",
        names.join(", "),
        count(clients),
        latency(error)
    ))
}
