//! Many filters and many rules: what is looked up takes several turns, in which others are served.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use thrum_access::{Admission, Answer, Gatekeeper, Identity, Login, Reply, Rules};
use thrum_codec::packet::{
    Connect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{ConnectProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, TopicFilter};
use thrum_engine::access::{Access, Policy, Shared};
use thrum_engine::ids::Slot;
use thrum_engine::node::metrics::Counter;

use super::{
    VERSION, Worker, bytes, connect, connect_v5, late_answers, messages, publish, settle,
    two_workers_with,
};
use crate::config::Config;
use crate::settings::Settings;

/// Filters of one client.
const FILTERS: usize = 40;
/// Rules that deny one of them.
const DENIED_ONE: &str = "deny all pubsub own/0\nallow all pubsub own/+";

fn access(rules: &str) -> Access {
    Access {
        policy: Policy {
            rules: Arc::new(Rules::parse(rules, "test").unwrap()),
            allows_by_default: false,
            ..Policy::default()
        },
        ..Access::default()
    }
}

/// Many rules about others, and these.
fn rules(own: &str) -> String {
    let others = (0..64).map(|number| format!("allow all pubsub fleet/{number}"));
    let others = others.collect::<Vec<_>>().join("\n");
    format!("{others}\n{own}\nallow all pubsub t\n")
}

fn workers_with(own: &str) -> [Worker; 2] {
    two_workers_with(|parts| parts.access = access(&rules(own)))
}

/// Other rules from now on.
fn reload(worker: &mut Worker, own: &str) {
    let shared = Shared {
        access: access(&rules(own)),
        generation: worker.traffic.engine.core.settings.access.generation + 1,
    };
    let settings = Settings::new(&Config::default(), &Arc::new(shared));
    worker.reload(&settings);
}

fn resume(worker: &mut Worker) -> UnixStream {
    resume_as(worker, "many")
}

fn resume_as(worker: &mut Worker, client_id: &str) -> UnixStream {
    let mut client = worker.accepted();
    let connect = Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: false,
        keep_alive: 0,
        client_id,
        will: None,
        username: None,
        password: None,
        properties: ConnectProperties::default(),
    });
    client.write_all(&bytes(&connect)).unwrap();
    client
}

/// Subscribes to `own/0` and so on, and last to `t`.
fn subscribe_to_many() -> Vec<u8> {
    let filters: Vec<String> = (0..FILTERS - 1)
        .map(|number| format!("own/{number}"))
        .collect();
    let filters = filters.iter().map(String::as_str).chain(["t"]);
    let requests: Vec<_> = filters
        .map(|filter| SubscriptionRequest {
            filter: TopicFilter::parse(filter).unwrap(),
            options: SubscriptionOptions {
                qos: QoS::AtMostOnce,
                ..SubscriptionOptions::default()
            },
        })
        .collect();
    bytes(&Packet::Subscribe(Subscribe {
        packet_id: PacketId::new(1).unwrap(),
        properties: SubscribeProperties::default(),
        requests: SubscriptionRequests::Listed(&requests),
    }))
}

fn subscriptions(worker: &Worker) -> u64 {
    worker.node.state.metrics.total(Counter::Subscriptions)
}

#[test]
fn filters_of_a_subscribe_are_looked_up_in_portions_and_granted_together() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    let mut other = workers[0].accepted();
    other.write_all(&connect("other", None)).unwrap();
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 50;
    client
        .write_all(&[subscribe_to_many(), publish(b"behind")].concat())
        .unwrap();
    let mut turns = 0;
    while subscriptions(&workers[0]) == 0 {
        other.write_all(&bytes(&Packet::PingReq)).unwrap();
        let answers = workers[0].node.state.metrics.total(Counter::AnswersSent);
        workers[0].run_turn();
        let answered = workers[0].node.state.metrics.total(Counter::AnswersSent) - answers;
        assert!(answered >= 1, "the other one is answered in each turn");
        turns += 1;
    }
    // Nine units for each.
    assert!((5..20).contains(&turns), "{turns} turns");
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64);
    settle(&mut workers);
    assert_eq!(
        messages(&mut client),
        [b"behind"],
        "what received behind it was handled behind it"
    );
}

