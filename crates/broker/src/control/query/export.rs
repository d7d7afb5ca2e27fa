//! What an exporter of metrics, logs and traces needs beside the figures.

use std::sync::Arc;

use thrum_engine::spans::Span;

use super::QuerySender;
use crate::telemetry::ExportCounts;

/// What an exporter needs.
#[derive(Clone, Copy, Debug)]
pub struct Export<'a>(pub(super) &'a QuerySender);

impl Export<'_> {
    /// Counts what became of exported metrics, logs and traces.
    pub fn counts(&self) -> Arc<ExportCounts> {
        Arc::clone(&self.0.control.exports)
    }

    /// Takes the spans of traced messages from now on.
    pub fn span_taker(&self) -> SpanTaker {
        self.0.node().state.spans.begin_taking();
        SpanTaker(self.0.clone())
    }
}

/// Takes spans of traced messages. Without one they are dropped and counted.
#[derive(Debug)]
pub struct SpanTaker(QuerySender);

impl SpanTaker {
    /// Takes the oldest spans, so many at most.
    pub fn take(&self, max: usize) -> Vec<Span> {
        self.0.node().state.spans.take(max)
    }
}

impl Drop for SpanTaker {
    fn drop(&mut self) {
        self.0.node().state.spans.end_taking();
    }
}
