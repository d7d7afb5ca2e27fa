//! `thrum config versions` and `rollback`: the versions of the keys that were set on a running
//! broker.

use std::io::Write as _;

use clap::Args;
use serde_json::json;
use thrum_management::api::{Applied, ConfigurationVersion, OverriddenKey, Plan, VersionList};

use super::change::{check_edits, print_applied};
use crate::command::Failure;
use crate::command::listing::{self, Cell, Column, FilterArgs, ListArgs, Listing, Question};
use crate::command::running::{Method, Output, Running};

/// The route that lists them.
const VERSIONS: &str = "/config/versions";

const ROLLBACK_NOTES: &str = "\
The keys of that version become a new version of managed.toml, and are in force at once: a second rollback undoes the first. It also cures a file
that was damaged. It is refused if other files were edited since the broker read them; it names keys of the version that such a file, a variable or a
flag sets, and which therefore have no effect.";

/// Arguments of `thrum config versions`.
#[derive(Debug, Args)]
pub(super) struct VersionsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    filter: FilterArgs,
    #[command(flatten)]
    list: ListArgs,
}

/// Arguments of `thrum config rollback`.
#[derive(Debug, Args)]
#[command(after_help = ROLLBACK_NOTES)]
pub(super) struct RollbackArgs {
    /// Its number, as versions prints it; 0 is no key set. Without one, the version before that in
    /// force.
    version: Option<u64>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

static LIST: Listing = Listing {
    member: "versions",
    columns: &[
        Column::new("version", "VERSION", Cell::Text(0)),
        Column::new("at", "MADE", Cell::Text(0)),
        Column::new("keys", "KEYS", Cell::Count),
        Column::new("current", "CURRENT", Cell::Text(0)),
        Column::new("by", "BY", Cell::Text(0)),
    ],
    one: "version",
    many: "versions",
    aliases: &[("made", "at")],
    identity: "version",
    sum: "",
};

/// Lists.
pub(super) fn list(args: &VersionsArgs) -> anyhow::Result<()> {
    let question = Question::new(VERSIONS).whole();
    let list = args.list.unlimited();
    listing::run_filtered(&args.running, &LIST, &question, &list, &args.filter)
}

/// Returns to a version.
pub(super) fn roll_back(args: &RollbackArgs) -> anyhow::Result<()> {
    let version = args.version.map_or_else(|| before_current(args), Ok)?;
    let plan: Plan = args
        .running
        .send("/config/plan", &json!({ "version": version }))?;
    check_edits(&plan)?;
    let body = json!({ "version": version, "fingerprint": plan.fingerprint });
    let applied: Applied = args.running.send("/config/rollback", &body)?;
    print_applied(&applied, &args.output)?;
    let mut errors = std::io::stderr();
    for overridden in &plan.overridden {
        let OverriddenKey { key, set_at } = overridden;
        writeln!(errors, "no effect: {key} is set by {set_at}, which wins")?;
    }
    Ok(())
}

fn before_current(args: &RollbackArgs) -> anyhow::Result<u64> {
    let list: VersionList = args.running.ask(Method::Get, VERSIONS)?;
    before(&list.versions).ok_or_else(|| {
        let what = "no key was ever set on this broker, so there is no version to return to";
        Failure::with_code(Failure::NOT_FOUND, what)
    })
}

/// The version before the one in force: of a file that was edited or damaged, what it was before.
/// One that cannot be read is none to return to.
fn before(versions: &[ConfigurationVersion]) -> Option<u64> {
    let others = versions.iter();
    let others = others.filter(|version| !version.current && !version.damaged);
    let newest = others.map(|version| version.version).max();
    newest.or_else(|| (!versions.is_empty()).then_some(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(numbers: &[u64], current: u64) -> Vec<ConfigurationVersion> {
        let versions = numbers.iter().map(|number| ConfigurationVersion {
            version: *number,
            at: None,
            by: None,
            current: *number == current,
            keys: 0,
            damaged: false,
        });
        versions.collect()
    }

    #[test]
    fn a_rollback_without_a_number_returns_to_the_version_before() {
        assert_eq!(before(&list(&[3, 2, 1], 3)), Some(2));
        assert_eq!(before(&list(&[1], 1)), Some(0), "no key was set before");
        assert_eq!(before(&list(&[2, 1, 0], 0)), Some(2), "the file is damaged");
        assert_eq!(before(&[]), None);
        let mut damaged = list(&[3, 2, 1], 3);
        damaged[1].damaged = true;
        assert_eq!(before(&damaged), Some(1), "nobody can return to version 2");
        damaged[2].damaged = true;
        assert_eq!(before(&damaged), Some(0));
    }
}
