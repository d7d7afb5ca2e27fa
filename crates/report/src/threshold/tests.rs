//! Limits, right and wrong ones.

use proptest::prelude::*;

use super::*;

fn limit(metric: &str, condition: &str) -> f64 {
    Threshold::parse(metric, condition).unwrap().limit
}

fn judge(metric: &str, condition: &str, measured: f64) -> ThresholdResult {
    let threshold = Threshold::parse(metric, condition).unwrap();
    threshold.evaluate(&BTreeMap::from([(
        threshold.metric.name.to_owned(),
        measured,
    )]))
}

#[test]
fn limits_are_read_in_the_unit_of_their_figure() {
    for (metric, condition, expected) in [
        ("e2e.p99", "< 50ms", 50e6),
        ("e2e.p99", "<50 ms", 50e6),
        ("e2e.p99", "<= 1.5s", 1.5e9),
        ("e2e.p99", "< 800us", 800e3),
        ("e2e.p99", "< 800µs", 800e3),
        ("e2e.p99", "< 800μs", 800e3),
        ("broker.cpu_per_message", "< 0.05ms", 50.0),
        ("broker.rss.stable", "< 2min", 120.0),
        ("broker.cpu", "< 83%", 0.83),
        ("broker.cpu", "< 83 %", 0.83),
        ("broker.cpu", "< 0.83", 0.83),
        ("delivered", "== 100%", 1.0),
        ("broker.rss", "< 1GB", 1e9),
        ("broker.rss", "< 1GiB", 1_073_741_824.0),
        ("broker.rss", "<= 512MB", 512e6),
        ("broker.rss", "< 4096", 4096.0),
        ("rate.received", ">= 1000/s", 1000.0),
        ("rate.received", "> 50k/s", 50_000.0),
        ("rate.received", "> 60_000/min", 1000.0),
        ("rate.received", "> 1000", 1000.0),
        ("connect.errors", "== 0", 0.0),
        ("lost", "<= 1_000", 1000.0),
        ("broker.cores", "< 1.5 cores", 1.5),
    ] {
        let read = limit(metric, condition);
        assert!(
            (read - expected).abs() <= 1e-9 * expected,
            "{metric} {condition}: {read}"
        );
    }
}

#[test]
fn an_invalid_limit_is_refused_with_an_example() {
    for (metric, condition) in [
        ("e2e.p99", "50ms"),
        ("e2e.p99", "< 50"),
        ("e2e.p99", "< -50ms"),
        ("e2e.p99", "< "),
        ("e2e.p99", ""),
        ("e2e.p99", "=< 50ms"),
        ("e2e.p99", "< 1..5s"),
        ("e2e.p99", "< infs"),
        ("e2e.p99", "< 1GB"),
        ("delivered", "== 100"),
        ("delivered", "< 101%"),
        ("broker.rss", "< 1gb"),
        ("rate.received", "> 1000/day"),
    ] {
        let error = Threshold::parse(metric, condition).unwrap_err();
        assert!(
            matches!(error, ThresholdError::Malformed { .. }),
            "{metric} {condition}"
        );
    }
    let error = Threshold::parse("e2e.p99", "50ms").unwrap_err();
    assert_eq!(
        error.to_string(),
        "'50ms' is not a limit for e2e.p99: write a comparison and a time such as < 50ms"
    );
}

#[test]
fn an_unknown_figure_is_answered_with_the_closest_one() {
    for (name, closest) in [
        ("e2e.p98", "e2e.p90"),
        ("broker.rrs", "broker.rss"),
        ("conect.errors", "connect.errors"),
    ] {
        let error = Threshold::parse(name, "== 0").unwrap_err();
        let ThresholdError::UnknownMetric { closest: found, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(found, closest);
    }
}

#[test]
fn a_limit_is_kept_or_not() {
    assert!(judge("e2e.p99", "< 50ms", 49.9e6).pass);
    assert!(!judge("e2e.p99", "< 50ms", 50e6).pass);
    assert!(judge("e2e.p99", "<= 50ms", 50e6).pass);
    assert!(judge("delivered", "== 100%", 1.0).pass);
    assert!(!judge("delivered", "== 100%", 0.999_999).pass);
    assert!(judge("broker.cpu", ">= 83%", 0.83).pass);
    assert!(!judge("rate.received", "> 1000/s", 1000.0).pass);
    assert!(judge("loss", "== 0", 0.0).pass);
}

#[test]
fn a_figure_that_was_not_measured_fails() {
    let result = Threshold::parse("e2e.p99", "< 50ms")
        .unwrap()
        .evaluate(&BTreeMap::new());
    assert!(!result.pass);
    assert_eq!(result.measured_text(), "not measured");
    assert_eq!(result.margin_text(), None);
}

#[test]
fn a_result_tells_the_figure_and_the_margin() {
    for (metric, condition, measured, text, margin) in [
        ("e2e.p99", "< 50ms", 3.9e6, "3.9ms", "92 % below"),
        ("e2e.p99", "< 50ms", 60e6, "60ms", "20 % above"),
        (
            "broker.rss",
            "< 1GiB",
            1.1 * 1_073_741_824.0,
            "1.1 GiB",
            "10 % above",
        ),
        ("broker.cpu", "< 83%", 0.4, "40 %", "43 points below"),
        ("delivered", "== 100%", 1.0, "100 %", "at the limit"),
        ("connect.errors", "== 0", 3.0, "3", "3 above"),
        ("connect.errors", "== 0", 0.0, "0", "at the limit"),
    ] {
        let result = judge(metric, condition, measured);
        assert_eq!(result.measured_text(), text);
        assert_eq!(result.margin_text().as_deref(), Some(margin));
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(metric in ".{0,20}", condition in ".{0,20}") {
        let parsed = Threshold::parse(&metric, &condition);
        prop_assert!(parsed.is_err() || !parsed.unwrap().text.is_empty());
    }

    #[test]
    fn whole_milliseconds_are_read_exactly(ms in 0_u32..10_000_000, sign in 0_usize..5) {
        let (sign, comparison) = COMPARISONS[sign];
        let threshold = Threshold::parse("e2e.p99", &format!("{sign} {ms}ms")).unwrap();
        prop_assert_eq!(threshold.comparison, comparison);
        prop_assert_eq!(threshold.limit.to_bits(), (f64::from(ms) * 1e6).to_bits());
    }

    #[test]
    fn exactly_one_of_less_equal_and_greater_holds(measured in 0.0..1e12, limit in 0.0..1e12) {
        let holds = [Comparison::Less, Comparison::Equal, Comparison::Greater]
            .map(|comparison| comparison.holds(measured, limit));
        prop_assert_eq!(holds.iter().filter(|holds| **holds).count(), 1);
    }
}
