//! What only some connections have, so that the others pay one pointer for all of it.

use alloc::boxed::Box;

use super::authentication::Method;
use crate::{MountPoint, Time};

/// State of a connection beyond that of a plain one.
#[derive(Debug, Default)]
pub(super) struct Rare {
    /// When the client may no longer be connected.
    pub(super) valid_until: Option<Time>,
    /// What the client does not see of its topics.
    pub(super) mount: Option<MountPoint>,
    /// Of enhanced authentication.
    pub(super) method: Option<Method>,
}

impl Rare {
    /// None for a plain connection.
    pub(super) fn new(mount: Option<MountPoint>, method: Option<Method>) -> Option<Box<Self>> {
        (mount.is_some() || method.is_some()).then(|| {
            Box::new(Self {
                valid_until: None,
                mount,
                method: method.map(Method::finished),
            })
        })
    }
}
