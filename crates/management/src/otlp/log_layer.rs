//! The part of the log that passes its lines to a tap.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::logs::{LogRecord, LogValue};
use super::tap::LogTap;

/// The field with the sentence of a line.
const MESSAGE: &str = "message";

/// Passes lines of the log to a tap, which drops them while it is closed.
#[derive(Clone, Copy, Debug)]
pub struct LogLayer(pub &'static LogTap);

impl<S: Subscriber> Layer<S> for LogLayer {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        if self.0.takes_lines() {
            let mut record = LogRecord::new(event.metadata());
            event.record(&mut record);
            self.0.pass(record);
        }
    }
}

impl Visit for LogRecord {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field.name(), LogValue::Real(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field.name(), LogValue::Whole(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        let whole = i64::try_from(value).map(LogValue::Whole);
        let value = whole.unwrap_or_else(|_| LogValue::Text(value.to_string()));
        self.add(field.name(), value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field.name(), LogValue::Truth(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = self.written(value);
        if field.name() == MESSAGE {
            self.text = text;
        } else {
            self.add(field.name(), LogValue::Text(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::super::logs::RECORD_BYTES_MAX;
    use super::*;

    /// The lines that a program passes.
    fn lines(program: impl FnOnce()) -> Vec<LogRecord> {
        let tap: &'static LogTap = Box::leak(Box::default());
        let mut lines = tap.open(Arc::default());
        let log = tracing_subscriber::registry().with(LogLayer(tap));
        tracing::subscriber::with_default(log, program);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build();
        runtime.expect("a runtime").block_on(async {
            let (_stop, mut stopping) = tokio::sync::watch::channel(true);
            lines.batch(&mut stopping).await
        })
    }

    #[test]
    fn a_line_has_its_sentence_level_part_and_fields() {
        let all = lines(|| {
            tracing::warn!(client_id = "a", bytes = 7_u64, late = true, peer = ?"é", "it is late");
        });
        let [line] = &all[..] else {
            panic!("{all:?}");
        };
        assert_eq!(
            (line.text.as_str(), line.level),
            ("it is late", tracing::Level::WARN)
        );
        assert!(
            line.target.starts_with("thrum_management::otlp"),
            "{line:?}"
        );
        let fields = [
            ("client_id", LogValue::Text("a".into())),
            ("bytes", LogValue::Whole(7)),
            ("late", LogValue::Truth(true)),
            ("peer", LogValue::Text("\"é\"".into())),
        ];
        assert_eq!(line.fields, fields);
        assert!(line.wall_millis > 0);
    }

    #[test]
    fn a_huge_line_is_cut_at_a_character() {
        let all = lines(|| {
            let long = "é".repeat(RECORD_BYTES_MAX);
            tracing::info!(long, after = "gone", "{long}");
        });
        let bytes = all[0].bytes();
        assert!(bytes > RECORD_BYTES_MAX / 2, "{bytes}");
        assert!(bytes < RECORD_BYTES_MAX + 1024, "{bytes}");
    }
}
