//! Directories that are refused: one in use, and one of a later format.

use std::path::PathBuf;

use thrum_storage::disk::sim::SimStorage;
use thrum_storage::disk::{OpenDirError, RealDisk};
use thrum_storage::{Batch, Change, OpenError, Options, Owner, Session, Store};

use crate::model::Model;
use crate::script::Script;
use crate::{open, options, segments};

/// A separate directory for one test.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("thrum-storage-{name}-{}", std::process::id()));
    if folder.exists() {
        std::fs::remove_dir_all(&folder).unwrap();
    }
    folder
}

#[test]
fn a_second_process_is_refused() {
    let folder = folder("lock");
    let first = RealDisk::open(&folder).unwrap();
    let second = RealDisk::open(&folder);
    assert!(matches!(second, Err(OpenDirError::InUse(_))), "{second:?}");
    drop(first);
    drop(RealDisk::open(&folder).unwrap());
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_directory_that_cannot_be_created_is_an_error() {
    let error = RealDisk::open(std::path::Path::new("/proc/none/such")).unwrap_err();
    assert!(error.to_string().contains("/proc/none/such"), "{error}");
}

#[test]
fn a_real_directory_keeps_committed_changes() {
    let folder = folder("real");
    let options = Options {
        segment_bytes: 64 * 1024,
        ..Options::default()
    };
    let storage = SimStorage::new(5);
    let mut script = Script::new(&storage);
    for _ in 0..3 {
        let disk = RealDisk::open(&folder).unwrap();
        let (mut store, recovered, report) = Store::open(disk, options).unwrap();
        assert_eq!(Model::from(&recovered), script.model.settled());
        assert_eq!(report.damaged_count, 0);
        for _ in 0..40 {
            for _ in 0..20 {
                store.apply(&script.unit()).unwrap();
            }
            store.commit().unwrap();
            store.tidy().unwrap();
        }
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_later_format_is_refused_and_not_changed() {
    let storage = SimStorage::new(1);
    let (mut store, ..) = open(&storage);
    let mut batch = Batch::default();
    batch.push(&Change::Session(Session {
        id: 1,
        client_id: "c",
        version: thrum_codec::Version::V5,
        expiry_secs: 1,
        away_since: None,
        packet_id_hint: 0,
        owner: Owner::Unknown,
    }));
    store.apply(&batch).unwrap();
    store.close().unwrap();
    let (name, mut bytes) = segments(&storage).remove(0);
    bytes[8] = 2;
    bytes[12..16].fill(0);
    let check = crc32c::crc32c(&bytes[..40]);
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
    storage.put(&name, &bytes);
    let before = storage.files();
    let error = Store::open(storage.open().unwrap(), options()).unwrap_err();
    assert!(matches!(error, OpenError::Newer { found: 2 }), "{error}");
    assert!(error.to_string().contains("format 2"), "{error}");
    assert_eq!(storage.files(), before);
}
