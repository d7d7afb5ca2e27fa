//! One line of progress where there is no terminal to draw on.

use crate::run::{Stage, Status};
use crate::swarm::Progress;
use crate::units::{count, rate, span};

/// A line about a run; rates are the mean since the earlier look.
pub fn progress_line(earlier: Option<&Status>, status: &Status) -> String {
    let stage = match status.stage {
        Stage::Ramp => "ramp",
        Stage::WarmUp => "warm-up",
        Stage::Hold => "hold",
        Stage::Drain => "drain",
    };
    let elapsed = std::time::Duration::from_secs(status.elapsed.as_secs());
    let mut parts = vec![format!(
        "{stage} {} / {}",
        span(elapsed),
        span(status.planned)
    )];
    let now = &status.progress;
    parts.push(format!(
        "clients {}/{}",
        count(now.ready),
        count(u64::from(status.clients))
    ));
    if now.failed + now.lost > 0 {
        parts.push(format!(
            "failed {} lost {}",
            count(now.failed),
            count(now.lost)
        ));
    }
    if now.sent > 0 {
        let since = earlier.filter(|earlier| earlier.stage == status.stage);
        let seconds =
            since.map(|earlier| status.elapsed.saturating_sub(earlier.elapsed).as_secs_f64());
        let before = since.map(|earlier| earlier.progress).unwrap_or_default();
        if let Some(seconds) = seconds.filter(|seconds| *seconds > 0.0) {
            let per_second = |of: fn(&Progress) -> u64| {
                rate(crate::units::fraction(of(now).saturating_sub(of(&before))) / seconds)
            };
            parts.push(format!(
                "sent {} received {}",
                per_second(|progress| progress.sent),
                per_second(|progress| progress.received)
            ));
        }
        let missing = now.expected.saturating_sub(now.distinct);
        parts.push(format!("on the way {}", count(missing)));
    }
    parts.join(" · ")
}
