//! A run as text and in the fields of its result.

use std::collections::BTreeMap;

use thrum_figures::{fraction, nanos};
use thrum_load::floors::Delays;
use thrum_load::plan::Plan;
use thrum_load::scenario::Group;
use thrum_load::validity::{Health, figures_in_use};
use thrum_load::verdict::Judged;
use thrum_report::RunResult;
use thrum_report::result::{
    Clients, Delivery, GroupDescription, Latencies, LoadModel, Rates, ScenarioDescription,
    StageSeconds, Validity, Verdict,
};
use thrum_transport::{Endpoint, Scheme};
use toml_edit::{DocumentMut, Item, TableLike};

use super::Outcome;
use crate::run::Target;
use crate::swarm::Timeline;

/// The scenario in the form that was run.
pub(super) fn scenario(
    plan: &Plan,
    targets: &[Target],
    timeline: Option<Timeline>,
) -> ScenarioDescription {
    let scenario = &plan.scenario;
    let seconds = |ns: u64| fraction(ns) / 1e9;
    let hold_ns = timeline.map_or_else(
        || nanos(scenario.stages.hold),
        |timeline| timeline.hold_end_ns.saturating_sub(timeline.hold_start_ns),
    );
    ScenarioDescription {
        name: scenario.name.clone(),
        summary: scenario.summary.clone(),
        targets: targets
            .iter()
            .map(|target| target.endpoint.to_string())
            .collect(),
        mqtt_version: scenario.version_text(),
        qos: scenario.delivery_qos().map(|qos| qos as u8),
        payload_bytes: plan.payload_bytes(),
        payload: scenario.payload_kind().to_owned(),
        transport: transports(targets),
        keep_alive_seconds: scenario.keep_alive,
        connect_rate: scenario.connect_rate,
        source_addresses: scenario
            .source_addresses
            .iter()
            .map(ToString::to_string)
            .collect(),
        load: LoadModel {
            closed_loop: scenario.has_closed_loop(),
            text: scenario.load_text(),
            arrivals: scenario.arrivals_text(),
        },
        scale: scenario.scale,
        stages: StageSeconds {
            ramp: scenario.ramp().as_secs_f64(),
            warm_up: scenario.stages.warm_up.as_secs_f64(),
            hold: seconds(hold_ns),
            drain: scenario.stages.drain.as_secs_f64(),
        },
        groups: scenario
            .groups
            .iter()
            .enumerate()
            .map(|(number, spec)| group(plan, number, spec))
            .collect(),
        toml: without_passwords(&scenario.toml),
    }
}

/// Validity and verdict.
pub(super) fn judge(outcome: &Outcome, result: &mut RunResult) {
    let limits = outcome.limits();
    result.validity = Validity {
        valid: limits.is_empty(),
        limits: limits.iter().map(ToString::to_string).collect(),
        advice: limits
            .iter()
            .map(|limit| limit.advice().to_owned())
            .collect(),
        withheld: outcome.health.withheld(nanos(outcome.hold)),
    };
    let judged = Judged {
        faults: outcome.faults.iter().map(ToString::to_string).collect(),
        wanted: outcome.clients.wanted,
        ready: outcome.clients.ready,
        failed: outcome.clients.failed,
        is_without_figures: result.is_without_figures(),
        publishes: outcome.scenario.publishers() > 0,
        delivery: outcome.delivery,
    };
    result.verdict = Verdict {
        pass: judged.passes(),
        text: judged.text(),
        faults: judged.faults,
    };
}

