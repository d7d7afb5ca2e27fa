//! `/storage`: the state of the durable storage.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::StorageFigures;
use utoipa::ToSchema;

use crate::api::{ApiState, CommitTime};

/// The durable storage.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StorageState {
    /// `memory` if nothing is kept on disk; else `healthy`, `full` or `failing`.
    pub health: String,
    /// The disk; null if nothing is kept on it.
    pub disk: Option<StorageDisk>,
}

/// What the storage has on its disk.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct StorageDisk {
    /// Files of the log.
    pub segments: u64,
    /// Their bytes.
    pub used_bytes: u64,
    /// Of these, bytes that are current; the rest is cleaned when room is needed.
    pub needed_bytes: u64,
    /// `storage.max_disk`.
    pub max_bytes: u64,
    /// Bytes that wait for a commit.
    pub waiting_bytes: u64,
    /// Sessions with state.
    pub sessions: u64,
    /// Messages.
    pub messages: u64,
    /// Segments that were cleaned since the start.
    pub segments_cleaned: u64,
    /// Records that were moved for that.
    pub records_moved: u64,
    /// Reads, renames and removals that failed meanwhile; they are tried again.
    pub cleaning_failures: u64,
    /// Damaged places that were found.
    pub damaged_places: u64,
    /// Commits that became durable.
    pub commits: u64,
    /// Commits that failed.
    pub commits_failed: u64,
    /// Commits by their time, write and sync.
    pub commit_times: Vec<CommitTime>,
    /// Sum of their times in microseconds.
    pub commit_micros: u64,
}

/// Shows the state of the durable storage.
#[utoipa::path(
    get,
    path = "/storage",
    operation_id = "show_storage",
    tag = "status",
    responses((status = 200, body = StorageState)),
)]
pub(super) async fn show(State(api): State<ApiState>) -> Json<StorageState> {
    let storage = api.queries.figures().storage;
    Json(StorageState {
        health: storage
            .as_ref()
            .map_or("memory", |storage| storage.health)
            .to_owned(),
        disk: storage.map(StorageDisk::from),
    })
}

impl From<StorageFigures> for StorageDisk {
    fn from(figures: StorageFigures) -> Self {
        let counters: BTreeMap<&str, u64> = figures.counters.into_iter().collect();
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        let times = figures.commit_times.into_iter();
        Self {
            segments: figures.cleaning.segments,
            used_bytes: count("storage/bytes/used"),
            needed_bytes: count("storage/bytes/needed"),
            max_bytes: count("storage/bytes/maximum"),
            waiting_bytes: count("storage/bytes/waiting"),
            sessions: count("storage/sessions"),
            messages: count("storage/messages"),
            segments_cleaned: figures.cleaning.segments_cleaned,
            records_moved: figures.cleaning.records_moved,
            cleaning_failures: figures.cleaning.failures,
            damaged_places: count("storage/damaged"),
            commits: count("storage/commits"),
            commits_failed: count("storage/commits/failed"),
            commit_times: times
                .map(|class| CommitTime {
                    micros_below: class.micros_below,
                    commits: class.count,
                })
                .collect(),
            commit_micros: figures.commit_micros,
        }
    }
}
