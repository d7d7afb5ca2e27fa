//! What only some connections have, so that the others pay one pointer for all of it.

use crate::Time;

/// State of a connection beyond that of a plain one.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// When the client may no longer be connected.
    pub(super) valid_until: Option<Time>,
}
