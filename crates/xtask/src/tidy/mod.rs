//! `cargo xtask tidy`: the rules of the repository that neither rustc nor clippy knows.

mod blobs;
mod crate_root;
mod layers;
mod length;
mod machine_paths;
mod names;
mod purpose;
mod unnamed_files;

use anyhow::Result;

use crate::violation::report;
use crate::workspace::Workspace;

/// What a person writes by hand; lock files, captures and pictures are not.
const SOURCE: [&str; 9] = [
    ".rs", ".py", ".js", ".mjs", ".ts", ".svelte", ".sh", ".toml", "Makefile",
];
const TEXT: [&str; 15] = [
    ".rs", ".py", ".js", ".mjs", ".ts", ".svelte", ".sh", ".toml", "Makefile", ".md", ".json",
    ".yml", ".yaml", ".conf", ".ci/run",
];

/// Runs every check and tells whether the tree is tidy.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let packages = workspace.packages()?;
    let source = workspace.read(&[""], &SOURCE)?;
    let text = workspace.read(&[""], &TEXT)?;
    let mut found = Vec::new();
    for (path, content) in &source {
        found.extend(length::check(path, content));
        found.extend(names::check(path));
        found.extend(purpose::check(path, content));
        found.extend(crate_root::check(path, content));
    }
    for (path, content) in &text {
        found.extend(machine_paths::check(path, content));
    }
    found.extend(unnamed_files::check(&packages, &source));
    found.extend(layers::check(&packages, &source));
    found.extend(blobs::check(workspace)?);
    Ok(report("tidy", found))
}
