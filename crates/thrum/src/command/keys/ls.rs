//! `thrum keys ls`.

use std::io::Write as _;

use clap::Args;
use thrum_management::api::{ApiKey, KeyList};

use crate::command::running::{Form, Method, Output, Running};
use crate::command::shown::{NOTHING, counted, json_line, name, table};

const HEADINGS: [&str; 6] = ["ID", "LABEL", "SCOPES", "USED", "EXPIRES", "MADE BY"];

/// Arguments of `thrum keys ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let list: KeyList = args.running.ask(Method::Get, "/keys")?;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        for key in &list.keys {
            writeln!(out, "{}", json_line(key)?)?;
        }
        return Ok(());
    }
    if !list.keys.is_empty() {
        let rows: Vec<_> = list.keys.iter().map(columns).collect();
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    writeln!(out, "{}", counted(list.keys.len(), "key", "keys"))?;
    Ok(())
}

fn columns(key: &ApiKey) -> Vec<String> {
    let expires = match &key.expires_at {
        Some(_) if key.expired => "expired".to_owned(),
        Some(at) => at.clone(),
        None => "never".to_owned(),
    };
    vec![
        key.id.clone(),
        name(&key.label).into_owned(),
        key.scopes.join(","),
        key.used_at.clone().unwrap_or_else(|| NOTHING.to_owned()),
        expires,
        name(&key.created_by).into_owned(),
    ]
}
