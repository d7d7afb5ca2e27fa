//! Shared subscription: many publishers, each message goes to one member of a group.

use thrum_codec::{QoS, Version};

use super::{Group, PublishSpec, Rate, Scenario, SubscribeSpec};

/// 1 000 publishers at 1 message per second each to a group of 5; MQTT 5.0 as published.
pub(super) fn sharedsub_1k_5() -> Scenario {
    Scenario {
        name: "singlenode-sharedsub-1K-5-1K-1K".to_owned(),
        alias: "sharedsub-1K-5".to_owned(),
        summary: "1 000 publishers, 1 message/s each to a shared subscription of 5 members"
            .to_owned(),
        version: Version::V5,
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
                clients: 5,
                target: 0,
                client: super::ClientSpec::default(),
                publish: None,
                subscribe: Some(SubscribeSpec {
                    filters: vec!["$share/benchmark/test/#".to_owned()],
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
