//! `thrum admin ls`.

use std::io::Write as _;

use clap::Args;
use thrum_management::api::{Administrator, AdministratorList};

use crate::command::running::{Form, Method, Output, Running};
use crate::command::shown::{NOTHING, counted, json_line, name, table};

const HEADINGS: [&str; 6] = ["NAME", "ROLE", "STATE", "CODES", "SESSIONS", "CREATED"];

/// Arguments of `thrum admin ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let list: AdministratorList = args.running.ask(Method::Get, "/admins")?;
    let list = list.administrators;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        for one in &list {
            writeln!(out, "{}", json_line(one)?)?;
        }
        return Ok(());
    }
    if !list.is_empty() {
        let rows: Vec<_> = list.iter().map(columns).collect();
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    let count = counted(list.len(), "administrator", "administrators");
    let hint = if list.is_empty() {
        "; thrum admin setup-url makes a link for the first one"
    } else {
        ""
    };
    writeln!(out, "{count}{hint}")?;
    Ok(())
}

fn columns(one: &Administrator) -> Vec<String> {
    let codes = if one.totp {
        format!("app, {} recovery", one.recovery_codes_left)
    } else {
        NOTHING.to_owned()
    };
    vec![
        name(&one.name).into_owned(),
        one.role.clone(),
        if one.disabled { "disabled" } else { NOTHING }.to_owned(),
        codes,
        one.sessions.to_string(),
        one.created_at.clone(),
    ]
}
