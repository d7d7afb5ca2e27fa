//! The stages of messages inside the broker, as text for every form of the report.

use std::fmt::Write as _;

use serde::Serialize;

use crate::result::{LatencySplit, MessageStages, RunResult, Unsplit};
use thrum_figures::{count, fraction, latency};

/// The stages in the order of a message, and what each contains.
const STAGES: [(&str, &str); 8] = [
    (
        "routed",
        "from the read of its bytes to the list of its receivers",
    ),
    (
        "queued",
        "until it stands in the output or queue of a receiver; the way to another worker too",
    ),
    (
        "written",
        "until the system has taken its last byte; waiting for window, storage and socket too",
    ),
    ("broker", "the three above together"),
    (
        "acknowledged",
        "from then to the receiver's PUBACK or PUBCOMP",
    ),
    (
        "answered",
        "from the read of its bytes until the publisher's PUBACK or PUBREC is written",
    ),
    (
        "fanned_out",
        "from the list of its receivers until it stands in the output of the last one",
    ),
    (
        "waited",
        "before the read, at most: the worker served others; part of network and kernel",
    ),
];

/// Why quantiles are not summed up.
const NOTE: &str = "Means add up; quantiles do not, as the slowest messages of one stage are not those of another.";

/// Where the time of messages goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StageTable {
    /// The parts of the mean from end to end; empty if it has none.
    pub(crate) parts: Vec<StagePart>,
    /// The whole mean.
    pub(crate) mean: String,
    pub(crate) rows: Vec<StageRow>,
    /// What the figures are worth.
    pub(crate) notes: Vec<String>,
}

/// A part of the mean.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StagePart {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    /// Of the whole, in percent: `12.5`.
    pub(crate) percent: String,
}

/// A stage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct StageRow {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) count: String,
    pub(crate) mean: String,
    pub(crate) p50: String,
    pub(crate) p99: String,
    pub(crate) max: String,
}

/// The stages of a run; none if its broker stamped no message.
pub(crate) fn stage_table(run: &RunResult) -> Option<StageTable> {
    let stages = run.latency_ns.stages.as_ref()?;
    let rows = STAGES.iter().filter_map(|(name, help)| {
        let figures = stages.stages.get(*name)?;
        Some(StageRow {
            name,
            help,
            count: count(figures.count),
            mean: latency(figures.mean_ns),
            p50: latency(figures.p50_ns),
            p99: latency(figures.p99_ns),
            max: latency(figures.max_ns),
        })
    });
    let split = stages.split.as_ref();
    Some(StageTable {
        parts: split.map(parts).unwrap_or_default(),
        mean: split.map_or_else(String::new, |split| latency(split.e2e_mean_ns)),
        rows: rows.collect(),
        notes: notes(stages),
    })
}

/// The lines of the summary.
pub(crate) fn stage_lines(run: &RunResult) -> Vec<(String, String)> {
    let Some(table) = stage_table(run) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let mut add = |subject: &str, text: String| lines.push((subject.to_owned(), text));
    if let Some(split) = run
        .latency_ns
        .stages
        .as_ref()
        .and_then(|stages| stages.split)
    {
        let broker = latency(split.broker_ns());
        let mut text = format!("e2e mean {}: broker {broker}", table.mean);
        let generator = latency(split.generator_ns);
        match (u64::try_from(split.network_ns), split.outside_ns()) {
            (Ok(network_ns), _) => {
                let network = latency(network_ns);
                write!(
                    text,
                    " + network, kernel {network} + generator ≤ {generator}"
                )
                .ok();
            }
            (Err(_), Some(outside_ns)) => {
                let outside = latency(outside_ns);
                write!(
                    text,
                    " + network, kernel, generator {outside} (generator ≤ {generator})"
                )
                .ok();
            }
            (Err(_), None) => {}
        }
        add("split", text);
    }
    let in_order = |of: fn(&StageRow) -> &String, names: &[&str]| {
        let shown = table.rows.iter().filter(|row| names.contains(&row.name));
        let shown = shown.map(|row| format!("{} {}", row.name, of(row)));
        shown.collect::<Vec<_>>().join(" · ")
    };
    let on_the_way = ["routed", "queued", "written", "broker"];
    for (subject, text) in [
        ("in broker", in_order(|row| &row.mean, &on_the_way)),
        ("stage p99", in_order(|row| &row.p99, &on_the_way)),
    ] {
        if !text.is_empty() {
            add(subject, text);
        }
    }
    let mut notes = table.notes.into_iter();
    for note in notes.by_ref() {
        add("stages", note);
    }
    lines
}

