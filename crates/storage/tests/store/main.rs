//! The store against a simulated disk: acknowledged changes are recovered, changes never applied
//! are not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod committer;
mod crash;
mod damage;
mod full;
mod gone;
mod model;
mod place;
mod refusal;
mod script;
mod snapshot;
mod space;
mod turns;

use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{LogReport, Options, Recovered, Store};

/// Small, so that there are many segments.
const SEGMENT_BYTES: u64 = 4096;

fn options() -> Options {
    Options {
        segment_bytes: SEGMENT_BYTES,
        disk_bytes_max: 256 * SEGMENT_BYTES,
        ..Options::default()
    }
}

fn open(storage: &SimStorage) -> (Store<SimDisk>, Recovered, LogReport) {
    Store::open(storage.open().unwrap(), options()).unwrap()
}

/// Names and contents of the segments, oldest first.
fn segments(storage: &SimStorage) -> Vec<(String, Vec<u8>)> {
    let files = storage.files().into_iter();
    files.filter(|(name, _)| name.contains(".log")).collect()
}
