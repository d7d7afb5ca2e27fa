//! The table of options in `docs/guide/from-mosquitto.md`, made from the options themselves.

use std::fmt::Write as _;

use super::options::{self, Scope};
use crate::config::made_part;

const BEGIN: &str = "<!-- options: begin (made from the table in the code) -->\n";
const END: &str = "<!-- options: end -->";

fn table() -> String {
    let mut page = String::from("\n| Option | Key | |\n| --- | --- | --- |\n");
    let is_bridge = |scope| matches!(scope, Scope::Bridge | Scope::NewBridge);
    let (bridges, mut others): (Vec<_>, Vec<_>) =
        options::all().partition(|entry| is_bridge(entry.scope));
    others.sort_by_key(|entry| entry.name);
    for entry in others {
        let key = match entry.fate.keys() {
            "" => String::new(),
            key => format!("`{key}`"),
        };
        let note = match entry.fate {
            options::Fate::Dropped { why, .. } => format!("not carried over: {why}"),
            fate => fate.note().to_owned(),
        };
        writeln!(page, "| `{}` | {key} | {note} |", entry.name).unwrap();
    }
    let names: Vec<String> = bridges
        .iter()
        .map(|entry| format!("`{}`", entry.name))
        .collect();
    let why = bridges[0].fate.note();
    writeln!(page, "| {} | | not carried over: {why} |", names.join(", ")).unwrap();
    page
}

#[test]
fn the_guide_lists_every_option_as_it_is() {
    made_part::check("from-mosquitto.md", (BEGIN, END), &table());
}