#[test]
fn rules_that_change_while_filters_are_looked_up_hold_for_all_of_them() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 50;
    client.write_all(&subscribe_to_many()).unwrap();
    workers[0].run_turn();
    reload(&mut workers[0], "deny all pubsub own/#");
    for _ in 0..40 {
        workers[0].run_turn();
    }
    assert_eq!(
        subscriptions(&workers[0]),
        1,
        "of all filters only t is allowed"
    );
}

#[test]
fn a_session_with_many_filters_is_reviewed_in_portions_when_rules_change() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 100;
    reload(
        &mut workers[0],
        "allow all pubsub own/+\ndeny all pubsub own/0",
    );
    reload(&mut workers[0], DENIED_ONE);
    let mut turns = 0;
    while workers[0].traffic.recheck.is_under_way() {
        workers[0].run_turn();
        turns += 1;
    }
    assert!((10..40).contains(&turns), "{turns} turns");
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    settle(&mut workers);
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("many")
        .unwrap();
    assert_eq!(
        workers[0].traffic.engine.core.sessions[slot].connection, None,
        "it has to come back"
    );
}

/// A session with many filters and a message for `t`, whose client is away.
fn leave_with_many() -> [Worker; 2] {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 100;
    workers
}

/// The same, and rules that deny one of its filters: its client is back, and waits for the review.
fn wait_for_the_review() -> ([Worker; 2], UnixStream, Slot) {
    let mut workers = leave_with_many();
    reload(&mut workers[0], DENIED_ONE);
    let client = resume(&mut workers[0]);
    workers[0].run_turn();
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("many")
        .unwrap();
    assert!(
        workers[0].traffic.rechecking().returning_to(slot).is_some(),
        "it waits"
    );
    (workers, client, slot)
}

/// Counts the turns until the client of the session is admitted again; each turn answers another
/// client.
fn turns_until_admitted(workers: &mut [Worker; 2]) -> usize {
    let mut other = workers[0].accepted();
    other.write_all(&connect("other", None)).unwrap();
    workers[0].run_turn();
    for turn in 1..100 {
        let slot = workers[0]
            .traffic
            .engine
            .core
            .sessions
            .find("many")
            .unwrap();
        if workers[0].traffic.engine.core.sessions[slot]
            .connection
            .is_some()
        {
            return turn;
        }
        other.write_all(&bytes(&Packet::PingReq)).unwrap();
        let answers = workers[0].node.state.metrics.total(Counter::AnswersSent);
        workers[0].run_turn();
        let answered = workers[0].node.state.metrics.total(Counter::AnswersSent) - answers;
        assert!(answered >= 1, "the other one is answered in each turn");
    }
    panic!("the client is not admitted");
}

#[test]
fn a_client_that_reconnects_during_its_review_receives_no_forbidden_messages() {
    let mut workers = leave_with_many();
    reload(&mut workers[0], DENIED_ONE);
    workers[0].run_turn();
    assert!(workers[0].traffic.recheck.is_under_way());
    let mut client = resume(&mut workers[0]);
    client.write_all(&publish(b"behind")).unwrap();
    let turns = turns_until_admitted(&mut workers);
    assert!((5..40).contains(&turns), "{turns} turns");
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    settle(&mut workers);
    assert_eq!(messages(&mut client), [b"behind"], "after CONNACK");
}

#[test]
fn a_client_that_reconnects_before_its_review_waits_for_it() {
    let mut workers = leave_with_many();
    // Here the round has not begun with it, as there was no turn.
    reload(&mut workers[0], DENIED_ONE);
    let mut client = resume(&mut workers[0]);
    client.write_all(&publish(b"behind")).unwrap();
    let turns = turns_until_admitted(&mut workers);
    assert!((5..40).contains(&turns), "{turns} turns");
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    settle(&mut workers);
    assert_eq!(messages(&mut client), [b"behind"]);
}

