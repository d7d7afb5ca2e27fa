//! Comparisons of runs whose differences are known.

mod simulated;

use super::figures::Kind;
use super::*;
use crate::result::Distribution;
use crate::sample;

/// A run with these response times and this memory.
fn run(values: &[u64], rss: u64) -> RunResult {
    let mut run = sample::run();
    run.latency_ns.e2e = Some(sample::distribution(values));
    run.brokers[0].usage.rss_max_bytes = rss;
    run.fill_metrics();
    run
}

fn runs<const RUNS: usize>(scale: u64, rss: [u64; RUNS]) -> Vec<RunResult> {
    let values = |jitter: u64| -> Vec<u64> {
        (1..=1_000)
            .map(|value| value * (scale + jitter) * 1_000)
            .collect()
    };
    (0..)
        .zip(rss)
        .map(|(jitter, rss)| run(&values(jitter), rss))
        .collect()
}

#[test]
fn differences_beyond_the_spread_of_the_runs_are_reported() {
    // Three runs a side cannot show differences in both directions at once.
    let baseline = runs(100, [1_000_000, 1_010_000, 990_000, 1_000_000]);
    let candidate = runs(80, [1_200_000, 1_210_000, 1_190_000, 1_200_000]);
    let comparison = Comparison::new(&baseline, &candidate);
    let p99 = comparison.row("e2e.p99").unwrap();
    assert_eq!(
        (p99.verdict, p99.noise_source),
        (Verdict::Better, NoiseSource::Runs)
    );
    assert!((p99.change.unwrap() + 0.198).abs() < 0.01, "{p99:?}");
    let rss = comparison.row("broker.rss").unwrap();
    assert_eq!(rss.verdict, Verdict::Worse);
    assert!((rss.change.unwrap() - 0.2).abs() < 1e-9);
    let worse: Vec<&str> = comparison
        .regressions()
        .iter()
        .map(|row| row.metric)
        .collect();
    assert_eq!(worse, ["broker.rss"]);
    assert_eq!(comparison.warnings, Vec::<String>::new());
}

#[test]
fn a_short_side_is_not_judged_by_the_runs_of_the_other() {
    let of = |before: &[RunResult], after: &[RunResult]| Comparison::new(before, after).method;
    let (many, few) = (runs(100, [1_000_000; 20]), runs(80, [1_000_000; 2]));
    for method in [of(&many, &few), of(&few, &many), of(&many, &few[..1])] {
        assert!(method.least_p <= LEVEL && !method.is_by_runs, "{method:?}");
    }
    assert!(of(&many[..5], &runs(80, [1_000_000; 3])).is_by_runs);
    let notes = notes(&[Comparison::new(&many, &few)]);
    let text = "20 and 2 runs are too few to show what equal runs differ by: each side has to show";
    assert!(notes[0].starts_with(text), "{notes:?}");
}

#[test]
fn noisy_figures_are_reported_and_do_not_fail_a_build() {
    let baseline = runs(100, [1_000_000; 3]);
    let mut candidate = baseline.clone();
    for run in &mut candidate {
        run.brokers[0].usage.cores_avg *= 2.0;
        run.fill_metrics();
    }
    let comparison = Comparison::new(&baseline, &candidate);
    assert_eq!(
        comparison.row("broker.cores").unwrap().verdict,
        Verdict::Worse
    );
    assert!(comparison.regressions().is_empty());
}

#[test]
fn differences_within_the_spread_are_none() {
    let baseline = runs(100, [1_000_000, 1_100_000, 900_000]);
    let candidate = runs(100, [1_050_000, 1_150_000, 950_000]);
    let comparison = Comparison::new(&baseline, &candidate);
    assert_eq!(comparison.row("broker.rss").unwrap().verdict, Verdict::Same);
    assert!(comparison.regressions().is_empty());
}

#[test]
fn figures_of_several_runs_are_their_medians_with_the_range() {
    let of = |value: u64| run(&[value; 1_000], 1);
    let baseline = [of(1_000), of(2_000), of(9_000)];
    let comparison = Comparison::new(&baseline, &baseline);
    let p90 = comparison.row("e2e.p90").unwrap();
    let range = p90.baseline_range.unwrap();
    for (figure, expected) in [
        (p90.baseline.unwrap(), 2_000.0),
        (range.lowest, 1_000.0),
        (range.highest, 9_000.0),
    ] {
        assert!((figure - expected).abs() < 0.002 * expected, "{figure}");
    }
}

