//! Scenario files: TOML in, complete scenarios out, and back.

mod document;
mod faults;
mod groups;
mod locate;
mod reader;
mod rules;
mod set;
mod stages;
mod values;
mod write;

#[cfg(test)]
mod tests;

use thrum_settings::problem::{Problem, Problems};
use toml_edit::{DocumentMut, Item, Value};

use super::changed::{noted, of_set};
use super::{Document, Scenario};
use document::{Step, name_from, parse, read};

pub use write::to_toml;

/// Most clients of a scenario: ten times those of the largest published run on one broker.
pub const CLIENTS_MAX: u32 = 10_000_000;

/// Loads a scenario file; `origin` is its name in errors and, if the file gives none, in the
/// scenario.
///
/// # Errors
/// Everything that is wrong with the file, each with its place.
pub fn load(text: &str, origin: &str) -> Result<Document, Problems> {
    load_with(text, origin, &[])
}

/// Loads a scenario file after setting keys (`groups.pub.publish.rate`) to values; a value that is
/// not TOML is a text. In a sweep a step overrides them.
///
/// # Errors
/// As [`load`]; also a key that cannot be set.
pub fn load_with(
    text: &str,
    origin: &str,
    sets: &[(String, String)],
) -> Result<Document, Problems> {
    let mut document = parse(text, origin)?.into_mut();
    let mut changes = Vec::new();
    for (key, value) in sets {
        let value = set::typed(value);
        changes.extend(of_set(key, &value));
        set::set(document.as_table_mut(), key, value)
            .map_err(|message| Problem::general(format!("{origin}, --set"), message))?;
    }
    if let Some(summary) = document.get_mut("summary").and_then(Item::as_value_mut)
        && let Some(text) = summary.as_str()
        && sets.iter().all(|(key, _)| key != "summary")
    {
        *summary = Value::from(noted(text, &changes)).decorated(" ", "");
    }
    let mut resolved = if sets.is_empty() {
        text.to_owned()
    } else {
        document.to_string()
    };
    let changed = if sets.is_empty() { "" } else { " with --set" };
    let content = read(&resolved, &format!("{origin}{changed}"))?;
    let mut scenario = content.scenario;
    if scenario.name.is_empty() {
        let name = name_from(origin);
        if scenario.alias.is_empty() {
            scenario.alias.clone_from(&name);
        }
        document.insert("name", toml_edit::value(name.as_str()));
        resolved = document.to_string();
        scenario.name = name;
    }
    if content.steps.is_empty() {
        scenario.toml = resolved;
        return Ok(Document {
            scenarios: vec![scenario],
        });
    }
    let steps = content.steps.into_iter();
    let scenarios = steps.map(|step| resolve(&document, &scenario, step, origin));
    Ok(Document {
        scenarios: scenarios.collect::<Result<_, _>>()?,
    })
}

/// The complete scenario of a step.
fn resolve(
    document: &DocumentMut,
    base: &Scenario,
    step: Step,
    origin: &str,
) -> Result<Scenario, Problems> {
    let origin = format!("{origin}, step {}", step.name);
    let mut document = document.clone();
    document.remove("steps");
    let named = |name: &str| Value::from(format!("{name}/{}", step.name));
    let mut settings = step.set;
    if document.contains_key("alias") {
        settings.push(("alias".to_owned(), named(&base.alias)));
    }
    settings.push(("name".to_owned(), named(&base.name)));
    for (key, value) in settings {
        set::set(document.as_table_mut(), &key, value)
            .map_err(|message| Problem::general(&origin, message))?;
    }
    let text = document.to_string();
    let mut scenario = read(&text, &origin)?.scenario;
    scenario.toml = text;
    Ok(scenario)
}
