//! The thread: tickets, wakes, a bounded queue, and temporary failures.

use std::sync::mpsc::{Receiver, channel};

use thrum_codec::Version;
use thrum_storage::disk::sim::{Faults, SimStorage};
use thrum_storage::{
    Batch, Change, Committer, Health, Owner, QUEUE_BYTES_MAX, Session, Submitter, Wake,
};

use crate::open;

fn session(id: u64, client_id: &str) -> Batch {
    let mut batch = Batch::default();
    batch.push(&Change::Session(Session {
        id,
        client_id,
        version: Version::V5,
        expiry_secs: 60,
        away_since: None,
        packet_id_hint: 0,
        owner: Owner::Unknown,
    }));
    batch
}

/// A committer for that many workers, and the channel on which each is woken.
fn start(
    storage: &SimStorage,
    workers: usize,
    queue_bytes_max: usize,
) -> (Committer, Vec<(Submitter, Receiver<()>)>) {
    let (store, ..) = open(storage);
    let (wakes, heard): (Vec<Wake>, Vec<Receiver<()>>) = (0..workers)
        .map(|_| {
            let (sender, receiver) = channel();
            let wake: Wake = Box::new(move || sender.send(()).unwrap_or_default());
            (wake, receiver)
        })
        .unzip();
    let (committer, submitters) = Committer::start(store, wakes, queue_bytes_max).unwrap();
    (committer, submitters.into_iter().zip(heard).collect())
}

fn wait_for(heard: &Receiver<()>, mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        heard.recv().unwrap();
    }
}

#[test]
fn each_worker_is_woken_for_its_own_tickets() {
    let storage = SimStorage::new(1);
    let (committer, workers) = start(&storage, 3, QUEUE_BYTES_MAX);
    std::thread::scope(|scope| {
        for (worker, (mut submitter, heard)) in workers.into_iter().enumerate() {
            let mut submit = move |number: u64| {
                let mut batch = session(1000 * worker as u64 + number, "c");
                assert_eq!(submitter.submit(&mut batch), Some(number));
                assert!(batch.is_empty());
                // The test waits for every tenth ticket.
                wait_for(&heard, || submitter.durable() >= number / 10 * 10);
            };
            scope.spawn(move || (1..=200).for_each(&mut submit));
        }
    });
    let metrics = committer.metrics();
    assert_eq!(metrics.records, 600);
    assert_eq!(metrics.commit_times.iter().sum::<u64>(), metrics.commits);
    assert_eq!(metrics.usage.sessions, 600);
    assert_eq!(metrics.queue_bytes, 0);
    storage.crash();
    drop(committer);
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.sessions.len(), 600);
}

#[test]
fn stopping_writes_the_queued_batches() {
    let storage = SimStorage::new(2);
    let (committer, mut workers) = start(&storage, 1, QUEUE_BYTES_MAX);
    for id in 1..=500 {
        assert!(workers[0].0.submit(&mut session(id, "c")).is_some());
    }
    committer.stop().unwrap();
    assert_eq!(workers[0].0.durable(), 500);
    storage.crash();
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.sessions.len(), 500);
}

#[test]
fn a_disk_that_fails_moves_no_ticket_and_fills_the_queue_until_it_works_again() {
    let storage = SimStorage::new(3);
    let (committer, mut workers) = start(&storage, 1, 10_000);
    let (submitter, heard) = &mut workers[0];
    storage.set_faults(Faults {
        write_errors: 1000,
        ..Faults::default()
    });
    assert_eq!(submitter.submit(&mut session(1, "c")), Some(1));
    wait_for(heard, || submitter.health() == Health::Failing);
    let failure = submitter.failure().unwrap();
    assert!(failure.contains("write error"), "{failure}");
    let mut id = 1;
    let mut stayed = loop {
        id += 1;
        let mut batch = session(id, &"c".repeat(1000));
        if submitter.submit(&mut batch).is_none() {
            break batch;
        }
    };
    assert!(id < 20, "the queue is bounded: {id}");
    assert_eq!(submitter.durable(), 0);
    assert!(!stayed.is_empty(), "the refused batch is unchanged");
    assert!(committer.metrics().queue_full > 0);
    storage.set_faults(Faults::default());
    wait_for(heard, || submitter.durable() == id - 1);
    wait_for(heard, || submitter.health() == Health::Healthy);
    assert_eq!(submitter.failure(), None);
    assert_eq!(submitter.submit(&mut stayed), Some(id));
    committer.stop().unwrap();
    storage.crash();
    let (_, recovered, _) = open(&storage);
    assert_eq!(recovered.sessions.len() as u64, id);
}

#[test]
fn stopping_while_the_disk_fails_returns_an_error() {
    let storage = SimStorage::new(4);
    let (committer, mut workers) = start(&storage, 1, QUEUE_BYTES_MAX);
    storage.set_faults(Faults {
        sync_errors: 1000,
        ..Faults::default()
    });
    assert!(workers[0].0.submit(&mut session(1, "c")).is_some());
    assert!(committer.stop().is_err());
    assert_eq!(workers[0].0.durable(), 0);
}

#[test]
fn single_steps_do_the_work_of_the_thread() {
    let storage = SimStorage::new(6);
    let (store, ..) = open(&storage);
    let (sender, heard) = channel();
    let wake: Wake = Box::new(move || sender.send(()).unwrap_or_default());
    let (committer, mut stepper, mut workers) = Committer::stepped(store, vec![wake], 10_000);
    let submitter = &mut workers[0];
    assert_eq!(submitter.submit(&mut session(1, "c")), Some(1));
    assert_eq!((submitter.durable(), heard.try_recv().is_ok()), (0, false));
    assert!(stepper.step().unwrap());
    assert_eq!((submitter.durable(), heard.try_recv().is_ok()), (1, true));
    assert!(!stepper.step().unwrap());
    storage.set_faults(Faults {
        sync_errors: 1000,
        ..Faults::default()
    });
    assert_eq!(submitter.submit(&mut session(2, "c")), Some(2));
    assert!(stepper.step().is_err());
    assert_eq!((submitter.durable(), heard.try_recv().is_ok()), (1, true));
    assert_eq!(committer.health(), Health::Failing);
    storage.set_faults(Faults::default());
    assert_eq!(submitter.submit(&mut session(3, "c")), Some(3));
    assert!(stepper.step().unwrap());
    assert_eq!(
        submitter.durable(),
        2,
        "batches submitted during the failure are queued"
    );
    assert_eq!(committer.health(), Health::Healthy);
    while stepper.tidy_step() {}
    stepper.stop().unwrap();
    assert_eq!(submitter.durable(), 3);
    storage.crash();
    let (_, recovered, report) = open(&storage);
    assert_eq!(recovered.sessions.len(), 3);
    assert_eq!(report.torn_bytes, 0);
}

#[test]
fn an_empty_batch_needs_no_commit() {
    let storage = SimStorage::new(5);
    let (committer, mut workers) = start(&storage, 1, QUEUE_BYTES_MAX);
    assert_eq!(workers[0].0.submit(&mut Batch::default()), Some(0));
    committer.stop().unwrap();
}
