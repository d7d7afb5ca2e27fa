//! `cargo xtask check`: all checks in one command.

use anyhow::{Context, Result};

use crate::workspace::{Workspace, cargo};
use crate::{spec, tidy};

/// Licences, sources and duplicate versions; a check of advisories would need the network.
const DENY: [&str; 5] = ["deny", "check", "bans", "licenses", "sources"];
/// The program without its optional parts; `make parts` checks more combinations.
const SMALLEST: [&str; 9] = [
    "clippy",
    "--package",
    "thrum",
    "--no-default-features",
    "--profile",
    "gate",
    "--quiet",
    "--",
    "-Dwarnings",
];
const NOT_DENIED: &str = "cargo-deny was NOT run: it is not installed (`make deny` installs and runs it, \
    `make night` does too)";

/// Runs every check, even after a failure, and returns whether all passed.
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
                "--profile",
                "gate",
                "--quiet",
                "--",
                "-D",
                "warnings",
            ],
        )?,
    );
    gate(
        "clippy of the smallest program",
        cargo_step(workspace, &SMALLEST)?,
    );
    gate("tidy", tidy::run(workspace)?);
    gate("spec", spec::run(workspace, &spec::View::Table)?);
    let has_deny = has_deny(workspace)?;
    if has_deny {
        gate("deny", cargo_step(workspace, &DENY)?);
    }
    match (failed.as_slice(), has_deny) {
        ([], true) => println!("check: ok"),
        ([], false) => println!("check: ok, but {NOT_DENIED}"),
        (failed, true) => println!("check: failed in {}", failed.join(", ")),
        (failed, false) => println!("check: failed in {}, and {NOT_DENIED}", failed.join(", ")),
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

fn has_deny(workspace: &Workspace) -> Result<bool> {
    let version = cargo(&workspace.root)
        .args(["deny", "--version"])
        .output()?;
    Ok(version.status.success())
}
