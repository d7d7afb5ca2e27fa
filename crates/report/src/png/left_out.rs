//! No pixels, in a program that was built without what draws them.

/// Why a picture cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program was built without `png`: use a complete one, or build it with \
     `cargo build --release --package thrum --features png`"
)]
pub struct PngError;

/// Whether this program can draw pixels.
///
/// # Errors
/// It cannot.
pub const fn require() -> Result<(), PngError> {
    Err(PngError)
}

/// Refuses.
///
/// # Errors
/// Always.
pub fn render(_svg: &str) -> Result<Vec<u8>, PngError> {
    Err(PngError)
}
