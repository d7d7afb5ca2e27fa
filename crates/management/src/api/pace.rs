//! The least pace of a transfer. Whoever sends or takes less is cut off: it holds something that
//! others wait for.

use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::timeout;

use super::shares::Share;

/// Bytes that come or go within [`PACE_TIME`], or the rest of them.
pub(super) const PACE_BYTES: usize = 64 * 1024;
/// Time for them.
pub(super) const PACE_TIME: Duration = Duration::from_secs(15);

/// Time for so many bytes.
fn time_of(bytes: u64) -> Duration {
    let portions = bytes.div_ceil(PACE_BYTES as u64).max(1);
    PACE_TIME.saturating_mul(u32::try_from(portions).unwrap_or(u32::MAX))
}

/// The file that a reader reads, until it is too slow.
type Slot = Arc<Mutex<Option<File>>>;

/// A permit of a reader that goes on, until this is dropped, and its file.
#[derive(Debug)]
pub(super) struct Paced {
    taken: mpsc::Sender<Duration>,
    file: Slot,
}

/// The reader took too little for too long, and has its permit no longer.
#[derive(Debug)]
pub(super) struct TooSlow;

impl Paced {
    /// Holds a permit. It is given back also if nobody asks for the rest, as when a connection
    /// takes some bytes now and then; its file is closed before, so that no more files are open
    /// than there are permits.
    pub(super) fn new(share: Share) -> Self {
        let (taken, mut takes) = mpsc::channel(1);
        let file = Slot::default();
        let read = Arc::clone(&file);
        tokio::spawn(async move {
            let mut time = PACE_TIME;
            while let Ok(Some(next)) = timeout(time, takes.recv()).await {
                time = next;
            }
            // A portion that is read at this moment is the last one.
            if let Ok(mut file) = read.try_lock() {
                drop(file.take());
            }
            drop(share);
        });
        Self { taken, file }
    }

    /// Keeps the file that is read.
    pub(super) fn keep(&self, file: File) {
        *lock(&self.file) = Some(file);
    }

    /// Reads the next bytes of the file; waits for the disk.
    ///
    /// # Errors
    /// The file system refuses, the file is shorter, or the reader was too slow.
    pub(super) fn read(&self, bytes: u64) -> io::Result<Vec<u8>> {
        let file = lock(&self.file);
        let file = file
            .as_ref()
            .ok_or_else(|| io::Error::other(TooSlow.to_string()))?;
        let mut portion = Vec::new();
        file.take(bytes).read_to_end(&mut portion)?;
        if portion.len() as u64 != bytes {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        Ok(portion)
    }

    /// The reader has taken what it was given, and gets so many bytes more.
    ///
    /// # Errors
    /// It was too slow.
    pub(super) async fn gives(&self, bytes: u64) -> Result<(), TooSlow> {
        let told = self.taken.send(time_of(bytes)).await;
        told.map_err(|_| TooSlow)
    }
}

fn lock(file: &Slot) -> MutexGuard<'_, Option<File>> {
    file.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Display for TooSlow {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kib, seconds) = (PACE_BYTES / 1024, PACE_TIME.as_secs());
        write!(
            formatter,
            "less than {kib} KiB were taken within {seconds} s, and others wait"
        )
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Instant, sleep};

    use super::super::shares::Shares;
    use super::*;
    use crate::login::Caller;

    async fn paced(shares: &Shares) -> Paced {
        let share = shares.take(&Caller::local(), PACE_TIME).await;
        Paced::new(share.expect("it is free"))
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_its_bytes_in_time_has_its_permit_for_as_long_as_it_reads() {
        let shares = Shares::new(1);
        let reader = paced(&shares).await;
        for _ in 0..20 {
            let bytes = 4 * PACE_BYTES as u64;
            assert!(reader.gives(bytes).await.is_ok());
            sleep(PACE_TIME.mul_f64(3.9)).await;
        }
        let all_free = timeout(Duration::from_millis(1), shares.all_free());
        assert!(all_free.await.is_err());
        drop(reader);
        let all_free = timeout(Duration::from_millis(1), shares.all_free());
        assert!(all_free.await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_takes_less_loses_its_permit_and_gets_no_more() {
        let shares = Shares::new(1);
        let reader = paced(&shares).await;
        assert!(reader.gives(1 + PACE_BYTES as u64).await.is_ok());
        let since = Instant::now();
        // It does not ask again.
        let all_free = timeout(10 * PACE_TIME, shares.all_free());
        assert!(all_free.await.is_ok());
        assert_eq!(since.elapsed(), 2 * PACE_TIME);
        assert!(reader.gives(1).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn the_file_of_a_reader_that_is_too_slow_is_closed_with_its_permit() {
        let shares = Shares::new(1);
        let reader = paced(&shares).await;
        let path = std::env::temp_dir().join(format!("thrum-paced-{}", std::process::id()));
        std::fs::write(&path, [7; 8]).unwrap();
        reader.keep(File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert_eq!(reader.read(4).unwrap(), [7; 4]);
        sleep(PACE_TIME + Duration::from_secs(1)).await;
        let all_free = timeout(Duration::from_millis(1), shares.all_free());
        assert!(all_free.await.is_ok());
        assert!(lock(&reader.file).is_none(), "it is closed");
        let error = reader.read(4).unwrap_err();
        assert!(error.to_string().contains("less than 64 KiB"), "{error}");
    }
}