/// Clients, rates and deliveries.
pub(super) fn count(outcome: &Outcome, result: &mut RunResult) {
    let (counts, delivery) = (&outcome.counts, &outcome.delivery);
    result.clients = Clients {
        wanted: outcome.clients.wanted,
        ready: outcome.clients.ready,
        failed: outcome.clients.failed,
        lost: counts.connections_lost,
        cut: counts.connections_cut,
        reconnected: counts.reconnected,
        ramp_seconds: outcome.clients.ramp.as_secs_f64(),
        connect_rate: outcome.connect_rate(),
    };
    result.rates = Rates {
        offered: outcome.offered_rate(),
        sent: outcome.sent_rate(),
        received: outcome.received_rate(),
        held_back_messages: counts.held_back,
    };
    result.delivery = Delivery {
        sent_messages: counts.sent,
        acknowledged: counts.acknowledged,
        expected: delivery.expected,
        delivered: delivery.delivered(),
        lost: delivery.lost,
        excused: delivery.excused,
        duplicated: delivery.duplicated,
        reordered: delivery.reordered,
        late: delivery.late,
        misdelivered: delivery.wrong.misdelivered,
        foreign: delivery.wrong.foreign,
        wrong_qos: delivery.wrong.qos,
        wrong_topic: delivery.wrong.topic,
        wrong_retain: delivery.wrong.retain,
        wrong_payload: delivery.wrong.payload,
        refused: counts.refused,
        downgraded_subscriptions: counts.downgraded,
        bytes_sent: counts.bytes_out,
        bytes_received: counts.bytes_in,
    };
}

/// Limits of the generator that the latencies show while the run lasts.
pub(super) fn limits_so_far(latencies: &Latencies, delays: &BTreeMap<u32, Delays>) -> Vec<String> {
    let health = Health {
        figures: figures_in_use(latencies, &[]),
        delays: delays.clone(),
        ..Health::default()
    };
    health.limits().iter().map(ToString::to_string).collect()
}

fn transports(targets: &[Target]) -> String {
    let mut names: Vec<&str> = targets
        .iter()
        .map(|target| transport_name(target.endpoint.scheme))
        .collect();
    names.dedup();
    names.join(", ")
}

const fn transport_name(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::Mqtt => "tcp",
        Scheme::Mqtts => "tls",
        Scheme::Ws => "ws",
        Scheme::Wss => "wss",
        Scheme::Quic => "quic",
    }
}

fn group(plan: &Plan, number: usize, group: &Group) -> GroupDescription {
    GroupDescription {
        name: group.name.clone(),
        clients: group.clients,
        text: plan.group_text(number),
    }
}

/// The scenario file without secrets.
fn without_passwords(toml: &str) -> String {
    let Ok(mut document) = toml.parse::<DocumentMut>() else {
        // An unreadable text cannot be searched for secrets.
        return String::new();
    };
    let targets = document
        .get_mut("targets")
        .and_then(Item::as_table_like_mut);
    for (_, target) in targets.into_iter().flat_map(TableLike::iter_mut) {
        hide_credentials(target);
    }
    if let Some(target) = document.get_mut("target") {
        hide_credentials(target);
    }
    let groups = document.get_mut("groups").and_then(Item::as_table_like_mut);
    for (_, group) in groups.into_iter().flat_map(TableLike::iter_mut) {
        if let Some(password) = group
            .as_table_like_mut()
            .and_then(|group| group.get_mut("password"))
        {
            *password = toml_edit::value("***");
        }
    }
    document.to_string()
}

/// Replaces the address of a broker by one without user name and password.
fn hide_credentials(target: &mut Item) {
    let address = target.as_str().map(Endpoint::parse);
    match address {
        Some(Ok(endpoint)) => *target = toml_edit::value(endpoint.to_string()),
        // What is no address cannot be searched for a password.
        Some(Err(_)) => *target = toml_edit::value("***"),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        let shown = without_passwords("[groups.a]\nusername = \"u\"\npassword = \"secret\"\n");
        assert_eq!(shown, "[groups.a]\nusername = \"u\"\npassword = \"***\"\n");
        for text in [
            "target = \"mqtt://me:secret@host:1884\"\n",
            "[targets]\na = \"mqtts://me:secret@host\"\n",
        ] {
            let shown = without_passwords(text);
            assert!(
                !shown.contains("secret") && shown.contains("host"),
                "{shown}"
            );
        }
        let inline = without_passwords("groups = { a = { clients = 1, password = 'secret' } }");
        assert!(
            !inline.contains("secret") && inline.contains("clients"),
            "{inline}"
        );
    }
}
