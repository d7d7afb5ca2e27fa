//! Scenarios that are run together.

/// Scenarios under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScenarioSet {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub summary: &'static str,
    /// The scenarios in the order of the run.
    pub scenarios: &'static [&'static str],
}

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

const ALL: [&str; 38] = [
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
    "devices",
];

const SETS: [ScenarioSet; 7] = [
    ScenarioSet {
        name: "basic",
        summary: "the Basic Set of the open MQTT benchmarks: connections, fan-out, one-to-one, shared subscription",
        scenarios: &BASIC_SET,
    },
    ScenarioSet {
        name: "enterprise",
        summary: "the Enterprise Set of the open MQTT benchmarks: the same with up to a million clients",
        scenarios: &ENTERPRISE_SET,
    },
    ScenarioSet {
        name: "latency",
        summary: "the latency of 1 000 pairs at each quality of service",
        scenarios: &LATENCY_SET,
    },
    ScenarioSet {
        name: "docs",
        summary: "the sweeps of the EMQX documentation's performance page",
        scenarios: &DOCS_SET,
    },
    ScenarioSet {
        name: "xmeter",
        summary: "the five standard modes of XMeter Cloud",
        scenarios: &XMETER_SET,
    },
    ScenarioSet {
        name: "availability",
        summary: "behaviour when clients, network or broker fail",
        scenarios: &AVAILABILITY_SET,
    },
    ScenarioSet {
        name: "all",
        summary: "every built-in scenario",
        scenarios: &ALL,
    },
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
        for set in sets() {
            for name in set.scenarios {
                assert!(known.contains(name), "{}: {name}", set.name);
            }
        }
    }
}
