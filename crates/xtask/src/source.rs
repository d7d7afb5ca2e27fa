//! Classifies Rust source without the compiler: code, comments and literals, and tests.

use std::ops::{Range, RangeInclusive};
use std::path::Path;

/// Folders that are not part of the product.
const TEST_FOLDERS: [&str; 3] = ["tests", "simulation", "benches"];

/// Whether a path names Rust source.
pub(crate) fn is_rust(path: &str) -> bool {
    Path::new(path)
        .extension()
        .is_some_and(|extension| extension == "rs")
}

/// Whether the whole file is test code, by its folder or its name.
pub(crate) fn is_test_file(path: &str) -> bool {
    let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
    let mut folders = folders.split('/');
    folders.clone().next() == Some("fuzz")
        || folders.any(|folder| TEST_FOLDERS.contains(&folder))
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
        || !is_rust(path)
}

/// A copy of the source of the same length in which comments and the contents of literals are
/// blank, so that a search finds only code.
pub(crate) fn mask(text: &str) -> String {
    let masker = Masker::run(text);
    String::from_utf8_lossy(&masker.out).into_owned()
}

/// Positions of the contents of string literals, in order.
pub(crate) fn string_literals(text: &str) -> Vec<Range<usize>> {
    Masker::run(text).strings
}

struct Masker<'a> {
    bytes: &'a [u8],
    out: Vec<u8>,
    at: usize,
    strings: Vec<Range<usize>>,
}

impl<'a> Masker<'a> {
    fn run(text: &'a str) -> Self {
        let mut masker = Self {
            bytes: text.as_bytes(),
            out: Vec::with_capacity(text.len()),
            at: 0,
            strings: Vec::new(),
        };
        while let Some(byte) = masker.peek(0) {
            match (byte, masker.peek(1)) {
                (b'/', Some(b'/')) => masker.blank_line(),
                (b'/', Some(b'*')) => masker.blank_block(),
                (b'"', _) => masker.blank_string(),
                (b'r', Some(b'"' | b'#')) => masker.raw_string(),
                (b'\'', _) => masker.quote(),
                _ => masker.keep(1),
            }
        }
        masker
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn keep(&mut self, count: usize) {
        for _ in 0..count {
            self.out.extend(self.peek(0));
            self.at += 1;
        }
    }

    fn blank(&mut self, count: usize) {
        for _ in 0..count {
            self.out.extend(
                self.peek(0)
                    .map(|byte| if byte == b'\n' { byte } else { b' ' }),
            );
            self.at += 1;
        }
    }

    fn blank_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.blank(1);
        }
    }

    fn blank_block(&mut self) {
        let mut depth = 0_usize;
        loop {
            match (self.peek(0), self.peek(1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                (None, _) => return,
                _ => {
                    self.blank(1);
                    continue;
                }
            }
            self.blank(2);
            if depth == 0 {
                return;
            }
        }
    }

    fn blank_string(&mut self) {
        self.keep(1);
        let begin = self.at;
        loop {
            match self.peek(0) {
                Some(b'"') | None => break,
                Some(b'\\') => self.blank(2),
                Some(_) => self.blank(1),
            }
        }
        self.strings.push(begin..self.at);
        self.keep(1);
    }

    /// `r"…"` and `r#"…"#`; `r#name` is an identifier and stays.
    fn raw_string(&mut self) {
        let hashes = self.bytes[self.at + 1..]
            .iter()
            .take_while(|byte| **byte == b'#')
            .count();
        if self.peek(1 + hashes) != Some(b'"') {
            return self.keep(1);
        }
        self.keep(2 + hashes);
        let end = [b"\"".as_slice(), "#".repeat(hashes).as_bytes()].concat();
        let begin = self.at;
        while self.at < self.bytes.len() && !self.bytes[self.at..].starts_with(&end) {
            self.blank(1);
        }
        self.strings.push(begin..self.at);
        self.keep(end.len());
    }

    /// Blanks a character literal and keeps a lifetime.
    fn quote(&mut self) {
        let width = match self.peek(1) {
            Some(b'\\') => {
                let rest = self.bytes.get(self.at + 3..).unwrap_or_default();
                2 + rest.iter().take_while(|byte| **byte != b'\'').count()
            }
            Some(0..=0x7f) | None => 1,
            Some(lead) => lead.leading_ones() as usize,
        };
        if self.peek(1 + width) == Some(b'\'') {
            self.keep(1);
            self.blank(width);
        }
        self.keep(1);
    }
}

/// The number of the line at an offset, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    let before = text.get(..offset).unwrap_or(text);
    before.matches('\n').count() + 1
}

/// End of the item that starts at `from`: after its `;` or its closing brace.
pub(crate) fn item_end(masked: &str, from: usize) -> usize {
    let bytes = masked.as_bytes();
    let mut depth = 0_usize;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b';' if depth == 0 => return at + 1,
            b'{' | b'(' | b'[' => depth += 1,
            b'}' | b')' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 && *byte == b'}' {
                    return at + 1;
                }
            }
            _ => {}
        }
    }
    bytes.len()
}

