//! `cargo xtask mutants`: changes a random sample of places in the code, one at a time, and tells
//! which changes no test notices.
//!
//! cargo-mutants makes the changes; `.cargo/mutants.toml` lists the exclusions. Each crate is
//! tested by its own tests only, since a contributor runs only those while changing it.

mod options;
mod tally;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::workspace::{Workspace, cargo};
pub(crate) use options::Options;
use tally::Tally;

/// Viable mutants of a crate that its tests catch at least, in percent.
const CAUGHT_PERCENT_MIN: usize = 95;
/// cargo-mutants ends with these if it ran: all mutants were caught, some were missed, or some ran
/// into the time limit.
const RAN: [i32; 3] = [0, 2, 3];
/// Folder of the logs and differences of the mutants, below that of the build.
const OUTPUT: &str = "mutants-of";

/// Tests a sample of the mutants of each crate and tells whether enough are caught in all of them.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let target = target_folder(workspace)?;
    println!("mutants: again with {}", options.again());
    let mut tallies = Vec::new();
    for name in &options.crates {
        let package = format!("thrum-{name}");
        let total = count(workspace, &package)?;
        let output = target.join(OUTPUT).join(name);
        let shard = options.shard(total);
        println!("{package}: shard {shard} of {total} mutants");
        test(workspace, &package, &shard, &target, &output)?;
        let outcomes = output.join("mutants.out/outcomes.json");
        let text = std::fs::read_to_string(&outcomes)
            .with_context(|| format!("{} cannot be read", outcomes.display()))?;
        tallies.push(Tally::parse(name, &text)?);
    }
    print!("{}", tally::table(&tallies));
    let short: Vec<&str> = tallies
        .iter()
        .filter(|tally| tally.caught_percent() < CAUGHT_PERCENT_MIN)
        .map(|tally| tally.name.as_str())
        .collect();
    if short.is_empty() {
        println!("mutants: ok");
    } else {
        println!(
            "mutants: the tests catch fewer than {CAUGHT_PERCENT_MIN} % of the sample of {}; again with {}",
            short.join(", "),
            options.again()
        );
    }
    Ok(short.is_empty())
}

/// The folder that cargo builds in.
fn target_folder(workspace: &Workspace) -> Result<PathBuf> {
    let output = cargo(&workspace.root)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .output()
        .context("cargo metadata does not start")?;
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let folder = metadata["target_directory"].as_str();
    Ok(folder
        .context("cargo metadata has no target folder")?
        .into())
}

/// Mutants of a package.
fn count(workspace: &Workspace, package: &str) -> Result<usize> {
    let output = cargo(&workspace.root)
        .args(["mutants", "--list", "--package", package])
        .output()
        .context("cargo mutants does not start")?;
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("cargo mutants does not list the mutants of {package}: {error}");
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().count())
}

/// Tests a shard in a copy of the repository. The copies share one build folder, so that the
/// dependencies are built once, and build incrementally, because a mutant is a small change.
fn test(
    workspace: &Workspace,
    package: &str,
    shard: &str,
    target: &Path,
    output: &Path,
) -> Result<()> {
    std::fs::create_dir_all(output)
        .with_context(|| format!("{} cannot be made", output.display()))?;
    let status = cargo(&workspace.root)
        .args(["mutants", "--package", package, "--shard", shard])
        .args(["--sharding", "round-robin", "--colors", "never", "--output"])
        .arg(output)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "1")
        .status()
        .context("cargo mutants does not start")?;
    match status.code() {
        Some(code) if RAN.contains(&code) => Ok(()),
        _ => bail!("cargo mutants ended with {status} for {package}"),
    }
}
