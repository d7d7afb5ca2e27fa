//! `cargo xtask check`: every gate in one command.

use anyhow::{Context, Result};

use crate::workspace::{Workspace, cargo};
use crate::{spec, tidy};

/// Runs every gate, also behind one that failed, and tells whether all passed.
pub(crate) fn run(workspace: &Workspace) -> Result<bool> {
    let mut failed = Vec::new();
    let mut gate = |name: &'static str, passed: bool| {
        if !passed {
            failed.push(name);
        }
    };
    gate("fmt", cargo_step(workspace, &["fmt", "--all", "--check"])?);
    gate(
        "clippy",
        cargo_step(
            workspace,
            &[
                "clippy",
                "--workspace",
                "--all-targets",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ],
        )?,
    );
    gate("tidy", tidy::run(workspace)?);
    gate("spec", spec::run(workspace, &spec::View::Table)?);
    gate("deny", deny(workspace)?);
    if failed.is_empty() {
        println!("check: ok");
    } else {
        println!("check: failed in {}", failed.join(", "));
    }
    Ok(failed.is_empty())
}

fn cargo_step(workspace: &Workspace, arguments: &[&str]) -> Result<bool> {
    println!("cargo {}", arguments.join(" "));
    let status = cargo(&workspace.root)
        .args(arguments)
        .status()
        .with_context(|| format!("cargo {} does not start", arguments[0]))?;
    Ok(status.success())
}

/// Licences, advisories and duplicate versions, where cargo-deny is installed.
fn deny(workspace: &Workspace) -> Result<bool> {
    let version = cargo(&workspace.root)
        .args(["deny", "--version"])
        .output()?;
    if !version.status.success() {
        println!("cargo deny: skipped, it is not installed (cargo install --locked cargo-deny)");
        return Ok(true);
    }
    cargo_step(workspace, &["deny", "check", "bans", "licenses", "sources"])
}
