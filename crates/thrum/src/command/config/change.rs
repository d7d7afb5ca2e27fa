//! `thrum config set`, `diff` and `reload`: the configuration of a running broker.

use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value, json};
use thrum_management::api::{Applied, Difference, Plan, Reloaded};

use crate::command::Failure;
use crate::command::running::{Form, Output, Running};
use crate::command::shown::json_line;

const SET_NOTES: &str = "\
The key is written into managed.toml in the data directory of the broker, and is in force at once. The configuration file,
variables and flags win over it: a key that they set is refused with its place.";

/// Arguments of `thrum config set`.
#[derive(Debug, Args)]
#[command(after_help = SET_NOTES)]
pub(super) struct SetArgs {
    /// The key, such as `limits.max_packet`.
    key: String,
    /// Its value, as a file has it or as plain text.
    #[arg(required_unless_present = "unset", conflicts_with = "unset")]
    value: Option<String>,
    /// Take the key out of managed.toml: its default holds again.
    #[arg(long)]
    unset: bool,
    /// Print what would differ, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum config diff` and `reload`.
#[derive(Debug, Args)]
pub(super) struct AskArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Sets a key, or takes it back.
pub(super) fn set(args: &SetArgs) -> anyhow::Result<()> {
    let value = args.value.as_deref().map_or(Value::Null, Value::from);
    let changes = json!(Map::from_iter([(args.key.clone(), value)]));
    let body = json!({ "changes": changes });
    let plan: Plan = args.running.send("/config/plan", &body)?;
    if args.dry_run {
        return print_plan(&plan, &args.output, "nothing would differ");
    }
    check_edits(&plan)?;
    let body = json!({ "changes": changes, "fingerprint": plan.fingerprint });
    let applied: Applied = args.running.send("/config/apply", &body)?;
    print_applied(&applied, &args.output)
}

/// Fails if a change would take over what somebody has edited since the last reload: that was not
/// asked for.
pub(super) fn check_edits(plan: &Plan) -> anyhow::Result<()> {
    if plan.edited.is_empty() {
        return Ok(());
    }
    let keys = plan.edited.join(", ");
    let what = format!(
        "files were edited since the broker read them, and this would change these keys too: {keys}; nothing was \
         changed; thrum config diff shows them, thrum config reload takes them over, and thrum config rollback undoes \
         an edit of managed.toml"
    );
    Err(Failure::with_code(Failure::CONFLICT, what))
}

/// Prints what has changed, and the version that this is.
pub(super) fn print_applied(applied: &Applied, output: &Output) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if output.form == Form::Json {
        writeln!(out, "{}", json_line(applied)?)?;
        return Ok(());
    }
    write!(out, "{}", lines(&applied.differences))?;
    let mut errors = std::io::stderr();
    if applied.restart.is_empty() {
        writeln!(errors, "in force, as version {}", applied.version)?;
    } else {
        writeln!(
            errors,
            "written as version {}; waits for a restart: {}",
            applied.version,
            applied.restart.join(", ")
        )?;
    }
    Ok(())
}

/// Prints what a reload would change.
pub(super) fn diff(args: &AskArgs) -> anyhow::Result<()> {
    let plan: Plan = args
        .running
        .send("/config/plan", &json!({ "changes": {} }))?;
    print_plan(&plan, &args.output, "the broker has what its files say")
}

/// Reads files and variables again.
pub(super) fn reload(args: &AskArgs) -> anyhow::Result<()> {
    let reloaded: Reloaded = args.running.send("/config/reload", &Value::Null)?;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        writeln!(out, "{}", json_line(&reloaded)?)?;
        return Ok(());
    }
    let list = |keys: &[String]| keys.join(", ");
    match reloaded.changed.as_slice() {
        [] => writeln!(out, "reloaded; nothing has changed")?,
        changed => writeln!(out, "reloaded; changed: {}", list(changed))?,
    }
    if !reloaded.restart.is_empty() {
        writeln!(out, "waits for a restart: {}", list(&reloaded.restart))?;
    }
    Ok(())
}

fn print_plan(plan: &Plan, output: &Output, none: &str) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    if output.form == Form::Json {
        writeln!(out, "{}", json_line(plan)?)?;
        return Ok(());
    }
    write!(out, "{}", lines(&plan.differences))?;
    if plan.differences.is_empty() {
        writeln!(std::io::stderr(), "{none}")?;
    }
    Ok(())
}

/// One line for each key: `limits.max_packet: "1MiB" -> "2MB"`.
fn lines(differences: &[Difference]) -> String {
    let shown = |value: &Option<Value>| {
        let value = value.as_ref().map(json_line).transpose();
        value.ok().flatten().unwrap_or_else(|| "none".to_owned())
    };
    let line = |difference: &Difference| {
        let Difference {
            key,
            before,
            after,
            restart,
        } = difference;
        let restart = if *restart { "  (at a restart)" } else { "" };
        format!("{key}: {} -> {}{restart}\n", shown(before), shown(after))
    };
    differences.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_one_line() {
        let difference = |before: Option<Value>, after, restart| Difference {
            key: "a.b".to_owned(),
            before,
            after,
            restart,
        };
        let both = [
            difference(Some(json!("x\u{1b}")), Some(json!(["y", 1])), false),
            difference(None, Some(json!(5)), true),
        ];
        assert_eq!(
            lines(&both),
            "a.b: \"x\\u001b\" -> [\"y\",1]\na.b: none -> 5  (at a restart)\n"
        );
    }
}
