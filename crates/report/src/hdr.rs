//! Histograms as text: the HDR V2 format with deflate, as base64, which every `HdrHistogram` reads.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, Serializer as _, V2DeflateSerializer,
};

/// Longest text of a histogram that is read; one of three digits and 64 bits has at most 1 MiB.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Longest counts of a histogram that is read, inflated; three digits and 64 bits need half of a
/// MiB. The reader allocates what a histogram claims.
const COUNTS_BYTES_MAX: u32 = 8 * 1024 * 1024;

/// Most significant digits of a histogram that is read: those of thrum's. Five would take 50 MiB.
const DIGITS_MAX: u32 = 3;

/// Highest value of a histogram that is read: 200 days in nanoseconds.
const HIGHEST_MAX: u64 = 1 << 54;

/// First bytes of a histogram in the deflated form.
const DEFLATED: [u8; 4] = [0x1c, 0x84, 0x93, 0x14];

/// Bytes of the deflated form before the deflated bytes.
const DEFLATED_HEAD_BYTES: usize = 8;

/// Bytes of a histogram before its counts.
const HEAD_BYTES: usize = 40;

/// Why a text is not a histogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Nothing was kept.
    #[error("the run keeps no histogram of it; run again with this version")]
    Missing,
    /// More than any histogram needs.
    #[error("a histogram of {0} bytes of text is more than the {TEXT_BYTES_MAX} allowed")]
    TooLong(usize),
    /// Claims more counts than any histogram has.
    #[error(
        "a histogram that claims {0} bytes of counts is more than the {COUNTS_BYTES_MAX} allowed"
    )]
    TooManyCounts(u32),
    /// Finer or wider than those of thrum, which takes memory and time.
    #[error(
        "a histogram of {digits} digits from {lowest} to {highest}: {DIGITS_MAX} digits from 1 to {HIGHEST_MAX} are \
         allowed"
    )]
    Range {
        /// Significant digits.
        digits: u32,
        /// Lowest value that it tells from 0.
        lowest: u64,
        /// Highest value.
        highest: u64,
    },
    /// Not base64.
    #[error("the histogram is not base64 and was changed or cut off: {0}")]
    Base64(#[from] base64::DecodeError),
    /// Not an HDR histogram.
    #[error("the histogram is not in the HDR V2 format and was changed or cut off: {0}")]
    Format(#[from] DeserializeError),
    /// Values of one cannot be kept in the other.
    #[error("the histograms cannot be merged: {0}")]
    Merge(#[from] hdrhistogram::AdditionError),
}

/// The histogram as text; none if a count exceeds 63 bits.
pub(crate) fn encode(histogram: &Histogram<u64>) -> Option<String> {
    let mut bytes = Vec::new();
    let written = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    written.ok().map(|_| STANDARD.encode(&bytes))
}

/// The histogram of a text; it resizes automatically.
pub(crate) fn decode(text: &str) -> Result<Histogram<u64>, HistogramError> {
    if text.is_empty() {
        return Err(HistogramError::Missing);
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(HistogramError::TooLong(text.len()));
    }
    let bytes = STANDARD.decode(text)?;
    if let Some(head) = Head::of(&bytes) {
        head.check()?;
    }
    let mut histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice())?;
    histogram.auto(true);
    Ok(histogram)
}

/// The claims of a histogram, for which its reader allocates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    counts_bytes: u32,
    digits: u32,
    lowest: u64,
    highest: u64,
}

