//! `thrum config set`, `diff`, `reload`, `versions` and `rollback` of a program that was built
//! without them.

use crate::command::left_out::{self, AnyArgs};

/// Arguments of `thrum config set`: anything.
pub(super) type SetArgs = AnyArgs;
/// Arguments of `thrum config diff` and `reload`: anything.
pub(super) type AskArgs = AnyArgs;
/// Arguments of `thrum config versions`: anything.
pub(super) type VersionsArgs = AnyArgs;
/// Arguments of `thrum config rollback`: anything.
pub(super) type RollbackArgs = AnyArgs;

/// Refuses.
pub(super) fn set(_args: &AnyArgs) -> anyhow::Result<()> {
    left_out::refuse("management").map(drop)
}

pub(super) use set as diff;
pub(super) use set as list;
pub(super) use set as reload;
pub(super) use set as roll_back;
