//! Tags in the source: `[MQTT-3.3.1-2]` for 5.0 and `[MQTT3-3.3.1-2]` for 3.1.1.

use std::collections::BTreeSet;

use crate::source::{is_test_file, line_at, mask, test_lines};
use crate::spec::statements::Document;
use crate::violation::Violation;

/// A reference to a statement in the source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) id: String,
    path: String,
    line: usize,
    /// Whether the tag is on a test; otherwise it is on a line that enforces the statement.
    pub(crate) test: bool,
}

impl Tag {
    /// `path:line`.
    pub(crate) fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }
}

/// The tags of a file, and the malformed ones.
pub(crate) fn read(path: &str, text: &str) -> (Vec<Tag>, Vec<Violation>) {
    let is_test_file = is_test_file(path);
    let mut tags = Vec::new();
    let mut bad = Vec::new();
    let mut test_ranges = None;
    for (offset, _) in text.match_indices("[MQTT") {
        let inside = &text[offset + 1..];
        if !inside.starts_with("MQTT-") && !inside.starts_with("MQTT3-") {
            continue;
        }
        let line = line_at(text, offset);
        let Some(id) = inside
            .split_once(']')
            .map(|(id, _)| id)
            .filter(|id| is_id(id))
        else {
            let message =
                "not a tag; one id in each pair of brackets: `[MQTT-3.3.1-2]` or `[MQTT3-3.3.1-2]`";
            bad.push(Violation::new(path, line, message));
            continue;
        };
        let ranges = test_ranges.get_or_insert_with(|| test_lines(text, &mask(text)));
        let test = is_test_file || ranges.iter().any(|range| range.contains(&line));
        tags.push(Tag {
            id: id.to_owned(),
            path: path.to_owned(),
            line,
            test,
        });
    }
    (tags, bad)
}

/// Tags that refer to no statement.
pub(crate) fn unknown(tags: &[Tag], documents: &[Document]) -> Vec<Violation> {
    let known: BTreeSet<&str> = documents
        .iter()
        .flat_map(Document::statements)
        .map(|row| row.id.as_str())
        .collect();
    tags.iter()
        .filter(|tag| !known.contains(tag.id.as_str()))
        .map(|tag| {
            Violation::new(
                &tag.path,
                tag.line,
                format!("[{}] is not in docs/spec; check the number", tag.id),
            )
        })
        .collect()
}

fn is_id(id: &str) -> bool {
    let Some(numbers) = id
        .strip_prefix("MQTT-")
        .or_else(|| id.strip_prefix("MQTT3-"))
    else {
        return false;
    };
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    match numbers.split_once('-') {
        Some((section, count)) => {
            section.split('.').count() == 3 && section.split('.').all(digits) && digits(count)
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tags: &[Tag]) -> Vec<(&str, bool)> {
        tags.iter().map(|tag| (tag.id.as_str(), tag.test)).collect()
    }

    #[test]
    fn the_position_of_a_tag_determines_its_kind() {
        let text = "fn a() {\n    b(); // [MQTT-3.1.0-1] [MQTT3-3.1.0-1]\n}\n\n\
            /// Proves [MQTT-3.1.0-2].\n#[test]\nfn c() {\n    // [MQTT-3.1.2-1]\n}\n\
            #[cfg(test)]\nmod tests {\n    // [MQTT-3.1.2-2]\n}\n";
        let (tags, bad) = read("crates/a/src/b.rs", text);
        assert_eq!(bad, []);
        assert_eq!(
            ids(&tags),
            [
                ("MQTT-3.1.0-1", false),
                ("MQTT3-3.1.0-1", false),
                ("MQTT-3.1.0-2", true),
                ("MQTT-3.1.2-1", true),
                ("MQTT-3.1.2-2", true)
            ]
        );
    }

    #[test]
    fn a_malformed_tag_is_reported() {
        for slip in [
            "[MQTT-3.3.1]",
            "[MQTT-3.3-1]",
            "[MQTT-3.3.1-2, MQTT-3.3.1-3]",
            "[MQTT-3.3.1-2",
        ] {
            assert_eq!(read("a.rs", slip).1.len(), 1, "{slip}");
        }
        assert_eq!(read("a.rs", "[MQTT] [MQTT 5.0]"), (Vec::new(), Vec::new()));
    }

    #[test]
    fn a_number_that_does_not_exist_is_reported() {
        let list = "## 3.1\n| MQTT-3.1.0-1 | both | First. | |\n";
        let documents: Vec<Document> = Document::parse("a.md", list).unwrap().into_iter().collect();
        let (tags, _) = read("a.rs", "// [MQTT-3.1.0-1]\n// [MQTT-3.1.0-9]");
        let found = unknown(&tags, &documents);
        assert_eq!(found.len(), 1);
        assert!(found[0].to_string().starts_with("a.rs:2:"));
    }
}
