//! The end summary on standard output.

mod marks;
mod results;
#[cfg(test)]
mod tests;

pub(crate) use marks::recovery;
pub(crate) use results::result_lines;

use crate::compare::{Comparison, versus_line};
use crate::result::{ErrorCount, RunResult};
use crate::style::{Style, Tone};
use crate::threshold::ThresholdResult;
use thrum_figures::{count, figure, latency, rate};

/// Reasons shown; all are in the result file.
const REASONS_SHOWN: usize = 5;

/// Columns of a section's name.
const NAME_WIDTH: usize = 13;

/// The summary of a run, ending with a line break.
pub fn summary(run: &RunResult) -> String {
    summary_styled(run, None, Style::default())
}

/// The summary of a run with the line that compares it with a baseline.
pub fn summary_with_baseline(run: &RunResult, comparison: &Comparison) -> String {
    summary_styled(run, Some(comparison), Style::default())
}

/// The summary of a run for a terminal.
pub fn summary_styled(run: &RunResult, comparison: Option<&Comparison>, style: Style) -> String {
    let mut text = Sections {
        lines: vec![title(run, style)],
        style,
    };
    text.lines.extend(condition_line(run));
    text.add(Tone::Bad, "INVALID", invalid_lines(run));
    text.add(Tone::Heading, "VERDICT", verdict_lines(run, style));
    text.add(Tone::Heading, "THRESHOLDS", threshold_lines(run, style));
    let results = result_lines(run).into_iter();
    let results = results.map(|(subject, text)| format!("{subject:<10} {text}"));
    text.add(Tone::Heading, "RESULTS", results.collect());
    text.add(Tone::Heading, "MARKS", marks::lines(run));
    if let Some(comparison) = comparison {
        text.add(Tone::Heading, "VS baseline", versus_lines(comparison));
    }
    text.lines.push(String::new());
    text.lines.join("\n")
}

/// A run in one line without a line break.
pub fn summary_line(run: &RunResult) -> String {
    let mut parts = vec![format!("{}  {}", run.scenario.name, verdict_words(run))];
    if run.has_load() && !is_without_figures(run) {
        parts.push(format!("{} received", rate(run.rates.received)));
    }
    parts.extend(run.latency_ns.main().map(|(name, distribution)| {
        format!(
            "{name} p50 {} p99 {}",
            distribution.figure_text("p50"),
            distribution.figure_text("p99")
        )
    }));
    if !run.thresholds.is_empty() {
        let kept = run
            .thresholds
            .iter()
            .filter(|threshold| threshold.pass)
            .count();
        parts.push(format!("thresholds {kept} of {}", run.thresholds.len()));
    }
    parts.join(" · ")
}

impl RunResult {
    /// `PASS`, `FAIL`, or `INTERRUPTED` for a run that met its thresholds until it was ended.
    pub const fn verdict_word(&self) -> &'static str {
        if !self.verdict.faults.is_empty() {
            "FAIL"
        } else if self.interrupted {
            "INTERRUPTED"
        } else if self.verdict.pass {
            "PASS"
        } else {
            "FAIL"
        }
    }

    /// The run was ended before its hold and has no figures.
    pub fn is_without_figures(&self) -> bool {
        self.interrupted && self.scenario.stages.hold <= 0.0
    }
}

pub(crate) const fn verdict_word(run: &RunResult) -> &'static str {
    run.verdict_word()
}

pub(crate) fn is_without_figures(run: &RunResult) -> bool {
    run.is_without_figures()
}

/// The verdict with what else a reader must know: `PASS INVALID`.
pub(crate) fn verdict_words(run: &RunResult) -> String {
    let mut words = vec![verdict_word(run).to_owned()];
    if !run.validity.valid && !is_without_figures(run) {
        words.push("INVALID".to_owned());
    }
    let failed = run
        .thresholds
        .iter()
        .filter(|threshold| threshold.is_missed(&run.validity))
        .count();
    if failed > 0 {
        words.push(format!("✗{failed}"));
    }
    words.join(" ")
}

/// The verdict in a sentence.
pub(crate) fn verdict_text(run: &RunResult) -> String {
    if run.verdict.text.is_empty() {
        run.verdict.faults.join(", ")
    } else {
        run.verdict.text.clone()
    }
}

/// The limits of the generator that showed, each with what to do about it.
pub(crate) fn invalid_lines(run: &RunResult) -> Vec<String> {
    if is_without_figures(run) {
        return Vec::new();
    }
    let limits = run.validity.limits.iter().enumerate();
    let lines = limits.map(|(index, limit)| match run.validity.advice.get(index) {
        Some(advice) => format!("{limit}: {advice}"),
        None => limit.clone(),
    });
    lines.collect()
}

/// Count, reason and time: `2 × reset by the broker (4.5s to 7.3s)`.
pub(crate) fn error_line(error: &ErrorCount) -> String {
    let (first, last) = (figure(error.first_seconds), figure(error.last_seconds));
    let when = if error.count == 1 {
        format!("at {first}s")
    } else {
        format!("{first}s to {last}s")
    };
    format!("{} × {} ({when})", count(error.count), error.reason)
}

/// The errors, the most frequent first.
pub(crate) fn errors_by_count(run: &RunResult) -> Vec<&ErrorCount> {
    let mut errors: Vec<&ErrorCount> = run.errors.iter().collect();
    errors.sort_by_key(|error| std::cmp::Reverse(error.count));
    errors
}

