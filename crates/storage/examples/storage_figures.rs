//! Performance of the store on a disk: `cargo run --release -p thrum-storage --example
//! storage_figures -- FOLDER`.
//!
//! The directory must be on the disk in question and empty; about 1 GiB is written. Each figure is
//! printed on its own line.
#![expect(clippy::print_stdout, reason = "an example prints its results")]

use std::error::Error;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

use thrum_codec::{QoS, Version};
use thrum_storage::disk::RealDisk;
use thrum_storage::{
    Batch, Change, Committer, Durability, Identifiers, Message, Options, Owner, QUEUE_BYTES_MAX,
    Queued, Session, Store, Wake,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

const PAYLOAD: [u8; 100] = [7; 100];
const SESSIONS: u64 = 100;
const SYNCS: u64 = 2000;
const MILLION: u64 = 1_000_000;

fn main() -> Outcome<()> {
    let folder = std::env::args()
        .nth(1)
        .ok_or("name an empty directory on the disk in question")?;
    let folder = Path::new(&folder);
    bare_syncs(&folder.join("bare"))?;
    for per_commit in [1, 10, 100] {
        commits(&folder.join("commits"), per_commit)?;
    }
    for workers in [1, 4, 64] {
        tickets(&folder.join("tickets"), workers)?;
    }
    million(&folder.join("million"))
}

#[expect(clippy::disallowed_methods, reason = "the example measures time")]
fn now() -> Instant {
    Instant::now()
}

fn per_second(count: u64, since: Instant) -> String {
    #[expect(clippy::cast_precision_loss, reason = "the figure is printed")]
    let rate = count as f64 / since.elapsed().as_secs_f64();
    format!("{rate:.0}/s")
}

fn bare_syncs(path: &Path) -> Outcome<()> {
    let file = fs::File::create(path)?;
    file.write_all_at(&vec![0; 16 << 20], 0)?;
    file.sync_all()?;
    let start = now();
    for number in 0..SYNCS {
        file.write_all_at(&[1; 256], number * 256)?;
        file.sync_data()?;
    }
    println!(
        "bare fdatasync of 256 prewritten bytes: {}",
        per_second(SYNCS, start)
    );
    fs::remove_file(path)?;
    Ok(())
}

fn open(folder: &Path, durability: Durability) -> Outcome<Store<RealDisk>> {
    let options = Options {
        durability,
        ..Options::default()
    };
    let start = now();
    let (store, recovered, report) = Store::open(RealDisk::open(folder)?, options)?;
    if report.records > 0 {
        println!(
            "start with {} messages, {} records, {} MB: {:?}",
            recovered.messages.len(),
            report.records,
            report.bytes / 1_000_000,
            start.elapsed(),
        );
    }
    Ok(store)
}

fn session(id: u64) -> Change<'static> {
    Change::Session(Session {
        id,
        client_id: "client",
        version: Version::V5,
        expiry_secs: u32::MAX,
        away_since: None,
        packet_id_hint: 0,
        owner: Owner::Unknown,
    })
}

/// One PUBLISH to one session.
fn publish(number: u64, batch: &mut Batch) {
    batch.push(&Change::Message(Message {
        id: number,
        publisher: 1,
        published_at: 1,
        expires_at: None,
        qos: QoS::AtLeastOnce,
        retain: false,
        topic: "sensors/building/floor",
        properties: &[],
        payload: &PAYLOAD,
    }));
    batch.push(&Change::Queued(Queued {
        session: 1 + number % SESSIONS,
        seq: number,
        message: number,
        qos: QoS::AtLeastOnce,
        retain: false,
        identifiers: Identifiers::NONE,
        group: "",
    }));
    batch.end_unit();
}

fn commits(folder: &Path, per_commit: u64) -> Outcome<()> {
    let mut store = open(folder, Durability::Fsync)?;
    while store.tidy()? {}
    let mut batch = Batch::default();
    let mut number = 0;
    let start = now();
    for _ in 0..SYNCS {
        for _ in 0..per_commit {
            number += 1;
            publish(number, &mut batch);
        }
        store.apply(&batch)?;
        batch.clear();
        store.commit()?;
    }
    println!(
        "commits of {per_commit} messages: {}, messages {}",
        per_second(SYNCS, start),
        per_second(number, start)
    );
    drop(store);
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn tickets(folder: &Path, workers: u64) -> Outcome<()> {
    let mut store = open(folder, Durability::Fsync)?;
    while store.tidy()? {}
    let (wakes, heard): (Vec<Wake>, Vec<_>) = (0..workers)
        .map(|_| {
            let (sender, receiver) = channel();
            let wake: Wake = Box::new(move || sender.send(()).unwrap_or_default());
            (wake, receiver)
        })
        .unzip();
    let (committer, submitters) = Committer::start(store, wakes, QUEUE_BYTES_MAX)?;
    let each = SYNCS / 4;
    let start = now();
    std::thread::scope(|scope| {
        for (worker, (mut submitter, heard)) in submitters.into_iter().zip(heard).enumerate() {
            let first = (worker as u64 + 1) << 32;
            let mut batch = Batch::default();
            let mut publish_one = move |number| {
                publish(first + number, &mut batch);
                let ticket = submitter.submit(&mut batch).unwrap_or(u64::MAX);
                wait_for(&heard, || submitter.durable() >= ticket);
            };
            scope.spawn(move || (1..=each).for_each(&mut publish_one));
        }
    });
    let rate = per_second(workers * each, start);
    let metrics = committer.metrics();
    let mean = metrics.commit_micros / metrics.commits.max(1);
    println!(
        "{workers} workers with one publish in flight each: {rate}, {} commits, mean {mean} µs",
        metrics.commits
    );
    committer.stop()?;
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn wait_for(heard: &Receiver<()>, mut is_so: impl FnMut() -> bool) {
    while !is_so() && heard.recv().is_ok() {}
}

fn million(folder: &Path) -> Outcome<()> {
    let mut store = open(folder, Durability::Os)?;
    let mut batch = Batch::default();
    for id in 1..=SESSIONS {
        batch.push(&session(id));
    }
    let before = resident_bytes()?;
    let start = now();
    for number in 1..=MILLION {
        publish(number, &mut batch);
        if number % 1000 == 0 {
            store.apply(&batch)?;
            batch.clear();
            store.commit()?;
        }
    }
    println!(
        "not synced, 1000 messages a commit: {}",
        per_second(MILLION, start)
    );
    let usage = store.usage();
    println!(
        "memory of the store per queued message: {} bytes",
        (resident_bytes()? - before) / MILLION
    );
    println!(
        "disk per queued message of 100 + 22 bytes: {} bytes",
        usage.used_bytes / MILLION
    );
    store.close()?;
    for _ in 0..3 {
        drop(open(folder, Durability::Os)?);
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

fn resident_bytes() -> Outcome<u64> {
    let statm = fs::read_to_string("/proc/self/statm")?;
    let pages: u64 = statm.split(' ').nth(1).ok_or("statm")?.parse()?;
    Ok(pages * 4096)
}
