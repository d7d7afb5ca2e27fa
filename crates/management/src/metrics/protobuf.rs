//! The messages `io.prometheus.client.MetricFamily` of Prometheus, each behind its length.

use super::family::{Family, Histogram, Kind, Sample, Value};
use super::native::{SCHEMA, buckets};
use crate::wire::Message;

/// The width of the bucket of zero, in which no value of ours is.
const ZERO_THRESHOLD: f64 = 2.938_735_877_055_719e-39;

/// Writes all families.
pub(super) fn render(families: &[Family]) -> Vec<u8> {
    let mut out = Message::default();
    for one in families {
        let mut message = Message::default();
        family(one, &mut message);
        out.varint(message.0.len() as u64);
        out.0.append(&mut message.0);
    }
    out.0
}

/// `MetricFamily`: name 1, help 2, type 3, metric 4, unit 5. The name is that of the samples.
fn family(family: &Family, out: &mut Message) {
    let (suffix, kind) = match family.kind {
        Kind::Counter => ("_total", 0),
        Kind::Gauge => ("", 1),
        Kind::Info => ("_info", 1),
        Kind::Histogram => ("", 4),
    };
    let name = format!("{}{suffix}", family.name);
    out.bytes(1, name.as_bytes());
    out.bytes(2, family.help.as_bytes());
    out.number(3, kind);
    for sample in &family.samples {
        out.message(4, |out| metric(family.kind, sample, out));
    }
}

/// `Metric`: label 1 (name 1, value 2), gauge 2 and counter 3 (value 1), histogram 7.
fn metric(kind: Kind, sample: &Sample, out: &mut Message) {
    for (name, value) in &sample.labels {
        out.message(1, |label| {
            label.bytes(1, name.as_bytes());
            label.bytes(2, value.as_bytes());
        });
    }
    let field = if kind == Kind::Counter { 3 } else { 2 };
    match &sample.value {
        Value::Whole(number) => out.message(field, |out| out.double(1, as_double(*number))),
        Value::Real(number) => out.message(field, |out| out.double(1, *number)),
        Value::Histogram(found) => out.message(7, |out| histogram(found, out)),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the format has no other numbers, and a count of 53 bits is exact"
)]
const fn as_double(number: u64) -> f64 {
    number as f64
}

