//! Resolving rules for a client: matching, filled-in values, order, and limits.

use std::sync::Arc;

use proptest::prelude::*;
use thrum_access::rules::FITTING_MAX;
use thrum_access::{Certificate, Decision, Identity, Resolved, Rule, RuleId, Rules, TooManyRules};
use thrum_codec::QoS;

fn alice() -> Identity {
    Identity {
        client_id: "dev-7".into(),
        username: Some("alice".into()),
        roles: vec!["ops".into(), "dev".into()],
        groups: vec!["staff".into()],
        address: Some([10, 1, 2, 3].into()),
        listener: "tls".into(),
        certificate: Some(Arc::new(Certificate {
            common_name: Some("cn-7".into()),
            ..Certificate::default()
        })),
        backend: None,
        claims: vec![("team".into(), "red".into()), ("bad".into(), "a/b".into())],
        is_superuser: false,
    }
}

fn anonymous() -> Identity {
    Identity {
        client_id: "x".into(),
        ..Identity::default()
    }
}

fn resolved(rules: &str, identity: &Identity) -> Resolved {
    let rules = Rules::parse(rules, "test").expect(rules);
    let mut resolved = Resolved::default();
    resolved.add_set(&rules, identity).expect("few rules");
    resolved
}

fn publishes(rules: &str, identity: &Identity, topic: &str) -> Option<bool> {
    resolved(rules, identity)
        .publish(topic, QoS::AtMostOnce, false)
        .allowed
}

#[test]
fn a_rule_is_about_those_it_names() {
    for (who, is_alice, is_nobody) in [
        ("all", true, true),
        ("anonymous", false, true),
        ("authenticated", true, false),
        ("user:alice", true, false),
        ("user:Alice", false, false),
        ("client:dev-7", true, false),
        ("client:dev-*", true, false),
        ("client:*", true, true),
        ("client:\"dev-*\"", false, false),
        ("role:dev", true, false),
        ("role:staff", false, false),
        ("group:staff", true, false),
        ("ip:10.0.0.0/8", true, false),
        ("ip:0.0.0.0/0", true, false),
        ("ip:10.1.2.4", false, false),
        ("listener:tls", true, false),
        ("cn:cn-7", true, false),
    ] {
        let rule = format!("allow {who} pub t");
        assert_eq!(publishes(&rule, &alice(), "t").is_some(), is_alice, "{who}");
        assert_eq!(
            publishes(&rule, &anonymous(), "t").is_some(),
            is_nobody,
            "{who}"
        );
    }
}

#[test]
fn values_are_filled_in() {
    for (filter, topic) in [
        ("%c", "dev-7"),
        ("a/x%c", "a/xdev-7"),
        ("%u/#", "alice/b"),
        ("${client_id}/${clientid}/${username}", "dev-7/dev-7/alice"),
        (
            "${cert.cn}/${cert_common_name}/${listener}",
            "cn-7/cn-7/tls",
        ),
        ("${claim.team}/%%/%${x}", "red/%/${x}"),
    ] {
        let rule = format!("allow all pub {filter}");
        assert_eq!(publishes(&rule, &alice(), topic), Some(true), "{filter}");
    }
}

/// Client identifiers that would change the meaning of a rule.
const BAD_VALUES: [&str; 8] = ["+", "#", "a+", "a/b", "/", "a/#", "\0", "a#"];

#[test]
fn a_value_that_cannot_be_used_opens_nothing_and_shakes_off_no_denial() {
    for bad in BAD_VALUES {
        let client = Identity {
            client_id: bad.into(),
            ..Identity::default()
        };
        for filter in ["own/%c/#", "%c/x", "own/%c", "own/x%c/y"] {
            let allow = format!("allow all pubsub {filter}");
            let resolved = resolved(&allow, &client);
            assert!(resolved.is_empty(), "{bad:?} {filter}");
        }
        let rules = "deny all pub own/%c/config\nallow all pub #";
        assert_eq!(
            publishes(rules, &client, "own/a/b/config"),
            Some(false),
            "{bad:?}"
        );
        assert_eq!(publishes(rules, &client, "own/x"), Some(false), "{bad:?}");
        assert_eq!(publishes(rules, &client, "other/x"), Some(true), "{bad:?}");
        // The value is the first level: it could have been any.
        let rules = "deny all pub %c/config\nallow all pub #\nallow all pub $x";
        assert_eq!(publishes(rules, &client, "other/x"), Some(false), "{bad:?}");
        assert_eq!(publishes(rules, &client, "$x"), Some(false), "{bad:?}");
    }
}

