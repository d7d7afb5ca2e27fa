//! The latencies of a run as a table: each figure with what of it may be the generator's, or why it
//! is not to be used.

use serde::Serialize;

use crate::metric;
use crate::result::{Distribution, RunResult, Withheld};
use crate::stages::{StageTable, stage_table};
use thrum_figures::count;

/// The figures of a distribution, in the order of the columns.
pub(crate) const FIGURES: [&str; 10] = [
    "p50", "p75", "p90", "p95", "p99", "p99.9", "p99.99", "max", "mean", "min",
];

/// The distributions of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LatencyTable {
    /// Names of the figures.
    pub(crate) figures: Vec<&'static str>,
    /// One per distribution.
    pub(crate) rows: Vec<LatencyRow>,
    /// Why figures are not to be used; the first has number 1.
    pub(crate) notes: Vec<String>,
    /// The stages of messages inside the broker, if it stamps any.
    pub(crate) stages: Option<StageTable>,
}

/// A distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LatencyRow {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    /// Values that arrived, and those that did not: `14 988 + 12 missing`.
    pub(crate) count: String,
    /// The run is INVALID, and the generator may have made these figures.
    pub(crate) void: bool,
    pub(crate) cells: Vec<LatencyCell>,
}

/// A figure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct LatencyCell {
    pub(crate) figure: &'static str,
    /// `900µs`, `withheld`, `> 5s`, `–`.
    pub(crate) text: String,
    /// `generator ≤ 60µs`; empty if it is not known.
    pub(crate) bound: String,
    /// Why it is not to be used, and the number of the note that says so; 0 without a reason.
    pub(crate) why: String,
    pub(crate) note: usize,
}

/// The figures of several distributions with the same reason.
struct Note {
    distribution: &'static str,
    figures: Vec<&'static str>,
    why: String,
    /// Values that each of the figures takes, where there are too few.
    needed: Vec<String>,
}

impl Note {
    fn text(&self) -> String {
        let (name, figures) = (self.distribution, self.figures.join(", "));
        let needed = match self.needed.as_slice() {
            [] => String::new(),
            needed => format!(" {}", needed.join(", ")),
        };
        format!("{name} {figures}: {}{needed}", self.why)
    }
}

/// All latencies of a run, and the reasons why other figures are not to be used.
pub(crate) fn table(run: &RunResult) -> LatencyTable {
    let mut notes = Vec::new();
    let mut rows = Vec::new();
    for (name, distribution) in run.latency_ns.named() {
        rows.extend(distribution.map(|found| row(run, name, found, &mut notes)));
    }
    let other = run.validity.withheld.iter();
    let other = other.map(|(name, why)| format!("{name}: {why}"));
    LatencyTable {
        stages: stage_table(run),
        figures: FIGURES.to_vec(),
        rows,
        notes: notes.iter().map(Note::text).chain(other).collect(),
    }
}

/// Whether a run is INVALID and the generator may have made these figures.
pub(crate) fn is_void(run: &RunResult, name: &str) -> bool {
    let is_of_generator = matches!(name, "generator_lag" | "receive_lag" | "open_lag");
    let distribution = run.latency_ns.find(name).filter(|_| !is_of_generator);
    !run.validity.valid && distribution.is_some_and(Distribution::is_spoiled)
}

fn row(
    run: &RunResult,
    name: &'static str,
    of: &Distribution,
    notes: &mut Vec<Note>,
) -> LatencyRow {
    let missing = match of.missing {
        0 => String::new(),
        missing => format!(" + {} missing", count(missing)),
    };
    LatencyRow {
        name,
        help: metric::find(&format!("{name}.p50")).map_or("", |metric| metric.help),
        count: count(of.quantiles.count) + &missing,
        void: is_void(run, name),
        cells: FIGURES.map(|figure| cell(name, figure, of, notes)).into(),
    }
}

