//! Accepted values, and that written values read back.

use std::time::Duration;

use crate::{format_duration, format_size, parse_duration, parse_size};

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
