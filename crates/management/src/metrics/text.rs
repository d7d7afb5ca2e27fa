//! Prometheus text 0.0.4 and `OpenMetrics` text 1.0.0.

use std::fmt::Write as _;

use super::family::{Family, Histogram, Kind, Label, Sample, Unit, Value};

/// Which of the two; they differ in names of counters, types, units and the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    Prometheus,
    OpenMetrics,
}

/// Bytes of a line, for the first allocation.
const LINE_BYTES: usize = 90;

/// Writes all families.
pub(super) fn render(families: &[Family], dialect: Dialect) -> String {
    let lines: usize = families.iter().map(lines).sum();
    let mut out = String::with_capacity(lines * LINE_BYTES);
    for family in families {
        head(family, dialect, &mut out);
        for sample in &family.samples {
            series(family, sample, dialect, &mut out);
        }
    }
    if dialect == Dialect::OpenMetrics {
        out.push_str("# EOF\n");
    }
    out
}

fn lines(family: &Family) -> usize {
    let of_sample = |sample: &Sample| match &sample.value {
        Value::Histogram(histogram) => histogram.buckets.len() + 3,
        Value::Whole(_) | Value::Real(_) => 1,
    };
    3 + family.samples.iter().map(of_sample).sum::<usize>()
}

/// The end of the names of samples.
const fn suffix(kind: Kind) -> &'static str {
    match kind {
        Kind::Counter => "_total",
        Kind::Info => "_info",
        Kind::Gauge | Kind::Histogram => "",
    }
}

/// Help, type and unit. Prometheus text gives the name of the samples, `OpenMetrics` that of the
/// family.
fn head(family: &Family, dialect: Dialect, out: &mut String) {
    let (suffix, kind) = match (dialect, family.kind) {
        (Dialect::OpenMetrics, Kind::Info) => ("", "info"),
        (Dialect::OpenMetrics, Kind::Counter) => ("", "counter"),
        (Dialect::Prometheus, Kind::Counter) => ("_total", "counter"),
        (Dialect::Prometheus, Kind::Info) => ("_info", "gauge"),
        (_, Kind::Gauge) => ("", "gauge"),
        (_, Kind::Histogram) => ("", "histogram"),
    };
    let name = family.name;
    out.push_str("# HELP ");
    out.push_str(name);
    out.push_str(suffix);
    out.push(' ');
    escape(family.help, dialect == Dialect::OpenMetrics, out);
    push(out, format_args!("\n# TYPE {name}{suffix} {kind}\n"));
    let unit = match family.unit {
        Unit::None => return,
        Unit::Bytes => "bytes",
        Unit::Seconds => "seconds",
    };
    if dialect == Dialect::OpenMetrics {
        push(out, format_args!("# UNIT {name} {unit}\n"));
    }
}

fn series(family: &Family, sample: &Sample, dialect: Dialect, out: &mut String) {
    match &sample.value {
        Value::Whole(number) => {
            begin(family.name, suffix(family.kind), out);
            labels(&sample.labels, out);
            push(out, format_args!(" {number}\n"));
        }
        Value::Real(number) => {
            begin(family.name, suffix(family.kind), out);
            labels(&sample.labels, out);
            push(out, format_args!(" {number}\n"));
        }
        Value::Histogram(found) => {
            let target = Target { dialect, out };
            histogram(family.name, &sample.labels, found, target);
        }
    }
}

/// Where a histogram is written.
struct Target<'a> {
    dialect: Dialect,
    out: &'a mut String,
}

fn histogram(name: &str, of_series: &[Label], found: &Histogram, target: Target<'_>) {
    let Target { dialect, out } = target;
    let last = (f64::INFINITY, found.count);
    for (bound, count) in found.buckets.iter().chain([&last]) {
        begin(name, "_bucket", out);
        let mut all = of_series.to_vec();
        all.push(("le", bound_text(*bound, dialect).into()));
        labels(&all, out);
        push(out, format_args!(" {count}\n"));
    }
    begin(name, "_sum", out);
    labels(of_series, out);
    push(out, format_args!(" {}\n", found.sum));
    begin(name, "_count", out);
    labels(of_series, out);
    push(out, format_args!(" {}\n", found.count));
}

