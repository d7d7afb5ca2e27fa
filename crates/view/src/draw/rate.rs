//! Messages per second: due, sent, received; and what became of them.

use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use thrum_figures::{count, figure, rate};

use super::phrase::{Part, Tone, fitted, named, tabled};
use super::plot::{Curve, Plot, Scale, spark};
use crate::history::Point;
use crate::snapshot::{Figures, Snapshot};
use crate::view::TimeScale;

/// Width of the names in the panel.
const NAMES: usize = 8;

/// Width of the figures in the panel.
const FIGURES: usize = 9;

/// Seconds of a sparkline that fits everywhere.
const SPARK_MAX: usize = 60;

const OFFERED: Style = Style::new().fg(Color::Yellow);
const SENT: Style = Style::new().fg(Color::Blue);
const RECEIVED: Style = Style::new().fg(Color::Cyan);

/// A line of the panel.
struct Row {
    name: &'static str,
    of: fn(&Point) -> f64,
    style: Style,
}

const ROWS: [Row; 3] = [
    Row {
        name: "offered",
        of: |point| point.offered,
        style: OFFERED,
    },
    Row {
        name: "sent",
        of: |point| point.sent,
        style: SENT,
    },
    Row {
        name: "received",
        of: |point| point.received,
        style: RECEIVED,
    },
];

/// Clients instead of messages, as long as no message is due.
const CONNECTIONS: [Row; 1] = [Row {
    name: "new",
    of: |point| point.connected,
    style: RECEIVED,
}];

/// What is counted.
pub(super) fn title(snapshot: &Snapshot) -> &'static str {
    if is_connecting(snapshot) {
        "connections/s"
    } else {
        "rate msg/s"
    }
}

/// No message is due so far.
pub(super) fn is_connecting(snapshot: &Snapshot) -> bool {
    let figures = snapshot.figures.as_ref();
    figures.is_some_and(|figures| !figures.history.has_messages)
}

/// The panel: a line with its latest seconds for each rate, then the losses.
pub(super) fn lines(snapshot: &Snapshot, width: u16) -> Vec<Line<'static>> {
    let history = snapshot.figures.as_ref().map(|figures| &figures.history);
    let recent = history.map_or(&[][..], |history| &history.recent);
    let is_connecting = is_connecting(snapshot);
    let rows = if is_connecting {
        &CONNECTIONS[..]
    } else {
        &ROWS[..]
    };
    let rows = rows.iter().map(|row| row.line(recent, usize::from(width)));
    let mut lines: Vec<_> = rows.collect();
    if !is_connecting {
        lines.push(fitted(losses(snapshot), width));
    }
    lines
}

impl Row {
    fn line(&self, recent: &[Point], width: usize) -> Line<'static> {
        let last = recent
            .last()
            .map_or_else(|| "–".to_owned(), |point| figure((self.of)(point)));
        let mut line = tabled(self.name, NAMES, &format!("{last:>FIGURES$}"), Tone::Strong);
        let room = width.saturating_sub(line.width() + 1).min(SPARK_MAX / 2);
        let shown = recent.iter().skip(recent.len().saturating_sub(2 * room));
        let values: Vec<f64> = shown.map(self.of).collect();
        line.push_span(Span::raw(" "));
        line.push_span(Span::styled(spark(&values), self.style));
        line
    }
}

/// The rates in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let last = snapshot
        .figures
        .as_ref()
        .and_then(|figures| figures.history.last());
    let Some(last) = last else {
        return vec![named("sent", "–", Tone::Normal)];
    };
    if is_connecting(snapshot) {
        return vec![named("new", rate(last.connected), Tone::Strong)];
    }
    vec![
        named("sent", figure(last.sent), Tone::Strong),
        named("recv", figure(last.received), Tone::Strong),
        named("of", rate(last.offered), Tone::Normal),
    ]
}

/// Deliveries that did not arrive as they should.
pub(super) fn losses(snapshot: &Snapshot) -> Vec<Part> {
    let Some(figures) = snapshot.figures.as_ref() else {
        return vec![named("lost", "–", Tone::Normal)];
    };
    let delivery = &figures.delivery;
    let fault = |name: &str, faults: u64| named(name, count(faults), Tone::of_faults(faults));
    let in_flight = snapshot.now.map_or(0, |now| now.in_flight);
    vec![
        fault("lost", delivery.lost),
        fault("dup", delivery.duplicated),
        fault("reorder", delivery.reordered),
        named("in flight", count(in_flight), Tone::Normal),
    ]
}

/// The chart over time.
pub(super) fn plot(figures: &Figures, scale: TimeScale) -> Plot {
    let points = scale.points(&figures.history);
    let curve = |label, of: fn(&Point) -> f64, style| Curve {
        label,
        points: points
            .iter()
            .map(|point| (point.at, Some(of(point))))
            .collect(),
        style,
    };
    let curves = if figures.history.has_messages {
        vec![
            curve("recv", |point| point.received, RECEIVED),
            curve("due", |point| point.offered, OFFERED),
            curve("sent", |point| point.sent, SENT),
        ]
    } else {
        vec![curve("new", |point| point.connected, RECEIVED)]
    };
    Plot {
        curves,
        marks: figures.marks.iter().map(|mark| mark.at).collect(),
        scale: Scale::Linear,
        seconds: scale.seconds(),
        label: figure,
    }
}
