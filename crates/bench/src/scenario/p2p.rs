//! One-to-one: each publisher has one subscriber of its own.

use thrum_codec::{QoS, Version};

use super::{Group, PublishSpec, Rate, Scenario, SubscribeSpec};

/// 1 000 pairs at 1 message per second each.
pub(super) fn p2p_1k() -> Scenario {
    Scenario {
        name: "singlenode-p2p-1K-1K-1K-1K".to_owned(),
        alias: "p2p-1K".to_owned(),
        summary: "1 000 publishers, 1 message/s each to one subscriber of its own".to_owned(),
        version: Version::V311,
        connect_rate: super::catalogue::CONNECT_RATE,
        keep_alive: super::catalogue::KEEP_ALIVE_SECONDS,
        targets: vec![super::TargetSpec::default()],
        thresholds: Vec::new(),
        faults: Vec::new(),
        scale: 1.0,
        toml: String::new(),
        stages: super::catalogue::STAGES,
        groups: vec![
            Group {
                name: "subscribers".to_owned(),
                clients: 1_000,
                target: 0,
                client: super::ClientSpec::default(),
                publish: None,
                subscribe: Some(SubscribeSpec {
                    filters: vec!["test/{i}".to_owned()],
                    qos: QoS::AtLeastOnce,
                    respond: false,
                }),
            },
            Group {
                name: "publishers".to_owned(),
                clients: 1_000,
                target: 0,
                client: super::ClientSpec::default(),
                publish: Some(PublishSpec {
                    topic: "test/{i}".to_owned(),
                    rate: Rate::per_second(1),
                    qos: QoS::AtLeastOnce,
                    payload: super::PayloadSpec::Size(super::PAYLOAD_BYTES_MIN),
                    shape: super::Shape::Constant,
                    window: None,
                    retain: false,
                    user_properties: Vec::new(),
                    expiry: None,
                    response: None,
                }),
                subscribe: None,
            },
        ],
    }
}
