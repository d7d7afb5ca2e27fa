//! The committer step by step: tickets, queue limits, notifications of the workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use thrum_codec::{PacketId, QoS};

use super::writer::{COMMIT_BYTES_MAX, SPARE_BATCHES_MAX, SPARE_BYTES_MAX};
use super::{Committer, QUEUE_BYTES_MAX, Queue, Stepper, Submitted, Submitter, Wake};
use crate::disk::sim::{Faults, SimDisk, SimStorage};
use crate::record::{Batch, Change, Message, Retained};
use crate::store::{Health, Options, Store};

const SEGMENT_BYTES: u64 = 4096;

/// A committer for two workers, without its thread.
struct Fixture {
    storage: SimStorage,
    committer: Committer,
    stepper: Stepper<SimDisk>,
    workers: Vec<Submitter>,
    /// Number of times that each worker was woken.
    wakes: Vec<Arc<AtomicU32>>,
}

impl Fixture {
    fn new(disk_bytes_max: u64, queue_bytes_max: usize) -> Self {
        let storage = SimStorage::new(1);
        let options = Options {
            segment_bytes: SEGMENT_BYTES,
            disk_bytes_max,
            ..Options::default()
        };
        let (store, ..) = Store::open(storage.open().unwrap(), options).unwrap();
        let wakes = vec![Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0))];
        let call = |wake: &Arc<AtomicU32>| {
            let wake = Arc::clone(wake);
            let wake: Wake = Box::new(move || {
                wake.fetch_add(1, Ordering::Relaxed);
            });
            wake
        };
        let calls = wakes.iter().map(call).collect();
        let (committer, stepper, workers) = Committer::stepped(store, calls, queue_bytes_max);
        Self {
            storage,
            committer,
            stepper,
            workers,
            wakes,
        }
    }

    fn roomy() -> Self {
        Self::new(64 * 1024 * 1024, QUEUE_BYTES_MAX)
    }

    fn woken(&self) -> [u32; 2] {
        [0, 1].map(|worker| self.wakes[worker].load(Ordering::Relaxed))
    }

    fn durable(&self) -> [u64; 2] {
        [0, 1].map(|worker| self.workers[worker].durable())
    }

    /// Makes every sync of a file fail, or none.
    fn set_failing(&self, is_failing: bool) {
        self.storage.set_faults(Faults {
            sync_errors: if is_failing { 1000 } else { 0 },
            ..Faults::default()
        });
    }

    fn spare(&self) -> Vec<usize> {
        let queue = self.committer.shared.queue();
        queue.spare.iter().map(Batch::capacity).collect()
    }
}

/// A batch with one small change, another one for each number.
fn small(number: u16) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::Received {
        session: 1,
        packet_id: PacketId::new(number).unwrap(),
    });
    batch
}

/// A retained message that makes a batch of so many bytes.
fn retained(number: u64, bytes_len: usize) -> Batch {
    let topic = format!("t{number:06}");
    let batch = |payload: &[u8]| {
        let mut batch = Batch::default();
        batch.push(&Change::Message(Message {
            id: number,
            publisher: 0,
            published_at: 0,
            expires_at: None,
            qos: QoS::AtLeastOnce,
            retain: true,
            topic: &topic,
            properties: &[],
            payload,
        }));
        batch.push(&Change::Retained(Retained {
            change: number,
            topic: &topic,
            message: number,
            source: None,
        }));
        batch
    };
    let payload = vec![7; bytes_len - batch(&[]).bytes_len()];
    let batch = batch(&payload);
    assert_eq!(batch.bytes_len(), bytes_len);
    batch
}

#[test]
fn each_worker_gets_its_own_tickets_and_is_woken_only_for_them() {
    let mut fixture = Fixture::roomy();
    assert_eq!(fixture.workers[0].submit(&mut small(1)), Some(1));
    assert_eq!(fixture.workers[0].submit(&mut small(2)), Some(2));
    assert_eq!(fixture.workers[1].submit(&mut small(3)), Some(1));
    assert_eq!([0, 1].map(|worker| fixture.workers[worker].last()), [2, 1]);
    assert_eq!((fixture.durable(), fixture.woken()), ([0, 0], [0, 0]));
    assert!(fixture.stepper.step().unwrap());
    assert_eq!((fixture.durable(), fixture.woken()), ([2, 1], [1, 1]));
    assert_eq!(fixture.workers[1].submit(&mut small(4)), Some(2));
    assert!(fixture.stepper.step().unwrap());
    assert_eq!((fixture.durable(), fixture.woken()), ([2, 2], [1, 2]));
    assert!(!fixture.stepper.step().unwrap());
    assert_eq!(fixture.workers[0].submit(&mut Batch::default()), Some(2));
    assert!(
        !fixture.stepper.step().unwrap(),
        "an empty batch is no work"
    );
}

