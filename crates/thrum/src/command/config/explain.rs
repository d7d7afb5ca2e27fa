//! `thrum config explain` and `schema`: what keys there are, and what they mean here.

use std::io::Write as _;

use clap::Args;

use super::SourceArgs;
use crate::command::Failure;
use crate::command::serve::needs_restart;
use crate::config::{self, Key, Kind, Loaded};

/// Arguments of `thrum config explain`.
#[derive(Debug, Args)]
pub(super) struct ExplainArgs {
    /// A key such as `limits.max_packet`, or a table such as limits.
    key: String,
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints what a key means, its value and its origin; of a table, its keys.
pub(super) fn run(args: ExplainArgs) -> anyhow::Result<()> {
    let ExplainArgs { key, source } = args;
    let loaded = super::load(source)?;
    let keys = config::keys();
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    let Some(found) = keys.at(&path) else {
        return Err(unknown(&keys, &key));
    };
    let mut out = std::io::stdout().lock();
    match &found.kind {
        Kind::Value(leaf) => {
            let about = About {
                keys: &keys,
                loaded: &loaded,
                key: &key,
            };
            writeln!(out, "{}", about.text(found, leaf))?;
        }
        Kind::Table(_) | Kind::Named(_) => write!(out, "{}", table(&keys, found, &key))?,
    }
    Ok(())
}

/// Prints the schema of a configuration, for editors and for other programs.
pub(super) fn schema() -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(&config::json_schema())?;
    writeln!(std::io::stdout(), "{text}")?;
    Ok(())
}

/// A key in a configuration.
struct About<'a> {
    keys: &'a Key,
    loaded: &'a Loaded,
    key: &'a str,
}

impl About<'_> {
    fn text(&self, found: &Key, leaf: &config::Leaf) -> String {
        let Self { loaded, key, .. } = *self;
        let shown = |config: &config::Config| {
            let all = config::collected(config).into_iter();
            let mut its = all.filter(|(known, _)| known == key);
            let (_, value) = its.next()?;
            let value = self.keys.shown(key, &value).decorated("", "");
            Some(value.to_string())
        };
        let nothing = || "none: the table is not there".to_owned();
        let value = shown(&loaded.config).unwrap_or_else(nothing);
        let default = shown(&config::Config::default()).unwrap_or_else(nothing);
        let origin = loaded.origin(key);
        let pinned = if origin.is_pinned() {
            "; it wins over thrum config set"
        } else {
            ""
        };
        let effect = if needs_restart(key) {
            "at a restart"
        } else {
            "with a reload, without a restart"
        };
        let variable = key.to_ascii_uppercase().replace('.', "__");
        let text = &found.description;
        let expected = leaf.expected();
        format!(
            "{key}\n\n{text}\n\nvalue     {value}\norigin    {origin}{pinned}\ndefault   {default}\nexpected  {expected}\n\
             effect    {effect}\nvariable  THRUM_{variable}"
        )
    }
}

/// The keys of a table with the first sentence of their texts.
fn table(keys: &Key, found: &Key, path: &str) -> String {
    let mut text = format!("{path}\n\n{}\n\n", found.description);
    let names: Vec<&str> = found.names().collect();
    for name in &names {
        let key = format!("{path}.{name}");
        let description = config::description(keys, &key);
        let first = description.split(". ").next().unwrap_or(description);
        text.extend([format!("  {key:<36} {}\n", first.trim_end_matches('.'))]);
    }
    if names.is_empty() {
        text.extend([format!(
            "Each table below {path} has a name of your choice; thrum config explain {path}.NAME lists its keys.\n"
        )]);
    }
    text
}

fn unknown(keys: &Key, key: &str) -> anyhow::Error {
    let name = key.rsplit('.').next().unwrap_or(key);
    let mut found = Vec::new();
    keys.find(name, "", &mut found);
    let names: Vec<&str> = keys.names().collect();
    let nearest = thrum_settings::nearest(name, names.iter().copied());
    let hint = match (found.pop(), nearest) {
        (Some(found), _) => format!("did you mean {found}?"),
        (None, Some(table)) => format!("did you mean {table}?"),
        (None, None) => format!("the tables are {}", names.join(", ")),
    };
    Failure::usage(format!("there is no key {key:?}; {hint}"))
}
