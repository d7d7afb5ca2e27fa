//! `thrum context ls` and `show`.

use std::io::Write as _;

use clap::Args;
use serde_json::json;

use super::store::{Context, Contexts};
use crate::command::Failure;
use crate::command::running::{Form, Output};
use crate::command::shown::{NOTHING, counted, json_line, name, table};

const HEADINGS: [&str; 4] = ["", "NAME", "BROKER", "KEY"];

/// Arguments of `thrum context ls`.
#[derive(Debug, Args)]
pub(super) struct LsArgs {
    #[command(flatten)]
    output: Output,
}

/// Arguments of `thrum context show`.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Name of the context; without it the current one.
    name: Option<String>,
    #[command(flatten)]
    output: Output,
}

/// Lists.
pub(super) fn run(args: &LsArgs) -> anyhow::Result<()> {
    let contexts = Contexts::read()?;
    let mut out = std::io::stdout().lock();
    let is_current = |name: &String| contexts.current.as_ref() == Some(name);
    if args.output.form == Form::Json {
        for (name, context) in &contexts.contexts {
            let line = json!({"name": name, "current": is_current(name), "context": context});
            writeln!(out, "{}", json_line(&line)?)?;
        }
        return Ok(());
    }
    let rows = contexts.contexts.iter().map(|(name, context)| {
        let mark = if is_current(name) { "*" } else { "" };
        vec![mark.to_owned(), name.clone(), broker(context), key(context)]
    });
    let rows: Vec<_> = rows.collect();
    if !rows.is_empty() {
        writeln!(out, "{}", table(&HEADINGS, &rows))?;
    }
    let count = counted(rows.len(), "context", "contexts");
    let hint = if rows.is_empty() {
        "; thrum context add NAME --url URL adds one"
    } else {
        ""
    };
    writeln!(out, "{count}{hint}")?;
    Ok(())
}

/// Shows one.
pub(super) fn show(args: &ShowArgs) -> anyhow::Result<()> {
    let contexts = Contexts::read()?;
    let wanted = args.name.as_ref().or(contexts.current.as_ref());
    let wanted = wanted.ok_or_else(|| {
        Failure::with_code(
            Failure::NOT_FOUND,
            "there is no current context: commands ask the broker of this machine; name one, or choose one with thrum \
             context use NAME",
        )
    })?;
    let context = contexts.get(wanted)?;
    let mut out = std::io::stdout().lock();
    if args.output.form == Form::Json {
        let line = json!({"name": wanted, "context": context});
        writeln!(out, "{}", json_line(&line)?)?;
        return Ok(());
    }
    let authorities = context.ca_file.as_ref();
    let certificate = match (authorities, context.insecure) {
        (_, true) => "any is accepted".to_owned(),
        (Some(file), false) => format!("signed by an authority of {}", file.display()),
        (None, false) => "signed by an authority of the system".to_owned(),
    };
    writeln!(out, "{:<13}{wanted}", "name")?;
    writeln!(out, "{:<13}{}", "broker", broker(context))?;
    writeln!(out, "{:<13}{}", "key", key(context))?;
    writeln!(out, "{:<13}{certificate}", "certificate")?;
    Ok(())
}

fn broker(context: &Context) -> String {
    match (&context.url, &context.data_dir) {
        (Some(url), _) => name(url).into_owned(),
        (None, Some(data_dir)) => data_dir.display().to_string(),
        (None, None) => NOTHING.to_owned(),
    }
}

fn key(context: &Context) -> String {
    let file = context.token_file.as_ref();
    file.map_or_else(|| NOTHING.to_owned(), |file| file.display().to_string())
}
