//! Draws one frame: no clock, no input, no output; the same snapshot gives the same frame.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Row, Table};
use thrum_figures::{bytes, count, figure, fraction, rate, span};

use super::state::{TopMode, TopState};
use super::{TopClient, TopSnapshot};
use crate::draw::{bars, plain};

/// Lines above the clients.
const HEAD_LINES: u16 = 7;
/// Columns before a small chart.
const CHART_INDENT: u16 = 26;
/// Points of a small chart.
const CHART_POINTS_MAX: u16 = 120;

const KEYS: &str = "\
 r  clients by rate            /  filter, as user=alice queue>100
 u  clients by queue           k  disconnect the marked client
 d  clients by drops           q  end
 up, down  mark a client       any key closes this";

const HINT: &str = "r rate  u queue  d drops  / filter  k disconnect  ? help  q end";

/// Draws the snapshot.
pub(super) fn render(frame: &mut Frame<'_>, snapshot: &TopSnapshot, state: &TopState) {
    let rows = Layout::vertical([
        Constraint::Length(HEAD_LINES),
        Constraint::Min(1),
        Constraint::Length(1),
    ]);
    let [head, clients, foot] = rows.areas(frame.area());
    frame.render_widget(Paragraph::new(head_lines(snapshot, head.width)), head);
    draw_clients(frame, clients, snapshot, state);
    frame.render_widget(Paragraph::new(foot_line(state)), foot);
    if state.mode == TopMode::Help {
        draw_help(frame);
    }
    plain::apply(frame.buffer_mut(), state.look);
}

fn head_lines(snapshot: &TopSnapshot, width: u16) -> Vec<Line<'static>> {
    let figures = &snapshot.figures;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let uptime = span(Duration::from_secs(figures.uptime_secs));
    let mut title = vec![Span::styled(
        format!("thrum {} {}", figures.version, snapshot.place),
        bold,
    )];
    if snapshot.trouble.is_empty() {
        title.push(Span::raw(format!("  up {uptime}")));
    } else {
        let red = Style::new().fg(Color::Red);
        title.push(Span::styled(format!("  {}", snapshot.trouble), red));
    }
    let memory = figures.memory_bytes.map(|memory| bytes(fraction(memory)));
    let memory_max = figures.memory_bytes_max;
    let memory_max = memory_max.map(|most| format!(" of {}", bytes(fraction(most))));
    let away = figures.sessions.saturating_sub(figures.connected);
    vec![
        Line::from(title),
        Line::raw(format!(
            "clients {} connected, {} away   subscriptions {}   retained {}",
            count(figures.connected),
            count(away),
            count(figures.subscriptions),
            count(figures.retained)
        )),
        Line::raw(format!(
            "memory {}{}   in {}/s   out {}/s",
            memory.as_deref().unwrap_or("-"),
            memory_max.unwrap_or_default(),
            bytes(figures.bytes_received),
            bytes(figures.bytes_sent)
        )),
        chart("messages in", &snapshot.received, width),
        chart("messages out", &snapshot.sent, width),
        chart("dropped", &snapshot.dropped, width),
        Line::raw(""),
    ]
}

fn chart(label: &str, values: &[f64], width: u16) -> Line<'static> {
    let last = values
        .last()
        .map_or_else(|| "-".to_owned(), |last| rate(*last));
    let room = width.saturating_sub(CHART_INDENT).min(CHART_POINTS_MAX);
    let skipped = values.len().saturating_sub(usize::from(room));
    let shown = bars(values.get(skipped..).unwrap_or_default());
    Line::from(vec![
        Span::raw(format!("{label:<13}{last:>11}  ")),
        Span::styled(shown, Style::new().fg(Color::Cyan)),
    ])
}

