//! The commented configuration file, made from the settings' own texts.

use super::Config;

use super::schema::{self, Key, Kind};
use super::show::{self, push_line};

/// Width that comments are wrapped at.
const WIDTH: usize = 100;

/// The address of the default listener.
const DEFAULT_LISTENER_TABLE: &str = "listeners.mqtt";

/// A file with every key at its default, commented out, under the text that explains it. Lines that
/// begin with `# ` are prose, lines that begin with `#` and no space are settings.
pub(crate) fn commented_file() -> String {
    let mut file = String::from(
        "# Configuration of thrum. Everything is optional: a line without its leading # sets a key, and the\n\
         # values shown are the defaults. Variables win over this file (THRUM_LIMITS__MAX_PACKET=2MB), flags\n\
         # win over both. Check it with: thrum config check -c FILE\n",
    );
    let keys = schema::keys();
    let mut section = String::new();
    for (path, value) in show::values(&Config::default()) {
        let (table, name) = path.rsplit_once('.').unwrap_or(("", &path));
        if table != section {
            file.push('\n');
            begin_section(&mut file, &keys, table);
            table.clone_into(&mut section);
        }
        comment(&mut file, description(&keys, &path));
        push_line(&mut file, &format!("#{name} = {value}"));
    }
    file
}

fn begin_section(file: &mut String, keys: &Key, table: &str) {
    let described = match table.split_once('.') {
        Some((first, _)) if is_named(keys, first) => first,
        _ => table,
    };
    comment(file, description(keys, described));
    // Never commented out: a key that is taken out of its comment would land in the table above.
    push_line(file, &format!("[{table}]"));
    if table == DEFAULT_LISTENER_TABLE {
        comment(
            file,
            "It is there while this header is: without it, and with another listener, its port is closed.",
        );
    }
}

fn is_named(keys: &Key, name: &str) -> bool {
    keys.child(name)
        .is_some_and(|key| matches!(key.kind, Kind::Named(_)))
}

/// The text that explains a key; empty if there is none.
pub(crate) fn description<'a>(keys: &'a Key, path: &str) -> &'a str {
    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
    keys.at(&path).map_or("", |key| key.description.as_str())
}

fn comment(file: &mut String, text: &str) {
    let mut line = String::from("#");
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            file.push_str(&line);
            file.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    file.push_str(&line);
    file.push('\n');
}