/// `Histogram`: count 1, sum 2, bucket 3 (cumulative count 1, upper bound 2), schema 5, width of
/// the bucket of zero 6, its count 7, span 12 (offset 1, length 2), delta 13.
fn histogram(histogram: &Histogram, out: &mut Message) {
    out.number(1, histogram.count);
    out.double(2, histogram.sum);
    for (bound, count) in &histogram.buckets {
        out.message(3, |bucket| {
            bucket.number(1, *count);
            bucket.double(2, *bound);
        });
    }
    let Some(cells) = &histogram.cells else {
        return;
    };
    let found = buckets(cells);
    out.signed(5, SCHEMA.into());
    out.double(6, ZERO_THRESHOLD);
    out.number(7, 0);
    if found.spans.is_empty() {
        // A span without buckets says that the histogram is a native one.
        out.message(12, |span| {
            span.signed(1, 0);
            span.number(2, 0);
        });
    }
    for span in &found.spans {
        out.message(12, |message| {
            message.signed(1, span.offset.into());
            message.number(2, span.length.into());
        });
    }
    for delta in &found.deltas {
        out.signed(13, *delta);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::zigzag;

    /// A field of a message: its number, and its value.
    #[derive(Debug, PartialEq)]
    enum Field {
        Number(u64, u64),
        Double(u64, f64),
        Bytes(u64, Vec<u8>),
    }

    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for place in 0.. {
            let (first, rest) = bytes.split_first().expect("a whole message");
            *bytes = rest;
            number |= u64::from(first & 0x7F) << (7 * place);
            if first & 0x80 == 0 {
                break;
            }
        }
        number
    }

    fn taken<'a>(bytes: &mut &'a [u8], len: u64) -> &'a [u8] {
        let (taken, rest) = bytes.split_at(usize::try_from(len).expect("short"));
        *bytes = rest;
        taken
    }

    fn fields(mut bytes: &[u8]) -> Vec<Field> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            fields.push(match key & 7 {
                0 => Field::Number(key >> 3, varint(&mut bytes)),
                1 => {
                    let double = taken(&mut bytes, 8).try_into().expect("eight bytes");
                    Field::Double(key >> 3, f64::from_le_bytes(double))
                }
                2 => {
                    let len = varint(&mut bytes);
                    Field::Bytes(key >> 3, taken(&mut bytes, len).to_vec())
                }
                other => panic!("type {other}"),
            });
        }
        fields
    }

    fn inner(field: &Field) -> Vec<Field> {
        match field {
            Field::Bytes(_, bytes) => fields(bytes),
            other => panic!("{other:?}"),
        }
    }

    /// The fields of each family.
    fn read(mut bytes: &[u8]) -> Vec<Vec<Field>> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let len = varint(&mut bytes);
            all.push(fields(taken(&mut bytes, len)));
        }
        all
    }

    #[test]
    fn a_counter_has_its_name_labels_and_value() {
        let labels = vec![("reason", "queue_full".into())];
        let family = Family::new("thrum_drops", Kind::Counter, "Drops.")
            .with_labels(labels, Value::Whole(300));
        let all = read(&render(&[family.clone(), family]));
        assert_eq!(all.len(), 2);
        let text = |number, text: &str| Field::Bytes(number, text.as_bytes().to_vec());
        let metric = inner(&all[1][3]);
        assert_eq!(
            all[0][..2],
            [text(1, "thrum_drops_total"), text(2, "Drops.")]
        );
        assert_eq!(all[0][2], Field::Number(3, 0));
        assert_eq!(
            inner(&metric[0]),
            [text(1, "reason"), text(2, "queue_full")]
        );
        let Field::Bytes(3, counter) = &metric[1] else {
            panic!("{metric:?}");
        };
        assert_eq!(fields(counter), [Field::Double(1, 300.0)]);
    }

    #[test]
    fn a_histogram_is_classic_and_native() {
        let found = Histogram {
            buckets: vec![(0.5, 3)],
            count: 7,
            sum: 4.5,
            cells: Some(vec![(0.25, 3), (1.0, 4)]),
        };
        let family =
            Family::new("a_seconds", Kind::Histogram, "Times.").with(Value::Histogram(found));
        let all = read(&render(&[family]));
        let metric = inner(&all[0][3]);
        let Field::Bytes(7, histogram) = &metric[0] else {
            panic!("{metric:?}");
        };
        let histogram = fields(histogram);
        assert_eq!(histogram[..2], [Field::Number(1, 7), Field::Double(2, 4.5)]);
        assert_eq!(
            inner(&histogram[2]),
            [Field::Number(1, 3), Field::Double(2, 0.5)]
        );
        assert_eq!(histogram[3], Field::Number(5, zigzag(3)));
        // A quarter is two powers below one: 16 buckets, of which 15 are in between.
        let spans = [(-16, 1), (15, 1)];
        for (field, (offset, length)) in histogram[6..8].iter().zip(spans) {
            assert_eq!(
                inner(field),
                [Field::Number(1, zigzag(offset)), Field::Number(2, length)]
            );
        }
        let deltas = [Field::Number(13, zigzag(3)), Field::Number(13, zigzag(1))];
        assert_eq!(histogram[8..], deltas);
    }

    #[test]
    fn a_histogram_without_values_is_native_if_it_has_cells() {
        for (cells, schema) in [(Some(Vec::new()), true), (None, false)] {
            let found = Histogram {
                cells,
                ..Histogram::default()
            };
            let mut message = Message::default();
            histogram(&found, &mut message);
            let fields = fields(&message.0);
            assert_eq!(fields.contains(&Field::Number(5, zigzag(3))), schema);
            assert_eq!(fields.len(), if schema { 6 } else { 2 });
        }
    }
}
