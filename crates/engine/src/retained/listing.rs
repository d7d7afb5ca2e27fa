//! Listing of retained messages for requests of the operator.

use std::sync::Arc;

use thrum_protocol::{Message, Time};
use thrum_routing::retained::Allowance;

use super::{Kept, ReplayCursor, RetainedSource, RetainedStore};

/// A retained message and its properties in the store.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The message.
    pub message: Arc<Message>,
    /// The client that published the message; none if it is not known.
    pub source: Option<Arc<RetainedSource>>,
    /// The time of publication.
    pub at: Time,
    /// New subscribers do not receive the message.
    pub is_withheld: bool,
}

impl RetainedStore {
    /// Reads the next matching messages like [`RetainedStore::page`], but includes withheld
    /// messages.
    pub fn list(
        &self,
        filter: &str,
        after: Option<ReplayCursor>,
        allowance: &mut Allowance,
        into: &mut Vec<Listed>,
    ) -> Option<ReplayCursor> {
        self.visit_page(filter, after, allowance, |kept| into.push(Listed::of(kept)))
    }
}

impl Listed {
    fn of(kept: &Kept) -> Self {
        Self {
            message: Arc::clone(&kept.message),
            source: kept.source.clone(),
            at: kept.at,
            is_withheld: kept.is_withheld(),
        }
    }
}
