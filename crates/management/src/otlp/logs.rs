//! Lines of the log as a request `ExportLogsServiceRequest`.

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};

use tracing::{Level, Metadata};

use super::attributes;
use crate::wire::Message;

/// Bytes of the texts of a line; the rest is cut off.
pub(super) const RECORD_BYTES_MAX: usize = 8 * 1024;
/// Bytes of a line beside its texts.
const OVERHEAD_BYTES: usize = size_of::<LogRecord>();

/// A line of the log.
#[derive(Clone, Debug)]
pub(super) struct LogRecord {
    /// Milliseconds of the Unix epoch.
    pub(super) wall_millis: u64,
    pub(super) level: Level,
    /// The part of the program.
    pub(super) target: &'static str,
    /// The sentence.
    pub(super) text: String,
    pub(super) fields: Vec<(&'static str, LogValue)>,
    /// Bytes of texts so far.
    pub(super) written: usize,
}

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LogValue {
    Text(String),
    Whole(i64),
    Real(f64),
    Truth(bool),
}

impl Default for LogRecord {
    fn default() -> Self {
        Self {
            wall_millis: 0,
            level: Level::INFO,
            target: "",
            text: String::new(),
            fields: Vec::new(),
            written: 0,
        }
    }
}

impl LogRecord {
    /// A line without its sentence and fields.
    pub(super) fn new(line: &'static Metadata<'static>) -> Self {
        Self {
            level: *line.level(),
            target: line.target(),
            ..Self::default()
        }
    }

    pub(super) fn add(&mut self, name: &'static str, value: LogValue) {
        self.fields.push((name, value));
    }

    /// A value as text, as far as there is room for it.
    pub(super) fn written(&mut self, value: &dyn fmt::Debug) -> String {
        let mut short = Short {
            text: String::new(),
            room: RECORD_BYTES_MAX.saturating_sub(self.written),
        };
        // It fails where the text is cut.
        write!(short, "{value:?}").ok();
        self.written += short.text.len();
        short.text
    }

    /// Its size in memory.
    pub(super) fn bytes(&self) -> usize {
        let of_field = |field: &(&'static str, LogValue)| match &field.1 {
            LogValue::Text(text) => text.len() + size_of::<(&str, LogValue)>(),
            _ => size_of::<(&str, LogValue)>(),
        };
        let fields: usize = self.fields.iter().map(of_field).sum();
        OVERHEAD_BYTES + self.text.len() + fields
    }
}

/// A text that ends at a length.
struct Short {
    text: String,
    room: usize,
}

impl fmt::Write for Short {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let end = more.floor_char_boundary(self.room);
        self.text.push_str(&more[..end]);
        self.room -= end;
        if end < more.len() {
            self.room = 0;
            return Err(fmt::Error);
        }
        Ok(())
    }
}

/// Writes a request. Lines of the same part of the program share a scope, which is its name.
pub(super) fn request(resource: &[u8], lines: &[LogRecord]) -> Vec<u8> {
    let mut targets: BTreeMap<&str, Vec<&LogRecord>> = BTreeMap::new();
    for line in lines {
        targets.entry(line.target).or_default().push(line);
    }
    attributes::request(resource, |out| {
        for (target, lines) in &targets {
            attributes::scope(out, Some(target), |out| records(lines, out));
        }
    })
}

fn records(lines: &[&LogRecord], out: &mut Message) {
    for line in lines {
        out.message(2, |out| record(line, out));
    }
}

/// `LogRecord`: time 1, severity 2 and its text 3, body 5 (text 1), attributes 6, observed time 11.
fn record(line: &LogRecord, out: &mut Message) {
    let nanos = line.wall_millis.saturating_mul(1_000_000);
    out.fixed(1, nanos);
    out.number(2, severity(line.level));
    out.text(3, line.level.as_str());
    out.message(5, |body| body.text(1, &line.text));
    for (name, value) in &line.fields {
        match value {
            LogValue::Text(text) => attributes::text(out, 6, name, text),
            LogValue::Whole(number) => attributes::whole(out, 6, name, *number),
            LogValue::Real(number) => attributes::real(out, 6, name, *number),
            LogValue::Truth(is_true) => attributes::truth(out, 6, name, *is_true),
        }
    }
    out.fixed(11, nanos);
}

/// The first number of the four that OpenTelemetry has for a level.
fn severity(level: Level) -> u64 {
    match level {
        Level::TRACE => 1,
        Level::DEBUG => 5,
        Level::INFO => 9,
        Level::WARN => 13,
        Level::ERROR => 17,
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
    use opentelemetry_proto::tonic::common::v1::any_value::Value;
    use prost::Message as _;

    use super::*;

    #[test]
    fn lines_are_what_the_library_of_opentelemetry_reads() {
        let line = |target, text: &str| LogRecord {
            wall_millis: 3,
            level: Level::ERROR,
            target,
            text: text.to_owned(),
            fields: vec![
                ("client_id", LogValue::Text("é".to_owned())),
                ("bytes", LogValue::Whole(-7)),
                ("share", LogValue::Real(0.5)),
                ("late", LogValue::Truth(true)),
            ],
            written: 0,
        };
        let lines = [line("b", "first"), line("a", "second"), line("b", "third")];
        let resource = attributes::resource("node-1", "1.2", &[]);
        let bytes = request(&resource, &lines);
        let read = ExportLogsServiceRequest::decode(&bytes[..]).expect("a request");
        let scopes = &read.resource_logs[0].scope_logs;
        let name = |place: usize| scopes[place].scope.as_ref().unwrap().name.as_str();
        assert_eq!((scopes.len(), name(0), name(1)), (2, "a", "b"));
        let texts = scopes[1].log_records.iter().map(|record| {
            let body = record.body.as_ref().and_then(|body| body.value.clone());
            match body {
                Some(Value::StringValue(text)) => text,
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["first", "third"]);
        let record = &scopes[0].log_records[0];
        assert_eq!(
            (record.time_unix_nano, record.observed_time_unix_nano),
            (3_000_000, 3_000_000)
        );
        assert_eq!(
            (record.severity_number, record.severity_text.as_str()),
            (17, "ERROR")
        );
        let values = record.attributes.iter().map(|attribute| {
            let value = attribute
                .value
                .as_ref()
                .and_then(|value| value.value.clone());
            (attribute.key.as_str(), value.expect("a value"))
        });
        let expected = [
            ("client_id", Value::StringValue("é".to_owned())),
            ("bytes", Value::IntValue(-7)),
            ("share", Value::DoubleValue(0.5)),
            ("late", Value::BoolValue(true)),
        ];
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_is_configured_replaces_an_attribute_of_the_resource() {
        let configured = [
            ("service.name".to_owned(), "mqtt".to_owned()),
            ("deployment.environment.name".to_owned(), "prod".to_owned()),
        ];
        let resource = attributes::resource("node-1", "1.2", &configured);
        let bytes = request(&resource, &[LogRecord::default()]);
        let read = ExportLogsServiceRequest::decode(&bytes[..]).expect("a request");
        let resource = read.resource_logs[0].resource.as_ref().expect("a resource");
        let values = resource.attributes.iter().map(|attribute| {
            let value = attribute
                .value
                .as_ref()
                .and_then(|value| value.value.clone());
            let Some(Value::StringValue(text)) = value else {
                panic!("{attribute:?}");
            };
            format!("{}={text}", attribute.key)
        });
        let expected = [
            "service.instance.id=node-1",
            "service.version=1.2",
            "service.name=mqtt",
            "deployment.environment.name=prod",
        ];
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }
}
