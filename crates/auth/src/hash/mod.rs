//! Password hashes: those that thrum makes, and those that others made.

use aws_lc_rs::constant_time::verify_slices_are_equal;

/// Whether two secrets are equal, in a time that does not depend on where they differ.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    verify_slices_are_equal(one, other).is_ok()
}