#[test]
fn a_session_whose_client_disconnects_again_is_reviewed_to_the_end() {
    let mut workers = leave_with_many();
    reload(
        &mut workers[0],
        "deny all pubsub own/3?\ndeny all pubsub own/0\nallow all pubsub own/+",
    );
    let client = resume(&mut workers[0]);
    workers[0].run_turn();
    drop(client);
    for _ in 0..60 {
        workers[0].run_turn();
    }
    assert!(!workers[0].traffic.recheck.is_under_way());
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    let _client = resume(&mut workers[0]);
    workers[0].run_turn();
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("many")
        .unwrap();
    assert!(
        workers[0].traffic.engine.core.sessions[slot]
            .connection
            .is_some()
    );
}

#[test]
fn the_last_of_several_returning_connections_gets_the_session() {
    let (mut workers, mut first, _) = wait_for_the_review();
    let mut last = resume(&mut workers[0]);
    turns_until_admitted(&mut workers);
    settle(&mut workers);
    // 3.1.1 has no word for it.
    assert_eq!(
        first.read(&mut [0; 1]).unwrap(),
        0,
        "closed without CONNACK"
    );
    last.write_all(&publish(b"t")).unwrap();
    settle(&mut workers);
    assert_eq!(messages(&mut last), [b"t"]);
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
}

#[test]
fn rules_that_change_while_a_client_waits_for_the_review_hold_for_it() {
    let (mut workers, _client, _) = wait_for_the_review();
    workers[0].run_turn();
    reload(&mut workers[0], "deny all pubsub own/#");
    turns_until_admitted(&mut workers);
    assert_eq!(subscriptions(&workers[0]), 1, "of all filters only t");
}

#[test]
fn a_session_does_not_end_while_its_client_waits_for_the_review() {
    let (mut workers, _client, slot) = wait_for_the_review();
    let id = workers[0].traffic.engine.core.sessions[slot].session.id();
    workers[0].traffic.engine.core.turn.now = workers[0]
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_hours(200));
    workers[0].traffic.engine.core.sessions[slot].armed = workers[0].traffic.engine.core.turn.now;
    // Sessions of 3.1.1 end after 168 hours.
    workers[0].traffic.session_due(slot);
    assert!(workers[0].traffic.engine.core.sessions.is(slot, id));
    turns_until_admitted(&mut workers);
    assert!(workers[0].traffic.engine.core.sessions.is(slot, id));
}

#[test]
fn the_rest_of_a_review_does_not_affect_the_next_session_in_its_slot() {
    for extra in 0..3 {
        let mut workers = leave_with_many();
        let worker = &mut workers[0];
        reload(worker, DENIED_ONE);
        for _ in 0..2 + extra {
            worker.run_turn();
        }
        assert!(worker.traffic.recheck.is_under_way());
        let slot = worker.traffic.engine.core.sessions.find("many").unwrap();
        let mut client = worker.accepted();
        let clean = [connect("many", None), subscribe_to_many()].concat();
        client.write_all(&clean).unwrap();
        // Only the reading part of a turn.
        let events = worker.ready_sockets();
        worker.traffic.engine.core.turn.limits_mut().portion_units = 32_768;
        let now = worker.traffic.engine.core.turn.now;
        worker.traffic.engine.core.turn.begin(now);
        for event in &events {
            worker.traffic.socket_ready(event);
        }
        assert_eq!(worker.traffic.engine.core.sessions.find("many"), Some(slot));
        worker.traffic.engine.core.turn.limits_mut().portion_units = 100;
        reload(worker, "deny all pubsub own/#");
        for _ in 0..60 {
            worker.run_turn();
        }
        assert_eq!(
            worker.traffic.engine.core.sessions.find("many"),
            None,
            "it was turned away"
        );
    }
}

