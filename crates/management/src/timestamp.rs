//! The format of times in the interface.

use jiff::Timestamp;

/// Milliseconds of the Unix epoch as `2026-11-22T09:12:03.250Z`, always with three digits, so that
/// the texts have the order of the times; later times are written as the last possible time.
pub(crate) fn timestamp(millis: u64) -> String {
    let millis = i64::try_from(millis).unwrap_or(i64::MAX);
    let time = Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX);
    format!("{time:.3}")
}

/// Microseconds of the Unix epoch, as [`timestamp`], with six digits.
pub(crate) fn timestamp_micros(micros: u64) -> String {
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::MAX);
    format!("{time:.6}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_rfc_3339_with_the_same_number_of_digits() {
        assert_eq!(timestamp(1_700_000_000_000), "2023-11-14T22:13:20.000Z");
        assert_eq!(timestamp(1_700_000_000_250), "2023-11-14T22:13:20.250Z");
        assert_eq!(timestamp(u64::MAX), "9999-12-30T22:00:00.999Z");
        let micros = timestamp_micros(1_700_000_000_250_001);
        assert_eq!(micros, "2023-11-14T22:13:20.250001Z");
        let micros = timestamp_micros(1_700_000_000_250_000);
        assert_eq!(micros, "2023-11-14T22:13:20.250000Z");
    }
}
