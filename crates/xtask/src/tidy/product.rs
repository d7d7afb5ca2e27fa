//! Product code: the source in `crates/` without tests and development tools.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{is_rust, is_test_file, line_at, mask, test_lines};
use crate::tidy::unnamed_files::{module_of, modules_named_in};

/// A file of product code.
#[derive(Debug)]
pub(super) struct ProductFile<'a> {
    pub(super) path: &'a str,
    pub(super) text: &'a str,
    /// Its code only: comments, the contents of literals and tests are blank.
    pub(super) masked: String,
}

impl ProductFile<'_> {
    /// Folder name of its crate.
    pub(super) fn crate_name(&self) -> &str {
        let rest = self.path.strip_prefix("crates/").unwrap_or(self.path);
        rest.split('/').next().unwrap_or(rest)
    }

    /// `worker::queue` for `crates/broker/src/worker/queue.rs`; empty for the root of a crate.
    pub(super) fn module(&self) -> String {
        let (_, inside) = self.path.split_once("/src/").unwrap_or(("", self.path));
        let module = module_of(inside);
        match module.as_str() {
            "lib" | "main" => String::new(),
            module => module.replace('/', "::"),
        }
    }

    /// The line of a position in the masked text.
    pub(super) fn line(&self, at: usize) -> usize {
        line_at(&self.masked, at)
    }
}

/// Extracts the product code from all source files.
pub(super) fn product_files(source: &BTreeMap<String, String>) -> Vec<ProductFile<'_>> {
    let shipped = source.iter().filter(|(path, _)| {
        path.starts_with("crates/")
            && path.contains("/src/")
            && is_rust(path)
            && !is_test_file(path)
    });
    let mut test_modules = BTreeSet::new();
    let mut files: Vec<ProductFile<'_>> = Vec::new();
    for (path, text) in shipped {
        let (masked, tests) = without_tests(text);
        test_modules.extend(modules_named_in(path, &tests));
        files.push(ProductFile { path, text, masked });
    }
    files.retain(|file| {
        let module = module_of(file.path);
        let mut parents = module.match_indices('/').map(|(at, _)| &module[..at]);
        !test_modules.contains(&module) && !parents.any(|parent| test_modules.contains(parent))
    });
    files
}

/// The masked text with blanked tests, and the lines of the tests.
fn without_tests(text: &str) -> (String, String) {
    let masked = mask(text);
    let ranges = test_lines(text, &masked);
    let mut product = String::with_capacity(masked.len());
    let mut tests = String::new();
    let lines = masked.split_inclusive('\n').zip(text.lines());
    for (number, (code, written)) in (1..).zip(lines) {
        if ranges.iter().any(|range| range.contains(&number)) {
            product.extend(code.bytes().map(|byte| match byte {
                b'\n' => '\n',
                _ => ' ',
            }));
            tests.push_str(written);
            tests.push('\n');
        } else {
            product.push_str(code);
        }
    }
    (product, tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_not_product_code() {
        let source = BTreeMap::from(
            [
                (
                    "crates/a/src/lib.rs",
                    "mod b;\nmod e;\n#[cfg(test)]\nmod c;\n#[cfg(test)]\nmod tests {\n fn d() {}\n}\n",
                ),
                ("crates/a/src/b.rs", "fn e() { \"text\"; } // why\n"),
                ("crates/a/src/c/mod.rs", ""),
                ("crates/a/src/c/deep.rs", ""),
                ("crates/a/src/e/mod.rs", ""),
                ("crates/a/src/e/tests.rs", ""),
                ("crates/a/tests/f.rs", ""),
                ("tests/g/src/lib.rs", ""),
            ]
            .map(|(path, text)| (path.to_owned(), text.to_owned())),
        );
        let files = product_files(&source);
        let modules: Vec<String> = files.iter().map(ProductFile::module).collect();
        assert_eq!(modules, ["b", "e", ""]);
        let [b, _, root] = files.as_slice() else {
            panic!("{files:?}");
        };
        assert_eq!(b.masked, "fn e() { \"    \"; }       \n");
        assert!(!root.masked.contains("fn d"), "{root:?}");
        assert_eq!(root.masked.len(), root.text.len());
        assert_eq!(root.crate_name(), "a");
    }
}
