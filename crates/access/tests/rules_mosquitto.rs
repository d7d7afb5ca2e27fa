//! The `acl_file` of mosquitto has the same meaning here.

use thrum_access::{Coverage, Identity, Resolved, Rules};
use thrum_codec::QoS;

const FILE: &str = "\
# Clients without a name
topic read public/#
topic deny public/secret

pattern write devices/%c/up
pattern deny devices/+/down/raw
pattern read devices/%u/down/#

user alice
topic readwrite notes/my notes
topic devices/alice/down/raw
topic read
topic deny notes/locked
topic write %c/100%
user  Bob B.
topic write public/#
";

fn client(client_id: &str, username: Option<&str>) -> Identity {
    Identity {
        client_id: client_id.into(),
        username: username.map(Into::into),
        ..Identity::default()
    }
}

fn resolved(identity: &Identity) -> Resolved {
    let rules = Rules::from_mosquitto(FILE, "acl").expect("a good file");
    let mut resolved = Resolved::default();
    resolved.add_set(&rules, identity).expect("few rules");
    resolved.set_default(Some(false));
    resolved
}

/// The rights of a client for a topic: r, w, both or nothing.
fn access(identity: &Identity, topic: &str) -> String {
    let resolved = resolved(identity);
    let reads = resolved.receive(topic, QoS::AtMostOnce) == Some(true);
    let writes = resolved.publish(topic, QoS::AtMostOnce, false).allowed == Some(true);
    [(reads, "r"), (writes, "w")]
        .into_iter()
        .filter(|(may, _)| *may)
        .map(|(_, letter)| letter)
        .collect()
}

#[test]
fn each_client_has_the_same_rights_as_in_mosquitto() {
    let anonymous = client("d1", None);
    let alice = client("d2", Some("alice"));
    let bob = client("d3", Some("Bob B."));
    for (who, topic, expected) in [
        // General topics are for clients without user name.
        (&anonymous, "public/x", "r"),
        (&alice, "public/x", ""),
        (&bob, "public/x", "w"),
        // Denial first, wherever it stands.
        (&anonymous, "public/secret", ""),
        (&bob, "public/secret", "w"),
        // Patterns are for all clients.
        (&anonymous, "devices/d1/up", "w"),
        (&anonymous, "devices/d2/up", ""),
        (&alice, "devices/d2/up", "w"),
        (&anonymous, "devices//down/x", ""),
        (&bob, "devices/Bob B./down/x", "r"),
        (&bob, "devices/Bob B./down/raw", ""),
        // A topic line that allows comes before a pattern that denies.
        (&alice, "devices/alice/down/raw", "rw"),
        (&alice, "devices/alice/down/x", "r"),
        (&alice, "notes/my notes", "rw"),
        (&alice, "notes/locked", ""),
        // An access alone is a topic.
        (&alice, "read", "rw"),
        // Placeholders are for patterns.
        (&alice, "%c/100%", "w"),
        (&alice, "d2/100%", ""),
        (&anonymous, "$SYS/broker/uptime", ""),
    ] {
        assert_eq!(access(who, topic), expected, "{} {topic}", who.client_id);
    }
}

#[test]
fn identifiers_and_names_that_are_patterns_themselves_open_nothing() {
    for bad in ["+", "#", "a/b", "d+"] {
        assert_eq!(access(&client(bad, None), &format!("devices/{bad}/up")), "");
        assert_eq!(access(&client(bad, None), "devices/d1/up"), "");
        assert_eq!(access(&client("d1", Some(bad)), "devices/d1/down/x"), "");
    }
}

#[test]
fn a_subscription_to_more_than_may_be_read_is_checked_message_by_message() {
    let anonymous = resolved(&client("d1", None));
    assert_eq!(anonymous.subscribe("#", QoS::AtMostOnce), Coverage::Mixed);
    assert_eq!(
        anonymous.subscribe("public/#", QoS::AtMostOnce),
        Coverage::Mixed
    );
    assert_eq!(
        anonymous.subscribe("public/a/#", QoS::AtMostOnce),
        Coverage::Allowed
    );
    assert_eq!(
        anonymous.subscribe("private/#", QoS::AtMostOnce),
        Coverage::Denied
    );
}

#[test]
fn the_rules_keep_the_lines_of_the_file() {
    let rules = Rules::from_mosquitto(FILE, "acl").expect("a good file");
    let shown: Vec<_> = rules
        .iter()
        .map(|rule| format!("{}: {rule}", rule.source()))
        .collect();
    assert_eq!(shown[0], "acl line 3: deny anonymous pubsub public/secret");
    assert_eq!(shown[1], "acl line 13: deny user:alice pubsub notes/locked");
    assert_eq!(
        shown[3],
        "acl line 10: allow user:alice pubsub \"notes/my notes\""
    );
    assert_eq!(shown[6], "acl line 14: allow user:alice pub %%c/100%%");
    assert_eq!(shown[7], "acl line 16: allow user:\"Bob B.\" pub public/#");
    assert_eq!(shown[8], "acl line 6: deny all pubsub devices/+/down/raw");
    assert_eq!(shown[9], "acl line 5: allow all pub devices/%c/up");
}

#[test]
fn lines_that_mosquitto_refuses_are_refused_with_their_number() {
    let text = "topic raed a/b\ntopci a\nuser \ntopic\n\npattern\ntopic a/#/b\n";
    let errors = Rules::from_mosquitto(text, "acl").expect_err("all are wrong");
    let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = [
        "acl line 1: 'raed' is none of 'read', 'write', 'readwrite' and 'deny', did you mean 'read'?",
        "acl line 2: 'topci' is none of 'topic', 'pattern' and 'user', did you mean 'topic'?",
        "acl line 3: a user name is missing behind 'user'",
        "acl line 4: a topic is missing behind 'topic'",
        "acl line 6: a topic is missing behind 'pattern'",
        "acl line 7: 'a/#/b' is not a topic filter",
    ];
    assert_eq!(errors.len(), expected.len(), "{errors:?}");
    for (error, expected) in errors.iter().zip(expected) {
        assert!(error.starts_with(expected), "{error}");
    }
}

#[test]
fn an_empty_file_has_no_rules() {
    assert!(
        Rules::from_mosquitto("# nothing\n\n", "acl")
            .expect("a good file")
            .is_empty()
    );
}
