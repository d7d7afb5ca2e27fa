//! The repository as input of the checks: its files and packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Folders without source of the repository, for trees without git.
const FOREIGN_FOLDERS: [&str; 5] = [".git", "target", "node_modules", ".venv", "runs"];

/// The repository on disk.
pub(crate) struct Workspace {
    /// The folder of the root `Cargo.toml`.
    pub(crate) root: PathBuf,
    /// Every file that is or could be committed, relative to the root, sorted.
    pub(crate) files: Vec<String>,
}

/// A package of the workspace.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Path of its `Cargo.toml`, relative to the root of the repository.
    pub(crate) manifest: String,
    /// The source files that cargo passes to the compiler, relative to the root of the repository.
    pub(crate) targets: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
}

/// A dependency of a package.
#[derive(Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// Whether only tests and benches use it.
    pub(crate) dev: bool,
}

impl Workspace {
    /// Finds the repository in which this tool was built and lists its files.
    pub(crate) fn open() -> Result<Self> {
        let root = match std::env::var_os("CARGO_MANIFEST_DIR") {
            Some(own) => Path::new(&own).join("../..").canonicalize()?,
            None => std::env::current_dir()?,
        };
        if !root.join("Cargo.toml").is_file() {
            bail!(
                "{} is not the repository; run this as `cargo xtask`",
                root.display()
            );
        }
        let mut files = match git_files(&root) {
            Some(files) => files,
            None => walk(&root)?,
        };
        files.retain(|file| root.join(file).is_file());
        files.sort();
        Ok(Self { root, files })
    }

    /// The text of every file with one of these extensions in one of these folders; an empty folder
    /// is the root.
    pub(crate) fn read(
        &self,
        folders: &[&str],
        endings: &[&str],
    ) -> Result<BTreeMap<String, String>> {
        let wanted = |file: &&String| {
            folders.iter().any(|folder| file.starts_with(folder))
                && endings.iter().any(|ending| file.ends_with(ending))
        };
        let mut texts = BTreeMap::new();
        for file in self.files.iter().filter(wanted) {
            let bytes = std::fs::read(self.root.join(file)).with_context(|| file.clone())?;
            texts.insert(file.clone(), String::from_utf8_lossy(&bytes).into_owned());
        }
        Ok(texts)
    }

    /// The packages as reported by cargo.
    pub(crate) fn packages(&self) -> Result<Vec<Package>> {
        let output = cargo(&self.root)
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .output()
            .context("cargo metadata does not start")?;
        if !output.status.success() {
            bail!(
                "cargo metadata: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        packages_of(&serde_json::from_slice(&output.stdout)?)
    }
}

/// The cargo that runs this tool.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn git_files(root: &Path) -> Option<Vec<String>> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*", "ls-files", "-z"])
        .args(["--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let listing = String::from_utf8_lossy(&output.stdout);
    Some(listing.split_terminator('\0').map(str::to_owned).collect())
}

fn walk(root: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut open = vec![root.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            let foreign = path
                .file_name()
                .is_some_and(|name| FOREIGN_FOLDERS.iter().any(|own| name == *own));
            if path.is_dir() && !foreign {
                open.push(path);
            } else if path.is_file() {
                files.push(path.strip_prefix(root)?.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

/// Parses the output of `cargo metadata --no-deps`.
fn packages_of(metadata: &Value) -> Result<Vec<Package>> {
    let root = text(metadata, "workspace_root")?;
    let packages = list(metadata, "packages")?;
    packages
        .iter()
        .map(|package| package_of(package, root))
        .collect()
}

fn package_of(package: &Value, root: &str) -> Result<Package> {
    let relative = |path: &str| {
        path.trim_start_matches(root)
            .trim_start_matches('/')
            .to_owned()
    };
    let mut targets = Vec::new();
    for target in list(package, "targets")? {
        targets.push(relative(text(target, "src_path")?));
    }
    let mut dependencies = Vec::new();
    for dependency in list(package, "dependencies")? {
        dependencies.push(Dependency {
            name: text(dependency, "name")?.to_owned(),
            dev: dependency["kind"].as_str() == Some("dev"),
        });
    }
    Ok(Package {
        name: text(package, "name")?.to_owned(),
        manifest: relative(text(package, "manifest_path")?),
        targets,
        dependencies,
    })
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key]
        .as_str()
        .with_context(|| format!("cargo metadata has no `{key}`"))
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key]
        .as_array()
        .with_context(|| format!("cargo metadata has no `{key}`"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn packages_are_read_relative_to_the_root() {
        let metadata = json!({"workspace_root": "/r", "packages": [{
            "name": "thrum-codec",
            "manifest_path": "/r/crates/codec/Cargo.toml",
            "targets": [
                {"kind": ["lib"], "src_path": "/r/crates/codec/src/lib.rs"},
                {"kind": ["test"], "src_path": "/r/crates/codec/tests/round.rs"},
            ],
            "dependencies": [{"name": "thiserror", "kind": null}, {"name": "proptest", "kind": "dev"}],
        }]});
        let packages = packages_of(&metadata).unwrap();
        assert_eq!(packages[0].manifest, "crates/codec/Cargo.toml");
        assert_eq!(
            packages[0].targets,
            ["crates/codec/src/lib.rs", "crates/codec/tests/round.rs"]
        );
        assert!(!packages[0].dependencies[0].dev && packages[0].dependencies[1].dev);
    }
}
