//! Rights of a client where a gatekeeper decides what no rule does.

use std::sync::Arc;
use std::time::Duration;

use thrum_access::{Admission, Answer, Denial, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_codec::{QoS, ReasonCode};
use thrum_engine::access::{
    Access, ClientAccess, Grant, Policy, RuleSource, Shared, TopicQuestion, Verdict, Wanted,
};
use thrum_engine::node::metrics::Counter;
use thrum_engine::retained::{ReviewStep, SourceReview};
use thrum_protocol::{MountPoint, Time};
use thrum_storage::Owner;

use crate::node::{Node, connect};

const NOW: Time = Time::from_millis(1_000);
const Q1: QoS = QoS::AtLeastOnce;

/// A backend that decides about topics, or only about logins.
#[derive(Debug)]
struct Backend(bool);

impl Gatekeeper for Backend {
    fn login(&self, _login: Login, _reply: Reply<Answer>) {}

    fn has_authorizers(&self) -> bool {
        self.0
    }
}

fn rules(text: &str) -> Arc<Rules> {
    Arc::new(Rules::parse(text, "test").expect("they are valid"))
}

fn shared(policy: Policy, backend: Option<bool>) -> Shared {
    let gatekeeper = backend.map(|asks| Arc::new(Backend(asks)) as Arc<dyn Gatekeeper>);
    Shared {
        access: Access { gatekeeper, policy },
        generation: 4,
    }
}

fn admission(username: Option<&str>) -> Admission {
    Admission {
        identity: Identity {
            client_id: "client".into(),
            username: username.map(Into::into),
            ..Identity::default()
        },
        rules: Some(rules("deny all pub own\nallow all sub own")),
        ..Admission::default()
    }
}

fn wanted(topic: &str) -> Wanted<'_> {
    Wanted {
        topic,
        qos: Q1,
        retain: false,
    }
}

/// Rules of all clients, then the gatekeeper, then the client's own rules.
fn policy() -> Policy {
    Policy {
        rules: rules("allow all pubsub open/#\ndeny all pubsub closed/#"),
        order: vec![
            RuleSource::AllClients,
            RuleSource::Gatekeeper,
            RuleSource::Client,
        ],
        allows_by_default: true,
        ..Policy::default()
    }
}

#[test]
fn a_node_without_rules_and_gatekeeper_is_open() {
    let open = Policy::default;
    assert!(shared(open(), None).is_open());
    assert!(!shared(open(), Some(true)).is_open());
    assert!(!shared(policy(), None).is_open());
    let denies = Policy {
        allows_by_default: false,
        ..open()
    };
    assert!(!shared(denies, None).is_open());
    let checks = Policy {
        checks_retained_source: true,
        ..open()
    };
    assert!(!shared(checks, None).is_open());
    assert!(shared(open(), Some(true)).asks());
    assert!(!shared(open(), Some(false)).asks() && !shared(open(), None).asks());
    let order = vec![RuleSource::AllClients];
    assert!(!shared(Policy { order, ..open() }, Some(true)).asks());
}

#[test]
fn the_gatekeeper_is_asked_if_the_rules_before_it_do_not_decide() {
    let shared = shared(policy(), Some(true));
    let mut access = ClientAccess::new(admission(Some("user")), &shared);
    assert!(!access.is_everything() && access.is_current(&shared));
    let publish = |access: &ClientAccess, topic| access.look_up(wanted(topic), NOW);
    assert_eq!(publish(&access, "open/1"), (Verdict::Allowed, false));
    assert_eq!(publish(&access, "closed/1"), (Verdict::Denied, false));
    assert_eq!(publish(&access, "other"), (Verdict::Ask, false));
    assert!(access.may_ask() && !access.has_waited());
    let policy = &shared.access.policy;
    for (topic, answer) in [
        ("other", Some(true)),
        ("never", Some(false)),
        ("own", None),
        ("free", None),
    ] {
        let asked = TopicQuestion::publish(topic, Q1, false);
        access.remember(asked, answer, policy, NOW);
    }
    assert!(access.has_waited());
    access.end_packet(policy.decisions_max);
    assert!(!access.has_waited());
    assert_eq!(publish(&access, "other"), (Verdict::Allowed, true));
    assert_eq!(publish(&access, "never"), (Verdict::Denied, true));
    assert_eq!(publish(&access, "own"), (Verdict::Denied, true));
    assert_eq!(publish(&access, "free"), (Verdict::Allowed, true));
    let retained = Wanted {
        retain: true,
        ..wanted("other")
    };
    assert_eq!(access.publish(retained, NOW), Verdict::Ask);
    let later = NOW.plus(Duration::from_mins(1));
    assert_eq!(access.publish(wanted("other"), later), Verdict::Ask);
    for number in 0..256 {
        assert!(access.may_ask(), "{number}");
        let topic = number.to_string();
        access.remember(TopicQuestion::publish(&topic, Q1, false), None, policy, NOW);
    }
    assert!(!access.may_ask());
    access.resolve(&shared);
    assert_eq!(
        access.publish(wanted("other"), NOW),
        Verdict::Ask,
        "it has forgotten"
    );
}

