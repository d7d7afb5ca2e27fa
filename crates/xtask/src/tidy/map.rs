//! Refuses paths in the maps of the repository that lead to no file.

use std::collections::BTreeMap;

use crate::violation::Violation;

/// Pages that send a reader to files of the source.
const MAPS: [&str; 3] = [
    "ARCHITECTURE.md",
    "docs/internals.md",
    "docs/performance/cores.md",
];

/// Finds such paths: `engine: core.rs` is a file in `src/` of a crate, `engine/src/sinks/` a file
/// or folder below `crates/`.
pub(super) fn check(text: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for page in MAPS {
        match text.get(page) {
            Some(content) => found.extend(check_page(page, content, text)),
            None => found.push(Violation::new(page, 1, "the map is missing")),
        }
    }
    found
}

fn check_page(page: &str, content: &str, text: &BTreeMap<String, String>) -> Vec<Violation> {
    let mut found = Vec::new();
    let codes = content.lines().zip(1..).flat_map(|(line, number)| {
        let codes = line.split('`').skip(1).step_by(2);
        codes.map(move |code| (code, number))
    });
    for (code, number) in codes {
        if let Some(path) = path_of(code)
            && !text.keys().any(|file| file.starts_with(&path))
        {
            let message = format!("`{code}` leads to no file ({path}); correct the map");
            found.push(Violation::new(page, number, message));
        }
    }
    found
}

/// The path below the root, if the code is one.
fn path_of(code: &str) -> Option<String> {
    if let Some((folder, file)) = code.split_once(": ")
        && let Some(module) = file.strip_suffix(".rs")
    {
        return Some(format!("crates/{folder}/src/{module}.rs"));
    }
    let is_path = code.contains("/src/") && !code.contains(' ');
    is_path.then(|| format!("crates/{code}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(architecture: &str) -> BTreeMap<String, String> {
        let mut text: BTreeMap<_, _> = MAPS.map(|page| (page.to_owned(), String::new())).into();
        text.insert("ARCHITECTURE.md".to_owned(), architecture.to_owned());
        text.insert("crates/engine/src/core.rs".to_owned(), String::new());
        text
    }

    #[test]
    fn a_map_names_files_and_folders_that_exist() {
        let good = "`engine: core.rs`, `engine/src/core.rs`, `engine/src/`, `Core::with`, `tui/`";
        assert_eq!(check(&pages(good)), []);
    }

    #[test]
    fn a_path_that_leads_to_no_file_is_found() {
        for wrong in [
            "`engine: gone.rs`",
            "`broker/src/engine/core.rs`",
            "`engine/src/sinks/`",
        ] {
            let found = check(&pages(&format!("first line\n| {wrong} |")));
            assert_eq!(found.len(), 1, "{wrong}");
            assert!(found[0].to_string().starts_with("ARCHITECTURE.md:2: "));
        }
    }

    #[test]
    fn a_missing_map_is_found() {
        let mut text = pages("");
        text.remove("docs/internals.md");
        assert_eq!(check(&text).len(), 1);
    }
}
