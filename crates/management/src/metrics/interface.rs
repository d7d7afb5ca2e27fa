//! Logins, refusals and the audit log of the management interface.

use super::family::{Family, Kind, Value};
use crate::counts::{Figure, InterfaceFigures};

/// Metrics of the interface.
pub(super) fn families(figures: &InterfaceFigures) -> Vec<Family> {
    let counter = |name, help| Family::new(name, Kind::Counter, help);
    let one = |figure: &Figure| Some((figure.label.into(), figure.value));
    vec![
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
    ]
}
