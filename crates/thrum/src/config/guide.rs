//! The table of keys in `docs/guide/configuration.md`, made from the settings' own texts.

use std::fmt::Write as _;

use thrum_broker::config::SinkConfig;

use super::reference::description;
use super::{Config, made_part, schema, show};

const BEGIN: &str = "<!-- keys: begin (made from the doc comments of the settings) -->\n";
const END: &str = "<!-- keys: end -->";

/// Every key with its default and its text, one table for each section.
fn tables() -> String {
    let keys = schema::keys();
    let mut page = String::new();
    let mut section = String::new();
    let mut config = Config::default();
    config
        .sinks
        .insert("name".to_owned(), SinkConfig::default());
    for (path, value) in show::values(&config) {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        if table != section {
            table.clone_into(&mut section);
            let (shown, described) = match table {
                "listeners.mqtt" => ("listeners.NAME", "listeners"),
                "sinks.name" => ("sinks.NAME", "sinks"),
                table => (table, table),
            };
            let text = description(&keys, described);
            write!(
                page,
                "\n### [{shown}]\n{text}\n\n| Key | Default | Meaning |\n| --- | --- | --- |\n"
            )
            .unwrap();
        }
        let text = description(&keys, &path);
        let default = match path.as_str() {
            "listeners.mqtt.bind" | "sinks.name.filter" | "sinks.name.path" => "none".to_owned(),
            _ => format!("`{value}`"),
        };
        writeln!(page, "| `{name}` | {default} | {text} |").unwrap();
    }
    page
}

#[test]
fn the_guide_lists_every_key_as_it_is() {
    made_part::check("configuration.md", (BEGIN, END), &tables());
}
