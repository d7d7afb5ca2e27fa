//! Words that mean unfinished work, and paths of somebody's machine.

use crate::source::{is_rust, line_at, mask};
use crate::violation::Violation;

/// Markers nobody reads again; spelt in two halves so that this file passes.
const MARKERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
/// Code that is not there, or a test that is not run.
const UNFINISHED: [&str; 3] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("#[ig", "nore"),
];
const MACHINE_PATHS: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
    concat!("/ro", "ot/"),
];

/// Finds markers and unfinished code in a source file.
pub(super) fn check(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for marker in MARKERS {
        for (offset, _) in text
            .match_indices(marker)
            .filter(|(offset, word)| is_word(text, *offset, word.len()))
        {
            let message = format!("`{marker}`: do it now, or open an issue and leave no marker");
            found.push(Violation::new(path, line_at(text, offset), message));
        }
    }
    if is_rust(path) {
        let code = mask(text);
        for word in UNFINISHED {
            for (offset, _) in code.match_indices(word) {
                let message = format!("`{word}`: finish the code, or make the test pass or go");
                found.push(Violation::new(path, line_at(text, offset), message));
            }
        }
    }
    found
}

/// Finds absolute paths that exist on one machine only. A path begins a word, so a topic such as `a/home/b` is none.
pub(super) fn check_machine_paths(path: &str, text: &str) -> Vec<Violation> {
    let mut found = Vec::new();
    for prefix in MACHINE_PATHS {
        for (offset, _) in text.match_indices(prefix) {
            let before = text[..offset].chars().next_back();
            if before.is_none_or(|letter| letter.is_whitespace() || "\"'`=(:<>,[".contains(letter))
            {
                let message =
                    format!("`{prefix}…` is a path of one machine; use a path in the repository");
                found.push(Violation::new(path, line_at(text, offset), message));
            }
        }
    }
    found
}

fn is_word(text: &str, offset: usize, length: usize) -> bool {
    let joins = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_')
    };
    !joins(text[..offset].chars().next_back()) && !joins(text[offset + length..].chars().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(found: &[Violation]) -> Vec<String> {
        found
            .iter()
            .map(|violation| {
                violation
                    .to_string()
                    .split(' ')
                    .next()
                    .unwrap_or_default()
                    .to_owned()
            })
            .collect()
    }

    #[test]
    fn markers_are_found_in_comments_but_not_inside_words() {
        let text = format!(
            "fn a() {{}}\n// {}: later\nlet {}S = 1;\n",
            MARKERS[0], MARKERS[0]
        );
        assert_eq!(lines(&check("a.rs", &text)), ["a.rs:2:"]);
    }

    #[test]
    fn unfinished_code_is_found_but_not_text_about_it() {
        let text = format!(
            "fn a() {{ {}) }}\nlet s = \"{})\";\n{}]\n",
            UNFINISHED[0], UNFINISHED[0], UNFINISHED[2]
        );
        assert_eq!(lines(&check("a.rs", &text)), ["a.rs:1:", "a.rs:3:"]);
    }

    #[test]
    fn machine_paths_are_found_but_topics_are_not() {
        let text = format!(
            "cd {}main\ntopic a{}b\nx = \"{}me\"\n",
            MACHINE_PATHS[0], MACHINE_PATHS[1], MACHINE_PATHS[1]
        );
        assert_eq!(
            lines(&check_machine_paths("a.md", &text)),
            ["a.md:1:", "a.md:3:"]
        );
    }
}
