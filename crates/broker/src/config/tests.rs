//! Tests of the units, and of the session limits made from the settings.

use std::net::SocketAddr;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::{Limits, limits};

use super::units::{parse_bind, parse_duration};
use super::{ClientLimits, Config, LimitsConfig, PacketLimits, QueuePolicy};

#[test]
fn addresses_may_be_a_port_or_localhost() {
    for (text, expected) in [
        ("127.0.0.1:1883", vec!["127.0.0.1:1883"]),
        ("[::1]:0", vec!["[::1]:0"]),
        ("1883", vec!["0.0.0.0:1883", "[::]:1883"]),
        (":1884", vec!["0.0.0.0:1884", "[::]:1884"]),
        ("*:1884", vec!["0.0.0.0:1884", "[::]:1884"]),
        ("localhost:1883", vec!["127.0.0.1:1883", "[::1]:1883"]),
    ] {
        let expected: Vec<SocketAddr> = expected.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(parse_bind(text), Some(expected), "{text}");
    }
    for text in ["", "70000", "example.com:1883", "127.0.0.1", "::1:1883x"] {
        assert_eq!(parse_bind(text), None, "{text}");
    }
}

#[test]
fn default_limits_are_those_of_the_session_machine() {
    assert_eq!(Config::default().limits.session_limits(), Limits::default());
}

#[test]
fn session_limits_follow_the_settings() {
    let limits = LimitsConfig {
        packet: PacketLimits {
            max_packet: 2048,
            max_qos: 1,
            ..PacketLimits::default()
        },
        session_expiry: Duration::from_mins(1),
        keep_alive_max: Duration::from_mins(5),
        ..LimitsConfig::default()
    }
    .session_limits();
    assert_eq!(limits.packet_bytes_max, 2048);
    assert_eq!(limits.maximum_qos, QoS::AtLeastOnce);
    assert_eq!(
        (limits.session_expiry_max, limits.session_expiry_v3),
        (60, 60)
    );
    assert_eq!(limits.keep_alive_max, 300);
}

#[test]
fn the_queue_follows_the_settings() {
    let alarms = limits::TopicPriority {
        filter: "alarm/#".into(),
        priority: 200,
    };
    let client = ClientLimits {
        queue_policy: QueuePolicy::DropOldest,
        queue_qos0: true,
        queue_age: Duration::from_millis(1500),
        queue_priorities: vec![alarms],
        ..ClientLimits::default()
    };
    let limits = LimitsConfig {
        client,
        ..LimitsConfig::default()
    }
    .session_limits();
    assert_eq!(limits.queue.policy, limits::QueuePolicy::DropOldest);
    assert!(limits.queue.qos0);
    assert_eq!(limits.queue.age_max, Some(2));
    let topics = ["alarm/fire", "other"];
    let found = topics.map(|topic| limits.queue.priority(topic));
    assert_eq!(found, [200, 0]);
}

#[test]
fn an_age_of_zero_or_never_is_no_limit() {
    for text in ["0", "never"] {
        let client = ClientLimits {
            queue_age: parse_duration(text).unwrap(),
            ..ClientLimits::default()
        };
        let limits = LimitsConfig {
            client,
            ..LimitsConfig::default()
        };
        assert_eq!(limits.session_limits().queue.age_max, None, "{text}");
    }
}
