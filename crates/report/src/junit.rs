//! Runs as test suites in the `JUnit` XML that build servers read.

use std::fmt::Write as _;

use crate::result::RunResult;
use crate::summary::{invalid_lines, threshold_value, verdict_text};

/// The beginnings of a verdict's faults, and the promise that each of them breaks.
const PROMISES: [(&str, &str); 11] = [
    ("messages lost", "no promised message is lost"),
    (
        "messages delivered again",
        "QoS 2 messages are delivered once",
    ),
    (
        "messages out of order",
        "messages of a publisher stay in order",
    ),
    (
        "messages to the wrong subscriber",
        "messages reach only their subscribers",
    ),
    (
        "messages with the wrong QoS",
        "messages have the QoS of publisher and subscription",
    ),
    ("messages on the wrong topic", "messages keep their topic"),
    (
        "messages wrongly marked as retained",
        "only retained messages are marked as such",
    ),
    (
        "messages with an altered payload",
        "messages keep their payload",
    ),
    ("clients not accepted", "all clients are accepted"),
    ("connections lost", "no connection is lost"),
    ("messages refused", "no message is refused"),
];

/// One test case.
struct Case {
    name: String,
    /// Why it failed.
    failure: Option<String>,
}

/// One test suite per run, with a case for its validity, for each promise of the protocol and for
/// each threshold.
pub fn junit(runs: &[RunResult]) -> String {
    let suites: Vec<(&RunResult, Vec<Case>)> = runs.iter().map(|run| (run, cases(run))).collect();
    let all = suites.iter().flat_map(|(_, cases)| cases);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writeln!(
        xml,
        "<testsuites name=\"thrum bench\" tests=\"{}\" failures=\"{}\">",
        all.clone().count(),
        all.filter(|case| case.failure.is_some()).count()
    )
    .ok();
    for (run, cases) in &suites {
        suite(&mut xml, run, cases);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, run: &RunResult, cases: &[Case]) {
    let name = attribute(&run.scenario.name);
    let stages = run.scenario.stages;
    writeln!(
        xml,
        "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"0\" time=\"{:.3}\" timestamp=\"{}\">",
        cases.len(),
        cases.iter().filter(|case| case.failure.is_some()).count(),
        stages.ramp + stages.warm_up + stages.hold + stages.drain,
        attribute(&run.started)
    )
    .ok();
    for case in cases {
        let start = format!(
            "<testcase classname=\"{name}\" name=\"{}\"",
            attribute(&case.name)
        );
        match &case.failure {
            None => writeln!(xml, "    {start}/>"),
            Some(why) => writeln!(
                xml,
                "    {start}>\n      <failure message=\"{0}\">{0}</failure>\n    </testcase>",
                attribute(why)
            ),
        }
        .ok();
    }
    xml.push_str("  </testsuite>\n");
}

fn cases(run: &RunResult) -> Vec<Case> {
    let case = |name: &str, failure| Case {
        name: name.to_owned(),
        failure,
    };
    let invalid = invalid_lines(run).join("\n");
    let invalid = if invalid.is_empty() {
        "invalid".to_owned()
    } else {
        invalid
    };
    let mut cases = vec![
        case(
            "the run was completed",
            run.interrupted
                .then(|| "ended early from outside".to_owned()),
        ),
        case(
            "the generator was not the limit",
            (!run.validity.valid).then_some(invalid),
        ),
    ];
    for (start, promise) in PROMISES {
        let broken = run
            .verdict
            .faults
            .iter()
            .find(|fault| fault.starts_with(start));
        cases.push(case(promise, broken.cloned()));
    }
    // A fault without a test case must not get lost.
    let is_known = |fault: &str| PROMISES.iter().any(|(start, _)| fault.starts_with(start));
    for fault in run.verdict.faults.iter().filter(|fault| !is_known(fault)) {
        let name = fault
            .split_once(':')
            .map_or(fault.as_str(), |(name, _)| name);
        cases.push(case(name, Some(fault.clone())));
    }
    if !run.verdict.pass && run.verdict.faults.is_empty() {
        cases.push(case("verdict", Some(verdict_text(run))));
    }
    for threshold in &run.thresholds {
        let name = format!("{} {}", threshold.metric, threshold.condition);
        let failure = (!threshold.pass).then(|| {
            let value = threshold_value(run, threshold);
            let margin = threshold.margin_text();
            margin.map_or_else(|| value.clone(), |margin| format!("{value}, {margin}"))
        });
        cases.push(Case { name, failure });
    }
    cases
}

/// Text for an attribute or an element; characters that XML forbids are replaced.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            letter if letter.is_control() => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_run_is_a_suite_of_promises_and_limits() {
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="thrum bench" tests="16" failures="1">
  <testsuite name="p2p-1K" tests="16" failures="1" errors="0" time="12.000" timestamp="2026-11-21T09:12:03Z">
    <testcase classname="p2p-1K" name="the run was completed"/>
    <testcase classname="p2p-1K" name="the generator was not the limit"/>
    <testcase classname="p2p-1K" name="no promised message is lost"/>
    <testcase classname="p2p-1K" name="QoS 2 messages are delivered once"/>
    <testcase classname="p2p-1K" name="messages of a publisher stay in order"/>
    <testcase classname="p2p-1K" name="messages reach only their subscribers"/>
    <testcase classname="p2p-1K" name="messages have the QoS of publisher and subscription"/>
    <testcase classname="p2p-1K" name="messages keep their topic"/>
    <testcase classname="p2p-1K" name="only retained messages are marked as such"/>
    <testcase classname="p2p-1K" name="messages keep their payload"/>
    <testcase classname="p2p-1K" name="all clients are accepted"/>
    <testcase classname="p2p-1K" name="no connection is lost"/>
    <testcase classname="p2p-1K" name="no message is refused"/>
    <testcase classname="p2p-1K" name="e2e.p99 &lt; 50ms"/>
    <testcase classname="p2p-1K" name="delivered == 100%"/>
    <testcase classname="p2p-1K" name="broker.rss &lt; 4MiB">
      <failure message="8 MiB, 100 % above">8 MiB, 100 % above</failure>
    </testcase>
  </testsuite>
</testsuites>
"#;
        assert_eq!(junit(&[sample::run()]), expected);
    }

    #[test]
    fn failures_contain_their_reason() {
        let mut run = sample::bad_run();
        run.verdict.faults.push("pigs flew: 2".to_owned());
        run.interrupted = true;
        let xml = junit(&[run, sample::idle_run()]);
        for line in [
            "<testsuites name=\"thrum bench\" tests=\"30\" failures=\"6\">",
            "<failure message=\"ended early from outside\">",
            "<failure message=\"generator lag p99 12ms, more than 10ms: stop other work on this machine\">",
            "name=\"no promised message is lost\">\n      <failure message=\"messages lost: 3\">",
            "name=\"pigs flew\">\n      <failure message=\"pigs flew: 2\">",
            "<testsuite name=\"conn-tcp-10K-100\" tests=\"13\" failures=\"0\"",
        ] {
            assert!(xml.contains(line), "{line}\n{xml}");
        }
    }

    #[test]
    fn a_verdict_without_reasons_still_fails() {
        let mut run = sample::idle_run();
        run.verdict.pass = false;
        run.verdict.text = "no".to_owned();
        assert!(junit(&[run]).contains("name=\"verdict\">\n      <failure message=\"no\">"));
    }

    #[test]
    fn nothing_breaks_the_xml() {
        assert_eq!(
            attribute("<a b=\"c\">&'\n\u{1}ä"),
            "&lt;a b=&quot;c&quot;&gt;&amp;&apos;&#10;\u{fffd}ä"
        );
    }
}
