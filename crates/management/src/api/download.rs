//! A file as the body of an answer. The next portion is read when the client has taken the last
//! one, and only while the caller may have it and takes enough of it.

use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::stream;
use tokio::sync::Semaphore;

use super::ApiState;
use super::entrance::Sender;
use super::pace::Paced;
use crate::in_thread::in_thread;
use crate::login::Scope;

/// What of a file is handed out, to whom, and how.
pub(super) struct Download {
    /// Of the file that `held` keeps. A file that is shorter ends the answer early.
    pub(super) bytes: u64,
    /// Most bytes of a portion.
    pub(super) portion_bytes: u64,
    /// What the caller must be allowed for each portion.
    pub(super) scope: Scope,
    /// For the threads that read.
    pub(super) threads: Arc<Semaphore>,
    /// Is given back after the last byte, when the client leaves, and when it takes too little.
    pub(super) held: Paced,
}

impl Download {
    /// The body of the answer to a sender.
    pub(super) fn body(self, api: ApiState, sender: Sender) -> Body {
        let portions = stream::unfold(Some(self), move |rest| {
            let (api, sender) = (api.clone(), sender.clone());
            async move {
                let rest = rest.filter(|rest| rest.bytes > 0)?;
                Some(match rest.portion(&api, &sender).await {
                    Ok((bytes, rest)) => (Ok(bytes), Some(rest)),
                    Err(error) => (Err(error), None),
                })
            }
        });
        Body::from_stream(portions)
    }

    async fn portion(mut self, api: &ApiState, sender: &Sender) -> io::Result<(Bytes, Self)> {
        sender
            .check_still(api, self.scope)
            .map_err(|problem| io::Error::other(problem.detail))?;
        let len = self.bytes.min(self.portion_bytes);
        let gives = self.held.gives(len).await;
        gives.map_err(|slow| io::Error::other(slow.to_string()))?;
        let threads = Arc::clone(&self.threads);
        let read = in_thread(&threads, move || {
            let bytes = self.held.read(len)?;
            self.bytes -= len;
            Ok((Bytes::from(bytes), self))
        });
        let read = read.await;
        read.unwrap_or_else(|unfinished| Err(io::Error::other(unfinished.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body_util::BodyExt as _;
    use tokio::time::sleep;

    use super::super::pace::{PACE_BYTES, PACE_TIME};
    use super::super::shares::Shares;
    use super::super::stream::tests::broker_and_api;
    use super::*;
    use crate::login::Caller;

    #[tokio::test(start_paused = true)]
    async fn a_file_that_is_taken_too_slowly_ends_early_and_others_are_read() {
        let (broker, api) = broker_and_api();
        let sender = Sender::from(Caller::local());
        let shares = Shares::new(1);
        let share = shares.take(&sender.caller, PACE_TIME).await;
        let held = Paced::new(share.unwrap());
        let path = std::env::temp_dir().join(format!("thrum-download-{}", std::process::id()));
        std::fs::write(&path, vec![7; 3 * PACE_BYTES]).unwrap();
        held.keep(std::fs::File::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        let download = Download {
            bytes: 3 * PACE_BYTES as u64,
            portion_bytes: PACE_BYTES as u64,
            scope: Scope::Admin,
            threads: Arc::new(Semaphore::new(1)),
            held,
        };
        let mut body = download.body(api, sender.clone());
        let first = body.frame().await.unwrap().unwrap();
        assert_eq!(first.into_data().unwrap().len(), PACE_BYTES);
        sleep(PACE_TIME + Duration::from_secs(1)).await;
        assert!(shares.take(&sender.caller, PACE_TIME).await.is_some());
        let error = body.frame().await.unwrap().unwrap_err();
        assert!(error.to_string().contains("less than 64 KiB"), "{error}");
        broker.stop();
    }
}
