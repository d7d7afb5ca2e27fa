//! Rules as text: accepted rules, refused rules and their errors, and that printed rules are read
//! again.

use proptest::prelude::*;
use thrum_access::{Actions, Network, QosSet, Rule, Rules, Who};
use thrum_codec::QoS;

fn printed(text: &str) -> String {
    Rule::parse(text, "test").expect(text).to_string()
}

#[test]
fn a_rule_names_its_permission_clients_actions_and_filter() {
    let rule = |text| Rule::parse(text, "test").expect(text);
    let (allows, denies) = (rule("allow all pub a/+"), rule("deny user:u sub eq a/+"));
    assert!(allows.is_allow() && !denies.is_allow());
    assert!(!allows.is_exact() && denies.is_exact());
    assert_eq!([allows.filter(), denies.filter()], ["a/+"; 2]);
    assert_eq!(
        (allows.who(), denies.who()),
        (&Who::All, &Who::User("u".into()))
    );
    assert_eq!(allows.actions(), Actions::PUBLISH);
    assert_eq!(denies.actions(), Actions::SUBSCRIBE);
}

fn check_errors(expected: &[(&str, &str)]) {
    for (text, words) in expected {
        let error = Rule::parse(text, "acl.rules").expect_err(text).to_string();
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_rule_is_printed_in_its_plainest_form() {
    for (text, plain) in [
        ("allow all pubsub #", "allow all pubsub #"),
        (
            "  deny\tanonymous  sub  $SYS/# ",
            "deny anonymous sub $SYS/#",
        ),
        ("allow user:\"bob\" pub a/b", "allow user:bob pub a/b"),
        (
            "allow user:\"Bob B.\" pub \"a b/c\"",
            "allow user:\"Bob B.\" pub \"a b/c\"",
        ),
        (
            "allow client:dev-* pub devices/%c/#",
            "allow client:dev-* pub devices/%c/#",
        ),
        ("allow client:\"dev*\" pub a", "allow client:\"dev*\" pub a"),
        (
            "allow client:\"my dev\"* pub a",
            "allow client:\"my dev\"* pub a",
        ),
        ("allow client:* pub a", "allow client:* pub a"),
        (
            "allow role:ops pub(qos=1,0) a",
            "allow role:ops pub(qos=0,1) a",
        ),
        ("allow role:ops pub(qos=0,1,2) a", "allow role:ops pub a"),
        (
            "allow all pubsub(retain=false qos=2) a",
            "allow all pubsub(qos=2 retain=false) a",
        ),
        ("allow all pub() a", "allow all pub a"),
        ("deny all sub eq  #", "deny all sub eq #"),
        ("deny all sub \"eq\"", "deny all sub \"eq\""),
        ("deny all sub eq \"eq\"", "deny all sub eq \"eq\""),
        ("deny all sub eq/#", "deny all sub eq/#"),
        ("allow ip:10.0.0.0/8 sub a", "allow ip:10.0.0.0/8 sub a"),
        (
            "allow ip:::ffff:10.0.0.0/104 sub a",
            "allow ip:10.0.0.0/8 sub a",
        ),
        ("allow ip:\"::1\" sub a", "allow ip:::1 sub a"),
        ("allow cn:\"\\u{fc}\\\\\\\"\" sub a", "allow cn:ü\\\" sub a"),
        (
            "allow user:\"a\\u{a}b\" sub a",
            "allow user:\"a\\u{a}b\" sub a",
        ),
        (
            "allow all sub ${client_id}/${username}/${cert.cn}/${listener}/${claim.team}/%%/%${x}",
            "allow all sub ${client_id}/${username}/${cert.cn}/${listener}/${claim.team}/%%/%${x}",
        ),
    ] {
        assert_eq!(printed(text), plain);
        assert_eq!(printed(plain), plain);
    }
}

#[test]
fn an_error_names_the_unknown_text_and_a_suggestion() {
    check_errors(&[
        ("", "'allow' or 'deny' is missing"),
        (
            "alow all pub a",
            "'alow' is neither 'allow' nor 'deny', did you mean 'allow'?",
        ),
        ("permit all pub a", "did you mean 'allow'?"),
        (
            "nonsense all pub a",
            "'nonsense' is neither 'allow' nor 'deny'",
        ),
        ("allow", "WHO is missing"),
        (
            "allow everyone pub a",
            "'everyone' matches no client, did you mean 'all'?",
        ),
        (
            "allow usr:bob pub a",
            "'usr' matches no client, did you mean 'user:'?",
        ),
        ("allow user: pub a", "a name is missing behind 'user:'"),
        ("allow role:\"\" pub a", "a name is missing behind 'role:'"),
        ("allow user:\"bob pub a", "a double quote is not closed"),
        (
            "allow user:\"bob\"by pub a",
            "'by pub a' stands behind the end",
        ),
        (
            "allow user:\"b\\ob\" pub a",
            "'\\o' means nothing in quotes",
        ),
        (
            "allow user:\"\\u{110000}\" pub a",
            "means nothing in quotes",
        ),
        ("allow user:\"b\\", "a double quote is not closed"),
        ("allow ip:10.0.0.1/8 pub a", "'10.0.0.1/8' is not a network"),
    ]);
}

#[test]
fn an_error_says_which_action_or_filter_is_not_understood() {
    check_errors(&[
        ("allow all", "the action is missing"),
        (
            "allow all publish a",
            "'publish' is none of 'pub', 'sub' and 'pubsub', did you mean 'pub'?",
        ),
        ("allow all pub", "the topic filter is missing"),
        ("allow all pub eq", "the topic filter is missing"),
        (
            "allow all pub(qos=3) a",
            "'qos=3' does not qualify an action",
        ),
        ("allow all pub(qos=) a", "'qos=' does not qualify"),
        ("allow all pub(qos=0 qos=1) a", "'qos=1' does not qualify"),
        ("allow all pub(size=1) a", "'size=1' does not qualify"),
        ("allow all pub(qos=0 a", "'(qos=0 a' does not qualify"),
        (
            "allow all sub(retain=true) a",
            "'retain' qualifies 'pub' only",
        ),
        ("allow all pub a/#/b", "'a/#/b' is not a topic filter"),
        ("allow all pub a/%c+", "'a/%c+' is not a topic filter"),
        ("allow all pub \"\"", "'' is not a topic filter"),
        (
            "allow all sub $share/g/a",
            "'$share/g/a' names a shared subscription",
        ),
        ("allow all sub $share/%c/a", "names a shared subscription"),
        ("allow all pub a/%x", "'%x' is not a placeholder"),
        ("allow all pub a/%", "'%' is not a placeholder"),
        (
            "allow all pub ${clientId}",
            "'clientId' is not a placeholder, did you mean 'clientid'?",
        ),
        ("allow all pub ${claim.}", "'claim.' is not a placeholder"),
        (
            "allow all pub ${username",
            "'${username' is not a placeholder",
        ),
        ("allow all pub a # note", "'# note' stands behind the end"),
        ("allow all pub my topic", "'topic' stands behind the end"),
    ]);
}

#[test]
fn errors_of_a_file_name_their_lines_and_of_a_list_their_places() {
    let text =
        "\u{feff}# rules\r\n\r\nallow all pub a\r\nalow all pub a\n  # more\nallow all pub a/#/b";
    let errors = Rules::parse(text, "acl.rules").expect_err("two are wrong");
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        errors[0],
        "acl.rules line 4: 'alow' is neither 'allow' nor 'deny', did you mean 'allow'?"
    );
    assert!(
        errors[1].starts_with("acl.rules line 6: 'a/#/b' is not a topic filter;"),
        "{errors:?}"
    );
    assert_eq!(errors.len(), 2);
    let errors = Rules::parse_list(&["allow all pub a", "allow"], "acl.rules").expect_err("one");
    assert!(
        errors[0]
            .to_string()
            .starts_with("acl.rules[1]: WHO is missing"),
        "{errors:?}"
    );
}

#[test]
fn the_rules_of_a_file_know_their_lines() {
    let rules =
        Rules::parse("# first\nallow all pub a\n\ndeny all pub #\n", "acl.rules").expect("valid");
    let shown: Vec<_> = rules
        .iter()
        .map(|rule| format!("{}: {rule}", rule.source()))
        .collect();
    assert_eq!(
        shown,
        [
            "acl.rules line 2: allow all pub a",
            "acl.rules line 4: deny all pub #"
        ]
    );
}

#[test]
fn the_number_of_kept_errors_is_limited() {
    let errors = Rules::parse(&"x\n".repeat(10_000), "acl.rules").expect_err("all are wrong");
    assert_eq!(errors.len(), 100);
}

#[test]
fn a_table_of_another_broker_becomes_rules() {
    let qos = [QoS::AtLeastOnce, QoS::ExactlyOnce].into_iter().collect();
    let actions = Actions {
        qos,
        retain: Some(true),
        ..Actions::BOTH
    };
    let rule = Rule::new(false, Who::All, actions, "eq t/#", "acl of alice").expect("a rule");
    assert_eq!(
        rule.to_string(),
        "deny all pubsub(qos=1,2 retain=true) eq t/#"
    );
    assert_eq!(rule.source().to_string(), "acl of alice");
    // Retain has no effect there.
    let actions = Actions {
        retain: Some(true),
        ..Actions::SUBSCRIBE
    };
    let rule = Rule::new(true, Who::All, actions, "t/my topic", "x").expect("a rule");
    assert_eq!(rule.to_string(), "allow all sub \"t/my topic\"");
    let nothing = Actions {
        qos: QosSet::NONE,
        ..Actions::BOTH
    };
    for (who, actions, filter) in [
        (Who::All, nothing, "t"),
        (
            Who::All,
            Actions {
                subscribe: false,
                ..Actions::SUBSCRIBE
            },
            "t",
        ),
        (Who::User("".into()), Actions::BOTH, "t"),
        (Who::Role("x".repeat(65_536).into()), Actions::BOTH, "t"),
        (Who::All, Actions::BOTH, "t/#/x"),
        (Who::All, Actions::BOTH, ""),
        (Who::All, Actions::BOTH, "eq "),
    ] {
        assert!(
            Rule::new(true, who, actions, filter, "x").is_err(),
            "{filter}"
        );
    }
}

#[test]
fn every_rule_of_the_guide_is_one() {
    let guide = include_str!("../../../docs/guide/authorization.md");
    let mut blocks = guide.split("```").skip(1).step_by(2).flat_map(str::lines);
    let mut count = 0;
    let is_rule = |line: &&str| line.starts_with("allow ") || line.starts_with("deny ");
    for line in blocks
        .by_ref()
        .map(|line| line.trim().trim_matches(['"', ',']))
        .filter(is_rule)
    {
        Rule::parse(line, "guide").expect(line);
        count += 1;
    }
    assert!(count > 12, "{count}");
}

fn name() -> impl Strategy<Value = Box<str>> {
    proptest::string::string_regex("[a-c \"\\\\*%$#:(){}\u{7}\u{a0}\n]{1,5}")
        .expect("an expression")
        .prop_map(Into::into)
}

fn any_who() -> impl Strategy<Value = Who> {
    let network = (any::<u32>(), 0..=32_u8).prop_map(|(bits, prefix)| {
        Network::new(std::net::IpAddr::from(bits.to_be_bytes()), prefix).expect("32 bits or less")
    });
    prop_oneof![
        Just(Who::All),
        Just(Who::Anonymous),
        Just(Who::Authenticated),
        name().prop_map(Who::User),
        name().prop_map(Who::Client),
        name().prop_map(Who::ClientPrefix),
        Just(Who::ClientPrefix("".into())),
        name().prop_map(Who::Role),
        name().prop_map(Who::Group),
        name().prop_map(Who::Listener),
        name().prop_map(Who::CommonName),
        network.prop_map(Who::Network),
    ]
}

fn actions() -> impl Strategy<Value = Actions> {
    let qos = proptest::sample::subsequence(
        vec![QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce],
        1..=3,
    );
    (0..3_usize, qos, any::<Option<bool>>()).prop_map(|(kind, qos, retain)| Actions {
        qos: qos.into_iter().collect(),
        retain,
        ..[Actions::PUBLISH, Actions::SUBSCRIBE, Actions::BOTH][kind]
    })
}

fn filter() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "/",
        "+",
        "/+/",
        "/#",
        "%c",
        "%u",
        "%%",
        "%$",
        "${claim.x}",
        "${cert.cn}",
        "$",
        "{",
        " ",
        "\"",
        "eq",
        "eq ",
        "\\",
        "ü",
        "\t",
    ]);
    prop::collection::vec(piece, 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn printed_rules_are_read_again(
        allow: bool,
        who in any_who(),
        actions in actions(),
        filter in filter(),
    ) {
        let Ok(rule) = Rule::new(allow, who, actions, &filter, "test") else {
            return Ok(());
        };
        let text = rule.to_string();
        prop_assert_eq!(text.lines().count(), 1);
        prop_assert_eq!(Rule::parse(&text, "test"), Ok(rule), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(
        text in "(allow|deny|x)? ?(all|user:|client:\"|ip:)?\\PC{0,12} ?(pub|sub)?[(]?\\PC{0,12}",
    ) {
        if let Ok(rule) = Rule::parse(&text, "test") {
            prop_assert_eq!(Rule::parse(&rule.to_string(), "test"), Ok(rule));
        }
    }
}
