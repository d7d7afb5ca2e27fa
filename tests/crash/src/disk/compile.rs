//! Builds the libraries that a broker is started with.

use std::path::Path;
use std::process::Command;

/// Builds a library of `preload/`.
///
/// # Panics
/// The C compiler is missing.
pub(crate) fn compile(source: &str, library: &Path) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("preload")
        .join(source);
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let output = Command::new(&compiler)
        .args([
            "-std=gnu17",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
        ])
        .args([library, &source])
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "the loss of power and the clock need a C compiler, and `{compiler}` does not start ({error}): \
                 install one, such as the package gcc, or name one with CC"
            )
        });
    assert!(
        output.status.success(),
        "`{compiler}` does not build {}:\n{}",
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
}