/// A bound; `OpenMetrics` asks for whole ones with a fraction.
fn bound_text(bound: f64, dialect: Dialect) -> String {
    if bound.is_infinite() {
        return "+Inf".to_owned();
    }
    let text = bound.to_string();
    if dialect == Dialect::OpenMetrics && !text.contains('.') {
        return text + ".0";
    }
    text
}

fn begin(name: &str, suffix: &str, out: &mut String) {
    out.push_str(name);
    out.push_str(suffix);
}

fn labels(labels: &[Label], out: &mut String) {
    for (number, (name, value)) in labels.iter().enumerate() {
        out.push(if number == 0 { '{' } else { ',' });
        out.push_str(name);
        out.push_str("=\"");
        escape(value, true, out);
        out.push('"');
    }
    if !labels.is_empty() {
        out.push('}');
    }
}

fn escape(text: &str, are_quotes: bool, out: &mut String) {
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '"' if are_quotes => out.push_str("\\\""),
            other => out.push(other),
        }
    }
}

/// Writing into a string does not fail.
fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).unwrap_or_default();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_each_kind() -> Vec<Family> {
        let histogram = Histogram {
            buckets: vec![(0.001, 2), (1.0, 3)],
            count: 4,
            sum: 2.5,
            cells: None,
        };
        let stage = || vec![("stage", "read".into())];
        vec![
            Family::new("a_bytes", Kind::Counter, "Bytes.").with(Value::Whole(7)),
            Family::new("b", Kind::Gauge, "With \"\\\n.").with_labels(
                vec![("x", "q\"\\\n".into()), ("y", "2".into())],
                Value::Real(0.5),
            ),
            Family::new("c_seconds", Kind::Histogram, "Times.")
                .with_labels(stage(), Value::Histogram(histogram)),
            Family::new("d", Kind::Info, "Build.").with_labels(stage(), Value::Whole(1)),
        ]
    }

    #[test]
    fn prometheus_text_names_counters_by_their_samples() {
        let expected = r#"# HELP a_bytes_total Bytes.
# TYPE a_bytes_total counter
a_bytes_total 7
# HELP b With "\\\n.
# TYPE b gauge
b{x="q\"\\\n",y="2"} 0.5
# HELP c_seconds Times.
# TYPE c_seconds histogram
c_seconds_bucket{stage="read",le="0.001"} 2
c_seconds_bucket{stage="read",le="1"} 3
c_seconds_bucket{stage="read",le="+Inf"} 4
c_seconds_sum{stage="read"} 2.5
c_seconds_count{stage="read"} 4
# HELP d_info Build.
# TYPE d_info gauge
d_info{stage="read"} 1
"#;
        assert_eq!(render(&of_each_kind(), Dialect::Prometheus), expected);
    }

    #[test]
    fn open_metrics_has_units_types_of_its_own_and_an_end() {
        let expected = r#"# HELP a_bytes Bytes.
# TYPE a_bytes counter
# UNIT a_bytes bytes
a_bytes_total 7
# HELP b With \"\\\n.
# TYPE b gauge
b{x="q\"\\\n",y="2"} 0.5
# HELP c_seconds Times.
# TYPE c_seconds histogram
# UNIT c_seconds seconds
c_seconds_bucket{stage="read",le="0.001"} 2
c_seconds_bucket{stage="read",le="1.0"} 3
c_seconds_bucket{stage="read",le="+Inf"} 4
c_seconds_sum{stage="read"} 2.5
c_seconds_count{stage="read"} 4
# HELP d Build.
# TYPE d info
d_info{stage="read"} 1
# EOF
"#;
        assert_eq!(render(&of_each_kind(), Dialect::OpenMetrics), expected);
    }
}
