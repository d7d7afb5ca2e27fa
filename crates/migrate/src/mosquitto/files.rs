//! The files that a configuration consists of and names.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thrum_settings::problem::{Problem, Source};

use super::syntax::{Statement, statements};

/// The source of files.
pub trait Files {
    /// Content of a text file.
    ///
    /// # Errors
    /// It cannot be read, or is not text.
    fn read(&self, path: &Path) -> io::Result<String>;
    /// Paths of what is in a folder.
    ///
    /// # Errors
    /// It cannot be read.
    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>>;
    /// Whether the file certainly does not exist.
    fn is_missing(&self, path: &Path) -> bool;
}

/// The files of this machine.
#[derive(Debug)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<String> {
        std::fs::read_to_string(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        std::fs::read_dir(folder)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect()
    }

    fn is_missing(&self, path: &Path) -> bool {
        matches!(path.try_exists(), Ok(false))
    }
}

/// The statements of one file.
#[derive(Debug)]
pub(super) struct Part {
    /// In their order.
    pub(super) statements: Vec<Statement>,
    /// Read because of an `include_dir`.
    pub(super) is_included: bool,
}

/// Takes the first file and what it includes apart, in mosquitto's order: a file that includes
/// others is continued after them. The `include_dir` lines themselves stay in.
pub(super) fn read_all(main: &Source, files: &dyn Files, problems: &mut Vec<Problem>) -> Vec<Part> {
    let source = Arc::new(Source::new(main.path.clone(), main.text.clone()));
    let folder = main.path.parent().unwrap_or_else(|| Path::new(""));
    let mut parts = Vec::new();
    let mut own = Vec::new();
    for statement in statements(&source, &called(&main.path, folder)) {
        let include = (statement.name == "include_dir").then(|| statement.clone());
        own.push(statement);
        let Some(include) = include.filter(|include| !include.value.is_empty()) else {
            continue;
        };
        parts.push(Part {
            statements: std::mem::take(&mut own),
            is_included: false,
        });
        match included(&include, files) {
            Ok(sources) => parts.extend(sources.into_iter().map(|source| Part {
                statements: statements(&source, &called(&source.path, folder)),
                is_included: true,
            })),
            Err(problem) => problems.push(problem),
        }
    }
    parts.push(Part {
        statements: own,
        is_included: false,
    });
    parts
}

fn included(include: &Statement, files: &dyn Files) -> Result<Vec<Arc<Source>>, Problem> {
    let refuse = |path: &Path, error: &io::Error| {
        include.wrong_value(format!("cannot read {}: {error}", path.display()))
    };
    let folder = Path::new(&include.value);
    let mut paths = files.list(folder).map_err(|error| refuse(folder, &error))?;
    paths.retain(|path| is_configuration(path));
    paths.sort_by_key(|path| sort_key(path));
    let read = |path: PathBuf| match files.read(&path) {
        Ok(text) => Ok(Arc::new(Source::new(path, text))),
        Err(error) => Err(refuse(&path, &error)),
    };
    paths.into_iter().map(read).collect()
}

/// Its name ends in `.conf` and is more than that.
fn is_configuration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    name.len() > b".conf".len() && name.ends_with(b".conf")
}

/// Letters in the order of the alphabet, the capital one before the small one.
fn sort_key(path: &Path) -> Vec<(u8, u8)> {
    let bytes = path.as_os_str().as_encoded_bytes();
    let keys = bytes.iter().map(|byte| (byte.to_ascii_uppercase(), *byte));
    keys.collect()
}

/// Short name of a file: relative to the folder of the first one if it is in there.
fn called(path: &Path, folder: &Path) -> String {
    path.strip_prefix(folder)
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_in_the_order_of_the_manual() {
        let mut names =
            ["b", "A", "01", "a", "B", "00"].map(|name| PathBuf::from(format!("d/{name}.conf")));
        names.sort_by_key(|path| sort_key(path));
        let names: Vec<_> = names.iter().map(|path| path.file_stem().unwrap()).collect();
        assert_eq!(names, ["00", "01", "A", "a", "B", "b"]);
    }

    #[test]
    fn only_files_that_end_in_conf_are_included() {
        for (name, expected) in [
            ("d/a.conf", true),
            ("d/.conf", false),
            ("d/a.conf.bak", false),
            ("d/conf", false),
        ] {
            assert_eq!(is_configuration(Path::new(name)), expected, "{name}");
        }
    }
}
