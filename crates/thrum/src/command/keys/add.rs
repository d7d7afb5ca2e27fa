//! `thrum keys add`.

use std::io::Write as _;
use std::time::Duration;

use clap::Args;
use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use serde_json::{Value, json};
use thrum_management::api::CreatedKey;
use thrum_management::login::Scope;

use crate::command::running::{Form, Output, Running};
use crate::command::shown::{json_line, parse_span};

/// Arguments of `thrum keys add`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// A text for people, such as the name of the program.
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    label: String,
    /// What the key may do; may be given more than once. admin includes everything.
    #[arg(long = "scope", value_name = "SCOPE", required = true,
          value_parser = PossibleValuesParser::new(Scope::ALL.map(Scope::name)))]
    scopes: Vec<String>,
    /// Time until it expires, or never [default: 90d].
    #[arg(long, value_name = "DURATION", value_parser = parse_expiry)]
    expires: Option<Expiry>,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// Time until a key expires.
#[derive(Clone, Copy, Debug)]
enum Expiry {
    After(Duration),
    Never,
}

/// Makes a key and prints it.
pub(super) fn run(args: &AddArgs) -> anyhow::Result<()> {
    let mut body = json!({ "label": args.label, "scopes": args.scopes });
    // Without the member the broker chooses.
    if let Some(expiry) = args.expires {
        body["expires_secs"] = match expiry {
            Expiry::After(span) => span.as_secs().into(),
            Expiry::Never => Value::Null,
        };
    }
    let created: CreatedKey = args.running.send("/keys", &body)?;
    let mut out = std::io::stdout().lock();
    match args.output.form {
        Form::Table => {
            writeln!(out, "{}", created.key)?;
            let expiry = match &created.row.expires_at {
                Some(at) => format!("it expires at {at}"),
                None => "it does not expire".to_owned(),
            };
            writeln!(
                std::io::stderr(),
                "this is the only time the key is shown; {expiry}"
            )?;
        }
        Form::Json => writeln!(out, "{}", json_line(&created)?)?,
    }
    Ok(())
}

fn parse_expiry(text: &str) -> Result<Expiry, String> {
    match text {
        "never" => Ok(Expiry::Never),
        span => parse_span(span).map(Expiry::After),
    }
}
