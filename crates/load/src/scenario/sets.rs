//! Scenarios that are run together.

/// Name, description, and the scenarios in the order of the run.
pub type ScenarioSet = (&'static str, &'static str, &'static [&'static str]);

/// The Basic Set of the open MQTT benchmarks, in its order.
pub const BASIC_SET: [&str; 4] = [
    "conn-tcp-10K-100",
    "fanout-1-1K",
    "p2p-1K",
    "sharedsub-1K-5",
];

const ENTERPRISE_SET: [&str; 4] = [
    "conn-tcp-1M-5K",
    "fanout-5-1000-5-250K",
    "p2p-50K",
    "sharedsub-50K-500",
];

const LATENCY_SET: [&str; 3] = [
    "emqx-latency-1K-1K-qos0",
    "emqx-latency-1K-1K-qos1",
    "emqx-latency-1K-1K-qos2",
];

const DOCS_SET: [&str; 6] = [
    "docs-qos-sweep",
    "docs-payload-sweep",
    "docs-fanin",
    "docs-fanout",
    "docs-symmetric",
    "docs-bridge",
];

const XMETER_SET: [&str; 5] = [
    "xmeter-conn",
    "xmeter-publish",
    "xmeter-one-to-one",
    "xmeter-fan-out",
    "xmeter-fan-in",
];

const AVAILABILITY_SET: [&str; 8] = [
    "reconnect-storm",
    "persistent-session",
    "durable-publish",
    "broker-restart",
    "half-open",
    "slow-reader",
    "stalled-reader",
    "weak-network",
];

const ALL: [&str; 37] = [
    "conn-tcp-10K-100",
    "fanout-1-1K",
    "p2p-1K",
    "sharedsub-1K-5",
    "conn-tcp-1M-5K",
    "fanout-5-1000-5-250K",
    "p2p-50K",
    "sharedsub-50K-500",
    "composite",
    "emqx-latency-1K-1K-qos0",
    "emqx-latency-1K-1K-qos1",
    "emqx-latency-1K-1K-qos2",
    "emqx-fanout-20-1000-2M",
    "emqx-ci-gate",
    "emqtt-bench-throughput",
    "docs-qos-sweep",
    "docs-payload-sweep",
    "docs-fanin",
    "docs-fanout",
    "docs-symmetric",
    "docs-bridge",
    "xmeter-conn",
    "xmeter-publish",
    "xmeter-one-to-one",
    "xmeter-fan-out",
    "xmeter-fan-in",
    "reconnect-storm",
    "persistent-session",
    "durable-publish",
    "broker-restart",
    "half-open",
    "slow-reader",
    "stalled-reader",
    "weak-network",
    "request-response",
    "payload-json",
    "ramp-to-limit",
];

const SETS: [ScenarioSet; 7] = [
    (
        "basic",
        "the Basic Set of the open MQTT benchmarks: connections, fan-out, one-to-one, shared subscription",
        &BASIC_SET,
    ),
    (
        "enterprise",
        "the Enterprise Set of the open MQTT benchmarks: the same with up to a million clients",
        &ENTERPRISE_SET,
    ),
    (
        "latency",
        "the latency of 1 000 pairs at each quality of service",
        &LATENCY_SET,
    ),
    (
        "docs",
        "the sweeps of the EMQX documentation's performance page",
        &DOCS_SET,
    ),
    (
        "xmeter",
        "the five standard modes of XMeter Cloud",
        &XMETER_SET,
    ),
    (
        "availability",
        "behaviour when clients, network or broker fail",
        &AVAILABILITY_SET,
    ),
    ("all", "every built-in scenario", &ALL),
];

/// The sets of scenarios by name.
pub const fn sets() -> &'static [ScenarioSet] {
    &SETS
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    #[test]
    fn every_scenario_is_in_the_set_of_all_and_every_name_of_a_set_is_known() {
        let known: Vec<&str> = catalogue().iter().map(|entry| entry.alias).collect();
        assert_eq!(known, ALL);
        for (set, _, names) in sets() {
            for name in *names {
                assert!(known.contains(name), "{set}: {name}");
            }
        }
    }
}
