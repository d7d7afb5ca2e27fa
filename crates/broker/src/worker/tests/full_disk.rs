//! Requests that are refused while the disk has no room.

use std::io::Write;

use thrum_codec::QoS;
use thrum_codec::properties::PublishProperties;
use thrum_engine::Engine;
use thrum_protocol::Publication;

use super::{connect, settle, subscribe, two_workers_with};

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
        router.topics.durable_came(core, filter, "t");
        for worker in &mut workers {
            let publication = Publication {
                topic: "t",
                payload: b"x",
                properties: PublishProperties::default(),
                qos: QoS::AtMostOnce,
                retain: false,
                expires_at: None,
                publisher: 0,
                publisher_hash: 0,
            };
            let Engine { core, router, .. } = &mut worker.traffic.engine;
            assert_eq!(router.topics.needs_disk(core, &publication), is_upgraded);
        }
    }
}
