//! The table of options in `docs/guide/from-mosquitto.md`, made from the options themselves.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::options::{self, Scope};

const BEGIN: &str = "<!-- options: begin (made from the table in the code) -->\n";
const END: &str = "<!-- options: end -->";
/// Set to write the page instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";

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

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/from-mosquitto.md")
}

#[test]
fn the_guide_lists_every_option_as_it_is() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the begin mark");
    let (_, after) = rest.split_once(END).expect("the page has the end mark");
    let fresh = format!("{before}{BEGIN}{}\n{END}{after}", table());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(page_path(), fresh).unwrap();
        return;
    }
    assert!(
        page == fresh,
        "out of date: {UPDATE}=1 cargo test -p thrum the_guide_lists"
    );
}
