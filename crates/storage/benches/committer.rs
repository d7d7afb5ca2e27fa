//! Throughput of the storage thread for 64 workers without the cost of a disk: the log is in memory
//! (`/dev/shm`, or the temporary directory).

use std::cell::RefCell;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{
    BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main,
};
use thrum_codec::{PacketId, QoS};
use thrum_storage::disk::RealDisk;
use thrum_storage::{
    Awaiting, Batch, Change, Committer, Identifiers, Inflight, Message, Options, Queued, Stepper,
    Store, Submitter, Wake,
};

const WORKERS: u64 = 64;
/// Messages with `QoS` 1 that a worker accepts for durable sessions in a turn, with four changes
/// each.
const MESSAGES: u64 = 64;
const CHANGES: u64 = 4 * MESSAGES;
const PAYLOAD: [u8; 256] = [b'x'; 256];

/// A separate directory, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let below = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let path = below.join(format!("thrum-committer-{}", std::process::id()));
        drop(fs::remove_dir_all(&path));
        fs::create_dir_all(&path).expect("a directory in memory");
        Self(path)
    }

    fn open(&self) -> Store<RealDisk> {
        let disk = RealDisk::open(&self.0).expect("the directory is accessible");
        let options = Options {
            disk_bytes_max: 2 * 1024 * 1024 * 1024,
            ..Options::default()
        };
        Store::open(disk, options).expect("an empty log").0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The changes of one worker: messages arrive, are sent, and are acknowledged a turn later.
struct Traffic {
    worker: u64,
    sent: u64,
}

impl Traffic {
    fn all() -> Vec<Self> {
        (0..WORKERS)
            .map(|worker| Self { worker, sent: 0 })
            .collect()
    }

    /// A hundred sessions in turn.
    fn session(&self, number: u64) -> u64 {
        self.worker + WORKERS * (1 + number % 100)
    }

    fn write_turn(&mut self, batch: &mut Batch) {
        for number in self.sent..self.sent + MESSAGES {
            let (session, seq) = (self.session(number), number + 1);
            if let Some(acknowledged) = number.checked_sub(MESSAGES) {
                batch.push(&Change::DeliveryRemoved {
                    session: self.session(acknowledged),
                    seq: acknowledged + 1,
                });
                batch.end_unit();
            }
            let id = 1 + self.worker + WORKERS * number;
            batch.push(&message(id));
            batch.push(&Change::Queued(Queued {
                session,
                seq,
                message: id,
                qos: QoS::AtLeastOnce,
                retain: false,
                identifiers: Identifiers::NONE,
                group: "",
            }));
            let packet_id = u16::try_from(1 + number % 60_000).ok();
            batch.push(&Change::Inflight(Inflight {
                session,
                seq,
                packet_id: packet_id.and_then(PacketId::new).expect("not zero"),
                awaiting: Awaiting::PubAck,
            }));
            batch.end_unit();
        }
        self.sent += MESSAGES;
    }
}

fn message(id: u64) -> Change<'static> {
    Change::Message(Message {
        id,
        publisher: 7,
        published_at: 1_000,
        expires_at: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "site/5/device/77/temperature",
        properties: &[],
        payload: &PAYLOAD,
    })
}

fn stepped(folder: &Folder) -> (Committer, Stepper<RealDisk>, Vec<Submitter>) {
    let wakes = (0..WORKERS).map(|_| Box::new(|| ()) as Wake).collect();
    Committer::stepped(folder.open(), wakes, usize::MAX)
}

fn turn_of_all(traffic: &mut [Traffic]) -> Vec<Batch> {
    let batch = |one: &mut Traffic| {
        let mut batch = Batch::default();
        one.write_turn(&mut batch);
        batch
    };
    traffic.iter_mut().map(batch).collect()
}

/// The complete work of the thread, for turns of all workers.
fn bench_thread(group: &mut BenchmarkGroup<'_, WallTime>) {
    let folder = Folder::new();
    let (_committer, mut stepper, mut submitters) = stepped(&folder);
    let mut traffic = Traffic::all();
    group.throughput(Throughput::Elements(WORKERS * CHANGES));
    group.bench_function("changes of 64 workers", |bencher| {
        bencher.iter_batched(
            || turn_of_all(&mut traffic),
            |mut batches| {
                for (submitter, batch) in submitters.iter_mut().zip(&mut batches) {
                    black_box(submitter.submit(batch));
                }
                stepper.step().expect("memory does not fail")
            },
            BatchSize::PerIteration,
        );
    });
}

/// Its two parts: to look up, record and copy changes, and to frame and write them.
fn bench_parts(group: &mut BenchmarkGroup<'_, WallTime>) {
    let folder = Folder::new();
    let store = RefCell::new(folder.open());
    let mut traffic = Traffic::all();
    group.bench_function("changes of 64 workers, taken alone", |bencher| {
        bencher.iter_batched(
            || {
                store.borrow_mut().commit().expect("memory does not fail");
                turn_of_all(&mut traffic)
            },
            |batches| {
                let mut store = store.borrow_mut();
                let mut batches = batches.iter();
                batches.try_for_each(|batch| store.apply(batch))
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function(
        "changes of 64 workers, framed and written alone",
        |bencher| {
            bencher.iter_batched(
                || {
                    for batch in turn_of_all(&mut traffic) {
                        let taken = store.borrow_mut().apply(&batch);
                        taken.expect("a batch that was pushed");
                    }
                },
                |()| store.borrow_mut().commit().expect("memory does not fail"),
                BatchSize::PerIteration,
            );
        },
    );
    group.bench_function("changes of one worker, encoded by it", |bencher| {
        let mut batch = Batch::default();
        let mut traffic = Traffic { worker: 1, sent: 0 };
        bencher.iter(|| {
            batch.clear();
            for _ in 0..WORKERS {
                traffic.write_turn(&mut batch);
            }
        });
    });
}

/// The tickets of 64 workers.
fn bench_tickets(group: &mut BenchmarkGroup<'_, WallTime>) {
    let folder = Folder::new();
    let (_committer, mut stepper, mut submitters) = stepped(&folder);
    let reader = submitters.pop().expect("there are 64");
    let mut other = submitters.swap_remove(0);
    let mut number = 0_u16;
    let mut commit_one = || {
        number = number % 60_000 + 1;
        let mut batch = Batch::default();
        for change in [true, false] {
            let packet_id = PacketId::new(number).expect("not zero");
            batch.push(&if change {
                Change::Received {
                    session: 64,
                    packet_id,
                }
            } else {
                Change::ReceivedRemoved {
                    session: 64,
                    packet_id,
                }
            });
            batch.end_unit();
        }
        black_box(other.submit(&mut batch));
        stepper.step().expect("memory does not fail")
    };
    group.throughput(Throughput::Elements(1));
    group.bench_function("commit for one of 64 workers", |bencher| {
        bencher.iter(&mut commit_one);
    });
    let stops = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stops.load(Ordering::Relaxed) {
                black_box(commit_one());
            }
        });
        group.bench_function("look of another worker at its ticket", |bencher| {
            bencher.iter(|| black_box(reader.durable()));
        });
        group.bench_function("look of another worker at the health", |bencher| {
            bencher.iter(|| black_box(reader.health()));
        });
        stops.store(true, Ordering::Relaxed);
    });
}

fn committer(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("storage thread");
    bench_thread(&mut group);
    bench_parts(&mut group);
    bench_tickets(&mut group);
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = committer
}
criterion_main!(benches);
