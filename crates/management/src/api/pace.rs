//! The least pace of a transfer. Whoever sends or takes less is cut off: it holds something that
//! others wait for.

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

/// A permit of a reader that goes on, until this is dropped.
#[derive(Debug)]
pub(super) struct Paced(mpsc::Sender<Duration>);

/// The reader took too little for too long, and has its permit no longer.
#[derive(Debug)]
pub(super) struct TooSlow;

impl Paced {
    /// Holds a permit. It is given back also if nobody asks for the rest, as when a connection
    /// takes some bytes now and then.
    pub(super) fn new(share: Share) -> Self {
        let (taken, mut takes) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut time = PACE_TIME;
            while let Ok(Some(next)) = timeout(time, takes.recv()).await {
                time = next;
            }
            drop(share);
        });
        Self(taken)
    }

    /// The reader has taken what it was given, and gets so many bytes more.
    ///
    /// # Errors
    /// It was too slow.
    pub(super) async fn gives(&self, bytes: u64) -> Result<(), TooSlow> {
        let told = self.0.send(time_of(bytes)).await;
        told.map_err(|_| TooSlow)
    }
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
}
