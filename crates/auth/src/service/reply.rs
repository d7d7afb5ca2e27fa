//! An answer that cannot be forgotten.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use thrum_access::Reply;

use crate::panics;

/// Gives one answer; if it is dropped before, the answer is "lost".
pub(super) struct Once<T> {
    reply: Option<Reply<T>>,
    lost: fn() -> T,
}

impl<T> Once<T> {
    pub(super) fn new(reply: Reply<T>, lost: fn() -> T) -> Self {
        Self {
            reply: Some(reply),
            lost,
        }
    }

    pub(super) fn answer(mut self, answer: T) {
        if let Some(reply) = self.reply.take() {
            panics::own(|| reply(answer));
        }
    }
}

impl<T> Drop for Once<T> {
    fn drop(&mut self) {
        if let Some(reply) = self.reply.take() {
            panics::own(|| reply((self.lost)()));
        }
    }
}

impl<T> fmt::Debug for Once<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Once")
    }
}

/// One waiting login; counted as long as it lives.
#[derive(Debug)]
pub(super) struct Pending(Arc<AtomicU64>);

impl Pending {
    /// None if the maximum number waits already.
    pub(super) fn enter(pending: &Arc<AtomicU64>, most: u64) -> Option<Self> {
        if pending.fetch_add(1, Ordering::Relaxed) >= most {
            pending.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(Self(Arc::clone(pending)))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn an_answer_is_given_once_even_if_it_is_forgotten() {
        let (sender, answers) = mpsc::channel();
        let once = || {
            let sender = sender.clone();
            Once::new(
                Box::new(move |answer| sender.send(answer).unwrap()),
                || "lost",
            )
        };
        once().answer("found");
        drop(once());
        drop(sender);
        assert_eq!(answers.iter().collect::<Vec<_>>(), ["found", "lost"]);
    }

    #[test]
    fn no_more_wait_than_may() {
        let pending = Arc::default();
        let first = Pending::enter(&pending, 2).unwrap();
        let _second = Pending::enter(&pending, 2).unwrap();
        assert!(Pending::enter(&pending, 2).is_none());
        drop(first);
        assert!(Pending::enter(&pending, 2).is_some());
    }
}
