//! A metric with its samples, before it is written in a format.

use std::borrow::Cow;

/// What the values of a metric mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It only increases, from the start of the broker on.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How often a value fell into a range.
    Histogram,
    /// Constants, which are labels; the value is 1.
    Info,
}

/// The unit of a metric, the last word of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// A number of things.
    None,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
}

/// A metric; its name is without the `_total` or `_info` that its samples have.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
    /// One sentence.
    pub(crate) help: &'static str,
    pub(crate) samples: Vec<Sample>,
}

/// A label and its value.
pub(crate) type Label = (&'static str, Cow<'static, str>);

/// One series of a metric.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    pub(crate) labels: Vec<Label>,
    pub(crate) value: Value,
}

/// The value of a series.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
    Histogram(Histogram),
}

/// The values of a histogram.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Upper bounds, and the number of values up to each of them.
    pub(crate) buckets: Vec<(f64, u64)>,
    /// Number of values.
    pub(crate) count: u64,
    /// Their sum.
    pub(crate) sum: f64,
    /// Narrow cells: the highest value of each, and its number; none if only the buckets are known.
    pub(crate) cells: Option<Vec<(f64, u64)>>,
}

impl Family {
    /// A metric without samples; its unit is the end of its name.
    pub(crate) fn new(name: &'static str, kind: Kind, help: &'static str) -> Self {
        let unit = match name.rsplit('_').next() {
            Some("bytes") => Unit::Bytes,
            Some("seconds") => Unit::Seconds,
            _ => Unit::None,
        };
        Self {
            name,
            kind,
            unit,
            help,
            samples: Vec::new(),
        }
    }

    /// With one sample more, without labels.
    pub(crate) fn with(self, value: Value) -> Self {
        self.with_labels(Vec::new(), value)
    }

    /// With one sample more.
    pub(crate) fn with_labels(mut self, labels: Vec<Label>, value: Value) -> Self {
        self.samples.push(Sample { labels, value });
        self
    }

    /// With one sample more for each value that is known.
    pub(crate) fn with_each<T>(
        mut self,
        label: &'static str,
        all: impl IntoIterator<Item = T>,
        series: impl Fn(T) -> Option<(Cow<'static, str>, u64)>,
    ) -> Self {
        let series = all.into_iter().filter_map(series);
        self.samples.extend(series.map(|(value, number)| Sample {
            labels: vec![(label, value)],
            value: Value::Whole(number),
        }));
        self
    }
}

impl Value {
    /// A number, or none if it is not known.
    pub(crate) fn whole(number: Option<u64>) -> Option<Self> {
        number.map(Self::Whole)
    }
}
