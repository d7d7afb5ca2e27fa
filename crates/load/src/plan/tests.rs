//! Guarantees of plans.

use super::*;
use crate::payload::tests::no_files;
use crate::scenario::{Overrides, find};

fn plan(name: &str, overrides: &Overrides) -> Plan {
    Plan::new(find(name).unwrap().with(overrides).unwrap(), "t", &no_files).unwrap()
}

#[test]
fn one_to_one_gives_each_subscriber_its_own_publisher() {
    let plan = plan(
        "p2p-1K",
        &Overrides {
            publishers: Some(3),
            ..Overrides::default()
        },
    );
    assert_eq!(plan.clients(), 6);
    let part = plan.part(1);
    assert_eq!((part.subscriber, part.publisher), (Some(1), None));
    assert_eq!(plan.filters(part.group, part.number), ["test/t/2"]);
    let part = plan.part(4);
    assert_eq!((part.subscriber, part.publisher), (None, Some(1)));
    assert_eq!(&*plan.publishers()[1].topic, "test/t/2");
    let Expectation::Each(sources) = plan.expectation(1) else {
        panic!("not shared")
    };
    assert_eq!((sources.len(), sources.publisher(0)), (1, Some(1)));
    assert!(
        plan.publishers()
            .iter()
            .all(|publisher| publisher.fan_out == 1)
    );
}

#[test]
fn fan_out_gives_each_subscriber_every_publisher() {
    let overrides = Overrides {
        publishers: Some(3),
        subscribers: Some(4),
        ..Overrides::default()
    };
    let plan = plan("fanout-5-1000-5-250K", &overrides);
    assert_eq!(plan.filters(0, 2), ["test/t/1", "test/t/2", "test/t/3"]);
    assert!(
        plan.publishers()
            .iter()
            .all(|publisher| publisher.fan_out == 4)
    );
    let Expectation::Each(sources) = plan.expectation(3) else {
        panic!("not shared")
    };
    assert_eq!(
        (
            sources.position(0),
            sources.position(2),
            sources.position(3)
        ),
        (Some(0), Some(2), None)
    );
}

#[test]
fn members_of_a_shared_subscription_expect_each_message_once_among_them() {
    let plan = plan(
        "sharedsub-1K-5",
        &Overrides {
            publishers: Some(10),
            ..Overrides::default()
        },
    );
    assert_eq!(plan.shared().len(), 1);
    assert_eq!(plan.shared()[0].len(), 10);
    assert!((0..5).all(|member| matches!(plan.expectation(member), Expectation::Shared(0))));
    assert!(
        plan.publishers()
            .iter()
            .all(|publisher| publisher.fan_out == 1)
    );
}

#[test]
fn the_publishing_part_tells_fan_out_from_pairs() {
    let part = |name| plan(name, &Overrides::default()).publishing_part();
    assert!((part("p2p-1K") - 0.5).abs() < 1e-9);
    assert!((part("fanout-1-1K") - 1.0 / 1001.0).abs() < 1e-9);
    assert!((part("conn-tcp-10K-100") - 1.0).abs() < 1e-9);
}

#[test]
fn client_identifiers_fit_every_broker() {
    let plan = plan("conn-tcp-10K-100", &Overrides::default());
    assert!(plan.client_id(u32::MAX).len() <= 23);
    assert_eq!(plan.part(9_999).number, 9_999);
    assert_eq!(plan.load_ns(), 60_000_000_000);
}

#[test]
fn a_bad_filter_or_topic_is_named() {
    let mut scenario = find("p2p-1K").unwrap();
    scenario.groups[0].subscribe.as_mut().unwrap().filters = vec!["a#".to_owned()];
    assert!(matches!(
        Plan::new(scenario, "t", &no_files),
        Err(PlanError::BadFilter { .. })
    ));
    let mut scenario = find("p2p-1K").unwrap();
    scenario.groups[1].publish.as_mut().unwrap().topic = "a/+".to_owned();
    assert!(matches!(
        Plan::new(scenario, "t", &no_files),
        Err(PlanError::BadTopic { .. })
    ));
}

#[test]
fn due_messages_follow_the_time_of_the_load_within_a_period() {
    for publishers in [1_000, 30_000] {
        let overrides = Overrides {
            publishers: Some(publishers),
            ..Overrides::default()
        };
        // A message a second by each.
        let plan = plan("p2p-1K", &overrides);
        let second_ns = 1_100_000_000;
        for second in 0..12 {
            let due =
                plan.due_in_all((second + 1) * second_ns) - plan.due_in_all(second * second_ns);
            let expected = u64::from(publishers) * 11 / 10;
            let error = due.abs_diff(expected);
            assert!(
                error <= expected / 500,
                "second {second}: {due} of {expected}"
            );
        }
    }
}
