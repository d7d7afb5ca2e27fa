//! What `thrum bench` prints for this program: progress, plans, the catalogue.

use serde::Deserialize;
use thrum_management::api::{
    BenchmarkFigures, BenchmarkSample, BenchmarkScenario, BenchmarkStage, BenchmarkThreshold,
    BenchmarkVerdict,
};

/// A line of `--progress jsonl`; one of another type, of a newer program, is left out.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ProgressLine {
    /// A second.
    Sample(Box<BenchmarkSample>),
    /// The end.
    End(Box<EndLine>),
    /// Anything else.
    #[serde(other)]
    Other,
}

/// The end of a run.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct EndLine {
    pub(super) verdict: BenchmarkVerdict,
    pub(super) figures: Option<BenchmarkFigures>,
    pub(super) thresholds: Vec<BenchmarkThreshold>,
    pub(super) stages: Vec<BenchmarkStage>,
}

/// A line of `thrum bench check --json`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct PlanLine {
    pub(super) name: String,
    pub(super) clients: u32,
    /// None if it has more clients than were to be planned, or is a step of a sweep.
    pub(super) messages_per_sec_in: Option<f64>,
    pub(super) messages_per_sec_out: Option<f64>,
    pub(super) ramp_secs: f64,
    pub(super) warm_up_secs: f64,
    pub(super) hold_secs: f64,
    pub(super) drain_secs: f64,
    pub(super) payload_bytes: Option<u32>,
    pub(super) qos: Option<u8>,
    pub(super) targets: Vec<String>,
    pub(super) toml: String,
    pub(super) findings: Vec<String>,
}

/// The name that `thrum bench check` gives to a scenario without one: it reads standard input.
const NO_NAME: &str = "standard-input";
/// A scenario of the caller without a name.
const OWN_SCENARIO: &str = "own scenario";

impl PlanLine {
    /// Its name, for people.
    pub(super) fn shown_name(&self) -> String {
        let name = if self.name == NO_NAME {
            OWN_SCENARIO
        } else {
            &self.name
        };
        name.to_owned()
    }

    /// All stages.
    pub(super) fn duration_secs(&self) -> f64 {
        self.ramp_secs + self.warm_up_secs + self.hold_secs + self.drain_secs
    }
}

/// A line of `thrum bench scenarios list --json`.
#[derive(Debug, Deserialize)]
struct ScenarioLine {
    name: String,
    sets: Vec<String>,
    summary: String,
    clients: u32,
    messages_per_sec_in: f64,
    messages_per_sec_out: f64,
    duration_secs: f64,
    toml: String,
}

/// The catalogue.
pub(super) fn scenarios(text: &str) -> Result<Vec<BenchmarkScenario>, serde_json::Error> {
    let lines = text.lines().map(|line| {
        let line: ScenarioLine = serde_json::from_str(line)?;
        let is_in = |set: &str| line.sets.iter().any(|known| known == set);
        let group = match line.name.as_str() {
            "devices" => "try",
            _ if is_in("basic") => "basic",
            _ if is_in("enterprise") => "enterprise",
            _ => "scenario",
        };
        Ok(BenchmarkScenario {
            title: title(&line.name),
            name: line.name,
            text: line.summary,
            group: group.to_owned(),
            toml: line.toml,
            clients: line.clients,
            messages_per_sec_in: line.messages_per_sec_in,
            messages_per_sec_out: line.messages_per_sec_out,
            duration_secs: line.duration_secs,
        })
    });
    lines.collect()
}

/// Words of names that have capitals of their own.
const PROPER_WORDS: [(&str, &str); 5] = [
    ("ci", "CI"),
    ("emqtt", "eMQTT"),
    ("emqx", "EMQX"),
    ("json", "JSON"),
    ("xmeter", "XMeter"),
];

/// A name as a title: `slow-reader` is "Slow reader"; one with numbers stays.
fn title(name: &str) -> String {
    if name == "devices" {
        return "Simulate 100 devices".to_owned();
    }
    if name.contains(|letter: char| letter.is_ascii_digit()) {
        return name.to_owned();
    }
    let words = name.split('-').enumerate().map(|(place, word)| {
        let proper = PROPER_WORDS.iter().find(|(known, _)| *known == word);
        match proper {
            Some((_, proper)) => (*proper).to_owned(),
            None if place == 0 => with_capital(word),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn with_capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use thrum_report::live::{LiveEnd, LiveLine, LiveSample, SecondLatencies};
    use thrum_report::{RunResult, live};

    use super::*;

    fn read(line: &LiveLine) -> ProgressLine {
        serde_json::from_str(&serde_json::to_string(line).unwrap()).unwrap()
    }

    #[test]
    fn every_field_that_a_run_prints_arrives() {
        let bucket = live::Bucket {
            low_ms: 1.0,
            high_ms: 1.58489,
            count: 3,
        };
        let sample = LiveSample {
            n: 7,
            stage: "hold",
            p99_ms: Some(1.5),
            latency: Some(live::LatencyKind::EndToEnd),
            histogram: vec![bucket],
            ..LiveSample::default()
        };
        let line = LiveLine::Sample(Box::new(sample));
        let ProgressLine::Sample(read_back) = read(&line) else {
            panic!("a sample");
        };
        // The interface has every field, and no other one.
        let mut printed = serde_json::to_value(&line).unwrap();
        printed.as_object_mut().unwrap().remove("type");
        assert_eq!(serde_json::to_value(&read_back).unwrap(), printed);
        let end = LiveEnd::new(&RunResult::default(), Some("x".to_owned()));
        let ProgressLine::End(end) = read(&LiveLine::End(Box::new(end))) else {
            panic!("an end");
        };
        assert_eq!((end.verdict.valid, end.figures), (false, None));
        assert!(SecondLatencies::default().buckets.is_empty());
    }

    #[test]
    fn a_line_of_another_type_is_left_out() {
        let line = r#"{"type":"weather","n":1}"#;
        assert!(matches!(
            serde_json::from_str(line),
            Ok(ProgressLine::Other)
        ));
    }

    #[test]
    fn a_scenario_without_a_name_is_shown_as_that_of_the_caller() {
        let named = |name: &str| {
            let plan = PlanLine {
                name: name.to_owned(),
                ..PlanLine::default()
            };
            plan.shown_name()
        };
        assert_eq!(named("mine"), "mine");
        assert_eq!(named("standard-input"), "own scenario");
    }

    #[test]
    fn titles_are_words_unless_they_are_numbers() {
        for (name, shown) in [
            ("slow-reader", "Slow reader"),
            ("p2p-1K", "p2p-1K"),
            ("xmeter-fan-in", "XMeter fan in"),
            ("emqx-ci-gate", "EMQX CI gate"),
            ("payload-json", "Payload JSON"),
            ("devices", "Simulate 100 devices"),
        ] {
            assert_eq!(title(name), shown);
        }
    }
}
