//! Distributions out of histograms, and back.

use hdrhistogram::Histogram;

use super::{Distribution, Latencies, Quantiles};
use crate::hdr::{self, HistogramError};
use crate::metric::DISTRIBUTIONS;
use thrum_figures::{fraction, whole};

/// The quantiles of [`Quantiles`], in the order of its fields.
const QUANTILES: [f64; 7] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999];

/// Points of a percentile curve.
const CURVE_POINTS_MAX: u32 = 120;

/// Fractions of a curve are kept to twelve digits: shorter, and enough for 10^11 values.
const CURVE_PRECISION: f64 = 1e12;

impl Quantiles {
    /// The quantiles of a histogram of nanoseconds; all 0 if it is empty.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return Self::default();
        }
        let mut values = histogram.value_at_quantiles(QUANTILES);
        let mut next = || values.next().unwrap_or_default();
        Self {
            count: histogram.len(),
            min: histogram.min(),
            mean: whole(histogram.mean()),
            p50: next(),
            p75: next(),
            p90: next(),
            p95: next(),
            p99: next(),
            p99_9: next(),
            p99_99: next(),
            max: histogram.max(),
        }
    }

    /// The figures with the names they have in [`crate::metric`] and in `result.json`.
    pub const fn figures(&self) -> [(&'static str, u64); 11] {
        [
            ("count", self.count),
            ("min", self.min),
            ("mean", self.mean),
            ("p50", self.p50),
            ("p75", self.p75),
            ("p90", self.p90),
            ("p95", self.p95),
            ("p99", self.p99),
            ("p99.9", self.p99_9),
            ("p99.99", self.p99_99),
            ("max", self.max),
        ]
    }

    /// The figure of this name.
    pub fn figure(&self, name: &str) -> Option<u64> {
        let figures = self.figures();
        let found = figures.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| *value)
    }
}

impl Latencies {
    /// Keeps a histogram that errors follow from, unless it is empty.
    pub fn keep_floor(&mut self, name: &str, histogram: &Histogram<u64>) {
        let text = hdr::encode(histogram).filter(|_| !histogram.is_empty());
        if let Some(text) = text {
            self.floors.insert(name.to_owned(), text);
        }
    }

    /// A histogram that errors follow from; none if it was empty.
    ///
    /// # Errors
    /// Its text was changed or cut off.
    pub fn floor(&self, name: &str) -> Result<Option<Histogram<u64>>, HistogramError> {
        let text = self.floors.get(name);
        text.map(|text| hdr::decode(text)).transpose()
    }
}

impl Distribution {
    /// Quantiles, curve and text of a histogram of nanoseconds. A histogram with a count of more
    /// than 63 bits has no text.
    pub fn from_histogram(histogram: &Histogram<u64>) -> Self {
        Self {
            quantiles: Quantiles::from_histogram(histogram),
            curve: curve(histogram),
            hdr: hdr::encode(histogram).unwrap_or_default(),
            ..Self::default()
        }
    }

    /// The histogram, for merging and for quantiles that are not kept.
    ///
    /// # Errors
    /// The text is not a histogram.
    pub fn histogram(&self) -> Result<Histogram<u64>, HistogramError> {
        hdr::decode(&self.hdr)
    }

    /// One distribution of the values of all, which differs from the mean of their quantiles.
    ///
    /// # Errors
    /// One of the texts is not a histogram, or the list is empty.
    pub fn merge<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Result<Self, HistogramError> {
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or(HistogramError::Missing)?.histogram()?;
        for part in parts {
            all.add(part.histogram()?)?;
        }
        Ok(Self::from_histogram(&all))
    }
}

