//! The directory of the state: its lock, and its path.

use std::fs;
use std::path::PathBuf;

use thrum_storage::disk::sim::SimStorage;
use thrum_storage::disk::{Disk as _, OpenDirError, RealDisk};
use thrum_storage::{Health, WriteError};

use crate::model::Model;
use crate::open;
use crate::script::Script;

/// A separate directory that is removed with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("thrum-place-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

#[test]
fn a_used_directory_is_refused_even_if_its_lock_was_removed() {
    let folder = Folder::new("lock");
    let state = folder.0.join("state");
    let disk = RealDisk::open(&state).unwrap();
    fs::remove_file(state.join("lock")).unwrap();
    assert!(matches!(
        RealDisk::open(&state),
        Err(OpenDirError::InUse(_))
    ));
    disk.check_place().unwrap();
    drop(disk);
    RealDisk::open(&state).unwrap();
}

#[test]
fn a_moved_or_replaced_directory_is_detected() {
    let folder = Folder::new("moved");
    let (state, away) = (folder.0.join("state"), folder.0.join("away"));
    let disk = RealDisk::open(&state).unwrap();
    disk.check_place().unwrap();
    fs::rename(&state, &away).unwrap();
    assert!(disk.check_place().is_err());
    fs::create_dir(&state).unwrap();
    assert!(
        disk.check_place().is_err(),
        "another directory has its name"
    );
    fs::remove_dir(&state).unwrap();
    fs::rename(&away, &state).unwrap();
    disk.check_place().unwrap();
}

#[test]
fn nothing_is_durable_while_the_directory_is_moved() {
    let storage = SimStorage::new(1);
    let (mut store, ..) = open(&storage);
    let mut script = Script::new(&storage);
    store.apply(&script.unit()).unwrap();
    store.commit().unwrap();
    store.look().unwrap();
    storage.set_moved(true);
    assert!(matches!(store.look(), Err(WriteError::Misplaced(_))));
    assert_eq!(store.health(), Health::Failing);
    for _ in 0..20 {
        store.apply(&script.unit()).unwrap();
    }
    assert!(matches!(store.commit(), Err(WriteError::Misplaced(_))));
    assert!(store.has_pending());
    storage.set_moved(false);
    store.commit().unwrap();
    assert_eq!(store.health(), Health::Healthy);
    drop(store);
    let (_, recovered, _) = open(&storage);
    assert_eq!(Model::from(&recovered), script.model.settled());
}