/// The run, in short: `2 000 clients`, `10s hold`, `QoS1`.
pub(crate) fn facts(run: &RunResult) -> Vec<String> {
    let scenario = &run.scenario;
    let mut facts = vec![format!("{} clients", count(run.clients.wanted))];
    if !is_without_figures(run) {
        facts.push(format!("{} hold", results::seconds(scenario.stages.hold)));
    }
    facts.extend(scenario.qos.map(|qos| format!("QoS{qos}")));
    facts.extend(
        scenario
            .payload_bytes
            .map(|bytes| format!("{} B", count(u64::from(bytes)))),
    );
    if !matches!(scenario.load.arrivals.as_str(), "" | "even") {
        facts.push(format!("arrivals: {}", scenario.load.arrivals));
    }
    facts.push(format!("MQTT {}", scenario.mqtt_version));
    if !matches!(scenario.transport.as_str(), "" | "tcp") {
        facts.push(scenario.transport.clone());
    }
    facts
}

/// Conditions that change the meaning of a run's figures.
pub(crate) fn conditions(run: &RunResult) -> Vec<String> {
    let scenario = &run.scenario;
    let mut conditions = Vec::new();
    if scenario.load.closed_loop {
        conditions.push(format!(
            "{}: latencies leave out the time spent waiting",
            scenario.load.text
        ));
    }
    if scenario.scale > 0.0 && (scenario.scale - 1.0).abs() > f64::EPSILON {
        conditions.push(format!(
            "scaled: {} of the full scenario",
            figure(scenario.scale)
        ));
    }
    let machines = run.agents.iter().filter(|agent| agent.clients > 0).count();
    if machines > 1 && scenario.transport.split(", ").any(|of| of == "quic") {
        conditions.push(
            "QUIC between machines: the error leaves out what the QUIC threads of the sending machine waited for a core"
                .to_owned(),
        );
    }
    conditions
}

/// The delivered share with its counts, because a share alone hides a few losses.
pub(crate) fn threshold_value(run: &RunResult, threshold: &ThresholdResult) -> String {
    let text = threshold.measured_text();
    if threshold.metric != "delivered" || threshold.measured.is_none() {
        return text;
    }
    let promised = run.delivery.expected.saturating_sub(run.delivery.excused);
    format!(
        "{text} ({} of {})",
        count(run.delivery.delivered),
        count(promised)
    )
}

/// Lines under headings.
struct Sections {
    lines: Vec<String>,
    style: Style,
}

impl Sections {
    /// Adds a section; none if it has no lines.
    fn add(&mut self, tone: Tone, name: &str, lines: Vec<String>) {
        for (index, line) in lines.into_iter().enumerate() {
            let start = if index == 0 {
                self.style.paint(tone, &format!("█ {name:<NAME_WIDTH$}"))
            } else {
                " ".repeat(NAME_WIDTH + 2)
            };
            self.lines.push(format!("  {start}{line}"));
        }
    }
}

fn title(run: &RunResult, style: Style) -> String {
    let validity = if is_without_figures(run) {
        String::new()
    } else if run.validity.valid {
        style.paint(Tone::Good, "VALID")
    } else {
        style.paint(Tone::Bad, "INVALID")
    };
    let main = run.latency_ns.main().filter(|_| !is_without_figures(run));
    let bound = main.and_then(|(_, main)| main.bound_of("p99"));
    let bound = bound.map_or_else(String::new, |bound| {
        format!("  (p99: generator ≤ {})", latency(bound))
    });
    let interrupted = if run.interrupted {
        style.paint(Tone::Warning, "INTERRUPTED")
    } else {
        String::new()
    };
    let parts = [
        run.scenario.name.clone(),
        facts(run).join(" · "),
        format!("{validity}{bound}"),
        interrupted,
    ];
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!("  {}", parts.join("   "))
}

fn condition_line(run: &RunResult) -> Option<String> {
    let conditions = conditions(run);
    (!conditions.is_empty()).then(|| format!("  {}", conditions.join(" · ")))
}

fn verdict_lines(run: &RunResult, style: Style) -> Vec<String> {
    let word = verdict_word(run);
    let tone = match word {
        "PASS" => Tone::Good,
        "FAIL" => Tone::Bad,
        _ => Tone::Warning,
    };
    let mut lines = vec![format!(
        "{}   {}",
        style.paint(tone, word),
        verdict_text(run)
    )];
    let errors = errors_by_count(run);
    lines.extend(
        errors
            .iter()
            .take(REASONS_SHOWN)
            .map(|error| error_line(error)),
    );
    if errors.len() > REASONS_SHOWN {
        lines.push(format!(
            "and {} other reasons",
            errors.len() - REASONS_SHOWN
        ));
    }
    lines
}

fn threshold_lines(run: &RunResult, style: Style) -> Vec<String> {
    let width_of = |text: fn(&RunResult, &ThresholdResult) -> String| {
        let texts = run.thresholds.iter().map(|threshold| text(run, threshold));
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let limit: fn(&RunResult, &ThresholdResult) -> String =
        |_, threshold| format!("{} {}", threshold.metric, threshold.condition);
    let (limit_width, value_width) = (width_of(limit), width_of(threshold_value));
    let lines = run.thresholds.iter().map(|threshold| {
        let mark = if threshold.pass {
            style.paint(Tone::Good, "✓")
        } else {
            style.paint(Tone::Bad, "✗")
        };
        let limit = limit(run, threshold);
        let value = threshold_value(run, threshold);
        let margin = threshold.margin_text().unwrap_or_default();
        let line = format!("{mark} {limit:<limit_width$}  {value:<value_width$}  {margin}");
        line.trim_end().to_owned()
    });
    lines.collect()
}

fn versus_lines(comparison: &Comparison) -> Vec<String> {
    let warnings = comparison
        .warnings
        .iter()
        .map(|warning| format!("! {warning}"));
    let mut lines = vec![versus_line(comparison)];
    lines.extend(warnings);
    lines
}
