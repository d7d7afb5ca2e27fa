//! Connections only: how fast they are accepted and what they cost while idle.

use std::time::Duration;

use thrum_codec::Version;

use super::{Group, Scenario, Stages};

/// 10 000 connections at 100 per second.
pub(super) fn conn_tcp_10k_100() -> Scenario {
    Scenario {
        name: "singlenode-conn-tcp-10K-100".to_owned(),
        alias: "conn-tcp-10K-100".to_owned(),
        summary: "10 000 connections at 100/s, then idle: connect latency, memory per connection"
            .to_owned(),
        version: Version::V311,
        connect_rate: 100,
        keep_alive: super::catalogue::KEEP_ALIVE_SECONDS,
        targets: vec![super::TargetSpec::default()],
        thresholds: Vec::new(),
        faults: Vec::new(),
        scale: 1.0,
        toml: String::new(),
        stages: Stages {
            warm_up: Duration::ZERO,
            ..super::catalogue::STAGES
        },
        groups: vec![Group {
            name: "connections".to_owned(),
            clients: 10_000,
            target: 0,
            client: super::ClientSpec::default(),
            publish: None,
            subscribe: None,
        }],
    }
}
