//! The node's storage: opened and read before a client can connect, closed after the last writer.

use std::io;
use std::path::{Path, PathBuf};

use thrum_storage::disk::{OpenDirError, RealDisk};
use thrum_storage::{LogReport, Loss, OpenError, Options, Recovered, Store, WriteError};

use crate::config::{Config, Durability};

/// Folder of the log in the data directory.
const STATE: &str = "state";

/// Reasons why the state cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The data directory is in use or cannot be used.
    #[error(transparent)]
    Directory(#[from] OpenDirError),
    /// The state in the data directory cannot be read.
    #[error("cannot read the state in {}", .path.display())]
    State {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: OpenError,
    },
    /// The system provides no thread.
    #[error("cannot start the storage thread: {0}")]
    Thread(io::Error),
}

/// A store with its recovered state.
pub(crate) type Opened = (Store<RealDisk>, Recovered);

/// Whether the configured data directory can be used, if no other broker uses it; nothing is
/// created.
pub(crate) fn check(config: &Config) -> Result<(), StorageError> {
    let is_kept = config.storage.durability != Durability::Memory;
    if !is_kept || config.node.data_dir.as_os_str().is_empty() {
        return Ok(());
    }
    Ok(RealDisk::check(&config.node.data_dir.join(STATE))?)
}

/// Opens the configured data directory and reads the state; none if everything is kept in memory.
pub(crate) fn open(config: &Config) -> Result<Option<Opened>, StorageError> {
    let data_dir = &config.node.data_dir;
    let durability = match config.storage.durability {
        Durability::Fsync => thrum_storage::Durability::Fsync,
        Durability::Os => thrum_storage::Durability::Os,
        Durability::Memory => return Ok(None),
    };
    if data_dir.as_os_str().is_empty() {
        return Ok(None);
    }
    let path = data_dir.join(STATE);
    let disk = RealDisk::open(&path)?;
    let options = Options {
        durability,
        disk_bytes_max: config.storage.max_disk,
        ..Options::default()
    };
    let (store, recovered, report) =
        Store::open(disk, options).map_err(|source| StorageError::State {
            path: path.clone(),
            source,
        })?;
    log_recovery(&path, &recovered, &report);
    Ok(Some((store, recovered)))
}

/// Logs the recovered state, and damage.
fn log_recovery(path: &Path, recovered: &Recovered, report: &LogReport) {
    let path = path.display();
    if report.torn_bytes > 0 {
        tracing::warn!(
            %path,
            bytes = report.torn_bytes,
            "the end of the last write before the broker ended is incomplete and was cut off; what was acknowledged before is there, \
             unless another line says that something is gone"
        );
    }
    for gone in &report.gone {
        let what = match gone.what {
            Loss::Missing => {
                "a segment of the log is missing: what stood in it is lost, at least so much"
            }
            Loss::Shortened => {
                "a segment of the log ends before it should: what stood there is lost, at least so much"
            }
        };
        let (segment, bytes, records) = (gone.segment, gone.bytes, gone.records);
        tracing::error!(%path, segment, bytes, records, "{what}; a backup may have it, everything else is served");
    }
    if report.is_damaged() {
        tracing::error!(
            %path,
            damaged_places = report.damaged_count,
            damaged_bytes = report.damaged_bytes,
            gone_parts = report.gone_count,
            gone_bytes = report.gone_bytes,
            "the log was damaged while no broker used it, or by its disk: acknowledged messages may be lost"
        );
    }
    for damage in &report.damaged {
        tracing::error!(
            %path,
            ?damage,
            "damaged records were put aside in the folder quarantine; everything else is served"
        );
    }
    let orphans = recovered.orphans;
    if orphans.sessions + orphans.deliveries + orphans.retained > 0 {
        tracing::warn!(
            sessions = orphans.sessions,
            deliveries = orphans.deliveries,
            retained = orphans.retained,
            "left out, because what they belong to is damaged or was never acknowledged"
        );
    }
    let sessions = recovered.sessions.iter();
    let kept = sessions.filter(|one| !one.is_of_node() && one.expiry_secs > 0);
    tracing::info!(
        %path,
        sessions = kept.count(),
        wills = recovered.sessions.iter().filter(|one| one.will.is_some()).count(),
        messages = recovered.messages.len(),
        retained = recovered.retained.len(),
        "state restored"
    );
}

/// Logs the end of the storage thread.
pub(crate) fn closed(result: Result<(), WriteError>) {
    if let Err(error) = result {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        let cause = cause.unwrap_or_default();
        tracing::error!(%error, cause, "the last changes could not be written; nothing that was acknowledged is lost");
    }
}