#[test]
fn the_queue_takes_batches_up_to_its_limit_and_one_larger_batch_alone() {
    let len = small(1).bytes_len();
    let mut fixture = Fixture::new(64 * 1024 * 1024, 2 * len);
    assert!(fixture.workers[0].submit(&mut small(1)).is_some());
    assert!(fixture.workers[1].submit(&mut small(2)).is_some());
    assert_eq!(fixture.committer.metrics().queue_bytes, 2 * len as u64);
    let mut third = small(3);
    assert_eq!(fixture.workers[0].submit(&mut third), None);
    assert_eq!(fixture.workers[0].last(), 1);
    assert_eq!(third.bytes_len(), len, "the batch stays as it is");
    let metrics = fixture.workers[0].metrics();
    assert_eq!(
        (metrics.queue_full, metrics.queue_bytes),
        (1, 2 * len as u64)
    );
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.committer.metrics().queue_bytes, 0);
    assert_eq!(fixture.workers[0].submit(&mut retained(1, 300)), Some(2));
    assert_eq!(fixture.workers[1].submit(&mut small(4)), None);
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.durable(), [2, 1]);
    assert_eq!(fixture.committer.metrics().queue_full, 2);
}

#[test]
fn a_commit_takes_batches_until_it_has_enough_bytes() {
    let mut fixture = Fixture::roomy();
    let mut full = retained(1, COMMIT_BYTES_MAX);
    let mut next = small(1);
    let next_len = next.bytes_len() as u64;
    assert!(fixture.workers[0].submit(&mut full).is_some());
    assert!(fixture.workers[0].submit(&mut next).is_some());
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.durable()[0], 1);
    assert_eq!(fixture.committer.metrics().queue_bytes, next_len);
    let mut almost = retained(2, COMMIT_BYTES_MAX - small(1).bytes_len() - 1);
    assert!(fixture.workers[0].submit(&mut almost).is_some());
    assert!(fixture.workers[0].submit(&mut small(2)).is_some());
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.durable()[0], 4);
}

#[test]
fn a_limited_number_of_small_empty_batches_is_reused() {
    let mut fixture = Fixture::roomy();
    let mut batch = small(1);
    let capacity = batch.capacity();
    assert!(fixture.workers[0].submit(&mut batch).is_some());
    assert_eq!(batch.capacity(), 0, "there was no batch to reuse");
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.spare(), [capacity]);
    let mut batch = retained(1, SPARE_BYTES_MAX + 1);
    assert!(fixture.workers[0].submit(&mut batch).is_some());
    assert_eq!(batch.capacity(), capacity);
    assert!(batch.is_empty());
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.spare(), [0; 0], "a large one is not kept");
    for number in 0..=SPARE_BATCHES_MAX {
        let number = u16::try_from(number + 1).unwrap();
        assert!(fixture.workers[0].submit(&mut small(number)).is_some());
    }
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.spare().len(), SPARE_BATCHES_MAX);
}

#[test]
fn a_failure_wakes_all_workers_once_and_delays_later_batches() {
    let mut fixture = Fixture::roomy();
    fixture.set_failing(true);
    assert!(fixture.workers[0].submit(&mut small(1)).is_some());
    fixture.stepper.step().unwrap_err();
    assert_eq!((fixture.durable(), fixture.woken()), ([0, 0], [1, 1]));
    assert_eq!(fixture.committer.health(), Health::Failing);
    assert_eq!(fixture.workers[1].health(), Health::Failing);
    let failure = fixture.workers[1].failure().unwrap();
    assert!(failure.contains("failed"), "{failure}");
    assert!(failure.contains(": "), "the cause is named: {failure}");
    assert_eq!(fixture.committer.failure(), Some(failure));
    fixture.stepper.step().unwrap_err();
    assert_eq!(fixture.woken(), [1, 1], "the health did not change");
    assert_eq!(fixture.committer.metrics().failures, 2);

    assert!(fixture.workers[1].submit(&mut small(2)).is_some());
    fixture.set_failing(false);
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.durable(), [1, 0], "the later batch waits");
    assert_eq!(
        fixture.woken(),
        [3, 2],
        "one ticket is durable, and the health changed"
    );
    assert_eq!(fixture.committer.health(), Health::Healthy);
    assert_eq!(fixture.workers[0].failure(), None);
    assert!(fixture.stepper.step().unwrap());
    assert_eq!((fixture.durable(), fixture.woken()), ([1, 1], [3, 3]));
}

#[test]
fn a_stop_commits_all_batches_even_if_the_last_commit_failed() {
    let mut fixture = Fixture::roomy();
    fixture.set_failing(true);
    assert!(fixture.workers[0].submit(&mut small(1)).is_some());
    fixture.stepper.step().unwrap_err();
    assert!(fixture.workers[0].submit(&mut small(2)).is_some());
    fixture.set_failing(false);
    fixture.stepper.stop().unwrap();
    assert_eq!(fixture.workers[0].durable(), 2);
}