impl Head {
    /// The claims of a text; none if it has no such head.
    fn of(bytes: &[u8]) -> Option<Self> {
        let mut inflated = [0; HEAD_BYTES];
        let head = if bytes.starts_with(&DEFLATED) {
            let mut reader = ZlibDecoder::new(bytes.get(DEFLATED_HEAD_BYTES..)?);
            reader.read_exact(&mut inflated).ok()?;
            &inflated
        } else {
            bytes.first_chunk::<HEAD_BYTES>()?
        };
        // A cookie, the length, an offset, the digits, the range, a factor.
        let (_, rest) = head.split_first_chunk::<4>()?;
        let (counts_bytes, rest) = rest.split_first_chunk::<4>()?;
        let (_, rest) = rest.split_first_chunk::<4>()?;
        let (digits, rest) = rest.split_first_chunk::<4>()?;
        let (lowest, rest) = rest.split_first_chunk::<8>()?;
        let (highest, _) = rest.split_first_chunk::<8>()?;
        Some(Self {
            counts_bytes: u32::from_be_bytes(*counts_bytes),
            digits: u32::from_be_bytes(*digits),
            lowest: u64::from_be_bytes(*lowest),
            highest: u64::from_be_bytes(*highest),
        })
    }

    const fn check(self) -> Result<(), HistogramError> {
        if self.counts_bytes > COUNTS_BYTES_MAX {
            return Err(HistogramError::TooManyCounts(self.counts_bytes));
        }
        if self.digits > DIGITS_MAX || self.lowest != 1 || self.highest > HIGHEST_MAX {
            return Err(HistogramError::Range {
                digits: self.digits,
                lowest: self.lowest,
                highest: self.highest,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counts_are_never_allocated_from_a_claim() {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record(1_000_000).unwrap();
        let whole = STANDARD.decode(encode(&histogram).unwrap()).unwrap();
        let head = Head::of(&whole).unwrap();
        assert!((1..1_000).contains(&head.counts_bytes), "{head:?}");
        assert_eq!((head.digits, head.lowest), (3, 1));
        let mut plain = Vec::new();
        ZlibDecoder::new(&whole[DEFLATED_HEAD_BYTES..])
            .read_to_end(&mut plain)
            .unwrap();
        plain[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
        let mut deflated = DEFLATED.to_vec();
        let mut zlib =
            flate2::read::ZlibEncoder::new(plain.as_slice(), flate2::Compression::fast());
        let mut packed = Vec::new();
        zlib.read_to_end(&mut packed).unwrap();
        deflated.extend(u32::try_from(packed.len()).unwrap().to_be_bytes());
        deflated.extend(packed);
        for bytes in [plain, deflated] {
            let refused = decode(&STANDARD.encode(&bytes)).unwrap_err();
            assert!(
                matches!(refused, HistogramError::TooManyCounts(u32::MAX)),
                "{refused}"
            );
        }
    }

    #[test]
    fn a_histogram_that_is_finer_or_wider_than_ours_is_refused_before_it_is_made() {
        let text = |lowest, highest, digits| {
            let mut histogram = Histogram::new_with_bounds(lowest, highest, digits).unwrap();
            histogram.record(1_000).unwrap();
            encode(&histogram).unwrap()
        };
        assert!(decode(&text(1, HIGHEST_MAX, 3)).is_ok());
        assert!(decode(&text(1, 1 << 40, 2)).is_ok());
        for (lowest, highest, digits) in [(1, 1 << 40, 4), (1, HIGHEST_MAX + 1, 3), (2, 1 << 40, 3)]
        {
            let refused = decode(&text(lowest, highest, digits)).unwrap_err();
            let expected = format!("a histogram of {digits} digits from {lowest} to {highest}: ");
            assert!(refused.to_string().starts_with(&expected), "{refused}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_changed_text_is_refused_or_read_but_makes_nothing_panic(
            values in prop::collection::vec(1_u64..1 << 30, 1..20),
            at in any::<prop::sample::Index>(),
            letter in "[A-Za-z0-9+/=]",
        ) {
            let mut histogram = Histogram::new(3).unwrap();
            for value in values {
                histogram.record(value).unwrap();
            }
            let mut text = encode(&histogram).unwrap();
            let at = at.index(text.len());
            text.replace_range(at..=at, &letter);
            if let Ok(read) = decode(&text) {
                prop_assert!(read.len() >= read.count_at(read.max()));
            }
        }
    }
}
