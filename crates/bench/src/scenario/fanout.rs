//! Fan-out: few publishers, each message goes to every subscriber.

use thrum_codec::{QoS, Version};

use super::{Group, PublishSpec, Rate, Scenario, SubscribeSpec};

/// 1 message per second to 1 000 subscribers.
pub(super) fn fanout_1_1k() -> Scenario {
    fanout(
        ("singlenode-fanout-1-1K-1-1K", "fanout-1-1K"),
        "1 publisher, 1 message/s to 1 000 subscribers",
        (1, 1_000, 1),
    )
}

/// 250 messages per second to 1 000 subscribers each.
pub(super) fn fanout_5_1000_5_250k() -> Scenario {
    fanout(
        ("singlenode-fanout-5-1000-5-250K", "fanout-5-1000-5-250K"),
        "5 publishers, 50 messages/s each to all of 1 000 subscribers: 250 000 deliveries/s",
        (5, 1_000, 50),
    )
}

fn fanout(
    (name, alias): (&str, &str),
    summary: &str,
    (publishers, subscribers, rate): (u32, u32, u64),
) -> Scenario {
    Scenario {
        name: name.to_owned(),
        alias: alias.to_owned(),
        summary: summary.to_owned(),
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
                clients: subscribers,
                target: 0,
                client: super::ClientSpec::default(),
                publish: None,
                subscribe: Some(SubscribeSpec {
                    filters: vec!["test/{p}".to_owned()],
                    qos: QoS::AtLeastOnce,
                    respond: false,
                }),
            },
            Group {
                name: "publishers".to_owned(),
                clients: publishers,
                target: 0,
                client: super::ClientSpec::default(),
                publish: Some(PublishSpec {
                    topic: "test/{i}".to_owned(),
                    rate: Rate::per_second(rate),
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
