//! Metrics of the export to an OpenTelemetry collector.

use thrum_broker::ExportFigures;

use super::family::{Family, Kind, Label, Value};

/// What became of metrics, logs and traces that were to be exported.
pub(super) fn families(figures: &[ExportFigures]) -> Vec<Family> {
    let exported = Family::new(
        "thrum_telemetry_exported",
        Kind::Counter,
        "Points of metrics, lines of the log and spans that the OpenTelemetry collector has accepted, by signal.",
    );
    let failed = Family::new(
        "thrum_telemetry_failed_requests",
        Kind::Counter,
        "Requests to the OpenTelemetry collector that failed, by signal.",
    );
    let mut dropped = Family::new(
        "thrum_telemetry_dropped",
        Kind::Counter,
        "Points, lines and spans that the OpenTelemetry collector did not get, by signal and reason.",
    );
    for one in figures {
        for (reason, count) in [
            ("queue_full", one.queue_full),
            ("refused", one.refused),
            ("stopped", one.stopped),
        ] {
            let labels: Vec<Label> = vec![("signal", one.signal.into()), ("reason", reason.into())];
            dropped = dropped.with_labels(labels, Value::Whole(count));
        }
    }
    vec![
        exported.with_each("signal", figures, |one| {
            Some((one.signal.into(), one.exported))
        }),
        dropped,
        failed.with_each("signal", figures, |one| {
            Some((one.signal.into(), one.failed_requests))
        }),
    ]
}
