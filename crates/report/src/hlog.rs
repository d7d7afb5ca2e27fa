//! The interval log of `HdrHistogram`, format 1.3: one histogram per second and kind, from which
//! any window of a run can be cut out afterwards.
//!
//! Times are seconds from the first connection; the base time in the header makes them points in
//! time.

use std::io;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry, LogIteratorError};

use crate::hdr::{self, HistogramError};
use thrum_figures::fraction;

/// Divisor of the highest value of an interval, for display only: milliseconds.
const MAX_VALUE_DIVISOR: f64 = 1e6;

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HlogError {
    /// A line is not of the format.
    #[error("line {line} is not one of an HdrHistogram log; the log was changed or cut off")]
    Malformed {
        /// Number of the line, from 1.
        line: usize,
    },
    /// A histogram cannot be read.
    #[error("the interval '{tag}' at {start_seconds} s cannot be read: {source}")]
    Histogram {
        /// Its tag.
        tag: String,
        /// Its start.
        start_seconds: f64,
        /// Why.
        source: HistogramError,
    },
    /// The window holds no interval.
    #[error("the log has no interval between {from_seconds} s and {to_seconds} s")]
    EmptyWindow {
        /// Its start.
        from_seconds: f64,
        /// Its end.
        to_seconds: f64,
    },
}

/// An interval of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    /// The measured latency: `e2e`; empty if the log has no tag.
    pub tag: String,
    /// Seconds from the base time to its start.
    pub start_seconds: f64,
    /// Its length.
    pub duration_seconds: f64,
    /// Its values.
    pub histogram: Histogram<u64>,
}

/// The first lines of a log; `started_unix_seconds` is the time of the first connection.
pub fn header(started_unix_seconds: f64) -> String {
    format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {started_unix_seconds:.3} (seconds since epoch)]\n\
         #[BaseTime: {started_unix_seconds:.3} (seconds since epoch)]\n\
         #[MaxValueDivisor: {MAX_VALUE_DIVISOR:.3}]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n"
    )
}

/// The line of an interval, line break included; empty if a count exceeds 63 bits. Characters that
/// a tag must not contain are replaced.
pub fn line(
    tag: &str,
    start_seconds: f64,
    duration_seconds: f64,
    histogram: &Histogram<u64>,
) -> String {
    let Some(text) = hdr::encode(histogram) else {
        return String::new();
    };
    let head = line_head(tag, start_seconds, duration_seconds, histogram);
    format!("{head}{text}\n")
}

/// The line of an interval up to its histogram.
pub(crate) fn line_head(
    tag: &str,
    start_seconds: f64,
    duration_seconds: f64,
    histogram: &Histogram<u64>,
) -> String {
    let tag = tag.replace([',', ' ', '\r', '\n'], "_");
    let max = fraction(histogram.max()) / MAX_VALUE_DIVISOR;
    format!("Tag={tag},{start_seconds:.3},{duration_seconds:.3},{max:.3},")
}

/// Writes a log second by second.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
}

impl<W: io::Write> Writer<W> {
    /// Writes the header; see [`header`].
    ///
    /// # Errors
    /// The output fails.
    pub fn new(mut out: W, started_unix_seconds: f64) -> io::Result<Self> {
        out.write_all(header(started_unix_seconds).as_bytes())?;
        Ok(Self { out })
    }

    /// Writes an interval; one without values is left out.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(
        &mut self,
        tag: &str,
        start_seconds: f64,
        duration_seconds: f64,
        histogram: &Histogram<u64>,
    ) -> io::Result<()> {
        if histogram.is_empty() {
            return Ok(());
        }
        let line = line(tag, start_seconds, duration_seconds, histogram);
        self.out.write_all(line.as_bytes())
    }

    /// Flushes and gives back the output.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

/// The intervals of a log that `is_wanted` takes by their start in seconds. A last line without
/// line break was cut off by the end of the run and is left out.
///
/// # Errors
/// A line or a wanted histogram cannot be read.
pub fn read(log: &str, is_wanted: impl Fn(f64) -> bool) -> Result<Vec<Interval>, HlogError> {
    let mut intervals = Vec::new();
    each(log, is_wanted, |interval| {
        intervals.push(interval);
        Ok(())
    })?;
    Ok(intervals)
}

