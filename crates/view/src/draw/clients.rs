//! Numbers of clients.

use ratatui::text::Line;
use thrum_figures::{count, figure, percent, ratio};

use super::phrase::{Part, Tone, named, tabled};
use crate::snapshot::Snapshot;

/// Width of the names in the panel.
const NAMES: usize = 6;

/// The panel, a line for each figure.
pub(super) fn lines(snapshot: &Snapshot, width: u16) -> Vec<Line<'static>> {
    let figures = Figures::of(snapshot);
    let up = figures.up_text(usize::from(width).saturating_sub(NAMES + 1));
    let mut lost = tabled(
        "lost",
        NAMES,
        &count(figures.lost),
        Tone::of_faults(figures.lost),
    );
    let back = named("  back", count(figures.reconnected), Tone::Normal);
    lost.spans.extend(back.spans);
    vec![
        tabled("up", NAMES, &up, figures.up_tone()),
        tabled(
            "new",
            NAMES,
            &format!("{}/s", figure(figures.connected)),
            Tone::Normal,
        ),
        tabled(
            "failed",
            NAMES,
            &count(figures.failed),
            Tone::of_faults(figures.failed),
        ),
        lost,
    ]
}

/// The same in the order of importance.
pub(super) fn parts(snapshot: &Snapshot) -> Vec<Part> {
    let figures = Figures::of(snapshot);
    vec![
        named("up", figures.up_text(usize::MAX), figures.up_tone()),
        named(
            "failed",
            count(figures.failed),
            Tone::of_faults(figures.failed),
        ),
        named("lost", count(figures.lost), Tone::of_faults(figures.lost)),
        named("back", count(figures.reconnected), Tone::Normal),
        named(
            "new",
            format!("{}/s", figure(figures.connected)),
            Tone::Normal,
        ),
    ]
}

struct Figures {
    wanted: u64,
    up: u64,
    failed: u64,
    lost: u64,
    reconnected: u64,
    connected: f64,
}

impl Figures {
    fn of(snapshot: &Snapshot) -> Self {
        let now = snapshot.now.unwrap_or_default();
        let clients = snapshot.figures.as_ref().map(|figures| &figures.clients);
        let last = snapshot
            .figures
            .as_ref()
            .and_then(|figures| figures.history.last().copied());
        let reconnected = clients.map_or(0, |clients| clients.reconnected);
        let gone = now.lost.saturating_sub(reconnected);
        Self {
            wanted: now.clients,
            up: last.map_or_else(|| now.ready.saturating_sub(gone), |last| last.up),
            failed: now.failed,
            lost: now.lost,
            reconnected,
            connected: last.map_or(0.0, |last| last.connected),
        }
    }

    /// `50 500/50 500`, or the share where that is too long.
    fn up_text(&self, room: usize) -> String {
        let both = format!("{}/{}", count(self.up), count(self.wanted));
        if both.len() <= room {
            return both;
        }
        format!(
            "{} {}",
            count(self.up),
            percent(ratio(self.up, self.wanted))
        )
    }

    const fn up_tone(&self) -> Tone {
        if self.up >= self.wanted {
            Tone::Good
        } else {
            Tone::Normal
        }
    }
}