#[test]
fn a_store_near_its_limit_is_full_and_not_failing() {
    let mut fixture = Fixture::new(8 * SEGMENT_BYTES, QUEUE_BYTES_MAX);
    let mut number = 0;
    while fixture.committer.health() == Health::Healthy {
        number += 1;
        assert!(number < 100, "the store becomes full");
        assert!(
            fixture.workers[0]
                .submit(&mut retained(number, 1000))
                .is_some()
        );
        assert!(fixture.stepper.step().unwrap());
    }
    assert_eq!(fixture.committer.health(), Health::Full);
    assert_eq!(fixture.workers[1].health(), Health::Full);
    assert_eq!(fixture.workers[1].failure(), None);
    assert_eq!(fixture.woken()[1], 1);
    let metrics = fixture.committer.metrics();
    assert_eq!(metrics.usage, fixture.stepper.usage());
    assert_eq!(metrics.commits, number);
    assert_eq!(metrics.usage.messages as u64, number);
}

#[test]
fn the_directory_is_checked_only_on_request() {
    let mut fixture = Fixture::roomy();
    fixture.storage.set_moved(true);
    assert!(!fixture.stepper.step().unwrap(), "no check was requested");
    assert_eq!(fixture.committer.health(), Health::Healthy);
    fixture.workers[0].look();
    fixture.stepper.step().unwrap_err();
    assert_eq!(fixture.committer.health(), Health::Failing);
    assert_eq!(fixture.woken(), [1, 1]);
    assert_eq!(fixture.committer.metrics().failures, 1);
    let failure = fixture.committer.failure().unwrap();
    assert!(failure.contains("moved"), "{failure}");
    fixture.workers[0].look();
    assert!(
        !fixture.stepper.step().unwrap(),
        "while the store fails, the next commit checks"
    );
    fixture.storage.set_moved(false);
    assert!(fixture.workers[0].submit(&mut small(1)).is_some());
    assert!(fixture.stepper.tidy_step(), "the commit succeeds");
    assert_eq!(fixture.committer.health(), Health::Healthy);
    assert!(fixture.stepper.step().unwrap());
    assert_eq!(fixture.durable()[0], 1);
}

#[test]
fn tidying_prepares_the_spare_segment_in_steps_and_ends() {
    let mut fixture = Fixture::roomy();
    let mut steps = 0;
    while fixture.stepper.tidy_step() {
        steps += 1;
        assert!(steps < 1000, "tidying ends");
        assert!(!fixture.storage.files().contains_key("spare"));
    }
    assert!(steps > 1, "{steps}");
    assert_eq!(fixture.storage.files()["spare"].len() as u64, SEGMENT_BYTES);
    assert_eq!(fixture.committer.metrics().usage, fixture.stepper.usage());
    assert!(fixture.committer.metrics().usage.used_bytes >= SEGMENT_BYTES);
}

#[test]
fn a_failure_while_tidying_counts_as_a_failed_commit() {
    let mut fixture = Fixture::roomy();
    fixture.set_failing(true);
    assert!(fixture.workers[0].submit(&mut small(1)).is_some());
    fixture.stepper.step().unwrap_err();
    assert!(!fixture.stepper.tidy_step());
    assert_eq!(fixture.committer.metrics().failures, 2);
    fixture.set_failing(false);
    assert!(fixture.stepper.tidy_step());
    assert_eq!(fixture.committer.health(), Health::Healthy);
    assert_eq!(fixture.committer.failure(), None);
}

#[test]
fn batches_checks_and_a_stop_are_work_for_the_thread() {
    assert!(!Queue::default().has_work());
    let looks = Queue {
        looks: true,
        ..Queue::default()
    };
    let stopping = Queue {
        stopping: true,
        ..Queue::default()
    };
    let waiting = Queue {
        waiting: std::iter::once(Submitted {
            worker: 0,
            ticket: 1,
            batch: small(1),
        })
        .collect(),
        ..Queue::default()
    };
    assert!(looks.has_work() && stopping.has_work() && waiting.has_work());
}

#[test]
fn a_dropped_committer_commits_all_batches() {
    let storage = SimStorage::new(2);
    let (store, ..) = Store::open(storage.open().unwrap(), Options::default()).unwrap();
    let wake: Wake = Box::new(|| ());
    let started = Committer::start(store, vec![wake], QUEUE_BYTES_MAX).unwrap();
    let (committer, mut workers) = started;
    for number in 1..=100 {
        assert!(workers[0].submit(&mut small(number)).is_some());
    }
    drop(committer);
    assert_eq!(workers[0].durable(), 100);
}
