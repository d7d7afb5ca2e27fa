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
        stages: super::catalogue::STAGES,
        groups: vec![
            Group {
                name: "subscribers".to_owned(),
                clients: 1_000,
                publish: None,
                subscribe: Some(SubscribeSpec {
                    filter: "test/{i}".to_owned(),
                    qos: QoS::AtLeastOnce,
                }),
            },
            Group {
                name: "publishers".to_owned(),
                clients: 1_000,
                publish: Some(PublishSpec {
                    topic: "test/{i}".to_owned(),
                    rate: Rate::per_second(1),
                    qos: QoS::AtLeastOnce,
                    payload_bytes: super::PAYLOAD_BYTES_MIN,
                }),
                subscribe: None,
            },
        ],
    }
}