/// The lines of tests: `#[cfg(test)]` items, those of the feature `testing`, and `#[test]`
/// functions, with the comments and attributes directly above them.
pub(crate) fn test_lines(text: &str, masked: &str) -> Vec<RangeInclusive<usize>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut ranges = Vec::new();
    for marker in [
        "#[cfg(test",
        "#[cfg(all(test",
        "#[cfg(any(test",
        "#[cfg(feature = \"testing\")]",
        "#[test]",
        "::test]",
        "::test(",
    ] {
        let is_code = |offset: usize| masked.as_bytes()[offset] == text.as_bytes()[offset];
        let places = text.match_indices(marker).map(|(offset, _)| offset);
        for offset in places.filter(|offset| is_code(*offset)) {
            let first = first_line_above(&lines, line_at(text, offset));
            ranges
                .push(first..=line_at(text, item_end(masked, attribute_start(masked, offset)) - 1));
        }
    }
    ranges
}

/// `tokio::test]` matches inside an attribute: the item starts at the `#` before it.
fn attribute_start(masked: &str, offset: usize) -> usize {
    masked[..=offset].rfind('#').unwrap_or(offset)
}

fn first_line_above(lines: &[&str], mut line: usize) -> usize {
    while line > 1 {
        let above = lines[line - 2].trim_start();
        if !above.starts_with("//") && !above.starts_with("#[") {
            break;
        }
        line -= 1;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_blank_and_lengths_do_not_change() {
        let text = "let a = \"x { \\\" y\"; // { b\n/* { /* } */ */ let c = '{'; let d: &'a str = r#\"}\"}\"#;";
        let masked = mask(text);
        assert_eq!(masked.len(), text.len());
        assert!(!masked.contains(['{', '}', 'x', 'y']));
        for kept in ["let a = \"", "let c = '", "let d: &'a str = r#\""] {
            assert!(masked.contains(kept), "{kept:?} not in {masked:?}");
        }
    }

    #[test]
    fn escaped_and_wide_characters_are_literals() {
        let masked = mask(r"['\'', '\\', '\u{7b}', 'ä', '{'] {");
        assert_eq!(masked.matches('{').count(), 1, "{masked}");
    }

    #[test]
    fn raw_identifiers_are_code() {
        assert_eq!(mask("fn r#match() {}"), "fn r#match() {}");
    }

    #[test]
    fn test_functions_include_the_comments_and_attributes_above_them() {
        let text = "fn a() {}\n\n// why\n#[test]\nfn b() {\n    c();\n}\nfn d() {}\n";
        assert_eq!(test_lines(text, &mask(text)), [3..=7]);
    }

    #[test]
    fn test_functions_of_other_runners_are_tests() {
        let text = "fn a() {}\n#[tokio::test]\nasync fn b() {\n}\nfn d() {}\n";
        assert_eq!(test_lines(text, &mask(text)), [2..=4]);
    }

    #[test]
    fn items_of_the_testing_feature_are_tests() {
        let text = "#[cfg(feature = \"testing\")]\nmod a;\n#[cfg(feature = \"tls\")]\nmod b;\n";
        assert_eq!(test_lines(text, &mask(text)), [1..=2]);
    }

    #[test]
    fn test_modules_are_tests_to_their_last_brace() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n  fn b() { if x { y } }\n}\nfn c() {}\n";
        assert_eq!(test_lines(text, &mask(text)), [2..=5]);
    }

    #[test]
    fn arguments_with_braces_do_not_end_a_function() {
        let text = "#[test]\nfn a(x in any().map(|x| { x })) {\n b();\n}\nfn c() {}\n";
        assert_eq!(test_lines(text, &mask(text)), [1..=4]);
    }

    #[test]
    fn a_test_file_is_test_code_as_a_whole() {
        for path in [
            "crates/a/tests/b.rs",
            "crates/a/benches/b.rs",
            "crates/a/src/server/tests.rs",
            "crates/a/src/server/will_tests.rs",
            "crates/a/src/server/tests/will.rs",
            "crates/a/src/worker/simulation/world.rs",
            "fuzz/src/decode.rs",
            "tests/interop/run.mjs",
        ] {
            assert!(is_test_file(path), "{path}");
        }
        for path in [
            "crates/a/src/b.rs",
            "crates/a/src/latests.rs",
            "crates/a/src/simulation.rs",
        ] {
            assert!(!is_test_file(path), "{path}");
        }
    }

    #[test]
    fn the_insides_of_string_literals_are_found() {
        let text = "a(\"b\", 'c', r#\"d\"#); // \"e\"";
        let found: Vec<&str> = string_literals(text)
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(found, ["b", "d"]);
    }
}
