//! The header: scenario, target, stage and progress.

use ratatui::text::{Line, Span};
use thrum_figures::whole;
use thrum_report::result::Stage;

use super::health;
use super::phrase::{Tone, clock, fitted, shortened, text, wrapped};
use crate::snapshot::{Now, Snapshot};
use crate::view::{Load, ViewState};

/// Widest gauge in cells.
const GAUGE_CELLS_MAX: u16 = 40;

/// Most lines of why a run is INVALID: the charts need the others.
const INVALID_LINES_MAX: usize = 3;

/// Narrowest useful gauge.
const GAUGE_CELLS_MIN: u16 = 4;

const EIGHTHS: [char; 8] = ['·', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/// `thrum bench  fan-in-50k → mqtt://10.0.0.5:1883  v5 QoS 1 16 B`, cut at the end.
pub(super) fn title(snapshot: &Snapshot, width: u16) -> Line<'static> {
    let brand = "thrum bench  ";
    let what = snapshot.title.to_string();
    let load = snapshot.figures.as_ref();
    let load = load.map_or_else(String::new, |figures| figures.load.clone());
    let mut line = Line::default();
    let room = usize::from(width);
    let needed = Span::raw(what.as_str()).width();
    if brand.len() + needed <= room {
        line.push_span(Span::styled(brand, Tone::Quiet.style()));
    }
    let room = room - line.width().min(room);
    line.push_span(Span::styled(shortened(&what, room), Tone::Strong.style()));
    let room = usize::from(width).saturating_sub(line.width() + 2);
    if !load.is_empty() && Span::raw(load.as_str()).width() <= room {
        line.push_span(Span::styled(format!("  {load}"), Tone::Normal.style()));
    }
    line
}

/// `run 2/4  about 2m30s left  1m12s gone`: where the series is, if the run is part of one.
pub(super) fn series(snapshot: &Snapshot, width: u16) -> Option<Line<'static>> {
    let mut parts: Vec<&str> = snapshot.series.as_deref()?.split(" · ").collect();
    if let [_, gone, left] = parts.as_mut_slice() {
        // What is left matters more than what is gone.
        std::mem::swap(gone, left);
    }
    let tones = std::iter::once(Tone::Strong).chain(std::iter::repeat(Tone::Normal));
    let parts = parts.into_iter().zip(tones);
    Some(fitted(parts.map(|(part, tone)| text(part, tone)), width))
}

/// `✗ INVALID: why`, in as many lines as it takes, at most [`INVALID_LINES_MAX`]; none for a valid
/// run.
pub(super) fn invalid(snapshot: &Snapshot, width: u16) -> Vec<Line<'static>> {
    let Some(why) = health::invalid(snapshot) else {
        return Vec::new();
    };
    let lines = wrapped(&format!("✗ INVALID: {why}"), usize::from(width));
    lines
        .into_iter()
        .take(INVALID_LINES_MAX)
        .map(|line| text(line, Tone::Bad))
        .collect()
}

/// `hold 02:13 / 05:00 ████▌···`, the gauge as wide as there is room.
pub(super) fn stage(snapshot: &Snapshot, view: &ViewState, width: u16) -> Line<'static> {
    let Some(now) = snapshot.now else {
        return text("connecting", Tone::Strong);
    };
    let mut line = text(stage_text(&now), Tone::Strong);
    match view.load {
        Load::Running => {}
        Load::Paused => line.push_span(Span::styled(" PAUSED", Tone::Bad.style())),
        Load::Stopping | Load::Interrupted | Load::EndNow => {
            line.push_span(Span::styled(" STOPPING", Tone::Bad.style()));
        }
    }
    let used = u16::try_from(line.width() + 1).unwrap_or(u16::MAX);
    let cells = width.saturating_sub(used).min(GAUGE_CELLS_MAX);
    if !now.planned.is_zero() && cells >= GAUGE_CELLS_MIN {
        let part = now.elapsed.as_secs_f64() / now.planned.as_secs_f64();
        let style = Tone::Good.style();
        line.push_span(Span::styled(format!(" {}", gauge(part, cells)), style));
    }
    line
}

fn stage_text(now: &Now) -> String {
    let stage = match now.stage {
        Stage::Ramp => "ramp",
        Stage::WarmUp => "warm-up",
        Stage::Hold => "hold",
        Stage::Drain => "drain",
    };
    let elapsed = clock(now.elapsed.as_secs());
    if now.planned.is_zero() {
        return format!("{stage} {elapsed}");
    }
    let planned = now.planned.as_secs() + u64::from(now.planned.subsec_nanos() > 0);
    format!("{stage} {elapsed} / {}", clock(planned))
}

fn gauge(part: f64, cells: u16) -> String {
    let eighths = whole(part.clamp(0.0, 1.0) * f64::from(cells) * 8.0);
    let cells = u64::from(cells);
    let (full, rest) = (eighths / 8, eighths % 8);
    (0..cells)
        .map(|cell| match cell.cmp(&full) {
            std::cmp::Ordering::Less => '█',
            std::cmp::Ordering::Equal => EIGHTHS[usize::try_from(rest).unwrap_or(0)],
            std::cmp::Ordering::Greater => '·',
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_filled_by_eighths() {
        assert_eq!(gauge(0.0, 4), "····");
        assert_eq!(gauge(0.5, 4), "██··");
        assert_eq!(gauge(0.625, 4), "██▌·");
        assert_eq!(gauge(1.0, 4), "████");
        assert_eq!(gauge(7.0, 4), "████");
    }
}
