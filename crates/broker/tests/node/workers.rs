//! A data directory that is opened with another number of workers.

use thrum_broker::Config;
use thrum_codec::QoS;

use crate::peer::{Peer, start};
use crate::rights::Folder;

/// More than one for most workers of each start.
const SESSIONS: usize = 250;

#[test]
fn sessions_and_their_messages_are_restored_with_any_number_of_workers() {
    let folder = Folder::new("workers");
    let on_disk = |config: &mut Config| config.node.data_dir.clone_from(&folder.0);
    for (run, workers) in [2, 96, 1, 5, 200, 64].into_iter().enumerate() {
        let (broker, address) = start(workers, on_disk);
        for number in 0..SESSIONS {
            let (mut peer, is_present) = Peer::resume(address, &format!("s{number}"));
            assert_eq!(is_present, run > 0, "{number} with {workers} workers");
            if run == 0 {
                peer.subscribe("all/#", QoS::AtLeastOnce);
            } else {
                let message = peer.message();
                assert_eq!(message.payload, (run - 1).to_string().as_bytes());
                peer.acknowledge(message.id);
            }
            peer.leave();
        }
        let mut publisher = Peer::connect(address, "publisher");
        publisher.publish_acknowledged("all/x", run.to_string().as_bytes());
        broker.stop();
    }
}
