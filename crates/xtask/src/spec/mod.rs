//! `cargo xtask spec`: which normative statements are enforced and tested, by the tags in the source.

mod coverage;
mod ratchet;
mod statements;
mod tags;

use std::collections::BTreeMap;

use anyhow::{Result, bail};

use crate::modules::{Root, reachable};
use crate::spec::coverage::Coverage;
use crate::spec::statements::Document;
use crate::spec::tags::Tag;
use crate::violation::{Violation, report};
use crate::workspace::Workspace;

const RATCHET: &str = "docs/spec/coverage.toml";
/// Where tags are looked for; this tool talks about tags and has none.
const TAGGED_FOLDERS: [&str; 3] = ["crates/", "fuzz/", "tests/"];
const TAGGED_FILES: [&str; 5] = [".rs", ".py", ".mjs", ".js", ".sh"];
const OWN_FOLDER: &str = "crates/xtask/";

/// What the command line asked for.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Options {
    /// List the statements that lack an enforcing line or a test.
    missing: bool,
    /// Raise the marks of the ratchet file.
    update: bool,
}

impl Options {
    /// Reads `--missing` and `--update`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--missing" => options.missing = true,
                "--update" => options.update = true,
                other => bail!("spec does not know `{other}`; it knows --missing and --update"),
            }
        }
        Ok(options)
    }
}

/// Prints the coverage and tells whether every tag is known and no count has fallen.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<bool> {
    let mut documents = Vec::new();
    for (path, text) in workspace.read(&["docs/spec/"], &[".md"])? {
        documents.extend(Document::parse(&path, &text)?);
    }
    let (tags, mut found) = scan(workspace)?;
    found.extend(tags::unknown(&tags, &documents));
    let covered: Vec<Coverage<'_>> = documents
        .iter()
        .map(|document| Coverage::of(document, &tags))
        .collect();
    for coverage in &covered {
        print!("{}", coverage.table());
    }
    found.extend(covered.iter().flat_map(Coverage::outdated));
    if options.missing {
        for coverage in &covered {
            print!("{}", coverage.missing());
        }
    }
    let path = workspace.root.join(RATCHET);
    let marks = std::fs::read_to_string(&path).unwrap_or_default();
    if options.update {
        std::fs::write(&path, ratchet::raised(&marks, &covered)?)?;
    } else {
        found.extend(ratchet::check(RATCHET, &marks, &covered)?);
    }
    Ok(report("spec", found))
}

/// Every tag in the source, and everything that looks like a tag and is none.
fn scan(workspace: &Workspace) -> Result<(Vec<Tag>, Vec<Violation>)> {
    let mut files = workspace.read(&TAGGED_FOLDERS, &TAGGED_FILES)?;
    files.retain(|path, _| !path.starts_with(OWN_FOLDER));
    let roots: Vec<Root> = workspace
        .packages()?
        .into_iter()
        .flat_map(|package| package.roots)
        .collect();
    let compiled = reachable(&roots, &files);
    let test_files: BTreeMap<&String, bool> = files
        .keys()
        .map(|path| (path, tags::is_test_file(path, compiled.get(path).copied())))
        .collect();
    let mut tags = Vec::new();
    let mut found = Vec::new();
    for (path, text) in &files {
        let (good, bad) = tags::read(path, text, test_files[path]);
        tags.extend(good);
        found.extend(bad);
    }
    Ok((tags, found))
}