/// Gives the same intervals to `take`, one after the other: all of them together may be more than
/// the memory.
///
/// # Errors
/// A line or a wanted histogram cannot be read, or `take` fails.
pub fn each(
    log: &str,
    is_wanted: impl Fn(f64) -> bool,
    mut take: impl FnMut(Interval) -> Result<(), HlogError>,
) -> Result<(), HlogError> {
    let whole = log.rfind('\n').map_or("", |end| &log[..=end]);
    for entry in IntervalLogIterator::new(whole.as_bytes()) {
        let entry = entry.map_err(|LogIteratorError::ParseError { offset }| {
            let before = whole.as_bytes().iter().take(offset);
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            HlogError::Malformed { line }
        })?;
        let LogEntry::Interval(entry) = entry else {
            continue;
        };
        let start_seconds = entry.start_timestamp().as_secs_f64();
        if !is_wanted(start_seconds) {
            continue;
        }
        let tag = entry
            .tag()
            .map_or_else(String::new, |tag| tag.as_str().to_owned());
        match hdr::decode(entry.encoded_histogram()) {
            Ok(histogram) => take(Interval {
                tag,
                start_seconds,
                duration_seconds: entry.duration().as_secs_f64(),
                histogram,
            })?,
            Err(source) => {
                return Err(HlogError::Histogram {
                    tag,
                    start_seconds,
                    source,
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
    use proptest::prelude::*;

    use super::*;

    fn histogram(values: &[u64]) -> Histogram<u64> {
        let mut histogram = Histogram::new(3).unwrap();
        for value in values {
            histogram.record(*value).unwrap();
        }
        histogram
    }

    #[test]
    fn lines_are_those_of_the_reference_writer() {
        let values = histogram(&[1_000_000, 41_000_000]);
        let (mut expected, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
        IntervalLogWriterBuilder::new()
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(&mut expected, &mut serializer)
            .unwrap()
            .write_histogram(
                &values,
                Duration::from_millis(12_345),
                Duration::from_secs(1),
                Tag::new("e2e"),
            )
            .unwrap();
        let expected = String::from_utf8(expected).unwrap();
        let ours = format!(
            "#[MaxValueDivisor: 1000000.000]\n{}",
            line("e2e", 12.345, 1.0, &values)
        );
        assert_eq!(ours, expected);
        assert!(ours.contains(",HISTFAAA"), "{ours}");
    }

    #[test]
    fn a_log_has_a_header_and_no_empty_intervals() {
        let mut writer = Writer::new(Vec::new(), 1_795_252_323.0).unwrap();
        writer.write("e2e", 0.0, 1.0, &histogram(&[])).unwrap();
        writer.write("a b,c", 1.0, 1.0, &histogram(&[5])).unwrap();
        let log = String::from_utf8(writer.finish().unwrap()).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        assert_eq!(lines.len(), 6);
        assert_eq!(lines[0], "#[Histogram log format version 1.3]");
        assert_eq!(
            lines[2],
            "#[BaseTime: 1795252323.000 (seconds since epoch)]"
        );
        assert!(
            lines[5].starts_with("Tag=a_b_c,1.000,1.000,0.000,HIST"),
            "{}",
            lines[5]
        );
    }

    #[test]
    fn a_log_cut_off_in_its_last_line_loses_only_that() {
        let mut log = header(0.0);
        log.push_str(&line("e2e", 0.0, 1.0, &histogram(&[1])));
        let second = line("e2e", 1.0, 1.0, &histogram(&[2]));
        log.push_str(&second[..second.len() - 9]);
        assert_eq!(read(&log, |_| true).unwrap().len(), 1);
    }

    #[test]
    fn a_log_that_was_changed_is_refused() {
        let good = line("e2e", 0.0, 1.0, &histogram(&[1]));
        let bad = good.replace("HIST", "****");
        let error = read(&format!("{good}{bad}"), |_| true).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the interval 'e2e' at 0 s cannot be read")
        );
        let error = read(&format!("{good}nonsense\n"), |_| true).unwrap_err();
        assert!(matches!(error, HlogError::Malformed { line: 2 }), "{error}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn written_logs_are_read_back(
            seconds in prop::collection::vec(prop::collection::vec(1_u64..1 << 40, 1..20), 0..10),
        ) {
            let mut writer = Writer::new(Vec::new(), 1e9).unwrap();
            for (start, values) in (0_u32..).zip(&seconds) {
                writer.write("e2e", f64::from(start), 1.0, &histogram(values)).unwrap();
            }
            let log = String::from_utf8(writer.finish().unwrap()).unwrap();
            let intervals = read(&log, |_| true).unwrap();
            prop_assert_eq!(intervals.len(), seconds.len());
            for ((start, values), interval) in (0_u32..).zip(&seconds).zip(intervals) {
                prop_assert_eq!(&interval.tag, "e2e");
                prop_assert_eq!(interval.start_seconds.to_bits(), f64::from(start).to_bits());
                prop_assert_eq!(interval.histogram, histogram(values));
            }
        }
    }
}
