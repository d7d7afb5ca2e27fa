//! The tables in the guide that are made from the code: of the keys in `configuration.md`, of
//! mosquitto's options in `from-mosquitto.md`.

use std::fmt::Write as _;

use thrum_broker::config::SinkConfig;
use thrum_migrate::mosquitto::testing;

use super::reference::description;
use super::{Config, made_part, schema, show};

const BEGIN: &str = "<!-- keys: begin (made from the doc comments of the settings) -->\n";
const END: &str = "<!-- keys: end -->";
const OPTIONS_BEGIN: &str = "<!-- options: begin (made from the table in the code) -->\n";
const OPTIONS_END: &str = "<!-- options: end -->";

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

#[test]
fn the_guide_lists_every_option_as_it_is() {
    let marks = (OPTIONS_BEGIN, OPTIONS_END);
    made_part::check("from-mosquitto.md", marks, &testing::options_table());
}
