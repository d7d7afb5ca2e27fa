//! Logins, refusals and the audit log of the management interface.

use super::family::{Family, Kind, Value};
use crate::counts::{Figure, InterfaceFigures};
use crate::program::BenchmarkActivity;

/// Metrics of the interface.
pub(super) fn families(figures: &InterfaceFigures) -> Vec<Family> {
    let counter = |name, help| Family::new(name, Kind::Counter, help);
    let one = |figure: &Figure| Some((figure.label.into(), figure.value));
    let mut families = vec![
        counter(
            "thrum_management_logins",
            "Logins of administrators that succeeded.",
        )
        .with(Value::Whole(figures.logins)),
        counter(
            "thrum_management_refusals",
            "Refused logins of administrators and refused requests, by reason; slowed and busy ones were answered with 429.",
        )
        .with_each("reason", &figures.refusals, one),
        counter(
            "thrum_management_answers",
            "Answers of the management interface by status, or by class of status (4xx) for one without a series of its own; 429 means a limit, which the answer names.",
        )
        .with_each("status", &figures.answers, one),
        Family::new(
            "thrum_management_sessions",
            Kind::Gauge,
            "Sessions of administrators.",
        )
        .with(Value::Whole(figures.sessions)),
        counter(
            "thrum_management_entries_forgotten",
            "Entries that made room because a table was full, by table.",
        )
        .with_each("table", &figures.forgotten, one),
        counter(
            "thrum_audit_failures",
            "Lines that the audit log could not write; a change whose line cannot be written is not made.",
        )
        .with(Value::Whole(figures.audit_failures)),
        counter(
            "thrum_audit_refusals_left_out",
            "Refusals that are not in the audit log because there were too many.",
        )
        .with(Value::Whole(figures.audit_left_out)),
        counter(
            "thrum_audit_looks_refused",
            "Streams and traces without the payloads that were asked for, because their caller would have filled the audit log.",
        )
        .with(Value::Whole(figures.audit_looks_refused)),
    ];
    families.extend(figures.benchmarks.iter().flat_map(of_benchmarks));
    families
}

/// Metrics of benchmarks that the interface starts.
fn of_benchmarks(activity: &BenchmarkActivity) -> [Family; 3] {
    let BenchmarkActivity {
        is_running,
        memory_bytes,
        done,
        stopped,
        failed,
    } = *activity;
    let ends = [("done", done), ("stopped", stopped), ("failed", failed)];
    [
        Family::new(
            "thrum_benchmark_runs",
            Kind::Counter,
            "Benchmarks of the management interface that ended, by their state.",
        )
        .with_each("state", &ends, |(state, count)| Some(((*state).into(), *count))),
        Family::new(
            "thrum_benchmark_running",
            Kind::Gauge,
            "1 while a benchmark of the management interface is under way, else 0.",
        )
        .with(Value::Whole(is_running.into())),
        Family::new(
            "thrum_benchmark_memory_bytes",
            Kind::Gauge,
            "Resident memory of the process of that benchmark (management.benchmarks.memory is its limit).",
        )
        .with(Value::Whole(memory_bytes)),
    ]
}
