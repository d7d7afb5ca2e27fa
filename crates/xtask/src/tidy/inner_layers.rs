//! Parts of the program that could be separate crates: the crates that they must not use.
//!
//! Cargo allows every module of a crate to use all of its dependencies, so a dependency that would
//! be refused between crates is not visible within one.

use std::collections::BTreeMap;

use crate::items::words;
use crate::source::{is_rust, line_at, mask};
use crate::violation::Violation;

/// Folders, and the crates that must not be used in them.
const PARTS: [(&str, &[&str]); 1] = [(
    "crates/thrum/src/config/",
    &[
        "thrum_bench",
        "thrum_load",
        "thrum_protocol",
        "thrum_report",
    ],
)];

/// Finds modules that use a crate that their part must not use.
pub(super) fn check(source: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, text) in source.iter().filter(|(path, _)| is_rust(path)) {
        let part = PARTS.iter().find(|(folder, _)| path.starts_with(folder));
        if let Some((folder, forbidden)) = part {
            let masked = mask(text);
            let uses = words(&masked).filter(|(_, word)| forbidden.contains(word));
            found.extend(uses.map(|(at, word)| {
                let message = format!(
                    "{folder} must not use `{word}`, otherwise neither can be changed or built without \
                     the other; move the shared part to a crate below both, as `settings`"
                );
                Violation::new(path, line_at(text, at), message)
            }));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let source = [(path.to_owned(), text.to_owned())].into_iter().collect();
        check(&source).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_configuration_must_not_use_the_benchmark() {
        let path = "crates/thrum/src/config/layer.rs";
        let found = findings(path, "use a::b;\nuse thrum_bench::scenario::nearest;\n");
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with(&format!("{path}:2: ")), "{found:?}");
        let free = "use thrum_settings::nearest; // not thrum_bench\n";
        assert_eq!(findings(path, free), [""; 0]);
    }

    #[test]
    fn a_command_may_use_all_parts() {
        let text = "use thrum_bench::scenario;\n";
        assert_eq!(findings("crates/thrum/src/command/a.rs", text), [""; 0]);
    }
}