impl Latencies {
    /// All distributions with their names, in the order of [`DISTRIBUTIONS`].
    pub fn named(&self) -> [(&'static str, Option<&Distribution>); 10] {
        let all = [
            &self.e2e,
            &self.service,
            &self.publish_ack,
            &self.publish_response,
            &self.connect,
            &self.subscribe,
            &self.reconnect,
            &self.generator_lag,
            &self.receive_lag,
            &self.open_lag,
        ];
        std::array::from_fn(|index| (DISTRIBUTIONS[index], all[index].as_ref()))
    }

    /// The latency that the run is about: of deliveries, else of acknowledgements, else of
    /// connecting.
    pub fn main(&self) -> Option<(&'static str, &Distribution)> {
        ["e2e", "publish_response", "publish_ack", "connect"]
            .into_iter()
            .find_map(|name| Some((name, self.find(name)?)))
    }

    /// The distribution of this name.
    pub fn find(&self, name: &str) -> Option<&Distribution> {
        let named = self.named();
        let (_, distribution) = named.iter().find(|(known, _)| *known == name)?;
        *distribution
    }

    /// Sets the distribution of this name; false if the name is unknown.
    pub fn set(&mut self, name: &str, distribution: Option<Distribution>) -> bool {
        let place = match name {
            "e2e" => &mut self.e2e,
            "service" => &mut self.service,
            "publish_ack" => &mut self.publish_ack,
            "publish_response" => &mut self.publish_response,
            "connect" => &mut self.connect,
            "subscribe" => &mut self.subscribe,
            "reconnect" => &mut self.reconnect,
            "generator_lag" => &mut self.generator_lag,
            "receive_lag" => &mut self.receive_lag,
            "open_lag" => &mut self.open_lag,
            _ => return false,
        };
        *place = distribution;
        true
    }
}

/// Points that lie evenly on an axis of 1/(1 - fraction), from the lowest value to the highest.
fn curve(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    if histogram.is_empty() {
        return Vec::new();
    }
    let decades = fraction(histogram.len()).log10();
    let steps = CURVE_POINTS_MAX - 2;
    let fractions = (1..=steps).map(|step| {
        let rest = 10_f64.powf(-decades * f64::from(step) / f64::from(steps));
        ((1.0 - rest) * CURVE_PRECISION).round() / CURVE_PRECISION
    });
    let mut points = vec![(0.0, histogram.min())];
    for (part, value) in fractions
        .clone()
        .zip(histogram.value_at_quantiles(fractions))
    {
        if points
            .last()
            .is_some_and(|&(before, _)| part > before && part < 1.0)
        {
            points.push((part, value));
        }
    }
    points.push((1.0, histogram.max()));
    points
}

#[cfg(test)]
mod tests {
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
    fn quantiles_are_those_of_the_values() {
        let values: Vec<u64> = (1..=1000).collect();
        let quantiles = Quantiles::from_histogram(&histogram(&values));
        assert_eq!(quantiles.count, 1000);
        assert_eq!((quantiles.min, quantiles.max), (1, 1000));
        assert_eq!((quantiles.p50, quantiles.p99), (500, 990));
        assert_eq!((quantiles.p99_9, quantiles.p99_99), (999, 1000));
        assert_eq!(quantiles.figure("p99.9"), Some(999));
        assert_eq!(quantiles.figure("p42"), None);
    }

    #[test]
    fn nothing_measured_is_an_empty_distribution() {
        let empty = Distribution::from_histogram(&histogram(&[]));
        assert_eq!(empty.quantiles, Quantiles::default());
        assert!(empty.curve.is_empty());
        assert!(empty.histogram().unwrap().is_empty());
    }

    #[test]
    fn the_curve_has_few_points_and_reaches_the_rare_values() {
        let mut values = vec![100; 99_999];
        values.push(5_000);
        let curve = Distribution::from_histogram(&histogram(&values)).curve;
        assert_eq!(curve.len(), 120);
        assert_eq!(curve[0], (0.0, 100));
        assert_eq!(curve[118].1, 100);
        assert_eq!(curve[119].0.to_bits(), 1.0_f64.to_bits());
        assert!(curve[119].1 >= 5_000);
    }

    #[test]
    fn a_text_that_is_no_histogram_is_refused() {
        let of = |hdr: &str| Distribution {
            hdr: hdr.to_owned(),
            ..Distribution::default()
        };
        assert!(matches!(of("").histogram(), Err(HistogramError::Missing)));
        assert!(matches!(
            of("*").histogram(),
            Err(HistogramError::Base64(_))
        ));
        assert!(matches!(
            of("AAAA").histogram(),
            Err(HistogramError::Format(_))
        ));
    }

    #[test]
    fn merged_runs_have_the_quantiles_of_all_values() {
        let quick = Distribution::from_histogram(&histogram(&[10; 99]));
        let slow = Distribution::from_histogram(&histogram(&[1_000; 1]));
        let both = Distribution::merge([&quick, &slow]).unwrap();
        // The mean of the two p50 would be 505.
        assert_eq!(both.quantiles.p50, 10);
        assert_eq!(both.quantiles.p99, 10);
        assert_eq!(both.quantiles.max, 1_000);
        assert!(Distribution::merge([]).is_err());
    }

    #[test]
    fn every_distribution_is_set_and_found_by_its_name() {
        for name in DISTRIBUTIONS {
            let mut latencies = Latencies::default();
            assert!(latencies.set(name, Some(Distribution::default())));
            assert!(latencies.find(name).is_some());
            let present = latencies
                .named()
                .iter()
                .filter(|(_, of)| of.is_some())
                .count();
            assert_eq!(present, 1);
        }
        assert!(!Latencies::default().set("x", None));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn text_and_back_is_the_same_histogram(
            values in prop::collection::vec(0_u64..1 << 40, 0..200),
        ) {
            let original = histogram(&values);
            let distribution = Distribution::from_histogram(&original);
            prop_assert_eq!(distribution.histogram().unwrap(), original);
        }

        #[test]
        fn curves_ascend(values in prop::collection::vec(0_u64..1 << 40, 1..200)) {
            let curve = Distribution::from_histogram(&histogram(&values)).curve;
            prop_assert!(curve.len() <= 120);
            for pair in curve.windows(2) {
                prop_assert!(pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1, "{:?}", pair);
            }
        }
    }
}
