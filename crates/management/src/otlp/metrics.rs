//! Metrics of `/metrics` as a request `ExportMetricsServiceRequest`.
//!
//! Names are those of `/metrics` without `_total`, which Prometheus adds to what it gets by OTLP,
//! so that a query finds a metric on both ways.

use super::attributes;
use crate::metrics::family::{Family, Histogram, Kind, Sample, Unit, Value};
use crate::metrics::native::{Buckets, SCHEMA, buckets};
use crate::wire::Message;

/// Sums and buckets are those since the start.
const CUMULATIVE: u64 = 2;

/// From the start of the broker to now, in nanoseconds of the Unix epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Period {
    pub(super) start: u64,
    pub(super) now: u64,
}

/// Writes a request; returns how many points it has, too.
pub(super) fn request(resource: &[u8], families: &[Family], period: Period) -> (Vec<u8>, u64) {
    let bytes = attributes::request(resource, |out| {
        attributes::scope(out, None, |out| {
            for family in families {
                out.message(2, |out| metric(family, period, out));
            }
        });
    });
    let points = families.iter().map(|family| family.samples.len() as u64);
    (bytes, points.sum())
}

/// `Metric`: name 1, description 2, unit 3, gauge 5, sum 7, histogram 9, exponential histogram 10;
/// of each of these, points 1, temporality 2; of a sum, is monotonic 3.
fn metric(family: &Family, period: Period, out: &mut Message) {
    let suffix = if family.kind == Kind::Info {
        "_info"
    } else {
        ""
    };
    out.text(1, &format!("{}{suffix}", family.name));
    out.text(2, family.help);
    match family.unit {
        // With the unit 1 Prometheus would call a gauge a ratio.
        Unit::None => {}
        Unit::Bytes => out.text(3, "By"),
        Unit::Seconds => out.text(3, "s"),
    }
    let is_native = family.samples.iter().any(|sample| {
        let Value::Histogram(found) = &sample.value else {
            return false;
        };
        found.cells.is_some()
    });
    let (field, is_cumulative) = match family.kind {
        Kind::Counter => (7, true),
        Kind::Gauge | Kind::Info => (5, false),
        Kind::Histogram if is_native => (10, true),
        Kind::Histogram => (9, true),
    };
    out.message(field, |out| {
        for sample in &family.samples {
            out.message(1, |out| point(sample, period, is_native, out));
        }
        if is_cumulative {
            out.number(2, CUMULATIVE);
        }
        if family.kind == Kind::Counter {
            out.number(3, 1);
        }
    });
}

/// `NumberDataPoint`: start 2, time 3, double 4, integer 6, attributes 7.
fn point(sample: &Sample, period: Period, is_native: bool, out: &mut Message) {
    let attributes_at = match &sample.value {
        Value::Whole(_) | Value::Real(_) => 7,
        Value::Histogram(_) if is_native => 1,
        Value::Histogram(_) => 9,
    };
    for (name, value) in &sample.labels {
        attributes::text(out, attributes_at, name, value);
    }
    out.fixed(2, period.start);
    out.fixed(3, period.now);
    match &sample.value {
        Value::Whole(number) => out.fixed(6, (*number).min(i64::MAX.unsigned_abs())),
        Value::Real(number) => out.double(4, *number),
        Value::Histogram(found) => {
            out.fixed(4, found.count);
            out.double(5, found.sum);
            if is_native {
                exponential(found, out);
            } else {
                classic(found, out);
            }
        }
    }
}

/// `HistogramDataPoint`: counts 6 (one more than bounds, each of its own bucket), bounds 7.
fn classic(histogram: &Histogram, out: &mut Message) {
    let mut counts = Message::default();
    let mut bounds = Message::default();
    let mut below = 0;
    for (bound, cumulative) in &histogram.buckets {
        let own = cumulative.saturating_sub(below);
        counts.0.extend_from_slice(&own.to_le_bytes());
        bounds.0.extend_from_slice(&bound.to_le_bytes());
        below = *cumulative;
    }
    let above = histogram.count.saturating_sub(below);
    counts.0.extend_from_slice(&above.to_le_bytes());
    out.bytes(6, &counts.0);
    out.bytes(7, &bounds.0);
}

/// `ExponentialHistogramDataPoint`: scale 6, count of zero 7, positive 8 (offset 1, counts 2). The
/// bucket of the index `i` is above 2 to the power of `i`/8, and that of Prometheus up to it.
fn exponential(histogram: &Histogram, out: &mut Message) {
    out.signed(6, SCHEMA.into());
    out.fixed(7, 0);
    let found = buckets(histogram.cells.as_deref().unwrap_or_default());
    let Some(first) = found.spans.first() else {
        return;
    };
    let mut counts = Message::default();
    for count in unfolded(&found) {
        counts.varint(count);
    }
    out.message(8, |out| {
        out.signed(1, i64::from(first.offset) - 1);
        out.bytes(2, &counts.0);
    });
}

