//! The tree of topics of a worker lives while somebody looks.

use std::io::Write as _;
use std::time::Duration;

use thrum_engine::observation::observe_topics;

use super::{connect, publish, settle, two_workers};
use crate::worker::Worker;

/// So much time passes, and the timers that are due fire.
fn pass(worker: &mut Worker, time: Duration) {
    let core = &mut worker.traffic.engine.core;
    core.turn.now = core.turn.now.plus(time);
    let mut fired = Vec::new();
    core.timers.advance(core.turn.now, &mut fired);
    for target in fired {
        worker.timer(target);
    }
}

/// Topics in the tree; none if there is no tree.
fn topics(worker: &Worker) -> Option<usize> {
    let tree = worker.traffic.engine.core.observation.tree();
    tree.map(thrum_engine::observation::TopicTree::node_count)
}

#[test]
fn the_tree_of_topics_ends_a_minute_after_the_last_look() {
    let mut workers = two_workers();
    let mut client = workers[0].accepted();
    client.write_all(&connect("client", None)).unwrap();
    client.write_all(&publish(b"unseen")).unwrap();
    settle(&mut workers);
    assert_eq!(topics(&workers[0]), None);
    observe_topics(&mut workers[0].traffic.engine.core);
    client.write_all(&publish(b"seen")).unwrap();
    settle(&mut workers);
    assert_eq!(topics(&workers[0]), Some(1));
    let worker = &mut workers[0];
    pass(worker, Duration::from_secs(50));
    observe_topics(&mut worker.traffic.engine.core);
    pass(worker, Duration::from_secs(50));
    assert_eq!(topics(worker), Some(1), "somebody looked 50 s ago");
    pass(worker, Duration::from_secs(15));
    assert_eq!(topics(worker), None);
    // What is left of it is freed.
    pass(worker, Duration::from_secs(1));
    observe_topics(&mut worker.traffic.engine.core);
    assert_eq!(topics(worker), Some(0), "a new one begins empty");
}