#[test]
fn a_review_that_a_client_waits_for_precedes_the_others() {
    const OTHERS: usize = 10;
    let mut workers = workers_with("allow all pubsub own/#");
    for number in 0..OTHERS {
        let mut other = resume_as(&mut workers[0], &format!("other{number}"));
        other.write_all(&subscribe_to_many()).unwrap();
        settle(&mut workers);
    }
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 100;
    reload(&mut workers[0], DENIED_ONE);
    let _client = resume(&mut workers[0]);
    let turns = turns_until_admitted(&mut workers);
    assert!(turns < 60, "{turns} turns");
    assert!(
        workers[0].traffic.recheck.is_under_way(),
        "the others are not done yet"
    );
    let before = subscriptions(&workers[0]);
    assert!(before > (OTHERS * (FILTERS - 1)) as u64, "{before}");
    for _ in 0..400 {
        workers[0].run_turn();
    }
    let all = (OTHERS + 1) * (FILTERS - 1);
    assert_eq!(subscriptions(&workers[0]), all as u64);
}

#[test]
fn a_client_that_waits_for_a_review_keeps_its_place_among_the_connections() {
    let mut config = Config::default();
    config.limits.connections = 1;
    let mut workers = two_workers_with(|parts| {
        parts.access = access(&rules("allow all pubsub own/#"));
        parts.config = config.clone();
    });
    let mut before = resume(&mut workers[0]);
    before.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    workers[0]
        .traffic
        .engine
        .core
        .turn
        .limits_mut()
        .portion_units = 100;
    let shared = Shared {
        access: access(&rules(DENIED_ONE)),
        generation: 1,
    };
    workers[0].reload(&Settings::new(&config, &Arc::new(shared)));
    let _client = resume(&mut workers[0]);
    workers[0].run_turn();
    // Another one takes the place that the connection before has left.
    turns_until_admitted(&mut workers);
}

#[test]
fn a_client_that_waits_for_too_long_is_refused_and_the_review_continues() {
    let mut workers = leave_with_many();
    reload(&mut workers[0], DENIED_ONE);
    let mut client = workers[0].accepted();
    client.write_all(&connect_v5("many", 60)).unwrap();
    workers[0].run_turn();
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("many")
        .unwrap();
    let connection = workers[0]
        .traffic
        .rechecking()
        .returning_to(slot)
        .expect("it waits");
    workers[0].traffic.engine.core.turn.now = workers[0]
        .traffic
        .engine
        .core
        .turn
        .now
        .plus(Duration::from_secs(76));
    workers[0].traffic.connection_timer(connection);
    workers[0].send_outputs();
    let mut connack = [0; 4];
    client.read_exact(&mut connack).unwrap();
    assert_eq!((connack[0], connack[3]), (0x20, 0x89), "server busy");
    assert_eq!(
        workers[0]
            .node
            .state
            .metrics
            .total(Counter::ConnectTimeouts),
        0
    );
    for _ in 0..60 {
        workers[0].run_turn();
    }
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
}

#[test]
fn rules_with_the_same_effect_on_a_client_need_no_review() {
    let mut workers = leave_with_many();
    reload(&mut workers[0], "allow all pubsub own/#");
    let work = workers[0].traffic.engine.core.turn.work;
    while workers[0].traffic.recheck.is_under_way() {
        workers[0].run_turn();
    }
    let work = workers[0].traffic.engine.core.turn.work - work;
    assert!(work < FILTERS as u64, "{work} units");
}

#[test]
fn equal_rules_are_applied_again_where_filters_are_granted_otherwise() {
    let mut workers = leave_with_many();
    let mut access = access(&rules("allow all pubsub own/#"));
    access.policy.filters_partial = !access.policy.filters_partial;
    let generation = 1;
    let shared = Arc::new(Shared { access, generation });
    let work = workers[0].traffic.engine.core.turn.work;
    workers[0].reload(&Settings::new(&Config::default(), &shared));
    while workers[0].traffic.recheck.is_under_way() {
        workers[0].run_turn();
    }
    let work = workers[0].traffic.engine.core.turn.work - work;
    assert!(work > FILTERS as u64, "{work} units");
}

