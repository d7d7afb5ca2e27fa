//! `cargo xtask spec`: determines which normative statements are enforced and tested, by the tags
//! in the source.

mod coverage;
mod statements;
mod tags;

use anyhow::{Result, bail};

use crate::spec::coverage::Coverage;
use crate::spec::statements::Document;
use crate::spec::tags::Tag;
use crate::violation::{Violation, report};
use crate::workspace::Workspace;

/// Folders that are searched for tags; this tool mentions tags without using them.
const TAGGED_FOLDERS: [&str; 3] = ["crates/", "fuzz/", "tests/"];
const TAGGED_FILES: [&str; 5] = [".rs", ".py", ".mjs", ".js", ".sh"];
const OWN_FOLDER: &str = "crates/xtask/";

/// Output in addition to the findings.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// Numbers of enforced and tested statements in each section.
    Table,
    /// Lines that enforce and test each statement: the one with this id, those whose id starts with
    /// it, or all.
    List(Option<String>),
}

impl View {
    /// Reads `--list [STATEMENT]`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        match arguments {
            [] => Ok(Self::Table),
            [flag] if flag == "--list" => Ok(Self::List(None)),
            [flag, wanted] if flag == "--list" => {
                let id = wanted.trim_matches(['[', ']']);
                Ok(Self::List(Some(id.to_owned())))
            }
            _ => bail!(
                "unknown arguments of spec: `{}`; use --list [STATEMENT]",
                arguments.join(" ")
            ),
        }
    }
}

/// Prints the coverage and returns whether every tag is known and every required statement is
/// enforced and tested.
pub(crate) fn run(workspace: &Workspace, view: &View) -> Result<bool> {
    let mut documents = Vec::new();
    for (path, text) in workspace.read(&["docs/spec/"], &[".md"])? {
        documents.extend(Document::parse(&path, &text)?);
    }
    let (tags, mut found) = scan(workspace)?;
    found.extend(tags::unknown(&tags, &documents));
    let covered: Vec<Coverage<'_>> = documents
        .iter()
        .map(|document| Coverage::of(document, &tags))
        .collect();
    let text: String = match view {
        View::Table => covered.iter().map(Coverage::table).collect(),
        View::List(wanted) => covered
            .iter()
            .map(|coverage| coverage.list(wanted.as_deref()))
            .collect(),
    };
    if text.is_empty() {
        bail!("no statement in docs/spec has this id");
    }
    print!("{text}");
    found.extend(covered.iter().flat_map(Coverage::violations));
    Ok(report("spec", found))
}

/// Every tag in the source, and every malformed tag.
fn scan(workspace: &Workspace) -> Result<(Vec<Tag>, Vec<Violation>)> {
    let mut tags = Vec::new();
    let mut found = Vec::new();
    for (path, text) in workspace.read(&TAGGED_FOLDERS, &TAGGED_FILES)? {
        if path.starts_with(OWN_FOLDER) {
            continue;
        }
        let (good, bad) = tags::read(&path, &text);
        tags.extend(good);
        found.extend(bad);
    }
    Ok((tags, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_contains_all_statements_or_the_selected_ones() {
        let parse = |line: &str| {
            let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            View::parse(&arguments)
        };
        assert_eq!(parse("").unwrap(), View::Table);
        assert_eq!(parse("--list").unwrap(), View::List(None));
        for wanted in ["MQTT-3.3.1-2", "[MQTT-3.3.1-2]"] {
            let view = View::List(Some("MQTT-3.3.1-2".to_owned()));
            assert_eq!(parse(&format!("--list {wanted}")).unwrap(), view);
        }
        assert!(parse("--missing").is_err());
        assert!(parse("--list a b").is_err());
    }
}