#[test]
fn a_value_cannot_lead_to_topics_of_the_server() {
    let client = Identity {
        client_id: "$SYS".into(),
        ..Identity::default()
    };
    assert_eq!(
        publishes("allow all pub %c/#", &client, "$SYS/broker"),
        None
    );
    assert_eq!(
        publishes(
            "deny all pub %c/#\nallow all pub $SYS/#",
            &client,
            "$SYS/broker"
        ),
        Some(false)
    );
    assert_eq!(
        publishes("allow all pub a/%c/#", &client, "a/$SYS/broker"),
        Some(true)
    );
}

#[test]
fn a_value_that_is_missing_or_empty_means_nothing_either_way() {
    let mut client = anonymous();
    for name in [None, Some("".into())] {
        client.username = name;
        for rule in [
            "allow all pubsub own/%u/#",
            "deny all pubsub own/%u/#",
            "deny all pub %c/${claim.no}/+",
        ] {
            assert!(resolved(rule, &client).is_empty(), "{rule}");
        }
    }
    // The missing value counts even behind one that cannot be used.
    client.client_id = "a/b".into();
    assert!(resolved("deny all pub %c/${claim.no}", &client).is_empty());
}

#[test]
fn a_filter_that_grows_too_long_for_any_topic_is_not_used() {
    let mut client = anonymous();
    client.client_id = "x".repeat(60_000).into();
    let rule = format!("allow all pub a/{}%c", "y".repeat(10_000));
    assert!(resolved(&rule, &client).is_empty());
    let rule = rule.replace("allow", "deny");
    assert_eq!(publishes(&rule, &client, "a/b"), Some(false));
    assert!(resolved(&rule, &client).memory_bytes() < 100_000);
}

#[test]
fn the_first_rule_that_fits_decides_and_is_named() {
    let mut all = Resolved::default();
    let first = Rules::parse(
        "deny user:bob pub #\nallow all pub(qos=0 retain=false) a",
        "first",
    )
    .expect("valid");
    let second =
        Rules::parse("deny all pub(retain=true) a\nallow all pub +", "second").expect("valid");
    all.add_set(&first, &alice()).expect("few rules");
    all.add_set(&second, &alice()).expect("few rules");
    let decided = |allowed, set, rule| Decision {
        allowed: Some(allowed),
        rule: Some(RuleId { set, rule }),
    };
    assert_eq!(
        all.publish("a", QoS::AtMostOnce, false),
        decided(true, 0, 1)
    );
    assert_eq!(
        all.publish("a", QoS::AtLeastOnce, false),
        decided(true, 1, 1)
    );
    assert_eq!(
        all.publish("a", QoS::AtMostOnce, true),
        decided(false, 1, 0)
    );
    assert_eq!(all.publish("b", QoS::AtMostOnce, true), decided(true, 1, 1));
    assert_eq!(
        all.publish("$b", QoS::AtMostOnce, true),
        Decision {
            allowed: None,
            rule: None
        }
    );
    all.set_default(Some(false));
    assert_eq!(
        all.publish("$b", QoS::AtMostOnce, true),
        Decision {
            allowed: Some(false),
            rule: None
        }
    );
}

#[test]
fn a_superuser_and_a_broker_without_rules_need_no_checks() {
    assert!(Resolved::everything().is_everything());
    assert_eq!(
        Resolved::everything()
            .publish("$SYS/x", QoS::ExactlyOnce, true)
            .allowed,
        Some(true)
    );
    assert_eq!(
        Resolved::everything().receive("$SYS/x", QoS::ExactlyOnce),
        Some(true)
    );
    assert_eq!(
        Resolved::everything().subscribe("#", QoS::ExactlyOnce),
        thrum_access::Coverage::Allowed
    );
    let mut none = Resolved::default();
    assert!(!none.is_everything());
    none.set_default(Some(true));
    assert!(none.is_everything());
    none.set_default(Some(false));
    assert!(!none.is_everything());
}

