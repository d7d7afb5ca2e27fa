//! Comparisons of runs whose differences are known.

use super::*;
use crate::sample;

/// A run with these response times and this memory.
fn run(values: &[u64], rss: u64) -> RunResult {
    let mut run = sample::run();
    run.latency_ns.e2e = Some(sample::distribution(values));
    run.brokers[0].usage.rss_max_bytes = rss;
    run.fill_metrics();
    run
}

fn runs(scale: u64, rss: [u64; 3]) -> Vec<RunResult> {
    let values = |jitter: u64| -> Vec<u64> {
        (1..=100)
            .map(|value| value * (scale + jitter) * 1_000)
            .collect()
    };
    (0..3)
        .zip(rss)
        .map(|(jitter, rss)| run(&values(jitter), rss))
        .collect()
}

#[test]
fn differences_beyond_the_spread_of_the_runs_are_reported() {
    let baseline = runs(100, [1_000_000, 1_010_000, 990_000]);
    let candidate = runs(80, [1_200_000, 1_210_000, 1_190_000]);
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
fn percentiles_of_several_runs_are_those_of_all_values() {
    let mut baseline = vec![run(&[1_000; 10], 1), run(&[1_000; 10], 1)];
    baseline.push(run(&[9_000; 10], 1));
    let comparison = Comparison::new(&baseline, &baseline);
    // The mean of the p90 would be 3 667 ns, their median 1 000 ns.
    let p90 = comparison.row("e2e.p90").unwrap().baseline.unwrap();
    assert!((9_000.0..9_010.0).contains(&p90), "{p90}");
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
        (rate.noise.unwrap() - NOISE_OF_ONE_MIN).abs() < 1e-12,
        "steady seconds"
    );
    let connect = comparison.row("connect.p99").unwrap();
    assert_eq!(
        (connect.verdict, connect.noise_source),
        (Verdict::NotComparable, NoiseSource::Unknown)
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
    let comparison = Comparison::new(&[with_connects(1_000)], &[with_connects(2_000)]);
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
fn losses_in_every_run_are_worse_however_few() {
    let baseline = runs(100, [1_000_000; 3]);
    let mut candidate = baseline.clone();
    for run in &mut candidate {
        run.delivery.lost = 15;
        run.delivery.delivered -= 15;
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
    assert!(
        comparison
            .warnings
            .contains(&"baseline has no runs".to_owned())
    );
    assert!(comparison.regressions().is_empty());
}

fn small() -> Comparison {
    let row = |metric, baseline, candidate, change, verdict| Row {
        metric,
        baseline: Some(baseline),
        candidate: Some(candidate),
        change,
        noise: Some(0.04),
        noise_source: NoiseSource::Runs,
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
        warnings: vec!["scale differs: 1 | 0.1".to_owned()],
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
  baseline   p2p-1K · a 1.0 · 3 runs from 2026-11-21T09:12:03Z
  candidate  p2p-1K · b 2.0 · 3 runs from 2026-11-21T09:12:03Z
  ! scale differs: 1 | 0.1

  figure         baseline  candidate  change  noise  verdict
  rate.received   1 000/s    1 000/s  +0.0 %   ±4 %     same
  e2e.p99           4.4ms      3.9ms   −12 %   ±4 %   better
  lost                  0          3   0 → 3   ±4 %    worse

  Percentiles of several runs are those of all their values together, never means of percentiles; other figures are medians.
  ± is the noise: medians of as many runs of the same thing differ by less 95 times of 100; of 20 figures that did not change, one looks changed.
";
    assert_eq!(text(&[small()]), expected);
}

#[test]
fn several_candidates_stand_side_by_side() {
    let text = markdown(&[small(), small()]);
    assert!(
        text.contains(
            "| figure | baseline | candidate 1 | change | noise | verdict | candidate 2 |"
        )
    );
    assert!(
        text.contains("- **candidate 2: scale differs: 1 \\| 0.1**"),
        "{text}"
    );
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
