//! Configurations of mosquitto: read as mosquitto reads them, and made into one of this program.
//!
//! ```text
//!   text --syntax, files--> statements --scope--> lines in their places
//!        --convert--> draft --> TOML and report
//! ```
//!
//! [`options`] has the conversion of every option; an option that cannot be carried over never
//! makes a broker more open than it was: such a listener is left out.

mod convert;
mod draft;
pub mod dynsec;
mod files;
mod options;
mod report;
mod scope;
mod syntax;
#[cfg(feature = "testing")]
pub mod testing;
#[cfg(test)]
mod tests;
mod value;

use thrum_settings::problem::{At, Place, Problem, Problems, Source};

pub use files::{Disk, Files};
pub use report::Report;

/// A configuration that was made of one of mosquitto.
#[derive(Debug)]
pub struct Imported {
    /// The configuration, with the source line of each key.
    pub toml: String,
    /// The source line of each of its lines.
    pub origins: Vec<Option<At>>,
    /// The result for each line.
    pub report: Report,
    /// Unknown lines, as problems of a broker that is about to start.
    pub unknown: Vec<Problem>,
}

/// Whether a file is a configuration of mosquitto. A file of this program has brackets or an equals
/// sign in its first line, which those of mosquitto never have; a name that ends in `.toml` decides
/// for it.
pub fn is_mosquitto(source: &Source) -> bool {
    let extension = source.path.extension().and_then(|name| name.to_str());
    if extension == Some("toml") {
        return false;
    }
    let lines = source.text.lines().map(str::trim);
    let first = lines
        .filter(|line| !line.is_empty())
        .find(|line| !line.starts_with('#'));
    let Some(first) = first else {
        return extension == Some("conf");
    };
    let name = first.split([' ', '\t']).next().unwrap_or_default();
    let rest = first[name.len()..].trim_start();
    let is_toml = first.starts_with('[') || name.contains('=') || rest.starts_with('=');
    !is_toml && (extension == Some("conf") || options::find(name).is_some())
}

/// Makes a configuration of one of mosquitto.
///
/// # Errors
/// All lines that mosquitto would not understand either.
pub fn import(main: &Source, files: &dyn Files) -> Result<Imported, Problems> {
    let mut problems = Vec::new();
    let parts = files::read_all(main, files, &mut problems);
    let configuration = scope::arrange(parts, &mut problems);
    let unknown = configuration.unknown.iter();
    let unknown = unknown.map(|(statement, meant)| {
        let name = &statement.name;
        let hint = meant.map_or_else(String::new, |meant| format!(", did you mean {meant}?"));
        statement.wrong_name(format!("unknown option {name}{hint}"))
    });
    let unknown = unknown.collect();
    let mut draft = convert::convert(configuration, files, &mut problems);
    if !problems.is_empty() {
        problems.sort_by_key(|problem| {
            let place = problem.place.as_ref().map(Place::written_at);
            place.map(|(path, line)| (path.clone(), line))
        });
        return Err(Problems(problems));
    }
    draft.report.sort();
    let (toml, origins) = draft.write(&main.path.display().to_string());
    Ok(Imported {
        toml,
        origins,
        report: draft.report,
        unknown,
    })
}
