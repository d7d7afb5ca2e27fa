//! The module tree of a crate: which files a target's root reaches, and which of them only for tests.

use std::collections::BTreeMap;

use crate::source::{item_end, mask};

/// A `mod name;` as written in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declaration {
    /// Inline modules around it, outermost first.
    inside: Vec<String>,
    name: String,
    /// The value of a `#[path]` attribute.
    path: Option<String>,
    test_only: bool,
}

/// Where the compiler begins to read: the root file of a target.
#[derive(Debug, Clone)]
pub(crate) struct Root {
    /// Path from the root of the repository.
    pub(crate) path: String,
    /// Test, bench and example targets never ship.
    pub(crate) test_only: bool,
}

/// Every file the roots reach, with whether it is compiled for tests only.
pub(crate) fn reachable(
    roots: &[Root],
    files: &BTreeMap<String, String>,
) -> BTreeMap<String, bool> {
    let mut reached: BTreeMap<String, bool> = BTreeMap::new();
    let mut open: Vec<(String, bool, String)> = roots
        .iter()
        .map(|root| {
            (
                root.path.clone(),
                root.test_only,
                folder_of(&root.path).to_owned(),
            )
        })
        .collect();
    while let Some((path, test_only, children)) = open.pop() {
        let Some(text) = files.get(&path) else {
            continue;
        };
        if reached
            .get(&path)
            .is_some_and(|before| !before || test_only)
        {
            continue;
        }
        for declaration in declarations(text) {
            let test_only = test_only || declaration.test_only;
            let existing = candidates(&declaration, &path, &children)
                .into_iter()
                .filter(|(file, _)| files.contains_key(file));
            open.extend(existing.map(|(file, children)| (file, test_only, children)));
        }
        reached.insert(path, test_only);
    }
    reached
}

/// Every `mod name;` of a file.
pub(crate) fn declarations(text: &str) -> Vec<Declaration> {
    let masked = mask(text);
    let mut inline: Vec<(String, std::ops::Range<usize>)> = Vec::new();
    let mut found = Vec::new();
    for (offset, _) in masked.match_indices("mod ") {
        if masked[..offset].ends_with(|byte: char| byte.is_alphanumeric() || byte == '_') {
            continue;
        }
        let rest = &masked[offset + 4..];
        let name: String = rest
            .trim_start()
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        let behind = rest.trim_start()[name.len()..].trim_start();
        if behind.starts_with('{') {
            inline.push((name, offset..item_end(&masked, offset)));
        } else if behind.starts_with(';') {
            let before = masked[..offset]
                .rfind([';', '{', '}'])
                .map_or(0, |end| end + 1);
            let attributes = &text[before..offset];
            let inside = inline.iter().filter(|(_, range)| range.contains(&offset));
            found.push(Declaration {
                inside: inside.map(|(name, _)| name.clone()).collect(),
                name,
                path: path_attribute(attributes),
                test_only: masked[before..offset].contains("cfg(test")
                    || masked[before..offset].contains("cfg(all(test"),
            });
        }
    }
    found
}

fn path_attribute(attributes: &str) -> Option<String> {
    let value = attributes.split("#[path").nth(1)?.split('"').nth(1)?;
    Some(value.to_owned())
}

/// The files a declaration may mean, each with the folder its own children lie in.
fn candidates(declaration: &Declaration, file: &str, children: &str) -> Vec<(String, String)> {
    let join = |folder: &str, rest: &str| {
        if folder.is_empty() {
            rest.to_owned()
        } else {
            format!("{folder}/{rest}")
        }
    };
    if let Some(path) = &declaration.path {
        let target = without_dots(&join(folder_of(file), path));
        return vec![(target.clone(), folder_of(&target).to_owned())];
    }
    let mut folder = children.to_owned();
    for module in &declaration.inside {
        folder = join(&folder, module);
    }
    let own = join(&folder, &declaration.name);
    vec![
        (format!("{own}.rs"), own.clone()),
        (format!("{own}/mod.rs"), own),
    ]
}

/// Resolves the `.` and `..` of a `#[path]`.
fn without_dots(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    }

    fn library() -> Vec<Root> {
        vec![Root {
            path: "c/src/lib.rs".to_owned(),
            test_only: false,
        }]
    }

    #[test]
    fn files_and_folders_are_followed() {
        let files = files(&[
            ("c/src/lib.rs", "pub mod a;\nmod b;"),
            ("c/src/a.rs", "mod deep;"),
            ("c/src/a/deep.rs", ""),
            ("c/src/b/mod.rs", "mod leaf;"),
            ("c/src/b/leaf.rs", ""),
            ("c/src/dead.rs", ""),
        ]);
        let reached = reachable(&library(), &files);
        let alive: Vec<&str> = reached.keys().map(String::as_str).collect();
        assert_eq!(
            alive,
            [
                "c/src/a.rs",
                "c/src/a/deep.rs",
                "c/src/b/leaf.rs",
                "c/src/b/mod.rs",
                "c/src/lib.rs"
            ]
        );
    }

    #[test]
    fn a_module_declared_for_tests_is_a_test_with_all_below_it() {
        let files = files(&[
            ("c/src/lib.rs", "mod a;\n#[cfg(test)]\nmod oracle;"),
            ("c/src/a.rs", ""),
            ("c/src/oracle.rs", "mod sub;"),
            ("c/src/oracle/sub.rs", ""),
        ]);
        let reached = reachable(&library(), &files);
        assert!(!reached["c/src/a.rs"]);
        assert!(reached["c/src/oracle.rs"] && reached["c/src/oracle/sub.rs"]);
    }

    #[test]
    fn a_file_that_also_ships_is_not_a_test() {
        let files = files(&[
            ("c/src/lib.rs", "mod a;"),
            ("c/src/a.rs", ""),
            ("c/tests/t.rs", "#[path = \"../src/a.rs\"] mod a;"),
        ]);
        let mut roots = library();
        roots.push(Root {
            path: "c/tests/t.rs".to_owned(),
            test_only: true,
        });
        let reached = reachable(&roots, &files);
        assert!(!reached["c/src/a.rs"]);
        assert!(reached["c/tests/t.rs"]);
    }

    #[test]
    fn words_in_comments_and_other_names_declare_nothing() {
        assert_eq!(
            declarations("// mod a;\nlet s = \"mod b;\"; let m = amod ;"),
            []
        );
    }

    #[test]
    fn inline_modules_add_a_folder() {
        let found = declarations("mod outer { mod inner; }\nmod last;");
        assert_eq!(found[0].inside, ["outer"]);
        assert_eq!(found[1].inside, [""; 0]);
    }
}
