//! Requests that are refused while the disk has no room.

use std::io::Write;

use thrum_codec::QoS;
use thrum_engine::Engine;
use thrum_engine::sinks::QueueLimits;
use thrum_protocol::Publication;

use super::{connect, settle, subscribe, two_workers_with};

fn publication(qos: QoS) -> Publication<'static> {
    Publication::new("t", b"x", qos)
}

#[test]
fn a_message_that_is_upgraded_for_a_durable_session_needs_the_disk() {
    for is_upgraded in [false, true] {
        let mut workers = two_workers_with(|parts| {
            parts.config.limits.client.upgrade_outgoing_qos = is_upgraded;
        });
        let mut client = workers[0].accepted();
        client.write_all(&connect("durable", None)).unwrap();
        client.write_all(&subscribe()).unwrap();
        settle(&mut workers);
        let Engine { core, router, .. } = &mut workers[0].traffic.engine;
        let filter = router.topics.find("t").unwrap();
        router.topics.count_durable(core, filter, "t");
        for worker in &mut workers {
            let publication = publication(QoS::AtMostOnce);
            let Engine { core, router, .. } = &mut worker.traffic.engine;
            assert_eq!(router.topics.needs_disk(core, &publication), is_upgraded);
        }
    }
}

#[test]
fn a_message_for_a_durable_sink_needs_the_disk() {
    for is_durable in [false, true] {
        let mut workers = two_workers_with(|_| ());
        let Engine { core, router, .. } = &mut workers[0].traffic.engine;
        let limits = QueueLimits {
            is_durable,
            ..QueueLimits::default()
        };
        let sink = core.node.sinks.open("all", limits).unwrap().id;
        core.node.interest.add_sink("t", sink);
        let mut needs_disk = |qos| {
            let publication = publication(qos);
            router.topics.needs_disk(core, &publication)
        };
        assert!(!needs_disk(QoS::AtMostOnce));
        assert_eq!(needs_disk(QoS::AtLeastOnce), is_durable);
    }
}