#[test]
fn filters_are_granted_by_rules_and_by_the_gatekeeper() {
    let shared = shared(policy(), Some(true));
    let mut access = ClientAccess::new(admission(None), &shared);
    assert_eq!(access.subscribe("open/#", Q1, NOW), Grant::Whole);
    assert_eq!(access.subscribe("closed/1", Q1, NOW), Grant::Refused);
    assert_eq!(access.subscribe("other", Q1, NOW), Grant::Ask);
    let policy = &shared.access.policy;
    for (filter, answer, expected) in [
        ("yes", Some(true), Grant::Whole),
        ("no", Some(false), Grant::Refused),
        ("own", None, Grant::Whole),
        ("#", Some(true), Grant::Checked { or_allowed: true }),
        ("+/x", Some(false), Grant::Checked { or_allowed: false }),
    ] {
        let before = access.subscribe(filter, Q1, NOW);
        access.remember(TopicQuestion::subscribe(filter, Q1), answer, policy, NOW);
        let granted = access.subscribe(filter, Q1, NOW);
        assert_eq!(granted, expected, "{filter}, before {before:?}");
    }
    assert!(access.receive("open/1", Q1, false) && !access.receive("closed/1", Q1, true));
    assert!(access.receive("x", Q1, true) && !access.receive("x", Q1, false));
    assert_eq!(access.filter_units(), 1);
}

#[test]
fn a_denial_names_its_rule() {
    let shared = shared(policy(), Some(true));
    let policy = &shared.access.policy;
    let access = ClientAccess::new(admission(None), &shared);
    let denial = |topic| access.denial(wanted(topic), policy);
    assert!(
        denial("closed/1").contains("closed/#"),
        "{}",
        denial("closed/1")
    );
    assert!(denial("own").contains("own"), "{}", denial("own"));
    assert_eq!(denial("free"), "a backend denies it");
    assert!(access.forbids(wanted("closed/1")) && !access.forbids(wanted("free")));
    let strict = Policy {
        allows_by_default: false,
        ..policy.clone()
    };
    let strict = self::shared(strict, None);
    let access = ClientAccess::new(admission(None), &strict);
    let denial = access.denial(wanted("free"), &strict.access.policy);
    assert_eq!(denial, "no rule allows it, and acl.default does not");
    assert!(!access.forbids(wanted("free")), "no rule does");
    let own = access.denial(wanted("own"), &strict.access.policy);
    assert!(own.contains("own"), "{own}");
}

#[test]
fn a_will_is_accepted_and_published_by_the_decision_at_its_connect() {
    let shared = shared(policy(), Some(true));
    let access = ClientAccess::new(admission(None), &shared);
    assert!(access.may_leave_will(wanted("open/1"), Some(false)));
    assert!(!access.may_leave_will(wanted("closed/1"), Some(true)));
    assert!(access.may_leave_will(wanted("own"), Some(true)));
    assert!(!access.may_leave_will(wanted("free"), Some(false)));
    assert!(access.may_leave_will(wanted("free"), None));
    assert!(!access.may_leave_will(wanted("own"), None));
    assert!(!access.may_publish_will(wanted("own")));
    let allowed = access.with_current_rules(&shared).with_mount(None, true);
    assert!(allowed.may_publish_will(wanted("own")));
    let mut waiting = ClientAccess::new(admission(None), &shared);
    waiting.inherit_until_admitted(&allowed);
    assert!(waiting.may_publish_will(wanted("own")));
}

#[test]
fn a_client_keeps_its_mount_point_and_changed_rights_are_reported() {
    let shared = shared(policy(), None);
    let mount = MountPoint::parse("house/").unwrap();
    let mut access =
        ClientAccess::new(admission(Some("user")), &shared).with_mount(Some(mount), false);
    assert_eq!(access.seen("house/t"), Some("t"));
    assert_eq!(access.seen("other/t"), None);
    assert_eq!(access.owner(), Owner::User("user"));
    let again = access.with_current_rules(&shared);
    assert_eq!(again.seen("house/t"), Some("t"));
    assert!(access.allows_the_same(&again));
    assert!(!access.allows_the_same(&ClientAccess::new(admission(Some("user")), &shared)));
    assert!(!access.renew(admission(Some("user")), &shared));
    let source = access.source().unwrap();
    assert!(!access.renew(admission(Some("other")), &shared));
    assert!(!Arc::ptr_eq(&source, &access.source().unwrap()));
    let mut without = admission(Some("other"));
    without.rules = None;
    assert!(access.renew(without, &shared), "its own rules are gone");
    assert!(access.admission().rules.is_none());
    assert_eq!(access.admission().identity, *access.identity);
    assert_eq!(&*access.identity.client_id, "client");
    let mut superuser = admission(None);
    superuser.identity.is_superuser = true;
    assert!(ClientAccess::new(superuser, &shared).is_everything());
    assert_eq!(
        ClientAccess::new(admission(None), &shared).owner(),
        Owner::Anonymous
    );
    let newer = Shared {
        generation: 5,
        ..shared.clone()
    };
    assert!(!access.is_current(&newer));
    assert!(!access.resolve_current(&newer) && access.is_current(&newer));
}