/// The subjects of [`stage_lines`].
pub(crate) fn is_stage_line(subject: &str) -> bool {
    matches!(subject, "split" | "in broker" | "stage p99" | "stages")
}

/// One row per stage, for spreadsheets; none if the broker stamped no message.
pub fn stages_csv(run: &RunResult) -> Option<String> {
    let stages = run.latency_ns.stages.as_ref()?;
    let mut text = "part,count,mean_ns,p50_ns,p99_ns,max_ns\n".to_owned();
    if let Some(split) = &stages.split {
        writeln!(text, "e2e,,{},,,", split.e2e_mean_ns).ok();
        writeln!(text, "generator,,{},,,", split.generator_ns).ok();
        writeln!(text, "network,,{},,,", split.network_ns).ok();
    }
    for (name, _) in STAGES {
        if let Some(figures) = stages.stages.get(name) {
            writeln!(
                text,
                "{name},{},{},{},{},{}",
                figures.count, figures.mean_ns, figures.p50_ns, figures.p99_ns, figures.max_ns
            )
            .ok();
        }
    }
    Some(text)
}

fn parts(split: &LatencySplit) -> Vec<StagePart> {
    let mut parts = vec![
        ("broker: routed", split.routed_ns),
        ("broker: queued", split.queued_ns),
        ("broker: written", split.written_ns),
    ];
    match (u64::try_from(split.network_ns), split.outside_ns()) {
        (Ok(network_ns), _) => {
            parts.push(("network and kernel", network_ns));
            parts.push(("generator, at most", split.generator_ns));
        }
        (Err(_), Some(outside_ns)) => parts.push(("network, kernel and generator", outside_ns)),
        (Err(_), None) => {}
    }
    let whole: u64 = parts.iter().map(|(_, ns)| ns).sum();
    parts
        .into_iter()
        .map(|(name, ns)| StagePart {
            name,
            value: latency(ns),
            percent: format!("{:.2}", 100.0 * fraction(ns) / fraction(whole.max(1))),
        })
        .collect()
}