#[test]
fn an_answer_about_an_earlier_connection_does_not_affect_a_waiting_client() {
    let (mut workers, _client, slot) = wait_for_the_review();
    let worker = &mut workers[0];
    let id = worker.traffic.engine.core.sessions[slot].session.id();
    let identity = (*worker.traffic.engine.core.sessions[slot]
        .access
        .as_ref()
        .unwrap()
        .identity)
        .clone();
    let narrower = Rules::parse("deny all pubsub #", "test").unwrap();
    let answer = Answer::Admit(Box::new(Admission {
        identity,
        rules: Some(Arc::new(narrower)),
        ..Admission::default()
    }));
    worker
        .traffic
        .reauthentication()
        .refreshed(slot, id, None, answer);
    let access = worker.traffic.engine.core.sessions[slot]
        .access
        .as_ref()
        .unwrap();
    assert!(
        access.admission().rules.is_none(),
        "it is judged by its CONNECT"
    );
    turns_until_admitted(&mut workers);
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
}

#[test]
fn an_answer_about_a_login_does_not_affect_a_client_that_waits_for_a_review() {
    let (mut workers, mut client, slot) = wait_for_the_review();
    let id = workers[0].traffic.rechecking().returning_to(slot).unwrap();
    workers[0].traffic.answered(id, Answer::Unchanged);
    turns_until_admitted(&mut workers);
    client.write_all(&publish(b"t")).unwrap();
    settle(&mut workers);
    assert_eq!(messages(&mut client), [b"t"]);
}

#[test]
fn the_decision_about_a_will_holds_while_another_connection_waits() {
    let mut workers = leave_with_many();
    let slot = workers[0]
        .traffic
        .engine
        .core
        .sessions
        .find("many")
        .unwrap();
    let access = workers[0].traffic.engine.core.sessions[slot]
        .access
        .as_mut()
        .unwrap();
    access.is_will_allowed = true;
    access.refresh_secs = Some(7);
    let will_of = |workers: &[Worker; 2]| {
        let access = workers[0].traffic.engine.core.sessions[slot]
            .access
            .as_ref()
            .unwrap();
        (access.is_will_allowed, access.refresh_secs)
    };
    reload(&mut workers[0], DENIED_ONE);
    let _client = resume(&mut workers[0]);
    workers[0].run_turn();
    assert!(
        workers[0].traffic.rechecking().returning_to(slot).is_some(),
        "it waits"
    );
    assert_eq!(will_of(&workers), (true, Some(7)));
    turns_until_admitted(&mut workers);
    assert_eq!(will_of(&workers), (false, None), "its own");
}

/// Counts the refreshes that it receives.
#[derive(Debug, Default)]
struct Asked(AtomicUsize);

impl Gatekeeper for Asked {
    fn login(&self, login: Login, reply: Reply<Answer>) {
        reply(Answer::Admit(Box::new(Admission {
            identity: login.identity,
            ..Admission::default()
        })));
    }

    fn refresh(&self, _: Arc<Identity>, reply: Reply<Answer>) {
        self.0.fetch_add(1, Ordering::Relaxed);
        reply(Answer::Unchanged);
    }
}

#[test]
fn the_gatekeeper_is_asked_about_a_user_before_a_long_review() {
    let asked = Arc::new(Asked::default());
    let by = |own: &str| Access {
        gatekeeper: Some(Arc::clone(&asked) as Arc<dyn Gatekeeper>),
        ..access(&rules(own))
    };
    let mut workers = two_workers_with(|parts| parts.access = by("allow all pubsub own/#"));
    let mut client = workers[0].accepted();
    client
        .write_all(&late_answers::connect("many", None))
        .unwrap();
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    let turn = &mut workers[0].traffic.engine.core.turn;
    turn.limits_mut().portion_units = 100;
    let shared = Arc::new(Shared {
        access: by("allow all pubsub own/+"),
        generation: 1,
    });
    workers[0].reload(&Settings::new(&Config::default(), &shared));
    // The round is the first part in one of three turns.
    for _ in 0..3 {
        workers[0].run_turn();
    }
    assert!(workers[0].traffic.recheck.is_under_way());
    assert_eq!(asked.0.load(Ordering::Relaxed), 1);
}

#[test]
fn a_client_that_reconnects_under_the_same_rules_needs_no_review() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    let _client = resume(&mut workers[0]);
    let before = workers[0].traffic.engine.core.turn.work;
    settle(&mut workers);
    let work = workers[0].traffic.engine.core.turn.work - before;
    assert!(work < FILTERS as u64, "{work} units");
}