/// The count of each bucket from the first one on, those without values included.
fn unfolded(buckets: &Buckets) -> Vec<u64> {
    let mut deltas = buckets.deltas.iter();
    let mut counts = Vec::new();
    let mut count = 0_i64;
    for (number, span) in buckets.spans.iter().enumerate() {
        let gap = if number == 0 { 0 } else { span.offset };
        counts.resize(counts.len() + usize::try_from(gap).unwrap_or(0), 0);
        for delta in deltas.by_ref().take(span.length as usize) {
            count += delta;
            counts.push(u64::try_from(count).unwrap_or(0));
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
    use prost::Message as _;

    use super::*;

    const PERIOD: Period = Period { start: 5, now: 9 };

    /// The metrics of a request as the library of OpenTelemetry reads them.
    fn read(families: &[Family]) -> Vec<Metric> {
        let resource = attributes::resource("node", "1.2", &[]);
        let (bytes, _) = request(&resource, families, PERIOD);
        let mut request = ExportMetricsServiceRequest::decode(&bytes[..]).expect("a request");
        let mut resource = request.resource_metrics.remove(0);
        assert_eq!(
            resource.scope_metrics[0].scope.as_ref().unwrap().name,
            "thrum"
        );
        resource.scope_metrics.remove(0).metrics
    }

    #[test]
    fn counters_are_monotonic_sums_since_the_start_and_gauges_are_not() {
        let labels = vec![("reason", "queue_full".into())];
        let all = read(&[
            Family::new("thrum_drops", Kind::Counter, "Drops.")
                .with_labels(labels, Value::Whole(300)),
            Family::new("thrum_used_bytes", Kind::Gauge, "Bytes.").with(Value::Real(1.5)),
            Family::new("thrum_build", Kind::Info, "Version.").with(Value::Whole(1)),
        ]);
        let Some(Data::Sum(sum)) = &all[0].data else {
            panic!("{:?}", all[0]);
        };
        assert_eq!(
            (all[0].name.as_str(), all[0].unit.as_str()),
            ("thrum_drops", "")
        );
        assert_eq!(all[0].description, "Drops.");
        assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
        let point = &sum.data_points[0];
        assert_eq!((point.start_time_unix_nano, point.time_unix_nano), (5, 9));
        assert_eq!(point.value, Some(number_data_point::Value::AsInt(300)));
        let label = &point.attributes[0];
        let value = label.value.as_ref().and_then(|value| value.value.clone());
        assert_eq!(label.key, "reason");
        assert_eq!(
            value,
            Some(any_value::Value::StringValue("queue_full".into()))
        );
        let Some(Data::Gauge(gauge)) = &all[1].data else {
            panic!("{:?}", all[1]);
        };
        assert_eq!(all[1].unit, "By");
        let value = gauge.data_points[0].value;
        assert_eq!(value, Some(number_data_point::Value::AsDouble(1.5)));
        assert_eq!(all[2].name, "thrum_build_info");
    }

    #[test]
    fn narrow_cells_become_an_exponential_histogram_with_the_same_buckets() {
        let found = Histogram {
            buckets: vec![(0.5, 3)],
            count: 8,
            sum: 4.5,
            cells: Some(vec![(0.25, 3), (1.0, 4), (1.09, 1)]),
        };
        let family =
            Family::new("a_seconds", Kind::Histogram, "Times.").with(Value::Histogram(found));
        let all = read(&[family]);
        let Some(Data::ExponentialHistogram(histogram)) = &all[0].data else {
            panic!("{:?}", all[0]);
        };
        assert_eq!(
            (histogram.aggregation_temporality, all[0].unit.as_str()),
            (2, "s")
        );
        let point = &histogram.data_points[0];
        assert_eq!((point.count, point.sum, point.scale), (8, Some(4.5), 3));
        let positive = point.positive.as_ref().expect("buckets");
        let filled = positive.bucket_counts.iter().zip(positive.offset..);
        let filled: Vec<_> = filled.filter(|(count, _)| **count > 0).collect();
        assert_eq!(filled, [(&3, -17), (&4, -1), (&1, 0)]);
        for ((_, index), value) in filled.iter().zip([0.249, 0.996, 1.086_f64]) {
            let above = (f64::from(*index) / 8.0).exp2();
            assert!(above < value && value <= above * 1.0906, "{above} {value}");
        }
    }

    #[test]
    fn wide_buckets_become_a_histogram_whose_buckets_count_on_their_own() {
        let found = Histogram {
            buckets: vec![(0.5, 3), (1.0, 5)],
            count: 9,
            sum: 7.0,
            cells: None,
        };
        let family =
            Family::new("a_seconds", Kind::Histogram, "Times.").with(Value::Histogram(found));
        let all = read(&[family]);
        let Some(Data::Histogram(histogram)) = &all[0].data else {
            panic!("{:?}", all[0]);
        };
        let point = &histogram.data_points[0];
        assert_eq!(point.bucket_counts, [3, 2, 4]);
        assert_eq!(point.explicit_bounds, [0.5, 1.0]);
        assert_eq!((point.count, point.sum), (9, Some(7.0)));
    }

    #[test]
    fn a_histogram_without_values_is_still_an_exponential_one() {
        let found = Histogram {
            cells: Some(Vec::new()),
            ..Histogram::default()
        };
        let family =
            Family::new("a_seconds", Kind::Histogram, "Times.").with(Value::Histogram(found));
        let all = read(&[family]);
        assert!(matches!(all[0].data, Some(Data::ExponentialHistogram(_))));
    }
}
