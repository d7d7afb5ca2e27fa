//! What the units accept, and that the session limits follow the settings.

use std::net::SocketAddr;
use std::time::Duration;

use thrum_codec::QoS;
use thrum_protocol::{Limits, limits};

use super::units::{format_duration, format_size, parse_bind, parse_duration, parse_size};
use super::{ClientLimits, Config, LimitsConfig, QueuePolicy};

#[test]
fn sizes_have_decimal_and_binary_units() {
    for (text, bytes) in [
        ("0", Some(0)),
        ("1500", Some(1500)),
        ("64KiB", Some(65_536)),
        ("1MB", Some(1_000_000)),
        ("1 mib", Some(1_048_576)),
        ("2GiB", Some(2_147_483_648)),
        ("10_000B", Some(10_000)),
        ("", None),
        ("MB", None),
        ("1.5MB", None),
        ("-1", None),
        ("1XB", None),
        ("99999999999GiB", None),
    ] {
        assert_eq!(parse_size(text), bytes, "{text:?}");
    }
}

#[test]
fn durations_have_units_and_add_up() {
    for (text, millis) in [
        ("0", Some(0)),
        ("90", Some(90_000)),
        ("10s", Some(10_000)),
        ("1h30m", Some(5_400_000)),
        ("1h 30m", Some(5_400_000)),
        ("250ms", Some(250)),
        ("7d", Some(604_800_000)),
        ("never", Some(4_294_967_295_000)),
        ("", None),
        ("s", None),
        ("1.5h", None),
        ("2 weeks", None),
        ("-1s", None),
    ] {
        assert_eq!(
            parse_duration(text),
            millis.map(Duration::from_millis),
            "{text:?}"
        );
    }
}

#[test]
fn what_is_written_reads_back() {
    for bytes in [1, 999, 1000, 1024, 1500, 65_536, 1_000_000, 3 << 30] {
        let text = format_size(bytes).unwrap_or_else(|| bytes.to_string());
        assert_eq!(parse_size(&text), Some(bytes), "{text}");
    }
    for millis in [1, 1500, 10_000, 5_400_000, 604_800_000, 4_294_967_295_000] {
        let text = format_duration(Duration::from_millis(millis)).unwrap();
        assert_eq!(
            parse_duration(&text),
            Some(Duration::from_millis(millis)),
            "{text}"
        );
    }
}

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
        max_packet: 2048,
        max_qos: 1,
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
    assert_eq!(limits.queue_policy, limits::QueuePolicy::DropOldest);
    assert!(limits.queue_qos0);
    assert_eq!(limits.queue_age_max, Some(2));
    let topics = ["alarm/fire", "other"];
    let found = topics.map(|topic| limits.queue_priority(topic));
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
        assert_eq!(limits.session_limits().queue_age_max, None, "{text}");
    }
}
