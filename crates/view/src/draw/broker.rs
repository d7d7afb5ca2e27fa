//! The resources of the broker.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use thrum_figures::{bytes, count, figure, fraction};
use thrum_report::result::Resources;

use super::phrase::{Part, Tone, flowed, named, text};
use super::plot::spark;
use crate::snapshot::{BrokerFigures, Snapshot};

/// Seconds of the sparkline.
const SPARK: usize = 12;

/// From this width of the panel on there is room for it.
const SPARK_WIDTH: u16 = 36;

/// Its name, for the title of the panel.
pub(super) fn name(snapshot: &Snapshot) -> String {
    let name = broker(snapshot).map(|broker| broker.name.as_str());
    match name {
        None | Some("") => "broker".to_owned(),
        Some(name) => format!("broker {name}"),
    }
}

/// Whether there is anything to show of it, or may be in a second.
pub(super) fn is_seen(snapshot: &Snapshot) -> bool {
    snapshot.figures.is_none() || broker(snapshot).is_some_and(|broker| broker.last.is_some())
}

/// The panel. The network is the sum of its host, both ways: the kernel does not report the part of
/// one process.
pub(super) fn lines(snapshot: &Snapshot, width: u16, height: u16) -> Vec<Line<'static>> {
    let mut parts = parts(snapshot);
    let cores = broker(snapshot)
        .map(|broker| broker.cores.as_slice())
        .unwrap_or_default();
    let from = cores.len().saturating_sub(SPARK);
    let spark = spark(cores.get(from..).unwrap_or_default());
    if let Some(cpu) = parts.first_mut()
        && !spark.is_empty()
        && width >= SPARK_WIDTH
    {
        cpu.push_span(Span::raw(" "));
        cpu.push_span(Span::styled(spark, Style::new().fg(Color::Cyan)));
    }
    flowed(parts, width, height)
}

/// Its use in the last second in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let Some(used) = broker(snapshot).and_then(|broker| broker.last) else {
        return vec![text("not seen from here", Tone::Quiet)];
    };
    let network = used.network_in_bytes + used.network_out_bytes;
    vec![
        named("cpu", cpu(&used), Tone::Strong),
        named("rss", bytes(fraction(used.rss_bytes)), Tone::Normal),
        named("host net", per_second(network), Tone::Normal),
        named("threads", count(used.threads), Tone::Normal),
        named("files", count(used.open_files), Tone::Normal),
    ]
}

/// In the unit of the summary and the pages: `4.1 cores`.
pub(super) fn cpu(used: &Resources) -> String {
    format!("{} cores", figure(used.cores_user + used.cores_system))
}

fn per_second(value: f64) -> String {
    format!("{}/s", bytes(value))
}

fn broker(snapshot: &Snapshot) -> Option<&BrokerFigures> {
    snapshot.figures.as_ref()?.broker.as_ref()
}
