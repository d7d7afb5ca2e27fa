//! `thrum clients get`.

use std::io::Write as _;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use thrum_management::api::ClientDetail;

use super::detail::text;
use crate::command::running::{Form, Method, Output, Running, encoded};
use crate::command::shown::json_line;

/// Arguments of `thrum clients get`.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Client identifier.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    client_id: String,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Shows.
pub(super) fn run(args: &GetArgs) -> anyhow::Result<()> {
    let path = format!("/clients/{}", encoded(&args.client_id));
    let detail: ClientDetail = args.running.ask(Method::Get, &path)?;
    let mut out = std::io::stdout().lock();
    match args.output.form {
        Form::Table => write!(out, "{}", text(&detail))?,
        Form::Json => writeln!(out, "{}", json_line(&detail)?)?,
    }
    Ok(())
}
