//! A file as the body of an answer. The next portion is read when the client has taken the last
//! one, and only while the caller may have it and takes enough of it.

use std::fs::File;
use std::io::{self, Read as _};
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
    pub(super) file: File,
    /// From its beginning. A file that is shorter ends the answer early.
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
            let mut bytes = Vec::new();
            (&self.file).take(len).read_to_end(&mut bytes)?;
            if bytes.len() as u64 != len {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            self.bytes -= len;
            Ok((Bytes::from(bytes), self))
        });
        let read = read.await;
        read.unwrap_or_else(|unfinished| Err(io::Error::other(unfinished.to_string())))
    }
}