fn notes(stages: &MessageStages) -> Vec<String> {
    let mut first = format!(
        "1 of {} messages stamped: {}",
        count(stages.every.into()),
        count(stages.stamped)
    );
    for (number, what) in [
        (stages.unreceived, "received by nobody"),
        (stages.unfinished, "ended before they were written"),
        (
            stages.table_full,
            "not followed, as too many were under way",
        ),
    ] {
        if number > 0 {
            write!(first, "; {} {what}", count(number)).ok();
        }
    }
    first.push_str(". ");
    first.push_str(NOTE);
    let mut notes = vec![first];
    match stages.unsplit() {
        Some(Unsplit::TooFew(least)) => notes.push(format!(
            "The mean is not split: {} messages were stamped, and fewer than {least} do not stand for all.",
            count(stages.stamped)
        )),
        Some(Unsplit::LeftOut(percent)) => notes.push(format!(
            "The mean is not split: the broker did not follow {} deliveries, more than {percent} % of the {} stamped \
             messages. Stamp fewer.",
            count(stages.table_full),
            count(stages.stamped)
        )),
        None => {}
    }
    let Some(split) = stages.split else {
        return notes;
    };
    if split.outside_ns().is_none() {
        notes.push(format!(
            "The broker's stages take {} longer than the mean of the benchmark's messages: messages of other clients \
             were stamped too, or too few. What network, kernel and generator took is not known.",
            latency(split.broker_ns().saturating_sub(split.e2e_mean_ns))
        ));
    } else if split.network_ns < 0 {
        notes.push(format!(
            "Up to {} of the mean may be the generator's: all that the broker did not take. What network and kernel \
             took is not known.",
            latency(split.generator_ns)
        ));
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::StageFigures;
    use crate::sample;

    fn stamped() -> RunResult {
        let mut run = sample::run();
        let figures = |mean_ns| StageFigures {
            count: 1_500,
            mean_ns,
            p50_ns: mean_ns,
            p99_ns: 3 * mean_ns,
            max_ns: 9 * mean_ns,
        };
        let mut stages = MessageStages {
            every: 10,
            stamped: 1_502,
            unfinished: 2,
            ..MessageStages::default()
        };
        for (name, mean_ns) in [
            ("routed", 10_000),
            ("queued", 20_000),
            ("written", 70_000),
            ("broker", 100_000),
        ] {
            stages.stages.insert(name.to_owned(), figures(mean_ns));
        }
        stages.split(run.latency_ns.e2e.as_ref());
        run.latency_ns.stages = Some(stages);
        run
    }

    #[test]
    fn a_run_without_stamps_shows_nothing() {
        let run = sample::run();
        assert_eq!(stage_table(&run), None);
        assert!(stage_lines(&run).is_empty() && stages_csv(&run).is_none());
        assert!(!serde_json::to_string(&run).unwrap().contains("\"stamped\""));
    }

    #[test]
    fn the_parts_of_the_mean_add_up_to_it() {
        let run = stamped();
        let split = run.latency_ns.stages.as_ref().unwrap().split.unwrap();
        let sum = split.generator_ns + split.network_ns.unsigned_abs() + split.broker_ns();
        assert!(split.network_ns > 0);
        assert_eq!(sum, split.e2e_mean_ns);
        let table = stage_table(&run).unwrap();
        let percent: f64 = table
            .parts
            .iter()
            .map(|part| part.percent.parse::<f64>().unwrap())
            .sum();
        assert!((percent - 100.0).abs() < 0.1, "{percent}");
        assert_eq!(table.rows.len(), 4);
        let text = stage_lines(&run)
            .into_iter()
            .map(|(subject, text)| format!("{subject}: {text}\n"))
            .collect::<Vec<String>>()
            .concat();
        for words in [
            "split: e2e mean ",
            ": broker 100µs + network, kernel ",
            " + generator ≤ ",
            "in broker: routed 10µs · queued 20µs · written 70µs · broker 100µs\n",
            "stage p99: routed 30µs · queued 60µs · written 210µs · broker 300µs\n",
            "stages: 1 of 10 messages stamped: 1 502; 2 ended before they were written. Means add up",
        ] {
            assert!(text.contains(words), "{words} is not in {text}");
        }
        let csv = stages_csv(&run).unwrap();
        assert!(
            csv.ends_with("broker,1500,100000,100000,300000,900000\n"),
            "{csv}"
        );
        assert_eq!(csv.lines().count(), 8);
    }

    #[test]
    fn parts_that_exceed_the_mean_say_so_instead_of_a_negative_rest() {
        let mut run = stamped();
        let e2e = run.latency_ns.e2e.as_mut().unwrap();
        e2e.quantiles.mean = 60_000;
        e2e.bound = None;
        let e2e = e2e.clone();
        let stages = run.latency_ns.stages.as_mut().unwrap();
        stages.split(Some(&e2e));
        assert_eq!(stages.split.unwrap().network_ns, -40_000);
        let lines = stage_lines(&run);
        assert!(!lines[0].1.contains("network"), "{}", lines[0].1);
        let last = &lines.last().unwrap().1;
        assert!(
            last.starts_with("The broker's stages take 40µs longer"),
            "{last}"
        );
        let table = stage_table(&run).unwrap();
        assert!(
            table
                .parts
                .iter()
                .all(|part| part.name.starts_with("broker"))
        );
    }

    #[test]
    fn a_bound_that_exceeds_the_rest_leaves_the_rest_undivided() {
        let mut run = stamped();
        let e2e = run.latency_ns.e2e.as_mut().unwrap();
        e2e.quantiles.mean = 160_000;
        e2e.bound = Some(crate::result::Quantiles {
            mean: 90_000,
            ..crate::result::Quantiles::default()
        });
        let e2e = e2e.clone();
        run.latency_ns.stages.as_mut().unwrap().split(Some(&e2e));
        let lines = stage_lines(&run);
        assert_eq!(
            lines[0].1,
            "e2e mean 160µs: broker 100µs + network, kernel, generator 60µs (generator ≤ 90µs)"
        );
        assert!(
            lines
                .last()
                .unwrap()
                .1
                .starts_with("Up to 90µs of the mean")
        );
        let table = stage_table(&run).unwrap();
        let last = table.parts.last().unwrap();
        assert_eq!(
            (last.name, &*last.value),
            ("network, kernel and generator", "60µs")
        );
    }

    /// The run with these counts of stamped messages and of those that were not followed.
    fn stamped_with(stamped_messages: u64, table_full: u64) -> RunResult {
        let mut run = stamped();
        let e2e = run.latency_ns.e2e.clone();
        let stages = run.latency_ns.stages.as_mut().unwrap();
        stages.stamped = stamped_messages;
        stages.table_full = table_full;
        stages.split(e2e.as_ref());
        run
    }

    #[test]
    fn stamped_messages_that_do_not_stand_for_all_split_no_mean_and_the_report_says_why() {
        for (stamped, table_full, why) in [
            (
                99,
                0,
                "The mean is not split: 99 messages were stamped, and fewer than 100 ",
            ),
            (
                1_000,
                31,
                "The mean is not split: the broker did not follow 31 deliveries, more than 3 % ",
            ),
        ] {
            let run = stamped_with(stamped, table_full);
            assert_eq!(run.latency_ns.stages.as_ref().unwrap().split, None);
            let table = stage_table(&run).unwrap();
            assert!(table.parts.is_empty() && table.rows.len() == 4);
            assert!(table.notes[1].starts_with(why), "{:?}", table.notes);
            let lines = stage_lines(&run);
            assert!(
                lines.iter().any(|(_, text)| text.starts_with(why)),
                "{lines:?}"
            );
        }
        for (stamped, table_full) in [(100, 3), (1_000, 30)] {
            let run = stamped_with(stamped, table_full);
            assert!(run.latency_ns.stages.as_ref().unwrap().split.is_some());
            assert_eq!(stage_table(&run).unwrap().notes.len(), 1);
        }
    }

    #[test]
    fn no_line_is_empty_where_nothing_was_stamped() {
        let mut run = stamped_with(0, 0);
        run.latency_ns.stages.as_mut().unwrap().stages.clear();
        let lines = stage_lines(&run);
        assert!(lines.iter().all(|(_, text)| !text.is_empty()), "{lines:?}");
        assert_eq!(lines.len(), 2, "{lines:?}");
    }

    #[test]
    fn a_mean_that_is_not_to_be_used_is_not_split() {
        let mut run = stamped();
        let e2e = run.latency_ns.e2e.as_mut().unwrap();
        let why = crate::result::Withheld::Generator { bound: 3, seen: 4 };
        e2e.withheld.insert("mean".to_owned(), why);
        let e2e = e2e.clone();
        let stages = run.latency_ns.stages.as_mut().unwrap();
        stages.split(Some(&e2e));
        assert_eq!(stages.split, None);
        let table = stage_table(&run).unwrap();
        assert!(table.parts.is_empty() && table.rows.len() == 4);
        assert_eq!(stage_lines(&run)[0].0, "in broker");
    }
}
