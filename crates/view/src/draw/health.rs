//! Whether the generator is the limit: figures are the broker's only if it is not.

use ratatui::text::Line;
use thrum_figures::{latency, percent};

use super::broker::cpu;
use super::phrase::{Part, Tone, flowed, named, text};
use crate::snapshot::Snapshot;

/// The panel: the verdict and the figures that it rests on; the header says why it is INVALID.
pub(super) fn lines(snapshot: &Snapshot, width: u16, height: u16) -> Vec<Line<'static>> {
    flowed(parts(snapshot), width, height)
}

/// Why the run is INVALID; none if it is not, or if it is not known yet.
pub(super) fn invalid(snapshot: &Snapshot) -> Option<String> {
    let figures = snapshot.figures.as_ref()?;
    let validity = &figures.validity;
    (figures.is_judged && !validity.valid).then(|| validity.limits.join("; "))
}

/// The same in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let Some(figures) = &snapshot.figures else {
        return vec![text("nothing measured yet", Tone::Quiet)];
    };
    let generator = &figures.generator;
    let mut parts = vec![match (figures.is_judged, figures.validity.valid) {
        (false, _) => text("validity not known yet", Tone::Quiet),
        (true, true) => text("✓ VALID", Tone::Good),
        (true, false) => text("✗ INVALID", Tone::Bad),
    }];
    if let Some(used) = &generator.last {
        parts.push(named("cpu", cpu(used), Tone::Normal));
    }
    if let Some(lag) = &generator.lag {
        parts.push(named("sched lag p99", latency(lag.p99), Tone::Normal));
    }
    if let Some(lag) = &generator.receive_lag {
        parts.push(named("receive", latency(lag.p99), Tone::Normal));
    }
    if let Some(busiest) = &generator.busiest {
        parts.push(named("busiest thread", percent(busiest.busy), Tone::Normal));
    }
    parts
}