fn draw_clients(frame: &mut Frame<'_>, area: Rect, snapshot: &TopSnapshot, state: &TopState) {
    let heading = Style::new().add_modifier(Modifier::REVERSED);
    let header = Row::new([
        "CLIENT ID",
        "USER",
        "IN/s",
        "OUT/s",
        "QUEUED",
        "INFLIGHT",
        "DROPPED",
        "PROBLEMS",
    ]);
    let room = usize::from(area.height.saturating_sub(1));
    // The marked client is on the screen.
    let first = (state.marked + 1).saturating_sub(room);
    let rows = snapshot.clients.iter().enumerate().skip(first).take(room);
    let rows = rows.map(|(place, client)| {
        let style = if place == state.marked {
            Style::new().add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else if client.is_connected {
            Style::new()
        } else {
            Style::new().fg(Color::DarkGray)
        };
        Row::new(cells(client)).style(style)
    });
    let widths = [
        Constraint::Fill(3),
        Constraint::Fill(1),
        Constraint::Length(9),
        Constraint::Length(9),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    frame.render_widget(Table::new(rows, widths).header(header.style(heading)), area);
}

fn cells(client: &TopClient) -> [String; 8] {
    let per_second = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figure);
    [
        client.client_id.clone(),
        client.user.clone(),
        per_second(client.received),
        per_second(client.sent),
        count(client.queued),
        count(client.inflight),
        count(client.dropped),
        client.problems.clone(),
    ]
}

fn foot_line(state: &TopState) -> Line<'static> {
    match &state.mode {
        TopMode::Filter(text) => Line::raw(format!("filter: {text}_")),
        TopMode::Confirm(id) => {
            let id = id.escape_debug();
            Line::styled(
                format!("disconnect {id}? y does it"),
                Style::new().fg(Color::Yellow),
            )
        }
        TopMode::Watch | TopMode::Help if !state.notice.is_empty() => {
            Line::styled(state.notice.clone(), Style::new().fg(Color::Yellow))
        }
        TopMode::Watch | TopMode::Help => {
            let filter = match state.filter.as_str() {
                "" => String::new(),
                filter => format!("  filter {filter}"),
            };
            Line::raw(format!("by {}{filter}   {HINT}", state.sort.word()))
        }
    }
}

fn draw_help(frame: &mut Frame<'_>) {
    let area = frame.area();
    let lines = u16::try_from(KEYS.lines().count()).unwrap_or(0);
    let height = lines.min(area.height);
    let place = Rect {
        y: area.y + area.height - height,
        height,
        ..area
    };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(KEYS), place);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::top::TopFigures;

    fn snapshot(clients: usize) -> TopSnapshot {
        let client = |number: usize| TopClient {
            client_id: format!("meter-{number}"),
            id: format!("meter-{number}"),
            user: "fleet".to_owned(),
            is_connected: true,
            received: Some(12.5),
            sent: None,
            queued: 1200,
            inflight: 3,
            dropped: 7,
            problems: "slow".to_owned(),
        };
        TopSnapshot {
            place: "at https://b:8080".to_owned(),
            figures: TopFigures {
                version: "1.2.3".to_owned(),
                uptime_secs: 3600,
                connected: 1204,
                sessions: 1300,
                ..TopFigures::default()
            },
            received: vec![1.0, 2.0, 4.0],
            clients: (0..clients).map(client).collect(),
            ..TopSnapshot::default()
        }
    }

    fn lines(snapshot: &TopSnapshot, state: &TopState) -> Vec<String> {
        let (width, height) = (100, 12);
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal
            .draw(|frame| render(frame, snapshot, state))
            .unwrap();
        let buffer = terminal.backend().buffer().clone();
        let line = |y| -> String { (0..width).map(|x| buffer[(x, y)].symbol()).collect() };
        (0..height).map(|y| line(y).trim_end().to_owned()).collect()
    }

    #[test]
    fn a_frame_shows_figures_charts_and_clients() {
        let shown = lines(&snapshot(2), &TopState::default());
        assert!(
            shown[0].starts_with("thrum 1.2.3 at https://b:8080  up "),
            "{shown:?}"
        );
        assert!(
            shown[1].starts_with("clients 1 204 connected, 96 away"),
            "{shown:?}"
        );
        assert!(
            shown[3].starts_with("messages in") && shown[3].ends_with('█'),
            "{shown:?}"
        );
        assert!(shown[7].starts_with("CLIENT ID"), "{shown:?}");
        assert!(
            shown[8].starts_with("meter-0") && shown[8].contains("1 200"),
            "{shown:?}"
        );
        assert!(shown[11].starts_with("by rate   r rate"), "{shown:?}");
    }

    #[test]
    fn the_marked_client_is_on_the_screen_and_a_question_in_the_last_line() {
        let mut state = TopState {
            marked: 40,
            ..TopState::default()
        };
        let shown = lines(&snapshot(50), &state);
        assert!(
            shown.iter().any(|line| line.starts_with("meter-40")),
            "{shown:?}"
        );
        state.mode = TopMode::Confirm("a\u{1b}".to_owned());
        let shown = lines(&snapshot(50), &state);
        assert_eq!(shown[11], "disconnect a\\u{1b}? y does it");
        state.mode = TopMode::Help;
        let shown = lines(&snapshot(50), &state);
        assert!(shown[11].contains("any key closes this"), "{shown:?}");
    }

    #[test]
    fn trouble_takes_the_place_of_the_time() {
        let mut snapshot = snapshot(0);
        snapshot.trouble = "no answer".to_owned();
        let shown = lines(&snapshot, &TopState::default());
        assert!(
            shown[0].ends_with("at https://b:8080  no answer"),
            "{shown:?}"
        );
    }
}
