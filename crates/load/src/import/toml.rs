//! The scenario file that an import writes: comments for people, the rest for `thrum bench run`.

use std::fmt::Write as _;

/// Characters of a line of comment.
const COMMENT_WIDTH: usize = 110;

/// The contents of the file.
pub(super) struct File<'a> {
    pub(super) commands: &'a [String],
    pub(super) notes: &'a [String],
    pub(super) connect_rate: u64,
    pub(super) hold_seconds: Option<u64>,
    pub(super) groups: &'a [Group],
}

/// Clients of one command line.
#[derive(Clone, Debug)]
pub(super) struct Group {
    name: String,
    pub(super) target: String,
    pub(super) clients: u64,
    /// Keys and their values as TOML.
    fields: Vec<(&'static str, String)>,
}

impl Group {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            target: String::new(),
            clients: 0,
            fields: Vec::new(),
        }
    }

    pub(super) fn put(&mut self, key: &'static str, value: String) {
        self.fields.push((key, value));
    }
}

/// Names that occur twice get numbers.
pub(super) fn number_names(groups: &mut [Group]) {
    for index in 0..groups.len() {
        let (before, rest) = groups.split_at_mut(index);
        let Some(group) = rest.first_mut() else {
            return;
        };
        let stem = group.name.clone();
        let mut number = 1;
        while before.iter().any(|other| other.name == group.name) {
            number += 1;
            group.name = format!("{stem}-{number}");
        }
    }
}

pub(super) fn text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

pub(super) fn inline(fields: &[(&'static str, String)]) -> String {
    let fields: Vec<String> = fields
        .iter()
        .map(|(key, value)| format!("{key} = {value}"))
        .collect();
    format!("{{ {} }}", fields.join(", "))
}

/// Writes the file.
pub(super) fn write(file: &File<'_>) -> String {
    let mut out = "# Made from these command lines:\n".to_owned();
    for command in file.commands {
        comment(&mut out, "  ", command);
    }
    if !file.notes.is_empty() {
        out.push_str("#\n# What differs, option by option:\n");
        for note in file.notes {
            comment(&mut out, "- ", note);
        }
    }
    let targets = targets(file.groups);
    let is_single = targets.len() < 2;
    out.push('\n');
    if let (true, Some(target)) = (is_single, targets.first()) {
        writeln!(out, "target = {}", text(target)).ok();
    }
    writeln!(
        out,
        "connect_rate = {}",
        file.connect_rate.clamp(1, u64::from(u32::MAX))
    )
    .ok();
    // A run of emqtt_bench has no end of its own.
    let hold = file.hold_seconds.unwrap_or(60);
    writeln!(
        out,
        "stages = [\"warmup 5s\", \"hold {hold}s\", \"drain 5s\"]"
    )
    .ok();
    if !is_single {
        out.push_str("\n[targets]\n");
        for (number, target) in (1..).zip(&targets) {
            writeln!(out, "broker-{number} = {}", text(target)).ok();
        }
    }
    for group in file.groups {
        writeln!(
            out,
            "\n[groups.{}]\nclients = {}",
            group.name, group.clients
        )
        .ok();
        let place = targets.iter().position(|target| *target == group.target);
        if let (false, Some(place)) = (is_single, place) {
            writeln!(out, "target = \"broker-{}\"", place + 1).ok();
        }
        for (key, value) in &group.fields {
            writeln!(out, "{key} = {value}").ok();
        }
    }
    out
}

/// All targets, each once, in the order in which they occur.
fn targets(groups: &[Group]) -> Vec<&str> {
    let mut targets: Vec<&str> = Vec::new();
    for group in groups {
        if !targets.contains(&group.target.as_str()) {
            targets.push(&group.target);
        }
    }
    targets
}

/// A comment, broken between words; no control character gets into it.
fn comment(out: &mut String, bullet: &str, text: &str) {
    let mut line = format!("# {bullet}");
    for word in text.split_whitespace() {
        if line.chars().count() + word.chars().count() > COMMENT_WIDTH && line.len() > 4 {
            writeln!(out, "{}", line.trim_end()).ok();
            "#   ".clone_into(&mut line);
        }
        line.extend(word.chars().filter(|letter| !letter.is_control()));
        line.push(' ');
    }
    writeln!(out, "{}", line.trim_end()).ok();
}
