//! Coverage of subscriptions against every topic there is, and messages one by one.

use proptest::prelude::*;
use thrum_access::{Coverage, Identity, Resolved, Rules};
use thrum_codec::{QoS, topic};

fn resolved(rules: &str, default: Option<bool>) -> Resolved {
    let rules = Rules::parse(rules, "test").expect(rules);
    let mut resolved = Resolved::default();
    resolved
        .add_set(&rules, &Identity::default())
        .expect("few rules");
    resolved.set_default(default);
    resolved
}

fn coverage(rules: &[&str], filter: &str) -> Coverage {
    resolved(&rules.join("\n"), Some(false)).subscribe(filter, QoS::AtMostOnce)
}

#[test]
fn rules_that_share_a_filter_between_them_allow_all_of_it() {
    use Coverage::{Allowed, Denied, Mixed};
    for (rules, filter, expected) in [
        (&["allow all sub a/#"][..], "a/#", Allowed),
        (&["allow all sub a/#"], "a", Allowed),
        (&["allow all sub a/#"], "#", Mixed),
        (&["allow all sub #"], "$SYS/#", Denied),
        (&["allow all sub #"], "+/#", Allowed),
        (&["allow all sub +/#"], "#", Allowed),
        (&["allow all sub $SYS/#"], "#", Denied),
        (&["allow all sub a", "allow all sub a/+/#"], "a/#", Allowed),
        (
            &[
                "allow all sub a",
                "allow all sub a/+",
                "allow all sub a/+/+/#",
            ],
            "a/#",
            Allowed,
        ),
        (&["allow all sub a", "allow all sub a/+/+/#"], "a/#", Mixed),
        (&["allow all sub /+/#"], "/#", Allowed),
        (&["allow all sub /#"], "+", Denied),
        (
            &["deny all sub a/secret", "allow all sub a/#"],
            "a/+",
            Mixed,
        ),
        (
            &["deny all sub a/secret", "allow all sub a/#"],
            "a/b/#",
            Allowed,
        ),
        (
            &[
                "deny all sub a/secret/#",
                "allow all sub a/secret/x",
                "allow all sub b/#",
            ],
            "a/#",
            Denied,
        ),
        (&["deny all sub +/x", "allow all sub a/+"], "a/x", Denied),
        (&["allow all pub a/#"], "a/#", Denied),
        (&["allow all sub(qos=1,2) a/#"], "a/#", Denied),
        (
            &["deny all sub(qos=1,2) a/#", "allow all sub a/#"],
            "a/#",
            Allowed,
        ),
        (
            &[
                "deny all pub(retain=true) a/#",
                "allow all pubsub(retain=true) a/#",
            ],
            "a/#",
            Allowed,
        ),
    ] {
        assert_eq!(coverage(rules, filter), expected, "{rules:?} {filter}");
    }
}

#[test]
fn exact_rules_are_about_the_filter_and_not_about_its_topics() {
    use Coverage::{Allowed, Denied, Mixed};
    for (rules, filter, expected) in [
        (&["deny all sub eq #", "allow all sub #"][..], "#", Denied),
        (&["deny all sub eq #", "allow all sub #"], "+/#", Allowed),
        (&["deny all sub eq #", "allow all sub #"], "a/#", Allowed),
        (&["allow all sub eq a/#"], "a/#", Allowed),
        (&["allow all sub eq a/#"], "a/+", Denied),
        (&["deny all sub a/x", "allow all sub eq a/#"], "a/#", Mixed),
        (
            &[
                "allow all sub a/x",
                "deny all sub eq a/#",
                "allow all sub #",
            ],
            "a/#",
            Denied,
        ),
        (&["deny all sub eq a/x", "allow all sub #"], "a/+", Mixed),
        (&["allow all sub eq a/x"], "a/x", Allowed),
    ] {
        assert_eq!(coverage(rules, filter), expected, "{rules:?} {filter}");
    }
    let filtered = resolved("deny all sub a/x\nallow all pubsub eq a/#", Some(false));
    assert_eq!(filtered.receive("a/b", QoS::AtMostOnce), Some(true));
    assert_eq!(filtered.receive("a/x", QoS::AtMostOnce), Some(false));
    assert_eq!(
        filtered.publish("a/b", QoS::AtMostOnce, false).allowed,
        Some(false)
    );
}

