//! The programs built by cargo: the tests and the program under test.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{Workspace, cargo};

/// The profile in which everything is built once: the program under test, the tests and the tools.
const PROFILE: &str = "gate";

/// A test program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TestProgram {
    /// Package without `thrum-`, then the target, unless it is the package's library or program.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Folder of the package, in which cargo runs its tests.
    pub(super) folder: PathBuf,
}

/// All built programs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Built {
    pub(super) tests: Vec<TestProgram>,
    /// The program under test.
    pub(super) thrum: PathBuf,
}

/// Builds all programs.
pub(super) fn build(workspace: &Workspace) -> Result<Built> {
    let build = cargo(&workspace.root)
        .args(["test", "--profile", PROFILE, "--workspace"])
        .args(["--lib", "--bins", "--tests", "--no-run"])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("cargo test does not start")?;
    if !build.status.success() {
        bail!("the tests do not build");
    }
    read(&String::from_utf8_lossy(&build.stdout))
}

/// Reads cargo's messages, one per line.
fn read(messages: &str) -> Result<Built> {
    let mut built = Built::default();
    for message in messages.lines() {
        let message: Value = serde_json::from_str(message).context("a message of cargo")?;
        let Some(path) = message["executable"].as_str() else {
            continue;
        };
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let is_test = message["profile"]["test"].as_bool() == Some(true);
        if is_test {
            let manifest = PathBuf::from(message["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().context("a package has a folder")?;
            built.tests.push(TestProgram {
                name: name(&message["package_id"], &message["target"]["kind"], target),
                path: path.into(),
                folder: folder.to_owned(),
            });
        } else if target == "thrum" {
            built.thrum = path.into();
        }
    }
    if built.thrum.as_os_str().is_empty() || built.tests.is_empty() {
        bail!("the messages of cargo contain no tests, or not the program `thrum`");
    }
    Ok(built)
}

fn name(package_id: &Value, kind: &Value, target: &str) -> String {
    // `path+file:///repository/crates/codec#thrum-codec@0.1.0`, or `…/crates/xtask#0.1.0`.
    let id = package_id.as_str().unwrap_or_default();
    let (place, version) = id.rsplit_once('#').unwrap_or((id, ""));
    let package = match version.split_once('@') {
        Some((package, _)) => package,
        None => place.rsplit('/').next().unwrap_or(place),
    };
    let package = package.trim_start_matches("thrum-");
    match kind[0].as_str() {
        Some("test") => format!("{package} {target}"),
        Some("bin") => format!("{package} program"),
        _ => format!("{package} lib"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn message(id: &str, kind: &str, target: &str, is_test: bool) -> String {
        json!({
            "reason": "compiler-artifact",
            "package_id": id,
            "manifest_path": "/r/crates/codec/Cargo.toml",
            "target": {"kind": [kind], "name": target},
            "profile": {"test": is_test},
            "executable": format!("/t/{target}"),
        })
        .to_string()
    }

    #[test]
    fn tests_and_the_program_under_test_are_found() {
        let messages = [
            message(
                "path+file:///r/crates/codec#thrum-codec@0.1.0",
                "lib",
                "thrum_codec",
                true,
            ),
            message(
                "path+file:///r/crates/codec#thrum-codec@0.1.0",
                "test",
                "round",
                true,
            ),
            message("path+file:///r/crates/xtask#0.1.0", "bin", "xtask", true),
            message("path+file:///r/crates/thrum#0.1.0", "bin", "thrum", false),
            json!({"reason": "build-finished", "success": true}).to_string(),
        ];
        let built = read(&messages.join("\n")).unwrap();
        let names: Vec<&str> = built.tests.iter().map(|test| test.name.as_str()).collect();
        assert_eq!(names, ["codec lib", "codec round", "xtask program"]);
        assert_eq!(built.tests[1].path, PathBuf::from("/t/round"));
        assert_eq!(built.tests[1].folder, PathBuf::from("/r/crates/codec"));
        assert_eq!(built.thrum, PathBuf::from("/t/thrum"));
    }

    #[test]
    fn a_build_without_the_program_under_test_is_an_error() {
        let only = message(
            "path+file:///r/crates/codec#thrum-codec@0.1.0",
            "lib",
            "c",
            true,
        );
        assert!(read(&only).is_err());
    }
}
