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
    let invalid = header::invalid(snapshot, indented(area).width);
    let [head, why, body, foot] = Layout::vertical([
        Constraint::Length(header_lines),
        Constraint::Length(u16::try_from(invalid.len()).unwrap_or(0)),
        Constraint::Fill(1),
        Constraint::Length(1),
    ])
    .areas(area);
    draw_header(frame, indented(head), snapshot, view);
    put(frame, indented(why), invalid);
    frame.render_widget(footer::line(view, indented(foot).width), indented(foot));

    let spare = area.height.saturating_sub(super::FULL.height);
    let event_lines = 2 + (spare / 6).min(4);
    let limit_lines = 2 + (spare / 6).min(3);
    // Rows and columns share their borders.
    let [figures, charts, events, limits] = Layout::vertical([
        Constraint::Length(FIGURE_LINES + 2),
        Constraint::Fill(1),
        Constraint::Length(event_lines + 2),
        Constraint::Length(limit_lines + 2),
    ])
    .spacing(-1)
    .areas(body);
    draw_figures(frame, figures, snapshot);
    draw_charts(frame, charts, snapshot, view);
    draw_events(frame, events, snapshot);
    draw_limits(frame, limits, snapshot);
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
    let inner = panel(frame, middle, "rate msg/s");
    put(frame, inner, rate::lines(snapshot, inner.width));
    let timing = snapshot
        .figures
        .as_ref()
        .map_or("latency", |figures| figures.history.timing.text());
    let inner = panel(frame, right, timing);
    put(frame, inner, latency::lines(snapshot, inner.width));
}

fn draw_charts(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot, view: &ViewState) {
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [left, right] = Layout::horizontal(halves).spacing(-1).areas(area);
    let scale = view.scale.text();
    let rate_area = panel(frame, left, &format!("rate msg/s, {scale}"));
    let latency_area = panel(frame, right, &format!("latency, {scale}"));
    if let Some(figures) = &snapshot.figures {
        let figures: &Figures = figures;
        rate::plot(figures, view.scale).draw(frame.buffer_mut(), rate_area);
        latency::plot(figures, view.scale).draw(frame.buffer_mut(), latency_area);
    }
}

fn draw_events(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let [left, middle, right] = Layout::horizontal([
        Constraint::Fill(4),
        Constraint::Fill(3),
        Constraint::Fill(4),
    ])
    .spacing(-1)
    .areas(area);
    let inner = panel(frame, left, "errors");
    put(
        frame,
        inner,
        errors::lines(snapshot, inner.width, inner.height),
    );
    let inner = panel(frame, middle, "marks");
    put(
        frame,
        inner,
        marks::lines(snapshot, inner.width, inner.height),
    );
    let inner = panel(frame, right, &broker::name(snapshot));
    put(
        frame,
        inner,
        broker::lines(snapshot, inner.width, inner.height),
    );
}

fn draw_limits(frame: &mut Frame<'_>, area: Rect, snapshot: &Snapshot) {
    let halves = [Constraint::Fill(1), Constraint::Fill(1)];
    let [left, right] = Layout::horizontal(halves).spacing(-1).areas(area);
    let inner = panel(frame, left, &thresholds::title(snapshot));
    put(
        frame,
        inner,
        thresholds::lines(snapshot, inner.width, inner.height),
    );
    let inner = panel(frame, right, "generator health");
    put(
        frame,
        inner,
        health::lines(snapshot, inner.width, inner.height),
    );
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