#[test]
fn topics_without_a_rule_are_undecided() {
    let rules = resolved("deny all sub a/secret", None);
    assert_eq!(
        rules.subscribe("a/secret", QoS::AtMostOnce),
        Coverage::Denied
    );
    assert_eq!(rules.subscribe("a/+", QoS::AtMostOnce), Coverage::Undecided);
    assert_eq!(
        rules.subscribe_or("a/+", QoS::AtMostOnce, true),
        Coverage::Mixed
    );
    assert_eq!(
        rules.subscribe_or("a/+", QoS::AtMostOnce, false),
        Coverage::Denied
    );
    assert_eq!(rules.receive("a/b", QoS::AtMostOnce), None);
    assert_eq!(rules.publish("a/b", QoS::AtMostOnce, false).allowed, None);
}

#[test]
fn the_rules_that_take_part_are_reported_in_their_order() {
    let rules = resolved(
        "deny all sub b/#\ndeny all sub a/x\nallow all sub a/#\nallow all sub #",
        None,
    );
    let mut parts = Vec::new();
    rules.explain_subscribe("a/+", QoS::AtMostOnce, |part| {
        parts.push((part.rule.map(|id| id.rule), part.allow, part.is_rest));
    });
    assert_eq!(parts, [(Some(1), false, false), (Some(2), true, true)]);
}

#[test]
fn filters_of_very_many_levels_are_compared_without_delay() {
    let deep = |level: &str, count: usize| vec![level; count].join("/");
    for levels in [126, 127, 128, 129, 1000, 30_000] {
        let rules = format!(
            "deny all sub {}\nallow all sub {}/#",
            deep("+", levels),
            deep("+", levels - 1)
        );
        let rules = resolved(&rules, Some(false));
        for (filter, expected) in [
            (format!("{}/#", deep("a", levels + 1)), Coverage::Allowed),
            (deep("a", levels), Coverage::Denied),
            (format!("{}/#", deep("a", levels - 1)), Coverage::Mixed),
            ("#".to_owned(), Coverage::Mixed),
        ] {
            assert_eq!(
                rules.subscribe(&filter, QoS::AtMostOnce),
                expected,
                "{levels}"
            );
        }
    }
}

#[test]
fn a_length_that_has_no_bit_of_its_own_is_never_counted_as_covered() {
    let deep = |count: usize| vec!["+"; count].join("/");
    // Each length but one, far behind the subscription's own.
    for hole in [100, 126, 127, 128, 200] {
        let lines: Vec<_> = (1..250)
            .filter(|levels| *levels != hole)
            .map(|levels| format!("allow all sub {}", deep(levels)))
            .chain([format!("allow all sub {}/#", deep(250))])
            .collect();
        let rules = resolved(&lines.join("\n"), Some(false));
        assert_eq!(
            rules.subscribe("#", QoS::AtMostOnce),
            Coverage::Mixed,
            "{hole}"
        );
        assert_eq!(
            rules.receive(&vec!["a"; hole].join("/"), QoS::AtMostOnce),
            Some(false)
        );
    }
}

#[test]
fn many_rules_that_repeat_others_cost_little() {
    let repeated = "deny all sub a/b\n".to_owned() + &"allow all sub a/b\n".repeat(5_000);
    let rules = resolved(&repeated, Some(false));
    // Not worth looking for longer: the subscription is granted and each message is refused.
    assert_eq!(rules.subscribe("a/+", QoS::AtMostOnce), Coverage::Mixed);
    assert_eq!(rules.receive("a/b", QoS::AtMostOnce), Some(false));
    let few = "deny all sub a/b\n".to_owned() + &"allow all sub a/b\n".repeat(64);
    assert_eq!(
        resolved(&few, Some(false)).subscribe("a/+", QoS::AtMostOnce),
        Coverage::Denied
    );
}