fn cell(
    distribution: &'static str,
    figure: &'static str,
    of: &Distribution,
    notes: &mut Vec<Note>,
) -> LatencyCell {
    let why = of.why(figure);
    let needed = match of.withheld.get(figure) {
        Some(Withheld::TooFew { needed, .. }) => Some(count(*needed)),
        _ => None,
    };
    let note = why.as_deref().map_or(0, |why| {
        // Too few values have one reason, whatever each figure takes.
        let short = needed
            .as_ref()
            .and_then(|needed| why.strip_suffix(&format!(" {needed}")));
        let why = short.unwrap_or(why);
        let is_same = |note: &Note| note.distribution == distribution && note.why == why;
        let place = notes.iter().position(is_same).unwrap_or_else(|| {
            notes.push(Note {
                distribution,
                figures: Vec::new(),
                why: why.to_owned(),
                needed: Vec::new(),
            });
            notes.len() - 1
        });
        notes[place].figures.push(figure);
        notes[place].needed.extend(needed);
        place + 1
    });
    let bound = of.bound_text(figure);
    LatencyCell {
        figure,
        text: of.figure_text(figure),
        bound: bound.map_or_else(String::new, |bound| format!("generator {bound}")),
        why: why.unwrap_or_default(),
        note,
    }
}

#[cfg(test)]
mod tests {
    use hdrhistogram::Histogram;

    use super::*;
    use crate::sample;

    fn values(count: u64, missing: u64) -> Distribution {
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(900_000, count).unwrap();
        let bound = sample::run().latency_ns.e2e.and_then(|e2e| e2e.bound);
        Distribution::with_missing(&histogram, missing, 5_000_000_000).with_bound(bound)
    }

    fn table_of(e2e: Distribution) -> LatencyTable {
        let mut run = sample::run();
        run.latency_ns.e2e = Some(e2e);
        table(&run)
    }

    fn cell_of<'table>(table: &'table LatencyTable, figure: &str) -> &'table LatencyCell {
        let mut cells = table.rows[0].cells.iter();
        cells.find(|cell| cell.figure == figure).unwrap()
    }

    #[test]
    fn a_figure_stands_beside_what_of_it_may_be_the_generators() {
        let table = table_of(values(100_000, 0));
        let p50 = cell_of(&table, "p50");
        assert_eq!(
            (p50.text.as_str(), p50.bound.as_str()),
            ("900µs", "generator ≤ 61µs")
        );
        assert_eq!((p50.note, p50.why.as_str()), (0, ""));
        assert!(table.notes.is_empty(), "{:?}", table.notes);
    }

    #[test]
    fn figures_of_few_values_and_missing_ones_have_a_note_that_says_why() {
        let table = table_of(values(970, 30));
        let [p99, rare] = ["p99", "p99.9"].map(|figure| cell_of(&table, figure));
        assert_eq!((p99.text.as_str(), p99.bound.as_str()), ("> 5s", ""));
        assert_eq!(rare.note, p99.note, "one reason, one note");
        assert_eq!(
            table.notes[p99.note - 1],
            "e2e p99, p99.9, p99.99, max: more than 5s: 30 of 1 000 never arrived"
        );
        let mean = cell_of(&table, "mean");
        assert_eq!(
            (mean.text.as_str(), mean.why.as_str()),
            ("withheld", "30 of 1 000 never arrived")
        );
        assert_eq!(table.rows[0].count, "970 + 30 missing");
        let few = table_of(values(500, 0));
        let p99 = cell_of(&few, "p99");
        assert_eq!(p99.text, "–");
        assert_eq!(
            few.notes[p99.note - 1],
            "e2e p99, p99.9, p99.99: 500 values are too few: it takes 1 000, 10 000, 100 000"
        );
        assert_eq!(p99.why, "500 values are too few: it takes 1 000");
    }

    #[test]
    fn only_figures_that_the_generator_may_have_made_are_void() {
        let mut run = sample::bad_run();
        run.latency_ns.e2e = Some(values(100_000, 0));
        assert!(is_void(&run, "service"), "its bound is not known");
        assert!(!is_void(&run, "generator_lag"));
        let bound = |run: &mut RunResult, p99| {
            let e2e = run.latency_ns.e2e.as_mut().unwrap();
            e2e.bound = e2e
                .bound
                .map(|bound| crate::result::Quantiles { p99, ..bound });
        };
        bound(&mut run, 100_000);
        run.latency_ns.e2e.as_mut().unwrap().quantiles.p90 = 9_000_000;
        run.latency_ns.e2e.as_mut().unwrap().quantiles.p95 = 9_000_000;
        assert!(!is_void(&run, "e2e"));
        bound(&mut run, 300_000);
        assert!(is_void(&run, "e2e"));
        run.validity.valid = true;
        assert!(!is_void(&run, "e2e"));
    }
}
