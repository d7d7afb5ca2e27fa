//! Refuses paths that exist on one machine only.

use crate::source::line_at;
use crate::violation::Violation;

/// Written as two literals so that this file passes.
const PREFIXES: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

/// Finds such paths. A path starts a word, so a topic such as `a/home/b` is not one.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for prefix in PREFIXES {
        for (offset, _) in text.match_indices(prefix) {
            let before = text[..offset].chars().next_back();
            if before.is_none_or(|letter| letter.is_whitespace() || "\"'`=(:<>,[".contains(letter))
            {
                let message =
                    format!("`{prefix}…` exists on one machine only; use a path in the repository");
                found.push(Violation::new(path, line_at(text, offset), message));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machine_paths_are_found_but_topics_are_not() {
        let [work, home, _] = PREFIXES;
        let text = format!("cd {work}main\ntopic a{home}b\nx = \"{home}me\"\n");
        let found: Vec<String> = check("a.md", &text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("a.md:1:"), "{found:?}");
        assert!(found[1].starts_with("a.md:3:"), "{found:?}");
    }
}
