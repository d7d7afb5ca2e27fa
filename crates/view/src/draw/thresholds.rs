//! The limits that the run has to keep, and how it does so far.

use ratatui::text::Line;
use thrum_figures::{bytes, figure, latency, percent, rate, whole};
use thrum_report::threshold::ThresholdResult;
use thrum_report::{Unit, metric};

use super::phrase::{Part, Tone, flowed, text};
use crate::snapshot::Snapshot;

/// How many are kept, for the title of the panel.
pub(super) fn title(snapshot: &Snapshot) -> String {
    let all = thresholds(snapshot);
    format!("thresholds: {}{}", kept(all), open(all))
}

/// The panel: missed thresholds come first.
pub(super) fn lines(snapshot: &Snapshot, width: u16, height: u16) -> Vec<Line<'static>> {
    let all = thresholds(snapshot);
    flowed(missed_first(all).map(part), width, height)
}

/// The number of met thresholds, then the missed ones, then the others; nothing if none is set.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    match thresholds(snapshot) {
        [] => Vec::new(),
        all => std::iter::once(text(kept(all), Tone::Strong))
            .chain(missed_first(all).map(part))
            .collect(),
    }
}

fn thresholds(snapshot: &Snapshot) -> &[ThresholdResult] {
    let found = snapshot
        .figures
        .as_ref()
        .map(|figures| figures.thresholds.as_slice());
    found.unwrap_or_default()
}

fn kept(all: &[ThresholdResult]) -> String {
    let kept = all.iter().filter(|threshold| threshold.pass).count();
    format!("{kept} of {} kept", all.len())
}

fn open(all: &[ThresholdResult]) -> String {
    match all.iter().filter(|threshold| is_open(threshold)).count() {
        0 => String::new(),
        open => format!(", {open} open"),
    }
}

/// Its figure is not known yet: during a run that is not a failure.
const fn is_open(threshold: &ThresholdResult) -> bool {
    threshold.measured.is_none()
}

fn missed_first(all: &[ThresholdResult]) -> impl Iterator<Item = &ThresholdResult> {
    let missed = all
        .iter()
        .filter(|threshold| !threshold.pass && !is_open(threshold));
    let kept = all.iter().filter(|threshold| threshold.pass);
    let open = all.iter().filter(|threshold| is_open(threshold));
    missed.chain(kept).chain(open)
}

/// `✓ e2e.p99 < 50ms (3.9ms)`
fn part(threshold: &ThresholdResult) -> Part {
    let (sign, tone) = match threshold.pass {
        _ if is_open(threshold) => ("·", Tone::Quiet),
        true => ("✓", Tone::Good),
        false => ("✗", Tone::Bad),
    };
    let measured = match (threshold.measured, &threshold.withheld) {
        (Some(value), _) => measured_text(&threshold.metric, value),
        (None, Some(_)) => "withheld so far".to_owned(),
        (None, None) => "no figure yet".to_owned(),
    };
    let (name, condition) = (&threshold.metric, &threshold.condition);
    text(format!("{sign} {name} {condition} ({measured})"), tone)
}

/// A figure with its unit.
fn measured_text(name: &str, value: f64) -> String {
    match metric::find(name).map(|metric| metric.unit) {
        Some(Unit::Nanoseconds) => latency(whole(value)),
        Some(Unit::Microseconds) => latency(whole(value * 1e3)),
        Some(Unit::Seconds) => format!("{}s", figure(value)),
        Some(Unit::PerSecond) => rate(value),
        Some(Unit::Share) => share(value),
        Some(Unit::Bytes) => bytes(value),
        Some(Unit::Cores) => format!("{} cores", figure(value)),
        Some(Unit::Count) | None => figure(value),
    }
}

/// Almost all is not all.
fn share(value: f64) -> String {
    let text = percent(value);
    if value < 1.0 && text == percent(1.0) {
        return format!("< {text}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_the_unit_of_its_name() {
        assert_eq!(measured_text("e2e.p99", 3.9e6), "3.9ms");
        assert_eq!(
            measured_text("broker.rss", 1.1 * f64::from(1 << 30)),
            "1.1 GiB"
        );
        assert_eq!(measured_text("rate.received", 49_998.0), "49 998/s");
        assert_eq!(measured_text("errors", 0.0), "0");
        assert_eq!(measured_text("of.a.later.version", 1.5), "1.5");
    }

    #[test]
    fn almost_everything_is_not_everything() {
        assert_eq!(measured_text("delivered", 1.0), "100 %");
        assert_eq!(measured_text("delivered", 0.999_999), "< 100 %");
        assert_eq!(measured_text("delivered", 0.5), "50 %");
    }
}
