//! One line of progress where there is no terminal to draw on.

use std::time::Duration;

use crate::result::{Second, Stage};
use thrum_figures::{count, fraction, latency, rate, span};

/// A line about the latest second, or a longer time summed up in one [`Second`]: its failures,
/// losses and rates are those since the previous line.
pub fn progress_line(
    elapsed: Duration,
    planned: Duration,
    clients: u64,
    second: &Second,
) -> String {
    // Fractions of a second would only flicker.
    let elapsed = span(Duration::from_secs(elapsed.as_secs()));
    let mut parts = vec![
        format!("{} {elapsed} / {}", stage_name(second.stage), span(planned)),
        format!("clients {}/{}", count(second.up), count(clients)),
    ];
    if second.failed + second.lost > 0 {
        parts.push(format!(
            "failed {} lost {}",
            count(second.failed),
            count(second.lost)
        ));
    }
    if second.sent + second.received > 0 && second.span > 0.0 {
        let per_second = |messages| rate(fraction(messages) / second.span);
        let (sent, received) = (per_second(second.sent), per_second(second.received));
        parts.push(format!("sent {sent} received {received}"));
    }
    if let Some(e2e) = second.e2e {
        parts.push(format!("p50 {} p99 {}", latency(e2e.p50), latency(e2e.p99)));
    }
    if second.held_back > 0 {
        parts.push(format!("held back {}", count(second.held_back)));
    }
    parts.join(" · ")
}

/// A stage as text.
pub const fn stage_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Ramp => "ramp",
        Stage::WarmUp => "warm-up",
        Stage::Hold => "hold",
        Stage::Drain => "drain",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn progress_names_the_stage_and_the_rates_since_the_last_look() {
        let second = Second {
            span: 5.0,
            stage: Stage::Hold,
            up: 1_999,
            failed: 1,
            sent: 5_000,
            received: 5_500,
            held_back: 7,
            e2e: Some(sample::distribution(&[900_000]).quantiles),
            ..Second::default()
        };
        let line = progress_line(
            Duration::from_millis(15_200),
            Duration::from_mins(1),
            2_000,
            &second,
        );
        assert_eq!(
            line,
            "hold 15s / 1m00s · clients 1 999/2 000 · failed 1 lost 0 · sent 1 000/s received 1 100/s \
             · p50 900µs p99 900µs · held back 7"
        );
    }

    #[test]
    fn a_ramp_without_load_tells_its_clients() {
        let line = progress_line(
            Duration::ZERO,
            Duration::from_mins(1),
            2_000,
            &Second::default(),
        );
        assert_eq!(line, "ramp 0s / 1m00s · clients 0/2 000");
    }
}
