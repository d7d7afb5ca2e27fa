//! The end summary on standard output.

use std::fmt::Write as _;

use hdrhistogram::Histogram;

use super::{qos_number, version_text};
use crate::monitor::Usage;
use crate::outcome::Outcome;
use crate::units::{bytes, count, figure, latency, percent, rate, span};

/// Text before a line's subject.
const INDENT: &str = "                 ";

/// Reasons shown; all are in the result file.
const REASONS_SHOWN: usize = 5;

/// The summary of a run, ending with a line break.
pub fn summary(outcome: &Outcome) -> String {
    let mut lines = vec![title(outcome)];
    lines.extend(invalid_lines(outcome));
    lines.push(format!("  █ VERDICT      {}", verdict(outcome)));
    lines.extend(reason_lines(outcome));
    let results = result_lines(outcome);
    for (index, (subject, text)) in results.into_iter().enumerate() {
        let start = if index == 0 {
            "  █ RESULTS      "
        } else {
            INDENT
        };
        lines.push(format!("{start}{subject:<10} {text}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn title(outcome: &Outcome) -> String {
    let scenario = &outcome.scenario;
    let mut facts = vec![
        format!("{} clients", count(outcome.clients.wanted)),
        format!("{} hold", span(outcome.hold)),
    ];
    facts.extend(
        scenario
            .delivery_qos()
            .map(|qos| format!("QoS{}", qos_number(qos))),
    );
    facts.extend(
        scenario
            .payload_bytes()
            .map(|bytes| format!("{} B", count(u64::from(bytes)))),
    );
    facts.push(format!("MQTT {}", version_text(scenario.version)));
    let lag = if outcome.latencies.lag.is_empty() {
        String::new()
    } else {
        format!(
            "  (generator lag p99 {})",
            latency(outcome.health.lag_p99_ns)
        )
    };
    let validity = if outcome.limits().is_empty() {
        "VALID"
    } else {
        "INVALID"
    };
    let interrupted = if outcome.was_interrupted {
        "  interrupted"
    } else {
        ""
    };
    format!(
        "  {}   {}   {validity}{lag}{interrupted}",
        scenario.name,
        facts.join(" · ")
    )
}

fn invalid_lines(outcome: &Outcome) -> Vec<String> {
    let limits = outcome.limits();
    let lines = limits
        .iter()
        .map(|limit| format!("  █ INVALID      {limit}: {}", limit.advice()));
    lines.collect()
}

fn verdict(outcome: &Outcome) -> String {
    let delivery = &outcome.delivery;
    if !outcome.faults.is_empty() {
        let faults: Vec<String> = outcome.faults.iter().map(ToString::to_string).collect();
        return format!("FAIL   {}", faults.join(", "));
    }
    let clients = &outcome.clients;
    if clients.ready + clients.failed < clients.wanted {
        let (ready, wanted) = (count(clients.ready), count(clients.wanted));
        return format!("NONE   ended while clients were connecting: {ready} of {wanted} ready");
    }
    if outcome.scenario.publishers() == 0 {
        return format!(
            "PASS   all {} clients accepted and kept",
            count(outcome.clients.ready)
        );
    }
    let expected = count(delivery.expected);
    if delivery.lost > 0 {
        let share = percent(crate::units::ratio(delivery.lost, delivery.expected));
        return format!(
            "PASS   {} of {expected} deliveries lost ({share}), which QoS 0 allows",
            count(delivery.lost)
        );
    }
    let duplicates = match delivery.duplicated {
        0 => "each once".to_owned(),
        again => format!(
            "{} again, which QoS {} allows",
            count(again),
            qos_text(outcome)
        ),
    };
    format!("PASS   all {expected} deliveries arrived in order, {duplicates}")
}

fn qos_text(outcome: &Outcome) -> String {
    outcome
        .scenario
        .delivery_qos()
        .map_or_else(String::new, |qos| qos_number(qos).to_string())
}

fn reason_lines(outcome: &Outcome) -> Vec<String> {
    let mut reasons: Vec<_> = outcome.reasons.iter().collect();
    reasons.sort_by(|left, right| right.1.cmp(left.1));
    let shown = reasons.into_iter().take(REASONS_SHOWN);
    shown
        .map(|(reason, times)| format!("{INDENT}{} × {reason}", count(*times)))
        .collect()
}

fn result_lines(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let latencies = &outcome.latencies;
    let mut lines = Vec::new();
    if outcome.scenario.publishers() > 0 {
        lines.push(("rate", rate_text(outcome)));
        lines.extend(latency_line("e2e", &latencies.response));
        lines.extend(latency_line("service", &latencies.service));
        lines.extend(latency_line("ack", &latencies.publish_ack));
    }
    lines.push(("connect", connect_text(outcome)));
    lines.extend(latency_line("subscribe", &latencies.subscribe));
    if outcome.scenario.publishers() > 0 {
        lines.push(("delivery", delivery_text(outcome)));
    }
    lines.push(("broker", broker_text(outcome)));
    lines.push(("generator", generator_text(outcome)));
    lines
}

fn rate_text(outcome: &Outcome) -> String {
    let mut text = format!(
        "{} achieved of {} offered · {} received",
        rate(outcome.sent_rate()),
        rate(outcome.offered_rate()),
        rate(outcome.received_rate())
    );
    if outcome.counts.held_back > 0 {
        let held_back = count(outcome.counts.held_back);
        write!(text, " · {held_back} held back by the broker").ok();
    }
    text
}

fn latency_line(
    subject: &'static str,
    histogram: &Histogram<u64>,
) -> Option<(&'static str, String)> {
    (!histogram.is_empty()).then(|| (subject, percentiles(histogram)))
}

fn percentiles(histogram: &Histogram<u64>) -> String {
    let mut text = String::new();
    for (name, quantile) in [
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p99.9", 0.999),
    ] {
        write!(
            text,
            "{name} {}  ",
            latency(histogram.value_at_quantile(quantile))
        )
        .ok();
    }
    let mean = crate::units::whole(histogram.mean());
    write!(
        text,
        "max {}  mean {}",
        latency(histogram.max()),
        latency(mean)
    )
    .ok();
    text
}

fn connect_text(outcome: &Outcome) -> String {
    let connect = &outcome.latencies.connect;
    let latencies = if connect.is_empty() {
        String::new()
    } else {
        format!(
            "p50 {}  p99 {}  max {} · ",
            latency(connect.value_at_quantile(0.5)),
            latency(connect.value_at_quantile(0.99)),
            latency(connect.max())
        )
    };
    let connect_rate = rate(outcome.connect_rate());
    format!(
        "{latencies}{connect_rate} · failures {}",
        count(outcome.clients.failed)
    )
}

fn delivery_text(outcome: &Outcome) -> String {
    let delivery = &outcome.delivery;
    let mut text = format!(
        "lost {}  duplicated {}  out of order {}",
        count(delivery.lost),
        count(delivery.duplicated),
        count(delivery.reordered)
    );
    if delivery.foreign > 0 {
        write!(
            text,
            " · {} messages not of this run ignored",
            count(delivery.foreign)
        )
        .ok();
    }
    if outcome.counts.downgraded > 0 {
        let downgraded = count(outcome.counts.downgraded);
        write!(
            text,
            " · {downgraded} subscriptions granted with a lower QoS"
        )
        .ok();
    }
    text
}

fn broker_text(outcome: &Outcome) -> String {
    let Some(broker) = &outcome.broker else {
        return "not measured (give --pid PID if the broker runs on this machine)".to_owned();
    };
    let usage = &broker.usage;
    let mut text = cpu_text(usage);
    write!(
        text,
        " · rss max {}",
        bytes(crate::units::fraction(usage.rss_max_bytes))
    )
    .ok();
    if let Some(each) = usage.bytes_per_connection {
        write!(text, " · {}/connection", bytes(each)).ok();
    }
    write!(text, " · pid {}", broker.pid).ok();
    text
}

fn generator_text(outcome: &Outcome) -> String {
    let mut text = match &outcome.generator {
        Some(usage) => cpu_text(usage),
        None => "cpu not measured".to_owned(),
    };
    let generator = outcome.generator.as_ref();
    if let Some(each) = generator.and_then(|usage| usage.bytes_per_connection) {
        write!(text, " · {}/connection", bytes(each)).ok();
    }
    let busiest = percent(outcome.health.busiest().busy);
    let waited = percent(outcome.health.waited_max());
    write!(
        text,
        " · busiest thread {busiest} · waited for a core {waited}"
    )
    .ok();
    text
}

fn cpu_text(usage: &Usage) -> String {
    let cores = format!(
        "cpu avg {} cores max {}",
        figure(usage.cores_avg),
        figure(usage.cores_max)
    );
    match usage.cpu_us_per_message {
        Some(each) => format!("{cores} · {}µs/message", figure(each)),
        None => cores,
    }
}