/// A node with a retained message of each of two users, and the result of a review of them.
fn reviewed(answer: impl Fn(&Identity) -> Option<Answer>) -> (Node, SourceReview, Vec<String>) {
    let checks = Policy {
        checks_retained_source: true,
        ..Policy::default()
    };
    let shared = Arc::new(shared(checks, Some(false)));
    let mut node = Node::planned(1, |plan| plan.settings.access = Arc::clone(&shared));
    for user in ["one", "two"] {
        let mut connect = connect(user);
        connect.username = Some(user);
        let peer = node.join_as(0, &connect);
        node.retain(peer, user, user);
        node.retain(peer, &format!("{user}/more"), user);
    }
    let mut review = SourceReview::new();
    let mut asked = Vec::new();
    for _ in 0..100 {
        let store = &node.shell.node.retained;
        let step = review.step(store, &shared, |number, identity| {
            asked.push((number, identity));
        });
        match step {
            ReviewStep::Worked(units) => assert!(units > 0),
            ReviewStep::Done => break,
            ReviewStep::Waits => assert_eq!(asked.len(), 2, "each client is asked about once"),
        }
        if step != ReviewStep::Waits {
            continue;
        }
        for (number, identity) in std::mem::take(&mut asked) {
            match answer(&identity) {
                Some(answer) => review.answered(number, answer, &shared),
                None => review.stop_waiting(),
            }
        }
    }
    let late = node.join(0, "late");
    node.subscribe(late, "#", Q1);
    let mut shown = node.payloads(late);
    shown.sort_unstable();
    (node, review, shown)
}

fn denial(reason: ReasonCode) -> Answer {
    Answer::Deny(Denial {
        reason,
        what: "denied",
        detail: "denied".into(),
    })
}

#[test]
fn retained_messages_of_a_client_that_is_no_longer_admitted_are_withheld() {
    let (node, review, shown) = reviewed(|identity| {
        let is_gone = &*identity.client_id == "one";
        Some(if is_gone {
            denial(ReasonCode::NotAuthorized)
        } else {
            Answer::Unchanged
        })
    });
    assert_eq!(shown, ["two", "two"]);
    assert_eq!(node.shell.node.retained.withheld(), 2);
    assert!(!review.are_some_unanswered());
    assert_eq!(node.count(Counter::RetainedRefused), 0);
}

#[test]
fn retained_messages_of_a_client_that_may_not_publish_them_are_withheld() {
    let (node, _, shown) = reviewed(|identity| {
        Some(Answer::Admit(Box::new(Admission {
            identity: identity.clone(),
            rules: Some(rules("deny all pub +/more")),
            ..Admission::default()
        })))
    });
    assert_eq!(shown, ["one", "two"]);
    assert_eq!(node.shell.node.retained.withheld(), 2);
}

#[test]
fn retained_messages_without_a_decision_stay_as_they_are() {
    let (_, review, shown) = reviewed(|_| Some(denial(ReasonCode::ServerUnavailable)));
    assert_eq!(shown.len(), 4);
    assert!(review.are_some_unanswered());
    let (_, review, shown) = reviewed(|_| None);
    assert_eq!(shown.len(), 4);
    assert!(review.are_some_unanswered());
}

#[test]
fn the_last_answer_to_a_question_holds_and_others_stay() {
    let shared = shared(policy(), Some(true));
    let mut access = ClientAccess::new(admission(None), &shared);
    let kept = Wanted {
        retain: true,
        ..wanted("t")
    };
    let mut decide = |retain: bool, answer: bool| {
        let asked = TopicQuestion::publish("t", Q1, retain);
        access.remember(asked, Some(answer), &shared.access.policy, NOW);
        let publish = |wanted| access.publish(wanted, NOW) == Verdict::Allowed;
        (publish(wanted("t")), publish(kept))
    };
    assert_eq!(decide(false, true), (true, false));
    assert_eq!(decide(true, true), (true, true));
    assert_eq!(decide(false, false), (false, true));
    assert_eq!(decide(true, false), (false, false));
    assert_eq!(decide(false, true), (true, false));
}
