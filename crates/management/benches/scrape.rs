//! Time of a scrape of a node with 64 workers, in its parts: to read the counters, to add up the
//! stages of messages (each with every duration from a microsecond to a second), and to write each
//! format.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use thrum_broker::config::Workers;
use thrum_broker::{Access, Broker, Config};
use thrum_engine::stages::NodeStages;
use thrum_management::metrics::{Format, exposition};

const WORKERS: u16 = 64;

fn scrape(criterion: &mut Criterion) {
    let mut config = Config::default();
    config.node.workers = Workers::Count(WORKERS);
    config.listeners.clear();
    let broker = Broker::start(config, Access::default()).expect("it needs no port");
    let queries = broker.queries();
    let mut group = criterion.benchmark_group("scrape of 64 workers");
    group.bench_function("read", |bencher| {
        bencher.iter(|| black_box(queries.figures()));
    });
    let stages = NodeStages::wide(WORKERS.into());
    group.bench_function("add up the stages", |bencher| {
        bencher.iter(|| black_box(stages.merged()));
    });
    let mut figures = queries.figures();
    figures.stages = stages.merged();
    for (name, format) in [
        ("text", Format::Text),
        ("OpenMetrics", Format::OpenMetrics),
        ("protobuf", Format::Protobuf),
    ] {
        let name = format!("write {name}");
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(exposition(&figures, None, &[], format)));
        });
    }
    group.finish();
    broker.stop();
}

criterion_group!(benches, scrape);
criterion_main!(benches);