#[test]
fn three_runs_a_side_can_raise_an_alarm_and_two_cannot_by_their_spread() {
    let baseline = runs(100, [1_000_000; 3]);
    let candidate = runs(150, [1_000_000; 3]);
    let of = |runs: usize| Comparison::new(&baseline[..runs], &candidate[..runs]);
    let p99 = |comparison: &Comparison| comparison.row("e2e.p99").unwrap().clone();
    let three = p99(&of(3));
    assert_eq!(three.verdict, Verdict::Worse);
    assert!((three.p.unwrap() - 0.05).abs() < 1e-9, "{three:?}");
    let two = of(2);
    assert_eq!((p99(&two).verdict, p99(&two).p), (Verdict::Same, None));
    let text = text(&[two]);
    assert!(
        text.contains(
            "2 and 2 runs are too few to show what equal runs differ by: the least p is 0.17, and \
             an alarm needs 0.05, so at least 3 runs a side."
        ),
        "{text}"
    );
}

#[test]
fn percentiles_of_few_values_are_withheld_and_the_next_one_is_tested() {
    let few = |scale: u64| {
        let values: Vec<u64> = (1..=800).map(|value| value * scale).collect();
        run(&values, 1_000_000)
    };
    let comparison = Comparison::new(&[few(100)], &[few(1_000)]);
    let p99 = comparison.row("e2e.p99").unwrap();
    assert_eq!(
        (p99.baseline, p99.noise_source),
        (None, NoiseSource::TooFewValues)
    );
    assert!(!p99.is_gate && comparison.row("e2e.p90").unwrap().is_gate);
    assert!(text(&[comparison]).contains("Withheld: a percentile of fewer than 100 values"));
}

#[test]
fn sides_measured_one_after_the_other_need_twice_the_difference() {
    let at = |hour: u32, scale: u64| {
        let mut runs = runs(scale, [1_000_000; 4]);
        for run in &mut runs {
            run.started = format!("2026-11-21T{hour:02}:00:00Z");
        }
        runs
    };
    let verdict = |hour: u32| {
        let comparison = Comparison::new(&at(9, 100), &at(hour, 115));
        comparison.row("e2e.p99").unwrap().verdict
    };
    assert_eq!([verdict(9), verdict(10)], [Verdict::Worse, Verdict::Same]);
}

#[test]
fn promises_that_both_sides_break_are_compared_and_not_counted() {
    let losing = |lost: [u64; 3]| -> Vec<RunResult> {
        let mut runs = runs(100, [1_000_000; 3]);
        for (run, lost) in runs.iter_mut().zip(lost) {
            run.delivery.lost = lost;
            run.delivery.delivered -= lost;
            run.fill_metrics();
        }
        runs
    };
    let worse = |lost: [u64; 3]| {
        let comparison = Comparison::new(&losing([1_000, 1_100, 1_200]), &losing(lost));
        comparison.row("lost").unwrap().verdict
    };
    assert_eq!(worse([1_050, 1_110, 1_210]), Verdict::Same);
    assert_eq!(worse([2_050, 2_110, 2_210]), Verdict::Worse);
}

#[test]
fn the_conclusion_is_one_sentence() {
    let baseline = runs(100, [1_000_000, 1_010_000, 990_000]);
    let mut candidate = runs(100, [1_000_000, 1_010_000, 990_000]);
    let of = |candidate: &[RunResult]| conclusion(&Comparison::new(&baseline, candidate), "B");
    assert_eq!(
        of(&candidate),
        "CPU per message: no difference shown; p99: no difference shown."
    );
    for run in &mut candidate {
        run.brokers[0].usage.cpu_us_per_message = Some(40.5);
        run.fill_metrics();
    }
    assert_eq!(
        of(&candidate),
        "B needs 0.81 ± 0.01 times the CPU of A per message; p99: no difference shown."
    );
    candidate[0].delivery.lost = 3;
    candidate[0].verdict.faults = vec!["messages lost: 3".to_owned()];
    candidate[0].fill_metrics();
    assert!(of(&candidate).starts_with("B broke promises that A kept (lost); B needs"));
    candidate[0].validity.valid = false;
    assert!(of(&candidate).starts_with("No conclusion"));
}

