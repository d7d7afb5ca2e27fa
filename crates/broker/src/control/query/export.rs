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

    /// Takes spans of traced messages, the oldest ones, so many at most.
    pub fn take_spans(&self, max: usize) -> Vec<Span> {
        self.0.node().state.spans.take(max)
    }
}
