//! The choice of a format by what the reader accepts.

/// A format of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text, version 0.0.4.
    Text,
    /// `OpenMetrics` text, version 1.0.0.
    OpenMetrics,
    /// The messages `io.prometheus.client.MetricFamily`, each behind its length: the only format
    /// with native histograms.
    Protobuf,
}

/// Formats that a reader may name; more are not looked at. Prometheus names six.
const RANGES_MAX: usize = 32;

impl Format {
    /// The format that a reader likes best, by its `Accept` header; text if it names none of them.
    pub fn from_accept(accept: Option<&str>) -> Self {
        let ranges = accept.unwrap_or_default().split(',').take(RANGES_MAX);
        let known = ranges.filter_map(|range| Some((Self::of_range(range)?, quality(range))));
        let mut best = (Self::Text, 0);
        for (format, quality) in known {
            if quality > best.1 {
                best = (format, quality);
            }
        }
        best.0
    }

    /// The value of the `Content-Type` header.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }

    /// The format of one range of media types; none if it is another one, or of another version.
    fn of_range(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next()?.to_ascii_lowercase();
        let is = |name: &str, values: &[&str]| {
            let value = parameter(range, name);
            value.is_none_or(|value| values.contains(&value))
        };
        match &*kind {
            "text/plain" | "text/*" | "*/*" => is("version", &["0.0.4"]).then_some(Self::Text),
            "application/openmetrics-text" => {
                is("version", &["1.0.0"]).then_some(Self::OpenMetrics)
            }
            "application/vnd.google.protobuf" => {
                let is_ours = is("proto", &["io.prometheus.client.MetricFamily"])
                    && parameter(range, "encoding") == Some("delimited");
                is_ours.then_some(Self::Protobuf)
            }
            _ => None,
        }
    }
}

/// A parameter of a range.
fn parameter<'a>(range: &'a str, wanted: &str) -> Option<&'a str> {
    range.split(';').skip(1).find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim().trim_matches('"');
        name.trim().eq_ignore_ascii_case(wanted).then_some(value)
    })
}

/// The weight of a range in thousandths.
fn quality(range: &str) -> u32 {
    let Some(text) = parameter(range, "q") else {
        return 1000;
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = format!("{part:0<3}");
    let part = digits.get(..3).and_then(|digits| digits.parse().ok());
    match (whole, part) {
        ("1", _) => 1000,
        ("0", Some(part)) => part,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Prometheus 3 sends.
    const PROMETHEUS: &str = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
        application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,\
        text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
    /// … with native histograms.
    const NATIVE: &str = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
        encoding=delimited;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,*/*;q=0.2";

    #[test]
    fn the_format_is_the_known_one_that_the_reader_likes_best() {
        for (accept, expected) in [
            (None, Format::Text),
            (Some(""), Format::Text),
            (Some("*/*"), Format::Text),
            (
                Some("text/html,application/xhtml+xml,*/*;q=0.8"),
                Format::Text,
            ),
            (Some("application/json"), Format::Text),
            (Some(PROMETHEUS), Format::OpenMetrics),
            (Some(NATIVE), Format::Protobuf),
            (Some("application/openmetrics-text"), Format::OpenMetrics),
            (
                Some("application/openmetrics-text; version=2.0.0"),
                Format::Text,
            ),
            (
                Some("application/openmetrics-text;q=0.1, text/plain;version=\"0.0.4\";q=0.25"),
                Format::Text,
            ),
            (Some("application/openmetrics-text;q=0"), Format::Text),
            (
                Some("application/openmetrics-text;q=2, */*;q=0.1"),
                Format::Text,
            ),
            (Some("application/vnd.google.protobuf"), Format::Text),
            (
                Some("Application/OpenMetrics-Text ; Q=0.001"),
                Format::OpenMetrics,
            ),
        ] {
            assert_eq!(Format::from_accept(accept), expected, "{accept:?}");
        }
    }

    #[test]
    fn no_more_ranges_are_looked_at_than_a_reader_may_name() {
        let many = "a/b,".repeat(RANGES_MAX) + "application/openmetrics-text";
        assert_eq!(Format::from_accept(Some(&many)), Format::Text);
    }
}
