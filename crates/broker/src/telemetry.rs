//! Which messages are traced, and what became of metrics, logs and traces that were to be exported,
//! counted for `/metrics`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use thrum_engine::spans::{PublisherFilter, SpanRules};

use crate::config::TelemetryConfig;
use crate::control::WildcardText;

/// Publishers by their client identifiers.
#[derive(Debug)]
struct ClientIds(Vec<WildcardText>);

impl PublisherFilter for ClientIds {
    fn takes(&self, client_id: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches(client_id))
    }
}

/// Which messages are traced; none if no message is, or nobody gets the spans.
pub(crate) fn span_rules(config: &TelemetryConfig) -> Option<Arc<SpanRules>> {
    let traces = &config.traces;
    if !(config.is_on() && traces.is_on()) {
        return None;
    }
    let patterns = traces.clients.iter();
    let patterns: Vec<_> = patterns.map(|pattern| WildcardText::new(pattern)).collect();
    let publishers = Box::new(ClientIds(patterns)) as Box<dyn PublisherFilter>;
    Some(Arc::new(SpanRules {
        every: traces.every,
        follows_parent: traces.follow_parent,
        filters: traces
            .filters
            .iter()
            .map(|filter| filter.as_str().into())
            .collect(),
        publishers: (!traces.clients.is_empty()).then_some(publishers),
    }))
}

/// What is exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Signal {
    /// Figures of the broker.
    Metrics,
    /// Lines of the log.
    Logs,
    /// Spans of messages.
    Traces,
}

impl Signal {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Metrics, Self::Logs, Self::Traces];

    /// Its name in metrics and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metrics => "metrics",
            Self::Logs => "logs",
            Self::Traces => "traces",
        }
    }
}

/// What became of an item: a point of a metric, a line, or a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum ExportFate {
    /// The collector has it.
    Exported,
    /// Too many waited.
    QueueFull,
    /// The collector refused it.
    Refused,
    /// The broker ended before the collector had it.
    Stopped,
}

const FATES: usize = 4;

#[derive(Debug, Default)]
struct OfSignal {
    fates: [AtomicU64; FATES],
    failed_requests: AtomicU64,
}

/// The counts of a node since its start.
#[derive(Debug, Default)]
pub struct ExportCounts {
    is_on: AtomicBool,
    signals: [OfSignal; Signal::ALL.len()],
}

/// The counts of one signal at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ExportFigures {
    /// `metrics`, `logs` or `traces`.
    pub signal: &'static str,
    /// Points, lines or spans that the collector has.
    pub exported: u64,
    /// Those that found too many waiting.
    pub queue_full: u64,
    /// Those that the collector refused.
    pub refused: u64,
    /// Those that the end of the broker, or of a setting, cut off.
    pub stopped: u64,
    /// Requests that failed; most are tried again.
    pub failed_requests: u64,
}

impl ExportCounts {
    /// From now on there are figures.
    pub fn turn_on(&self) {
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// Counts what became of items.
    pub fn add(&self, signal: Signal, fate: ExportFate, items: u64) {
        let counts = &self.signals[signal as usize].fates;
        counts[fate as usize].fetch_add(items, Ordering::Relaxed);
    }

    /// Counts a request that failed.
    pub fn add_failed_request(&self, signal: Signal) {
        let count = &self.signals[signal as usize].failed_requests;
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// The counts of a signal.
    pub fn of(&self, signal: Signal) -> ExportFigures {
        let counts = &self.signals[signal as usize];
        let fate = |fate: ExportFate| counts.fates[fate as usize].load(Ordering::Relaxed);
        ExportFigures {
            signal: signal.name(),
            exported: fate(ExportFate::Exported),
            queue_full: fate(ExportFate::QueueFull),
            refused: fate(ExportFate::Refused),
            stopped: fate(ExportFate::Stopped),
            failed_requests: counts.failed_requests.load(Ordering::Relaxed),
        }
    }

    /// The counts of all signals; none if nothing was ever exported.
    pub(crate) fn figures(&self) -> Vec<ExportFigures> {
        if !self.is_on.load(Ordering::Relaxed) {
            return Vec::new();
        }
        Signal::ALL.iter().map(|signal| self.of(*signal)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_traced_only_if_somebody_gets_the_spans() {
        let mut config = TelemetryConfig::default();
        config.traces.every = 1;
        assert!(span_rules(&config).is_none(), "there is no collector");
        config.endpoint = "http://a".to_owned();
        assert!(span_rules(&config).is_some_and(|rules| rules.publishers.is_none()));
        config.traces.clients = vec!["meter-*".to_owned(), "gate".to_owned()];
        let rules = span_rules(&config).unwrap();
        let publishers = rules.publishers.as_ref().unwrap();
        let taken = ["meter-7", "gate", "gates", "a"].map(|id| publishers.takes(id));
        assert_eq!(taken, [true, true, false, false]);
        config.traces.every = 0;
        assert!(span_rules(&config).is_none(), "no message is chosen");
    }

    #[test]
    fn each_signal_and_fate_is_counted_on_its_own() {
        let counts = ExportCounts::default();
        counts.add(Signal::Logs, ExportFate::QueueFull, 3);
        counts.add(Signal::Logs, ExportFate::Exported, 5);
        counts.add(Signal::Traces, ExportFate::Refused, 7);
        counts.add_failed_request(Signal::Metrics);
        assert!(counts.figures().is_empty(), "nothing is exported yet");
        counts.turn_on();
        let [metrics, logs, traces] = counts.figures()[..] else {
            panic!("one for each signal");
        };
        assert_eq!((metrics.signal, metrics.failed_requests), ("metrics", 1));
        assert_eq!((logs.exported, logs.queue_full, logs.refused), (5, 3, 0));
        assert_eq!((traces.refused, traces.exported), (7, 0));
    }
}
