//! Time to compare a delivered message with what was published, and to write one.

use std::hint::black_box;
use std::io;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use thrum_codec::QoS;
use thrum_load::delivered::{Delivered, QosRange, Subscription, Wrong};
use thrum_load::mark::Mark;
use thrum_load::payload::Filler;
use thrum_load::plan::Plan;
use thrum_load::scenario::{PayloadSpec, find};

const MARK: Mark = Mark {
    publisher: 0,
    sequence: 7,
    sent_ns: 1_000,
    was_held_back: false,
};

fn payloads() -> Vec<(String, PayloadSpec)> {
    let sizes: [u32; 3] = [16, 1_024, 8_192];
    let binary = sizes.map(|bytes| (format!("binary {bytes} B"), PayloadSpec::Size(bytes)));
    let text = [100, 1_024, 8_192].map(|bytes| {
        let text = format!("{{seq}} {{now}} {}", ".".repeat(bytes - 73));
        (format!("text {bytes} B"), PayloadSpec::Template(text))
    });
    binary.into_iter().chain(text).collect()
}

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::from(io::ErrorKind::NotFound))
}

fn plan(payload: &PayloadSpec) -> Option<Plan> {
    let mut scenario = find("p2p-1K").ok()?;
    for publish in scenario
        .groups
        .iter_mut()
        .filter_map(|group| group.publish.as_mut())
    {
        publish.payload = payload.clone();
    }
    Plan::new(scenario, "t", &no_files).ok()
}

fn deliveries(criterion: &mut Criterion) {
    for (name, payload) in payloads() {
        let Some(plan) = plan(&payload) else { continue };
        let publisher = plan.publishers().first().map(|planned| planned.group);
        let Some(template) = publisher.and_then(|group| plan.payload(group)) else {
            continue;
        };
        let (mut filler, mut out) = (Filler::new(1), Vec::new());
        template.write(MARK, &mut filler, &mut out);
        let subscription = Subscription {
            group: 0,
            granted: QosRange::only(QoS::AtLeastOnce),
        };
        let delivered = Delivered {
            topic: "test/t/1",
            qos: QoS::AtLeastOnce,
            retain: false,
            payload: &out,
        };
        let mut wrong = Wrong::default();
        criterion.bench_function(&format!("compare/{name}"), |bencher| {
            bencher.iter(|| subscription.compare(&plan, 0, black_box(&delivered), &mut wrong));
        });
        assert_eq!(wrong, Wrong::default(), "{name}");
        let mut payload = Vec::new();
        criterion.bench_function(&format!("write/{name}"), |bencher| {
            bencher.iter(|| template.write(black_box(MARK), &mut filler, &mut payload));
        });
    }
}

criterion_group!(benches, deliveries);
criterion_main!(benches);
