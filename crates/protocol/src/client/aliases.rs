//! Topic aliases of one connection, by direction.

use alloc::rc::Rc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

/// Topics by alias; grows to the highest alias used, which the topic alias maximum of the receiver
/// limits.
#[derive(Debug, Default)]
pub(super) struct Aliases(Vec<Option<Rc<str>>>);

impl Aliases {
    /// The topic assigned to the alias.
    pub(super) fn topic(&self, alias: NonZeroU16) -> Option<&Rc<str>> {
        self.0.get(usize::from(alias.get()) - 1)?.as_ref()
    }

    /// Assigns a topic to the alias and replaces an earlier one.
    pub(super) fn set(&mut self, alias: NonZeroU16, topic: &str) {
        let at = usize::from(alias.get());
        if self.0.len() < at {
            self.0.resize(at, None);
        }
        if let Some(entry) = self.0.get_mut(at - 1)
            && entry.as_deref() != Some(topic)
        {
            *entry = Some(topic.into());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn clear(&mut self) {
        self.0 = Vec::new();
    }
}
