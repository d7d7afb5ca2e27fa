//! The format of times in the interface.

use jiff::Timestamp;

/// Milliseconds of the Unix epoch as `2026-11-22T09:12:03.25Z`; later times are written as the last
/// possible time.
pub(crate) fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

/// Microseconds of the Unix epoch, as [`timestamp`].
pub(crate) fn timestamp_micros(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    Timestamp::from_microsecond(micros)
        .unwrap_or(Timestamp::MAX)
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_rfc_3339() {
        assert_eq!(timestamp(1_700_000_000_250), "2023-11-14T22:13:20.25Z");
        assert!(timestamp(u64::MAX).starts_with("9999-"));
        let micros = timestamp_micros(1_700_000_000_250_001);
        assert_eq!(micros, "2023-11-14T22:13:20.250001Z");
    }
}
