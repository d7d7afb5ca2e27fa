//! Events for the management interface.

use std::fmt;

use jiff::Timestamp;
use thrum_management::{LogEvent, LogLevel};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// The name of the field that has the text of an event.
const MESSAGE: &str = "message";

/// Passes events on.
#[derive(Debug)]
pub(super) struct Kept<F>(pub(super) F);

impl<S: Subscriber, F: Fn(LogEvent) + 'static> Layer<S> for Kept<F> {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut texts = Texts::default();
        event.record(&mut texts);
        let metadata = event.metadata();
        let at = u64::try_from(Timestamp::now().as_millisecond());
        (self.0)(LogEvent {
            at: at.unwrap_or(0),
            level: level(*metadata.level()),
            target: metadata.target().to_owned(),
            text: texts.message,
            fields: texts.fields,
        });
    }
}

fn level(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// The fields of an event as text.
#[derive(Debug, Default)]
struct Texts {
    message: String,
    fields: Vec<(&'static str, String)>,
}

impl Texts {
    fn put(&mut self, field: &Field, text: String) {
        if field.name() == MESSAGE {
            self.message = text;
        } else {
            self.fields.push((field.name(), text));
        }
    }
}

impl Visit for Texts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[test]
    fn an_event_is_kept_with_its_text_and_its_fields() {
        let events = Arc::<Mutex<Vec<LogEvent>>>::default();
        let kept = Arc::clone(&events);
        let keep = move |event| kept.lock().unwrap().push(event);
        let log = tracing_subscriber::registry().with(Kept(keep));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(client_id = "a", number = 5, shown = %7, "it {}", "happens");
        });
        let event = events.lock().unwrap().pop().unwrap();
        assert_eq!(
            (event.level, event.text.as_str()),
            (LogLevel::Warn, "it happens")
        );
        let fields: Vec<_> = event
            .fields
            .iter()
            .map(|(name, text)| (*name, &**text))
            .collect();
        assert_eq!(
            fields,
            [("client_id", "a"), ("number", "5"), ("shown", "7")]
        );
        assert!(event.target.starts_with("thrum") && event.at > 1_700_000_000_000);
    }
}