#[test]
fn too_many_rules_deny_everything() {
    let many = "allow all pub a\n".repeat(FITTING_MAX);
    let mut rules = Rules::parse(&many, "test").expect("valid");
    let mut fits = Resolved::default();
    assert_eq!(fits.add_set(&rules, &anonymous()), Ok(()));
    assert_eq!(fits.len(), FITTING_MAX);
    rules.push(Rule::parse("allow all pub a", "test").expect("valid"));
    let mut closed = Resolved::everything();
    assert_eq!(closed.add_set(&rules, &anonymous()), Err(TooManyRules));
    closed.set_default(Some(true));
    assert_eq!(
        closed.publish("a", QoS::AtMostOnce, false).allowed,
        Some(false)
    );
    assert_eq!(
        closed.publish("$a", QoS::ExactlyOnce, true).allowed,
        Some(false)
    );
    assert_eq!(closed.receive("a", QoS::AtMostOnce), Some(false));
    assert_eq!(
        closed.subscribe("#", QoS::AtMostOnce),
        thrum_access::Coverage::Denied
    );
}

#[test]
fn resolved_rules_of_a_client_are_small() {
    let rules = "allow all pubsub devices/%c/#\ndeny user:bob pub #\nallow role:ops sub $SYS/#\nallow all sub fleet/+/status";
    let mut resolved = resolved(rules, &alice());
    resolved.shrink_to_fit();
    assert_eq!(resolved.len(), 3);
    let text = "devices/dev-7/#$SYS/#fleet/+/status".len();
    let bytes = resolved.memory_bytes();
    assert!(bytes > text && bytes <= 160, "{bytes}");
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "ab", "abc", "b", "ba"])
}

fn line() -> impl Strategy<Value = String> {
    let who = prop_oneof![
        Just("all".to_owned()),
        Just("anonymous".to_owned()),
        Just("authenticated".to_owned()),
        (
            prop::sample::select(vec!["user", "client", "role", "group", "listener", "cn"]),
            name()
        )
            .prop_map(|(kind, name)| format!("{kind}:{name}")),
        name().prop_map(|name| format!("client:{name}*")),
        prop::sample::select(vec![
            "10.0.0.0/8",
            "10.1.0.0/16",
            "10.1.2.3",
            "0.0.0.0/0",
            "::/0",
            "fd00::/8",
            "fd00::1"
        ])
        .prop_map(|network| format!("ip:{network}")),
    ];
    (
        any::<bool>(),
        who,
        prop::sample::select(vec!["t/%c", "t/%u", "t/+", "t/a", "+/#"]),
    )
        .prop_map(|(allow, who, filter)| {
            format!(
                "{} {who} pub {filter}",
                if allow { "allow" } else { "deny" }
            )
        })
}

fn identity() -> impl Strategy<Value = Identity> {
    let address = prop::sample::select(vec![
        "10.1.2.3",
        "10.2.0.0",
        "::ffff:10.1.2.3",
        "9.9.9.9",
        "fd00::1",
        "fe80::1",
        "",
    ]);
    let names = || prop::collection::vec(name().prop_map(Box::from), 0..3);
    let some = || prop::option::of(name().prop_map(Box::from));
    (name(), some(), names(), names(), address, name(), some()).prop_map(
        |(client_id, username, roles, groups, address, listener, common_name)| Identity {
            client_id: client_id.into(),
            username,
            roles,
            groups,
            address: address.parse().ok(),
            listener: listener.into(),
            certificate: Some(Arc::new(Certificate {
                common_name,
                ..Certificate::default()
            })),
            ..Identity::default()
        },
    )
}

proptest! {
    #[test]
    fn the_index_agrees_with_a_scan_of_all_rules(
        lines in prop::collection::vec(line(), 0..400),
        pushed in prop::collection::vec(line(), 0..200),
        identity in identity(),
    ) {
        let mut indexed = Rules::parse(&lines.join("\n"), "test").expect("valid");
        for line in &pushed {
            indexed.push(Rule::parse(line, "test").expect("valid"));
        }
        let mut found = Resolved::default();
        found.add_set(&indexed, &identity).expect("few rules");
        // Rule by rule, so that nothing is found by an index.
        let mut looked = Resolved::default();
        for rule in &indexed {
            looked.add_set(&Rules::from_iter([rule.clone()]), &identity).expect("few rules");
        }
        prop_assert_eq!(found.len(), looked.len());
        for topic in ["t/a", "t/ab", "t/b", "t/x", "x", "t"] {
            let by_index = found.publish(topic, QoS::AtMostOnce, false);
            let by_looking = looked.publish(topic, QoS::AtMostOnce, false);
            prop_assert_eq!(by_index.allowed, by_looking.allowed);
            let looked_at = by_looking.rule.map(|id| u32::from(id.set));
            prop_assert_eq!(by_index.rule.map(|id| id.rule), looked_at);
        }
    }
}
