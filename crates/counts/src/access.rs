//! Checks of one client's rules: the cost of a published message and of a subscription.

use std::hint::black_box;

use thrum_access::{Identity, Resolved, Rules};
use thrum_codec::QoS;

use crate::codec::TOPIC;
use crate::repeat;

/// Rules that apply to the client: the last one decides.
const RULES: u32 = 10;

pub(crate) fn allow_publish(times: u32) {
    let resolved = resolved();
    repeat(times, || {
        let topic = black_box(TOPIC);
        resolved.publish(topic, QoS::AtLeastOnce, false).allowed
    });
}

pub(crate) fn allow_subscribe(times: u32) {
    let resolved = resolved();
    repeat(times, || {
        resolved.subscribe(black_box("site/7/device/1234/+/set"), QoS::AtLeastOnce)
    });
}

fn resolved() -> Resolved {
    let others = (1..RULES).map(|number| format!("allow all pubsub site/+/machine-{number}/%c/#"));
    let lines: Vec<_> = others
        .chain(["allow all pubsub site/+/device/%c/#".to_owned()])
        .collect();
    let rules = Rules::parse_list(&lines, "counts").expect("valid rules");
    let identity = Identity {
        client_id: "1234".into(),
        ..Identity::default()
    };
    let mut resolved = Resolved::default();
    resolved.add_set(&rules, &identity).expect("few rules fit");
    resolved
}
