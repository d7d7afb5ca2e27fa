//! Retained messages for whoever asks what there is.

use std::sync::Arc;

use thrum_protocol::{Message, Time};
use thrum_routing::retained::Allowance;

use super::{Kept, ReplayCursor, RetainedSource, RetainedStore};

/// A retained message and what is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) message: Arc<Message>,
    pub(crate) source: Option<Arc<RetainedSource>>,
    /// When it was published.
    pub(crate) at: Time,
    /// It is not given to new subscribers.
    pub(crate) is_withheld: bool,
}

impl RetainedStore {
    /// The next messages that match, as [`RetainedStore::page`], those that are withheld among
    /// them.
    pub(crate) fn list(
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
