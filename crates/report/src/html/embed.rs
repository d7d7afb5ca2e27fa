//! The figures of a run inside its page.

use serde::Serialize;

use crate::result::{Distribution, Latencies, RunResult};

/// The run as JSON that may stand in a script element.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Embedded {
    /// The JSON.
    pub(super) text: String,
    /// The parts that were left out to keep the page small; empty if there are none.
    pub(super) note: String,
}

/// A second of the series takes more than this as JSON, even if nothing happened in it.
const SECOND_BYTES_MIN: usize = 200;

/// A part that is left out, and how.
type Step = (&'static str, fn(&mut RunResult));

/// Ways to make it smaller, each in addition to those before.
const STEPS: [Step; 5] = [
    ("", |_| {}),
    ("the series of seconds", |result| result.series.clear()),
    ("histograms and percentile curves", |result| {
        curves(&mut result.latency_ns);
    }),
    ("the texts of scenario and broker configuration", |result| {
        result.scenario.toml.clear();
        for broker in &mut result.brokers {
            broker.configuration.clear();
        }
    }),
    ("marks, groups, agents and errors", |result| {
        result.marks.clear();
        result.scenario.groups.clear();
        result.agents.clear();
        result.errors.clear();
    }),
];

/// As much of the run as fits.
pub(super) fn embed(result: &RunResult, bytes_max: usize) -> Embedded {
    let mut kept = result.clone();
    let mut left_out = Vec::new();
    // Hours of seconds are not written out only to find that they do not fit.
    let hopeless = result.series.len() > bytes_max / SECOND_BYTES_MIN;
    for (what, shrink) in STEPS {
        shrink(&mut kept);
        if !what.is_empty() {
            left_out.push(what);
        }
        if what.is_empty() && hopeless {
            continue;
        }
        let note = note(&left_out);
        let text = script_safe(&serde_json::to_string(&kept).unwrap_or_default());
        if !text.is_empty() && text.len() + note.len() <= bytes_max {
            return Embedded { text, note };
        }
    }
    Embedded {
        text: "{}".to_owned(),
        note: "Left out to keep the page small: all of it. See result.json.".to_owned(),
    }
}

fn note(left_out: &[&str]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    format!(
        "Left out to keep the page small: {}. See result.json.",
        left_out.join(", ")
    )
}

fn curves(latencies: &mut Latencies) {
    let Latencies {
        e2e,
        service,
        publish_ack,
        publish_response,
        connect,
        subscribe,
        reconnect,
        generator_lag,
        receive_lag,
        open_lag,
        floors,
        stages: _,
    } = latencies;
    floors.clear();
    let all = [
        e2e,
        service,
        publish_ack,
        publish_response,
        connect,
        subscribe,
        reconnect,
        generator_lag,
        receive_lag,
        open_lag,
    ];
    for Distribution { curve, hdr, .. } in all.into_iter().flatten() {
        curve.clear();
        hdr.clear();
    }
}

/// No `<` means no end of the script element and no comment.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::Second;

    #[test]
    fn the_series_is_dropped_first_with_a_note() {
        let mut result = RunResult {
            series: vec![Second::default(); 100],
            ..RunResult::default()
        };
        result.scenario.toml = "x".repeat(500);
        assert_eq!(embed(&result, 1 << 20).note, "");
        let trimmed = embed(&result, 10_000);
        assert_eq!(
            trimmed.note,
            "Left out to keep the page small: the series of seconds. See result.json."
        );
        assert!(trimmed.text.contains("xxxx"));
        assert_eq!(embed(&result, 10).text, "{}");
        let second = serde_json::to_string(&Second::default()).unwrap();
        assert!(second.len() >= SECOND_BYTES_MIN);
    }

    #[test]
    fn nothing_in_the_figures_can_end_the_script() {
        let mut result = RunResult::default();
        result.scenario.name = "</script><!--".to_owned();
        let text = embed(&result, 1 << 20).text;
        assert!(!text.contains('<'));
        let read: RunResult = serde_json::from_str(&text).unwrap();
        assert_eq!(read.scenario.name, "</script><!--");
    }
}
