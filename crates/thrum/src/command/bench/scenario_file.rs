//! Scenarios by name or from a file.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use thrum_load::scenario::{Changes, Scenario};

use super::complaint::Complaint;

/// Stands for standard input.
const STANDARD_INPUT: &str = "-";

/// Bytes of a file that are read: one more than a scenario may have.
const BYTES_READ_MAX: u64 = 1024 * 1024 + 1;

/// The scenarios of a name or a file, changed: one, or the steps of a sweep.
pub(super) fn resolve(source: &str, changes: &Changes) -> Result<Vec<Scenario>, Complaint> {
    let scenarios = if source == STANDARD_INPUT {
        let mut text = String::new();
        let read = std::io::stdin()
            .take(BYTES_READ_MAX)
            .read_to_string(&mut text);
        read.map_err(|error| Complaint::usage(format!("cannot read standard input: {error}")))?;
        changes.of_file(&text, "standard input")
    } else if is_file(source) {
        let text = fs::read_to_string(source);
        let text =
            text.map_err(|error| Complaint::usage(format!("cannot read {source}: {error}")))?;
        changes.of_file(&text, source)
    } else {
        changes.of_built_in(source)
    };
    scenarios.map_err(Complaint::usage)
}

/// A path rather than a name: it ends like a scenario file. A name may have a slash:
/// `docs-fanin/10K`.
fn is_file(source: &str) -> bool {
    Path::new(source)
        .extension()
        .is_some_and(|ending| ending == "toml")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_have_a_slash_and_a_file_has_an_ending() {
        let changes = Changes::default();
        assert_eq!(resolve("docs-fanin/10K", &changes).unwrap().len(), 1);
        let error = resolve("no/such.toml", &changes).unwrap_err().to_string();
        assert!(error.starts_with("cannot read no/such.toml: "), "{error}");
    }
}
