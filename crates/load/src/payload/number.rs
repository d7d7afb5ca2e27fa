//! Random numbers between two limits with a fixed number of decimals, without rounding.

use std::io::Write as _;

use super::filler::Filler;

/// Digits of a limit at most: any such number with nine decimals fits into 64 bits.
const DIGITS_MAX: usize = 9;

/// Decimals of a limit at most.
const DECIMALS_MAX: usize = 9;

/// Numbers from a low to a high limit, in units of the last decimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    low: i64,
    /// The high limit less the low one.
    width: u64,
    decimals: usize,
}

impl Range {
    /// Whole numbers.
    pub(super) fn whole(low: &str, high: &str) -> Result<Self, &'static str> {
        if low.contains('.') || high.contains('.') {
            return Err("needs two whole numbers, such as {int:0:100}");
        }
        Self::new(low, high, 0).ok_or("needs two whole numbers, such as {int:0:100}")?
    }

    /// Numbers with as many decimals as the limits show, at least two.
    pub(super) fn decimal(low: &str, high: &str) -> Result<Self, &'static str> {
        Self::new(low, high, 2).ok_or(
            "needs two numbers with at most nine digits and nine decimals, such as {float:-5:40.5}",
        )?
    }

    fn new(low: &str, high: &str, decimals_min: usize) -> Option<Result<Self, &'static str>> {
        let decimals_of = |text: &str| text.split_once('.').map_or(0, |(_, after)| after.len());
        let decimals = decimals_of(low).max(decimals_of(high)).max(decimals_min);
        let (low, high) = (units(low, decimals)?, units(high, decimals)?);
        if high < low {
            return Some(Err("has its limits in the wrong order"));
        }
        Some(Ok(Self {
            low,
            width: high.abs_diff(low),
            decimals,
        }))
    }

    /// Appends a random number.
    pub(super) fn write(self, filler: &mut Filler, out: &mut Vec<u8>) {
        // The high half of a product is as evenly spread as the number: cheaper than a remainder.
        let product = u128::from(filler.random()) * (u128::from(self.width) + 1);
        let above_low = u64::try_from(product >> 64).unwrap_or(self.width);
        self.write_units(self.low.saturating_add_unsigned(above_low), out);
    }

    /// Appends the low limit.
    pub(super) fn write_low(self, out: &mut Vec<u8>) {
        self.write_units(self.low, out);
    }

    /// Appends the number nearest to 0.
    pub(super) fn write_nearest_to_zero(self, out: &mut Vec<u8>) {
        let high = self.low.saturating_add_unsigned(self.width);
        self.write_units(self.low.max(high.min(0)), out);
    }

    /// Characters of the longest number: one of the limits.
    pub(super) fn bytes_max(self) -> usize {
        let [mut low, mut high] = [Vec::new(), Vec::new()];
        self.write_units(self.low, &mut low);
        self.write_units(self.low.saturating_add_unsigned(self.width), &mut high);
        low.len().max(high.len())
    }

    fn write_units(self, units: i64, out: &mut Vec<u8>) {
        if units < 0 {
            out.push(b'-');
        }
        // Writing to memory does not fail.
        let digits = self.decimals + usize::from(self.decimals > 0);
        let start = out.len();
        let written = write!(out, "{:0digits$}", units.unsigned_abs());
        debug_assert!(written.is_ok(), "writing to memory cannot fail");
        if self.decimals > 0 {
            let point = out.len().saturating_sub(self.decimals).max(start);
            out.insert(point, b'.');
        }
    }
}

/// A number as a count of units of its last decimal.
fn units(text: &str, decimals: usize) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str, most| {
        (1..=most).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    if !is_number(whole, DIGITS_MAX) || !is_number(part, DECIMALS_MAX) {
        return None;
    }
    let padding = "0".repeat(decimals.saturating_sub(part.len()));
    let part = &part[..part.len().min(decimals)];
    let units: i64 = format!("{whole}{part}{padding}").parse().ok()?;
    Some(if is_negative { -units } else { units })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(range: Range, units: i64) -> String {
        let mut out = Vec::new();
        range.write_units(units, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers_have_the_decimals_of_their_limits() {
        let range = Range::decimal("-5", "40.125").unwrap();
        assert_eq!(text(range, range.low), "-5.000");
        assert_eq!(text(range, 40_125), "40.125");
        assert_eq!(text(range, -1), "-0.001");
        assert_eq!(text(range, 0), "0.000");
        assert_eq!(range.bytes_max(), 6);
        let range = Range::whole("-10", "7").unwrap();
        assert_eq!(
            (text(range, -10), text(range, 0)),
            ("-10".into(), "0".into())
        );
        assert_eq!(range.bytes_max(), 3);
    }

    #[test]
    fn the_number_nearest_to_zero_is_within_the_limits() {
        for (low, high, nearest) in [("-5", "5", "0"), ("2", "5", "2"), ("-5", "-2", "-2")] {
            let mut out = Vec::new();
            Range::whole(low, high)
                .unwrap()
                .write_nearest_to_zero(&mut out);
            assert_eq!(out, nearest.as_bytes());
        }
    }

    #[test]
    fn both_limits_and_nothing_beyond_are_drawn() {
        let range = Range::whole("-1", "1").unwrap();
        let mut filler = Filler::new(1);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let mut out = Vec::new();
            range.write(&mut filler, &mut out);
            seen.insert(String::from_utf8(out).unwrap());
        }
        assert_eq!(Vec::from_iter(seen), ["-1", "0", "1"]);
    }

    #[test]
    fn the_widest_limits_fit() {
        let range = Range::decimal("-999999999.999999999", "999999999.999999999").unwrap();
        assert_eq!(range.width, 1_999_999_999_999_999_998);
        assert_eq!(range.bytes_max(), 20);
    }

    #[test]
    fn a_number_that_is_none_is_refused() {
        for limit in [
            "",
            "-",
            ".5",
            "5.",
            "1e3",
            "+1",
            "1.0.0",
            "nan",
            "1234567890",
            "0.1234567890",
        ] {
            assert!(Range::decimal("0", limit).is_err(), "{limit}");
            assert!(Range::whole(limit, "5").is_err(), "{limit}");
        }
        assert_eq!(
            Range::whole("5", "4"),
            Err("has its limits in the wrong order")
        );
        assert!(Range::whole("1.5", "4").is_err());
    }
}