#[test]
fn single_runs_take_the_noise_from_their_seconds() {
    let baseline = run(&[1_000_000], 8 << 20);
    let mut candidate = baseline.clone();
    candidate.rates.received = 900.0;
    for second in &mut candidate.series {
        second.received = second.received * 9 / 10;
    }
    candidate.fill_metrics();
    let comparison = Comparison::new(&[baseline], &[candidate]);
    let rate = comparison.row("rate.received").unwrap();
    assert_eq!(
        (rate.verdict, rate.noise_source),
        (Verdict::Worse, NoiseSource::Seconds)
    );
    assert!(
        (rate.noise.unwrap() - Kind::Rate.between_runs()).abs() < 1e-12,
        "steady seconds"
    );
    let connect = comparison.row("connect.p99").unwrap();
    assert_eq!(
        (connect.verdict, connect.noise_source),
        (Verdict::NotComparable, NoiseSource::TooFewValues)
    );
}

#[test]
fn percentiles_not_known_per_second_take_the_noise_from_their_values() {
    let with_connects = |factor: u64| {
        let mut run = sample::run();
        let values: Vec<u64> = (1..=1_000).map(|value| value * factor).collect();
        run.latency_ns.connect = Some(sample::distribution(&values));
        run.fill_metrics();
        run
    };
    let comparison = Comparison::new(&[with_connects(1_000)], &[with_connects(3_000)]);
    let connect = comparison.row("connect.p99").unwrap();
    assert_eq!(
        (connect.verdict, connect.noise_source),
        (Verdict::Worse, NoiseSource::Values)
    );
}

#[test]
fn deliveries_lost_by_the_hundredth_are_seen() {
    let mut row = small().rows.remove(1);
    row.change = Some(-0.0002);
    let comparison = Comparison {
        rows: vec![row],
        ..small()
    };
    assert!(text(&[comparison]).contains(" −0.02 % "));
}

#[test]
fn every_lost_message_counts() {
    let baseline = sample::run();
    let mut candidate = sample::run();
    candidate.delivery.lost = 1;
    candidate.delivery.delivered -= 1;
    candidate.verdict.faults = vec!["messages lost: 1".to_owned()];
    candidate.fill_metrics();
    let comparison = Comparison::new(&[baseline], &[candidate]);
    for name in ["lost", "delivered"] {
        assert_eq!(
            comparison.row(name).unwrap().verdict,
            Verdict::Worse,
            "{name}"
        );
    }
    assert_eq!(comparison.row("lost").unwrap().change, None);
}

#[test]
fn losses_that_the_quality_of_service_allows_are_no_broken_promise() {
    let baseline = sample::run();
    let mut candidate = sample::run();
    candidate.delivery.lost = 1;
    candidate.delivery.delivered -= 1;
    candidate.delivery.duplicated = 1;
    candidate.fill_metrics();
    let comparison = Comparison::new(&[baseline], &[candidate]);
    assert!(comparison.regressions().is_empty());
}

#[test]
fn a_run_without_its_p99_does_not_let_the_others_speak_for_it() {
    let mut baseline = runs(100, [1_000_000; 4]);
    let mut candidate = baseline.clone();
    let sides = [(&mut baseline, 1e6), (&mut candidate, 1e7)];
    for (runs, p90) in sides {
        for run in runs {
            run.metrics.insert("e2e.p90".to_owned(), p90);
        }
    }
    candidate[0].metrics.remove("e2e.p99");
    let comparison = Comparison::new(&baseline, &candidate);
    // The next figure that all runs have is tested in its place.
    let regressions = comparison.regressions();
    assert!(regressions.iter().any(|row| row.metric == "e2e.p90"));
    let shown = comparison.row("e2e.p99").and_then(|row| row.candidate);
    assert_eq!(shown, None);
}

#[test]
fn losses_in_every_run_are_worse_however_few() {
    let baseline = runs(100, [1_000_000; 3]);
    let mut candidate = baseline.clone();
    for run in &mut candidate {
        run.delivery.lost = 15;
        run.delivery.delivered -= 15;
        run.verdict.faults = vec!["messages lost: 15".to_owned()];
        run.fill_metrics();
    }
    let comparison = Comparison::new(&baseline, &candidate);
    let worse: Vec<&str> = comparison
        .regressions()
        .iter()
        .map(|row| row.metric)
        .collect();
    assert_eq!(worse, ["delivered", "lost"]);
}

#[test]
fn invalid_runs_are_not_compared() {
    let comparison = Comparison::new(&[sample::run()], &[sample::bad_run()]);
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.verdict == Verdict::NotComparable)
    );
    assert!(
        comparison.warnings[0].contains("is INVALID"),
        "{:?}",
        comparison.warnings
    );
}

