//! The table of keys in `docs/guide/configuration.md`, made from the settings' own texts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::Config;

use super::reference::description;
use super::{schema, show};

const BEGIN: &str = "<!-- keys: begin (made from the doc comments of the settings) -->\n";
const END: &str = "<!-- keys: end -->";
/// Set to write the page instead of comparing it.
const UPDATE: &str = "UPDATE_DOCS";

/// Every key with its default and its text, one table for each section.
fn tables() -> String {
    let keys = schema::keys();
    let mut page = String::new();
    let mut section = String::new();
    for (path, value) in show::values(&Config::default()) {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        if table != section {
            table.clone_into(&mut section);
            let (shown, described) = match table {
                "listeners.mqtt" => ("listeners.NAME", "listeners"),
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
            "listeners.mqtt.bind" => "none".to_owned(),
            _ => format!("`{value}`"),
        };
        writeln!(page, "| `{name}` | {default} | {text} |").unwrap();
    }
    page
}

fn page_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/configuration.md")
}

#[test]
fn the_guide_lists_every_key_as_it_is() {
    let page = std::fs::read_to_string(page_path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the begin mark");
    let (_, after) = rest.split_once(END).expect("the page has the end mark");
    let fresh = format!("{before}{BEGIN}{}\n{END}{after}", tables());
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(page_path(), fresh).unwrap();
        return;
    }
    assert!(
        page == fresh,
        "out of date: {UPDATE}=1 cargo test -p thrum the_guide_lists"
    );
}

#[test]
fn every_text_states_the_default_in_force() {
    let keys = schema::keys();
    for (path, value) in show::values(&Config::default()) {
        let text = description(&keys, &path);
        if path == "listeners.mqtt.bind" {
            assert!(text.contains("Has no default"), "{path}: {text}");
            continue;
        }
        let (_, stated) = text.split_once("Default `").expect(&path);
        let (stated, _) = stated.split_once('`').expect(&path);
        assert_eq!(
            stated.replace('_', ""),
            value.replace('_', ""),
            "{path}: {text}"
        );
    }
}

#[test]
fn every_section_has_a_text() {
    let keys = schema::keys();
    for name in keys.names() {
        assert!(!description(&keys, name).is_empty(), "{name}");
    }
}