fn filter() -> impl Strategy<Value = String> {
    let level = prop::sample::select(vec!["a", "b", "", "$x", "+", "+"]);
    (prop::collection::vec(level, 0..4), any::<bool>()).prop_filter_map(
        "no filter",
        |(mut levels, open)| {
            if open || levels.is_empty() {
                levels.push("#");
            }
            let filter = levels.join("/");
            (!filter.is_empty()).then_some(filter)
        },
    )
}

/// Rules as text, and the same as data.
fn rules() -> impl Strategy<Value = Vec<(bool, String)>> {
    prop::collection::vec((any::<bool>(), filter()), 0..7)
}

fn text(rules: &[(bool, String)]) -> String {
    let line = |(allow, filter): &(bool, String)| {
        format!(
            "{} all sub \"{filter}\"",
            if *allow { "allow" } else { "deny" }
        )
    };
    rules.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Every topic of up to 4 levels of these and of levels that no filter has.
fn topics() -> Vec<String> {
    const LEVELS: [&str; 6] = ["a", "b", "", "$x", "c", "$c"];
    let mut all: Vec<String> = LEVELS.map(str::to_owned).to_vec();
    let mut longest = all.clone();
    for _ in 0..3 {
        longest = longest
            .iter()
            .flat_map(|topic| LEVELS.map(|level| format!("{topic}/{level}")))
            .collect();
        all.extend_from_slice(&longest);
    }
    all.retain(|topic| !topic.is_empty());
    all
}

/// The definition of coverage, topic by topic.
fn naive(
    rules: &[(bool, String)],
    filter: &str,
    default: Option<bool>,
    topics: &[String],
) -> Coverage {
    let (mut allows, mut denies, mut leaves) = (false, false, false);
    for topic in topics.iter().filter(|topic| topic::matches(filter, topic)) {
        let rule = rules.iter().find(|(_, rule)| topic::matches(rule, topic));
        match rule.map(|(allow, _)| *allow).or(default) {
            Some(true) => allows = true,
            Some(false) => denies = true,
            None => leaves = true,
        }
    }
    match (allows, denies) {
        _ if leaves => Coverage::Undecided,
        (true, true) => Coverage::Mixed,
        (true, false) => Coverage::Allowed,
        _ => Coverage::Denied,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn coverage_agrees_with_every_topic(
        rules in rules(),
        filter in filter(),
        default: Option<bool>,
    ) {
        thread_local!(static TOPICS: Vec<String> = topics());
        let expected = TOPICS.with(|topics| naive(&rules, &filter, default, topics));
        let found = resolved(&text(&rules), default).subscribe(&filter, QoS::AtMostOnce);
        prop_assert_eq!(found, expected, "{:#?}", rules);
    }

    #[test]
    fn granted_subscriptions_receive_their_messages(
        rules in rules(),
        exact in prop::collection::vec(any::<bool>(), 7),
        filter in filter(),
        default: bool,
    ) {
        thread_local!(static TOPICS: Vec<String> = topics());
        let lines = text(&rules);
        let lines: Vec<_> = lines
            .lines()
            .zip(&exact)
            .map(|(line, exact)| if *exact { line.replace("sub ", "sub eq ") } else { line.to_owned() })
            .collect();
        let resolved = resolved(&lines.join("\n"), Some(default));
        let coverage = resolved.subscribe(&filter, QoS::AtMostOnce);
        let has_exact = exact.iter().take(rules.len()).any(|exact| *exact);
        TOPICS.with(|topics| {
            for topic in topics.iter().filter(|topic| topic::matches(&filter, topic)) {
                let received = resolved.receive(topic, QoS::AtMostOnce);
                if coverage == Coverage::Allowed {
                    prop_assert_eq!(received, Some(true), "{}: {:#?}", topic, lines);
                }
                if coverage == Coverage::Denied && !has_exact {
                    prop_assert_eq!(received, Some(false), "{}: {:#?}", topic, lines);
                }
            }
            Ok(())
        })?;
    }
}