#[test]
fn differing_conditions_are_reported() {
    let mut other = sample::run();
    other.scenario.scale = 0.1;
    other.scenario.qos = Some(0);
    other.machine.cores = 8;
    let comparison = Comparison::new(&[sample::run()], &[other]);
    assert_eq!(
        comparison.warnings,
        [
            "scale differs: 1 | 0.1",
            "QoS differs: 1 | 0",
            "machine differs: Xeon E5-2650, 4 cores, 8 GiB | Xeon E5-2650, 8 cores, 8 GiB",
        ]
    );
}

#[test]
fn a_side_without_runs_compares_with_nothing() {
    let comparison = Comparison::new(&[], &[sample::run()]);
    assert!(comparison.warnings.contains(&"A has no runs".to_owned()));
    assert!(comparison.regressions().is_empty());
}

fn small() -> Comparison {
    let row = |metric, baseline, candidate, change, verdict| Row {
        metric,
        baseline: Some(baseline),
        candidate: Some(candidate),
        baseline_range: (metric == "e2e.p99").then_some(Range {
            lowest: 4.1e6,
            highest: 4.9e6,
        }),
        candidate_range: None,
        change,
        noise: Some(0.04),
        noise_source: NoiseSource::Runs,
        least: 0.1,
        p: None,
        is_gate: metric != "rate.received",
        verdict,
    };
    let side = |broker: &str| Side {
        scenario: "p2p-1K".to_owned(),
        broker: broker.to_owned(),
        runs: 3,
        started: "2026-11-21T09:12:03Z".to_owned(),
    };
    Comparison {
        baseline: side("a 1.0"),
        candidate: side("b 2.0"),
        is_valid: true,
        differences: vec!["scale differs: 1 | 0.1".to_owned()],
        warnings: vec!["scale differs: 1 | 0.1".to_owned()],
        method: Method {
            level: LEVEL,
            least_p: 0.05,
            is_by_runs: true,
            is_one_after_the_other: false,
        },
        rows: vec![
            row("rate.received", 1_000.0, 1_000.0, Some(0.0), Verdict::Same),
            row("e2e.p99", 4.4e6, 3.9e6, Some(-0.12), Verdict::Better),
            row("lost", 0.0, 3.0, None, Verdict::Worse),
        ],
    }
}

#[test]
fn the_table_tells_change_noise_and_verdict() {
    let expected = "  \
  p99 of B is 0.88 ± 0.04 times that of A.

  A  p2p-1K · a 1.0 · 3 runs from 2026-11-21T09:12:03Z
  B  p2p-1K · b 2.0 · 3 runs from 2026-11-21T09:12:03Z
  ! scale differs: 1 | 0.1

  figure                     A      B  change  noise  winner
  e2e.p99  4.4ms (4.1ms–4.9ms)  3.9ms   −12 %   ±4 %       B
  lost                       0      3   0 → 3   ±4 %       A

  further figure        A        B  change  noise  winner
  rate.received   1 000/s  1 000/s  +0.0 %   ±4 %    none

  Figures are medians of the runs (lowest–highest). A winner is better by at least 10 % (latency, memory), 5 % (CPU) or 2 % (rate), and by more than equal runs differ by in 5 % of comparisons: an exact permutation test of these figures together, in each direction. ± is the noise of two medians (95 % in each direction), and no winner is within it. A promise that only one side broke needs no test.
  The least differences are doubled, because a change of the machine would look like one of the broker where one side was measured after the other, and chance alone reaches the level with three runs a side. Measure four and alternate them: A B A B.
  Further figures are tested each alone and raise no alarm: of 20 equal ones, one looks worse and one better.
";
    assert_eq!(text(&[small()]), expected);
}

#[test]
fn several_candidates_stand_side_by_side() {
    let text = markdown(&[small(), small()]);
    assert!(
        text.contains("| figure | A | B | change | noise | winner | C | change | noise | winner |")
    );
    assert!(text.contains("- **C: scale differs: 1 \\| 0.1**"), "{text}");
    let parsed: serde_json::Value = serde_json::from_str(&json(&[small()])).unwrap();
    assert_eq!(parsed[0]["rows"][2]["verdict"], "worse");
}

#[test]
fn the_line_of_the_summary_is_short() {
    assert_eq!(
        versus_line(&small()),
        "p99 −12 % ±4 (better)   rate +0.0 % ±4   lost 0 → 3 ±4 (worse)"
    );
}
