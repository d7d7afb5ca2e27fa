//! Connection state that only some connections have, so that the others need one pointer for all of
//! it.

use alloc::boxed::Box;

use super::authentication::Method;
use crate::{MountPoint, Time};

/// Connection state that most connections do not need.
#[derive(Debug, Default)]
pub(super) struct LinkExtras {
    /// Time at which the connection must end.
    pub(super) valid_until: Option<Time>,
    /// The mount point of the connection.
    pub(super) mount: Option<MountPoint>,
    /// State of the enhanced authentication.
    pub(super) method: Option<Method>,
}

impl LinkExtras {
    /// Creates the state; `None` if the connection needs none.
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
