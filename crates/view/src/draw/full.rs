//! All panels, in one frame whose borders meet.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::symbols::merge::MergeStrategy;
use ratatui::text::Line;
use ratatui::widgets::{Block, Padding, Paragraph};

use super::phrase::Tone;
use super::{broker, clients, errors, footer, header, health, latency, marks, rate, thresholds};
use crate::snapshot::{Figures, Snapshot};
use crate::view::ViewState;

/// From this width on title and stage share a line.
const ONE_LINE_HEADER: u16 = 112;

/// Part of the one-line header that the stage has.
const STAGE_WIDTH: u16 = 50;

/// Lines of the panels of figures in the first row.
const FIGURE_LINES: u16 = 4;

pub(super) fn draw(frame: &mut Frame<'_>, snapshot: &Snapshot, view: &ViewState) {
    let area = frame.area();
    let header_lines = if area.width >= ONE_LINE_HEADER { 1 } else { 2 };
    let series = header::series(snapshot, indented(area).width);
    let invalid = header::invalid(snapshot, indented(area).width);
    let [head, place, why, body, foot] = Layout::vertical([
        Constraint::Length(header_lines),
        Constraint::Length(u16::from(series.is_some())),
        Constraint::Length(u16::try_from(invalid.len()).unwrap_or(0)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_header(frame, indented(head), snapshot, view);
    put(frame, indented(place), series.into_iter().collect());
    put(frame, indented(why), invalid);
    frame.render_widget(
        footer::line(snapshot, view, indented(foot).width),
        indented(foot),
    );

    let spare = area.height.saturating_sub(super::FULL.height);
    let events = events(snapshot);
    let resource_lines = match area.width {
        ..100 => 2 + (spare / 12).min(1),
        100..160 => 2,
        _ => 1,
    };
    let mut rows = vec![
        Constraint::Length(FIGURE_LINES + 2),
        Constraint::Fill(1),
        Constraint::Length(resource_lines + 2),
    ];
    if let Some(lines) = event_lines(snapshot) {
        // Else the charts have its room.
        rows.insert(2, Constraint::Length(lines.min(2 + (spare / 6).min(4)) + 2));
    }
    // Rows and columns share their borders.
    let rows = Layout::vertical(rows).spacing(-1).split(body);
    if let [figures, charts, below @ .., resources] = &*rows {
        draw_figures(frame, *figures, snapshot);
        draw_charts(frame, *charts, snapshot, view);
        if let [below] = below {
            draw_events(frame, *below, snapshot, &events);
        }
        draw_resources(frame, *resources, snapshot);
    }
}

fn draw_header(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, view: &ViewState) {
    let [title, stage] = if area.height == 1 {
        let columns = [Constraint::Fill(1), Constraint::Length(STAGE_WIDTH)];
        Layout::horizontal(columns).spacing(2).areas(area)
    } else {
        Layout::vertical([Constraint::Length(1), Constraint::Length(1)]).areas(area)
    };
    frame.render_widget(header::title(snapshot, title.width), title);
    frame.render_widget(header::stage(snapshot, view, stage.width), stage);
}

fn draw_figures(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let [left, middle, right] = Layout::horizontal([
        Constraint::Length(24),
        Constraint::Fill(14),
        Constraint::Fill(15),
    ])
    .spacing(-1)
    .areas(area);
    let inner = panel(frame, left, "clients");
    put(frame, inner, clients::lines(snapshot, inner.width));
    let inner = panel(frame, middle, rate::title(snapshot));
    put(frame, inner, rate::lines(snapshot, inner.width));
    let timing = snapshot.figures.as_ref();
    let timing = timing.map_or("latency", |figures| figures.history.timing.text());
    let inner = panel(frame, right, timing);
    put(frame, inner, latency::lines(snapshot, inner.width));
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, view: &ViewState) {
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [left, right] = Layout::horizontal(halves).spacing(-1).areas(area);
    let scale = view.scale.text();
    let rate_area = panel(frame, left, &format!("{}, {scale}", rate::title(snapshot)));
    let latency_area = panel(frame, right, &format!("latency, {scale}"));
    if let Some(figures) = &snapshot.figures {
        let figures: &Figures = figures;
        rate::plot(figures, view.scale).draw(frame.buffer_mut(), rate_area);
        latency::plot(figures, view.scale).draw(frame.buffer_mut(), latency_area);
    }
}

/// What happened in the run, or has to be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Errors,
    Marks,
    Thresholds,
}

/// Those of which there is something to show.
fn events(snapshot: &Snapshot) -> Vec<Event> {
    let Some(figures) = &snapshot.figures else {
        return Vec::new();
    };
    let all = [
        (Event::Errors, figures.errors.is_empty()),
        (Event::Marks, figures.marks.is_empty()),
        (Event::Thresholds, figures.thresholds.is_empty()),
    ];
    let shown = all.into_iter().filter(|(_, is_empty)| !is_empty);
    shown.map(|(event, _)| event).collect()
}

/// Lines that show all of them; none if there is nothing to show.
fn event_lines(snapshot: &Snapshot) -> Option<u16> {
    let figures = snapshot.figures.as_ref()?;
    let counts = [
        figures.errors.len(),
        figures.marks.len(),
        figures.thresholds.len(),
    ];
    let most = counts.into_iter().max().filter(|most| *most > 0)?;
    u16::try_from(most).ok()
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, events: &[Event]) {
    let columns = events.iter().map(|event| match event {
        Event::Errors => Constraint::Fill(4),
        Event::Marks => Constraint::Fill(3),
        Event::Thresholds => Constraint::Fill(6),
    });
    let columns = Layout::horizontal(columns).spacing(-1).split(area);
    for (event, area) in events.iter().zip(columns.iter()) {
        let title = match event {
            Event::Errors => "errors".to_owned(),
            Event::Marks => "marks".to_owned(),
            Event::Thresholds => thresholds::title(snapshot),
        };
        let inner = panel(frame, *area, &title);
        let lines = match event {
            Event::Errors => errors::lines(snapshot, inner.width, inner.height),
            Event::Marks => marks::lines(snapshot, inner.width, inner.height),
            Event::Thresholds => thresholds::lines(snapshot, inner.width, inner.height),
        };
        put(frame, inner, lines);
    }
}

/// Broker and generator; the latter alone if nothing of the broker is seen.
fn draw_resources(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let generator = if broker::is_seen(snapshot) {
        let halves = [Constraint::Fill(1), Constraint::Fill(1)];
        let [left, right] = Layout::horizontal(halves).spacing(-1).areas(area);
        let inner = panel(frame, left, &broker::name(snapshot));
        let lines = broker::lines(snapshot, inner.width, inner.height);
        put(frame, inner, lines);
        right
    } else {
        area
    };
    let inner = panel(frame, generator, "generator health");
    let lines = health::lines(snapshot, inner.width, inner.height);
    put(frame, inner, lines);
}

/// Draws a border that joins its neighbours; returns what is inside.
pub(super) fn panel(frame: &mut Frame<'_>, area: Rect, title: &str) -> Rect {
    let block = Block::bordered()
        .border_style(Tone::Quiet.style())
        .merge_borders(MergeStrategy::Exact)
        .padding(Padding::horizontal(1))
        .title(Line::styled(format!(" {title} "), Tone::Normal.style()));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

fn put(frame: &mut Frame<'_>, area: Rect, lines: Vec<Line<'static>>) {
    frame.render_widget(Paragraph::new(lines), area);
}

/// One cell free at each side, as inside of panels.
pub(super) const fn indented(area: Rect) -> Rect {
    Rect {
        x: area.x + 1,
        width: area.width.saturating_sub(2),
        ..area
    }
}
