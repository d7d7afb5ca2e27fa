//! `thrum keys rm`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use crate::command::running::{Method, Running, encoded};

/// Arguments of `thrum keys rm`.
#[derive(Debug, Args)]
pub(super) struct RmArgs {
    /// Identifiers of keys: their second part.
    #[arg(required = true, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    ids: Vec<String>,
    #[command(flatten)]
    running: Running,
}

/// Removes.
pub(super) fn run(args: &RmArgs) -> anyhow::Result<()> {
    for id in &args.ids {
        let path = format!("/keys/{}", encoded(id));
        let () = args.running.ask(Method::Delete, &path)?;
        writeln!(std::io::stderr(), "the key {id} is removed")?;
    }
    Ok(())
}
