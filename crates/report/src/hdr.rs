//! Histograms as text: the HDR V2 format with deflate, as base64, which every `HdrHistogram` reads.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{
    DeserializeError, Deserializer, Serializer as _, V2DeflateSerializer,
};

/// Longest text of a histogram that is read; one of three digits and 64 bits has at most 1 MiB.
const TEXT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Why a text is not a histogram.
#[derive(Debug, thiserror::Error)]
pub enum HistogramError {
    /// Nothing was kept.
    #[error("the run keeps no histogram of it; run again with this version")]
    Missing,
    /// More than any histogram needs.
    #[error("a histogram of {0} bytes of text is more than the {TEXT_BYTES_MAX} allowed")]
    TooLong(usize),
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
    let mut histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice())?;
    histogram.auto(true);
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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
