//! Small terminals: a line for each panel, charts if there is room, the least important left out.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::full::{indented, panel};
use super::phrase::{Part, Tone, fitted, shortened, text};
use super::{broker, clients, errors, footer, header, health, latency, marks, rate, thresholds};
use crate::snapshot::Snapshot;
use crate::view::ViewState;

/// Width of the names of lines.
const NAMES: usize = 9;

/// Fewest lines of a chart with its borders.
const CHART_LINES_MIN: u16 = 6;

/// From this width on two charts stand side by side.
const TWO_CHARTS_WIDTH: u16 = 60;

/// Lines that stay above the charts: title, stage, clients, rates, deliveries, latencies.
const LINES_ABOVE: usize = 6;

/// A line and how important it is; 0 is the most important.
struct Entry {
    rank: usize,
    line: Line<'static>,
}

pub(super) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &ViewState) {
    let rows = [Constraint::Fill(1), Constraint::Length(1)];
    let [body, foot] = Layout::vertical(rows).areas(frame.area());
    let foot = indented(foot);
    frame.render_widget(footer::line(snapshot, view, foot.width), foot);
    let room = usize::from(body.height);
    let mut entries = entries(snapshot, view, indented(body).width);
    while entries.len() > room {
        let least = entries.iter().map(|entry| entry.rank).max();
        entries.retain(|entry| Some(entry.rank) != least);
    }
    let spare = u16::try_from(room - entries.len()).unwrap_or(0);
    let above = LINES_ABOVE - usize::from(rate::is_connecting(snapshot))
        + usize::from(health::invalid(snapshot).is_some())
        + usize::from(snapshot.series.is_some());
    let below = entries.split_off(above.min(entries.len()));
    let chart_lines = if spare >= CHART_LINES_MIN { spare } else { 0 };
    let [top, charts, bottom] = Layout::vertical([
        Constraint::Length(u16::try_from(entries.len()).unwrap_or(0)),
        Constraint::Length(chart_lines),
        Constraint::Fill(1),
    ])
    .areas(body);
    put(frame, top, entries);
    put(frame, bottom, below);
    if chart_lines > 0 {
        draw_charts(frame, charts, snapshot, view);
    }
}

fn put(frame: &mut Frame<'_>, area: Rect, entries: Vec<Entry>) {
    let lines: Vec<_> = entries.into_iter().map(|entry| entry.line).collect();
    frame.render_widget(Paragraph::new(lines), indented(area));
}

fn entries(snapshot: &Snapshot, view: &ViewState, width: u16) -> Vec<Entry> {
    let room = width.saturating_sub(u16::try_from(NAMES + 1).unwrap_or(0));
    let entry = |rank, name: &str, parts: Vec<Part>| Entry {
        rank,
        line: named_line(name, fitted(parts, room)),
    };
    let series = header::series(snapshot, width);
    let series = series.map(|line| Entry { rank: 3, line });
    let mut entries = vec![
        Entry {
            rank: 2,
            line: header::title(snapshot, width),
        },
        Entry {
            rank: 0,
            line: header::stage(snapshot, view, width),
        },
    ];
    entries.extend(series);
    if let Some(why) = health::invalid(snapshot) {
        let why = text(shortened(&why, usize::from(room)), Tone::Bad);
        entries.push(entry(1, "✗ INVALID", vec![why]));
    }
    entries.push(entry(5, "clients", clients::parts(snapshot)));
    if rate::is_connecting(snapshot) {
        entries.push(entry(1, "rate", rate::parts(snapshot)));
    } else {
        entries.push(entry(1, "msg/s", rate::parts(snapshot)));
        entries.push(entry(6, "messages", rate::losses(snapshot)));
    }
    entries.push(entry(4, "latency", latency::parts(snapshot)));
    for (rank, name, parts) in [
        (7, "errors", errors::parts(snapshot, room)),
        (8, "limits", thresholds::parts(snapshot)),
        (10, "broker", broker::parts(snapshot)),
        (9, "generator", health::parts(snapshot)),
    ] {
        // No line for nothing.
        if !parts.is_empty() {
            entries.push(entry(rank, name, parts));
        }
    }
    if let Some(mark) = marks::last(snapshot, room) {
        entries.push(entry(11, "mark", vec![mark]));
    }
    entries
}

fn named_line(name: &str, text: Line<'static>) -> Line<'static> {
    let mut line = Line::from(Span::styled(
        format!("{name:<NAMES$} "),
        Tone::Quiet.style(),
    ));
    line.spans.extend(text.spans);
    line
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, view: &ViewState) {
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [of_rate, of_latency] = if area.width >= TWO_CHARTS_WIDTH {
        Layout::horizontal(halves).spacing(-1).areas(area)
    } else if area.height + 1 >= 2 * CHART_LINES_MIN {
        Layout::vertical(halves).spacing(-1).areas(area)
    } else {
        [Rect::ZERO, area]
    };
    let scale = view.scale.text();
    let of_rate = panel(
        frame,
        of_rate,
        &format!("{}, {scale}", rate::title(snapshot)),
    );
    let of_latency = panel(frame, of_latency, &format!("latency, {scale}"));
    if let Some(figures) = &snapshot.figures {
        rate::plot(figures, view.scale).draw(frame.buffer_mut(), of_rate);
        latency::plot(figures, view.scale).draw(frame.buffer_mut(), of_latency);
    }
}

/// The smallest view.
pub(super) fn draw_one_line(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &ViewState) {
    let area = Rect {
        height: frame.area().height.min(1),
        ..frame.area()
    };
    let stage = header::stage(snapshot, view, 0);
    let latency = latency::main_part(snapshot);
    let parts = std::iter::once(stage)
        .chain(rate::parts(snapshot).into_iter().take(1))
        .chain(latency);
    frame.render_widget(fitted(parts, area.width), area);
}
