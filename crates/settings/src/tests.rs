//! Accepted values, and that written values read back.

use std::time::Duration;

use crate::{format_duration, format_size, format_span, parse_duration, parse_size, parse_span};

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
fn spans_have_units_and_fractions_and_add_up() {
    for (text, nanos) in [
        ("0", 0),
        ("90", 90_000_000_000),
        ("1.5", 1_500_000_000),
        (".5", 500_000_000),
        ("10_000", 10_000_000_000_000),
        ("10s", 10_000_000_000),
        ("  10s ", 10_000_000_000),
        ("500us", 500_000),
        ("250ms", 250_000_000),
        ("1.5ms", 1_500_000),
        ("1.5m", 90_000_000_000),
        ("2min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1h 30min", 5_400_000_000_000),
        ("1h30m0.5s", 5_400_500_000_000),
        ("7d", 604_800_000_000_000),
        ("0.5d", 43_200_000_000_000),
        ("0.25us", 250),
        ("0.0000000004s", 0),
        ("0.0000000005s", 1),
    ] {
        let span = Some(Duration::from_nanos(nanos));
        assert_eq!(parse_span(text), span, "{text:?}");
        assert_eq!(parse_duration(text), span, "{text:?}");
    }
    let longest = Some(Duration::from_secs(u64::MAX));
    assert_eq!(parse_span("18446744073709551615"), longest);
}

#[test]
fn texts_that_are_no_spans_are_refused() {
    for text in [
        "",
        " ",
        "s",
        ".",
        ".s",
        "5 s",
        "-1",
        "-1s",
        "1..2",
        "1.2.3s",
        "1h30",
        "1e400",
        "1w",
        "2 weeks",
        "1M",
        "1,5s",
        "0.000000000000001s",
        "99999999999999999999s",
        "18446744073709551615m",
    ] {
        assert_eq!(parse_span(text), None, "{text:?}");
        assert_eq!(parse_duration(text), None, "{text:?}");
    }
}

#[test]
fn only_a_setting_may_be_never() {
    let never = Duration::from_secs(4_294_967_295);
    assert_eq!(parse_duration("never"), Some(never));
    assert_eq!(parse_span("never"), None);
    assert_eq!(format_duration(never).as_deref(), Some("never"));
    assert_eq!(format_span(never), "4294967295s");
}

#[test]
fn spans_are_written_in_the_largest_unit_that_divides_them() {
    for (nanos, text) in [
        (0, "0s"),
        (604_800_000_000_000, "7d"),
        (5_400_000_000_000, "90m"),
        (90_000_000_000, "90s"),
        (1_500_000_000, "1500ms"),
        (500_000, "500us"),
        (1_250, "1.250us"),
    ] {
        let span = Duration::from_nanos(nanos);
        assert_eq!(format_span(span), text);
        assert_eq!(parse_span(text), Some(span), "{text}");
    }
    assert_eq!(format_duration(Duration::ZERO), None);
}

#[test]
fn written_values_read_back() {
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
