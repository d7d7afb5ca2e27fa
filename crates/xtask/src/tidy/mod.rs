//! `cargo xtask tidy`: the rules of the repository that neither rustc nor clippy checks.

mod blobs;
mod columns;
mod crate_root;
mod inner_layers;
mod known;
mod layers;
mod length;
mod machine_paths;
mod map;
mod names;
mod product;
mod purpose;
mod still_crates;
mod tuple_parameters;
mod type_size;
mod uncalled;
mod unnamed_files;

use anyhow::{Context, Result};

use crate::tidy::known::{Known, Limit};
use crate::tidy::product::product_files;
use crate::violation::report;
use crate::workspace::Workspace;

/// Extensions of files written by hand, without lock files, captures and pictures.
const SOURCE: [&str; 9] = [
    ".rs", ".py", ".js", ".mjs", ".ts", ".svelte", ".sh", ".toml", "Makefile",
];
const TEXT: [&str; 15] = [
    ".rs", ".py", ".js", ".mjs", ".ts", ".svelte", ".sh", ".toml", "Makefile", ".md", ".json",
    ".yml", ".yaml", ".conf", ".ci/run",
];

/// The rules with known exceptions.
const LIMITS: [&Limit; 6] = [
    &type_size::METHODS,
    &type_size::FILES,
    &type_size::FIELDS,
    &tuple_parameters::TUPLES,
    &columns::COLUMNS,
    &uncalled::UNCALLED,
];

/// Runs every check and returns whether all passed.
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
    found.extend(map::check(&text));
    found.extend(unnamed_files::check(&packages, &source));
    found.extend(layers::check(&packages, &source));
    found.extend(inner_layers::check(&source));
    found.extend(blobs::check(workspace)?);
    let known = source.get(known::FILE).context(known::FILE)?;
    let known = Known::parse(known).context(known::FILE)?;
    let product = product_files(&source);
    found.extend(type_size::check(&product, &known));
    found.extend(tuple_parameters::check(&product, &known));
    found.extend(still_crates::check(&product, &packages));
    found.extend(uncalled::check(&product, &known));
    found.extend(columns::check(&source, &known));
    found.extend(known.check_tables(&LIMITS));
    Ok(report("tidy", found))
}
