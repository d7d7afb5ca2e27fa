//! Many filters and many rules: what is looked up takes several turns, in which others are served.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use thrum_access::Rules;
use thrum_codec::packet::{
    Connect, Packet, Subscribe, SubscriptionOptions, SubscriptionRequest, SubscriptionRequests,
};
use thrum_codec::properties::{ConnectProperties, SubscribeProperties};
use thrum_codec::{PacketId, QoS, TopicFilter};

use super::{VERSION, Worker, bytes, connect, messages, publish, settle, two_workers_with};
use crate::access::Shared;
use crate::config::Config;
use crate::extension::{Access, Policy};
use crate::metrics::Counter;
use crate::settings::Settings;

/// Filters of one client.
const FILTERS: usize = 40;

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
        generation: worker.local.settings.access.generation + 1,
    };
    let settings = Settings::new(&Config::default(), &Arc::new(shared));
    worker.reload(&settings);
}

fn resume(worker: &mut Worker) -> UnixStream {
    let mut client = worker.accepted();
    let connect = Packet::Connect(Connect {
        version: VERSION,
        is_bridge: false,
        clean_start: false,
        keep_alive: 0,
        client_id: "many",
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
    worker.node.metrics.total(Counter::Subscriptions)
}

#[test]
fn filters_of_a_subscribe_are_looked_up_in_portions_and_granted_together() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    let mut other = workers[0].accepted();
    other.write_all(&connect("other", None)).unwrap();
    settle(&mut workers);
    workers[0].budget.limits.portion_units = 50;
    client
        .write_all(&[subscribe_to_many(), publish(b"behind")].concat())
        .unwrap();
    let mut turns = 0;
    while subscriptions(&workers[0]) == 0 {
        other.write_all(&bytes(&Packet::PingReq)).unwrap();
        let answers = workers[0].node.metrics.total(Counter::AnswersSent);
        workers[0].takes_a_turn();
        let answered = workers[0].node.metrics.total(Counter::AnswersSent) - answers;
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
        "what came behind it was handled behind it"
    );
}

#[test]
fn rules_that_change_while_filters_are_looked_up_hold_for_all_of_them() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    settle(&mut workers);
    workers[0].budget.limits.portion_units = 50;
    client.write_all(&subscribe_to_many()).unwrap();
    workers[0].takes_a_turn();
    reload(&mut workers[0], "deny all pubsub own/#");
    for _ in 0..40 {
        workers[0].takes_a_turn();
    }
    assert_eq!(
        subscriptions(&workers[0]),
        1,
        "of all filters only t is allowed"
    );
}

#[test]
fn a_session_with_many_filters_is_looked_at_in_portions_when_rules_change() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    workers[0].budget.limits.portion_units = 100;
    reload(
        &mut workers[0],
        "allow all pubsub own/+\ndeny all pubsub own/0",
    );
    reload(
        &mut workers[0],
        "deny all pubsub own/0\nallow all pubsub own/+",
    );
    let mut turns = 0;
    while workers[0].is_rechecking() {
        workers[0].takes_a_turn();
        turns += 1;
    }
    assert!((10..40).contains(&turns), "{turns} turns");
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    settle(&mut workers);
    let slot = workers[0].local.find("many").unwrap();
    assert_eq!(
        workers[0].local.clients[slot].connection, None,
        "it has to come back"
    );
}

#[test]
fn a_client_that_comes_back_while_its_session_is_looked_at_gets_nothing_forbidden() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    workers[0].budget.limits.portion_units = 100;
    reload(
        &mut workers[0],
        "deny all pubsub own/0\nallow all pubsub own/+",
    );
    workers[0].takes_a_turn();
    assert!(workers[0].is_rechecking());
    let _client = resume(&mut workers[0]);
    // At once, as all of it is looked at before it is let in.
    workers[0].takes_a_turn();
    assert_eq!(subscriptions(&workers[0]), FILTERS as u64 - 1);
    let slot = workers[0].local.find("many").unwrap();
    assert!(workers[0].local.clients[slot].connection.is_some());
}

#[test]
fn a_client_that_comes_back_by_the_same_rules_is_not_looked_at_again() {
    let mut workers = workers_with("allow all pubsub own/#");
    let mut client = resume(&mut workers[0]);
    client.write_all(&subscribe_to_many()).unwrap();
    settle(&mut workers);
    drop(client);
    settle(&mut workers);
    let _client = resume(&mut workers[0]);
    let before = workers[0].local.work;
    settle(&mut workers);
    let work = workers[0].local.work - before;
    assert!(work < FILTERS as u64, "{work} units");
}
