//! `thrum doctor`: is this machine, and is this configuration, fit for a broker?
//!
//! ```text
//!   machine, deployment: read /proc and files -> figures -> checks (pure) -> findings -> text
//! ```

mod checks;
mod deployment;
mod exposure;
mod finding;
mod machine;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use serde_json::json;

use super::shown::{json_line, name};
use crate::config::{self, Request};
use finding::{Finding, Level};

const EXAMPLES: &str = "\
Examples:
  thrum doctor
  thrum doctor -c thrum.toml
  thrum doctor --strict -o json

Run it as the user of the broker: limits and modes are those of who asks. It writes a small file into the data directory to time the disk, and removes it. \
Exit codes: 0 nothing has failed, 1 something has (with --strict also: there is a warning).";

/// Arguments of `thrum doctor`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DoctorArgs {
    /// Configuration of the broker; without it /etc/thrum/thrum.toml if it is there, else the
    /// defaults.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory, in place of that of the configuration.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Fail also with a warning.
    #[arg(long)]
    strict: bool,
    /// Show only what is to be cured.
    #[arg(short, long)]
    quiet: bool,
    /// Form of the findings.
    #[arg(
        short = 'o',
        long = "output",
        value_name = "FORM",
        value_enum,
        default_value_t
    )]
    form: Form,
}

/// Form of the findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text.
    #[default]
    Table,
    /// One JSON object for each finding.
    Json,
}

/// Looks at everything and prints the findings.
pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = findings(args);
    let is_shown = |finding: &&Finding| !args.quiet || finding.level != Level::Ok;
    let mut out = std::io::stdout().lock();
    for finding in findings.iter().filter(is_shown) {
        match args.form {
            Form::Table => write!(out, "{}", text(finding))?,
            Form::Json => writeln!(out, "{}", json_line(&as_json(finding))?)?,
        }
    }
    let count = |level| findings.iter().filter(|one| one.level == level).count();
    let (failures, warnings) = (count(Level::Fail), count(Level::Warn));
    if args.form == Form::Table {
        let fine = count(Level::Ok);
        writeln!(
            out,
            "{fine} fine, {warnings} to look at, {failures} to cure"
        )?;
    }
    let is_bad = failures > 0 || (args.strict && warnings > 0);
    Ok(ExitCode::from(u8::from(is_bad)))
}

fn findings(args: &DoctorArgs) -> Vec<Finding> {
    let mut flags = Vec::new();
    if let Some(data_dir) = &args.data_dir {
        let text = data_dir.to_string_lossy().into_owned();
        flags.push(("node.data_dir", text, "--data-dir"));
    }
    let request = Request {
        file: args.config.clone(),
        flags,
        ..Request::default()
    };
    let loaded = match config::load(&request) {
        Ok(loaded) => loaded,
        Err(problems) => {
            let mut findings = vec![Finding::fail(
                "configuration",
                problems.to_string(),
                "the broker does not start with it",
                "correct the file; thrum config check shows the same errors",
            )];
            findings.extend(checks::machine(&machine::read(0)));
            return findings;
        }
    };
    let figures = machine::read(loaded.config.limits.connections);
    let mut findings = checks::machine(&figures);
    let deployment = deployment::read(&loaded);
    findings.extend(checks::disk(&deployment.disk));
    findings.extend(deployment.findings);
    findings.extend(exposure::check(&deployment.exposure));
    findings
}

fn text(finding: &Finding) -> String {
    let mut text = format!(
        "{:<5} {:<14} {}\n",
        finding.level.word(),
        finding.check,
        name(&finding.what)
    );
    for (label, words) in [("why", &finding.why), ("cure", &finding.cure)] {
        if !words.is_empty() {
            text.extend([format!("{:<21}{label}: {}\n", "", name(words))]);
        }
    }
    text
}

fn as_json(finding: &Finding) -> serde_json::Value {
    json!({
        "check": finding.check,
        "level": finding.level.word().to_lowercase(),
        "what": finding.what,
        "why": finding.why,
        "cure": finding.cure,
    })
}
