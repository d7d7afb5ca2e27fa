//! Several runs side by side: the end of a suite.

use crate::grid;
use crate::result::{RunResult, Usage};
use crate::summary::{is_without_figures, verdict_words};
use thrum_figures::{bytes, count, figure, fraction, rate};

const HEAD: [&str; 11] = [
    "scenario",
    "verdict",
    "received",
    "p50",
    "p99",
    "max",
    "lost",
    "cpu avg/max",
    "µs/msg",
    "rss max",
    "B/conn",
];

/// Columns of text.
const WORDS: usize = 2;

/// A table with one line per run; latencies are end to end, or to connect where nothing is sent.
pub fn table(runs: &[RunResult]) -> String {
    grid::grid(&rows(runs), WORDS)
}

/// The same as Markdown.
pub fn table_markdown(runs: &[RunResult]) -> String {
    grid::markdown(&rows(runs), WORDS)
}

fn rows(runs: &[RunResult]) -> Vec<Vec<String>> {
    let head = std::iter::once(HEAD.map(str::to_owned).to_vec());
    head.chain(runs.iter().map(row)).collect()
}

fn row(run: &RunResult) -> Vec<String> {
    let dash = || "-".to_owned();
    let latencies = run
        .latency_ns
        .e2e
        .as_ref()
        .or(run.latency_ns.connect.as_ref());
    let of_latency = |figure| latencies.map_or_else(dash, |found| found.figure_text(figure));
    let usage = run.brokers.first().map(|broker| &broker.usage);
    let of = |name: &str, text: &dyn Fn(&Usage) -> Option<String>| {
        let text = usage.and_then(text);
        text.map_or_else(dash, |text| run.validity.unless_withheld(name, text))
    };
    let has_figures = run.has_load() && !is_without_figures(run);
    let of_load = |text: String| if has_figures { text } else { dash() };
    vec![
        run.scenario.name.clone(),
        verdict_words(run),
        of_load(rate(run.rates.received)),
        of_latency("p50"),
        of_latency("p99"),
        of_latency("max"),
        of_load(count(run.delivery.lost)),
        usage.map_or_else(dash, |usage| {
            let average = run
                .validity
                .unless_withheld("broker.cores", figure(usage.cores_avg));
            let max = run
                .validity
                .unless_withheld("broker.cores.max", figure(usage.cores_max));
            format!("{average}/{max}")
        }),
        of("broker.cpu_per_message", &|usage| {
            usage.cpu_us_per_message.map(figure)
        }),
        of("broker.rss", &|usage| {
            Some(bytes(fraction(usage.rss_max_bytes)))
        }),
        of("broker.bytes_per_connection", &|usage| {
            usage.bytes_per_connection.map(|each| figure(each.max(0.0)))
        }),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn a_run_that_was_ended_before_its_hold_has_neither_a_pass_nor_a_rate() {
        let mut run = sample::run();
        run.interrupted = true;
        run.scenario.stages.hold = 0.0;
        run.rates.received = 0.0;
        let line = row(&run);
        assert!(line[1].starts_with("INTERRUPTED"), "{line:?}");
        assert_eq!(line[2], "-");
    }

    #[test]
    fn a_suite_ends_with_one_table() {
        let expected = "  \
  scenario          verdict          received    p50    p99    max  lost  cpu avg/max  µs/msg  rss max  B/conn
  p2p-1K            PASS ✗1           1 000/s  900µs   41ms   41ms     0        1/1.2      50    8 MiB   1 049
  conn-tcp-10K-100  PASS                    -  1.1ms  1.1ms  1.1ms     -            -       -        -       -
  p2p-1K            FAIL INVALID ✗1   1 000/s  900µs   41ms   41ms     3        1/1.2      50    8 MiB   1 049
";
        assert_eq!(
            table(&[sample::run(), sample::idle_run(), sample::bad_run()]),
            expected
        );
    }
}
