//! The brokers that a user has noted: a file of the user, and beside it one file for each key.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use thrum_access::Secret;
use thrum_files::{Folder, is_open_to_others};
use thrum_settings::nearest;

use crate::command::Failure;

/// The file with the contexts.
const FILE: &str = "contexts.json";
/// Bytes of it, and of a file with a key.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Bytes of a key: one has some 70.
const TOKEN_BYTES_MAX: usize = 4096;
/// Characters of the name of a context: it is a part of the name of a file.
const NAME_CHARS_MAX: usize = 64;

/// The noted brokers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Contexts {
    /// Name of the one that is asked without an option.
    #[serde(default)]
    pub(super) current: Option<String>,
    #[serde(default)]
    pub(super) contexts: BTreeMap<String, Context>,
}

/// A noted broker.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Context {
    /// URL of its HTTP port; none of a broker on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data_dir: Option<PathBuf>,
    /// File with the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) token_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ca_file: Option<PathBuf>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server_name: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) insecure: bool,
}

impl Contexts {
    /// Reads the user's file; there are none if there is no file.
    pub(crate) fn read() -> anyhow::Result<Self> {
        let Some(folder) = folder() else {
            return Ok(Self::default());
        };
        Self::read_from(&folder)
    }

    pub(super) fn read_from(folder: &Path) -> anyhow::Result<Self> {
        let path = folder.join(FILE);
        let text = match read_text(&path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            text => text.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let read = Self::parse(&text);
        read.map_err(|error| {
            let path = path.display();
            Failure::usage(format!(
                "{path}: {error}; correct it, or remove it and add the contexts again with thrum context add"
            ))
        })
    }

    pub(crate) fn parse(text: &str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// Replaces the file, which only the user can read.
    pub(super) fn write_to(&self, folder: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        write_text(folder, FILE, &text)
    }

    /// The context of that name.
    pub(crate) fn get(&self, name: &str) -> anyhow::Result<&Context> {
        self.contexts.get(name).ok_or_else(|| self.missing(name))
    }

    /// The one that is asked without an option.
    pub(crate) fn current(&self) -> anyhow::Result<Option<&Context>> {
        self.current
            .as_deref()
            .map(|name| self.get(name))
            .transpose()
    }

    pub(super) fn missing(&self, name: &str) -> anyhow::Error {
        let names = self.contexts.keys().map(String::as_str);
        let hint = nearest(name, names).map_or_else(
            || "thrum context ls lists them, thrum context add adds one".to_owned(),
            |near| format!("did you mean '{near}'?"),
        );
        Failure::with_code(
            Failure::NOT_FOUND,
            format!("there is no context '{}'; {hint}", name.escape_debug()),
        )
    }
}

/// The folder of the user's configuration; none without a home.
fn folder() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    let base = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
    let base = base.or_else(|| {
        let home = variable("HOME").filter(|path| path.is_absolute())?;
        Some(home.join(".config"))
    })?;
    Some(base.join("thrum"))
}

/// The same, made if it is not there.
pub(super) fn own_folder() -> anyhow::Result<PathBuf> {
    let folder = folder().ok_or_else(|| {
        Failure::usage("there is no home for the contexts: set HOME or XDG_CONFIG_HOME")
    })?;
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    let made = builder.create(&folder);
    made.with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(folder)
}

/// Name of the file of a key, in the folder of the user.
pub(super) fn token_file(name: &str) -> String {
    format!("token-{name}")
}

/// Removes the key that was stored with the context of that name, unless it is the one in use.
pub(super) fn remove_token(folder: &Path, name: &str, used: Option<&Path>) -> anyhow::Result<()> {
    let own = folder.join(token_file(name));
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    if used.is_some_and(|used| real(used).is_some_and(|used| Some(used) == real(&own))) {
        return Ok(());
    }
    match std::fs::remove_file(&own) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove the key in {}", own.display())),
    }
}

/// Writes a file that only the user can read.
pub(super) fn write_text(folder: &Path, name: &str, text: &str) -> anyhow::Result<()> {
    let write = || {
        let folder = Folder::open(folder)?;
        folder.lock()?;
        folder.replace(OsStr::new(name), |file| file.write_all(text.as_bytes()))?;
        let path = folder.path().join(name);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(path, mode)
    };
    write().with_context(|| format!("cannot write {}", folder.join(name).display()))
}

/// Whether a context can have this name.
pub(super) fn parse_name(text: &str) -> Result<String, String> {
    let is_name = |one: char| one.is_ascii_alphanumeric() || "-_.".contains(one);
    let is_short = (1..=NAME_CHARS_MAX).contains(&text.len());
    if is_short && text.chars().all(is_name) && !text.starts_with('.') {
        return Ok(text.to_owned());
    }
    Err(format!(
        "a name has 1 to {NAME_CHARS_MAX} of the characters a-z A-Z 0-9 - _ . and does not begin with a dot"
    ))
}

/// Reads an API key from a file; warns if others can read it too.
pub(crate) fn read_token(path: &Path) -> anyhow::Result<Secret> {
    let shown = path.display();
    let text = read_text(path, FILE_BYTES_MAX)
        .map_err(|error| Failure::usage(format!("cannot read the API key in {shown}: {error}")))?;
    if is_open_to_others(path) {
        writeln!(
            std::io::stderr(),
            "warning: other users of this machine can read the API key: chmod 600 {shown}"
        )?;
    }
    token(&shown.to_string(), text.trim_end())
}

/// Checks an API key that comes from there.
pub(crate) fn token(place: &str, text: &str) -> anyhow::Result<Secret> {
    let is_key = !text.is_empty()
        && text.len() <= TOKEN_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    if is_key {
        return Ok(Secret::from(text));
    }
    Err(Failure::usage(format!(
        "{place} has no API key: one is a line without spaces, as thrum keys add prints it"
    )))
}

fn read_text(path: &Path, bytes_max: u64) -> std::io::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(bytes_max).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn what_is_written_is_read_and_belongs_to_the_user_alone() {
        let folder = std::env::temp_dir().join(format!("thrum-contexts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        assert!(Contexts::read_from(&folder).unwrap().contexts.is_empty());
        let mut contexts = Contexts::default();
        let context = Context {
            url: Some("https://b".to_owned()),
            ..Context::default()
        };
        contexts.contexts.insert("prod".to_owned(), context.clone());
        contexts.current = Some("prod".to_owned());
        for _ in 0..2 {
            contexts.write_to(&folder).unwrap();
            let mode = std::fs::metadata(folder.join(FILE)).unwrap().permissions();
            assert_eq!(mode.mode() & 0o777, 0o600);
        }
        let read = Contexts::read_from(&folder).unwrap();
        assert_eq!(read.current().unwrap(), Some(&context));
        std::fs::write(folder.join(FILE), "{\"x\": 1}").unwrap();
        let why = Contexts::read_from(&folder).unwrap_err().to_string();
        assert!(
            why.contains("unknown field") && why.contains("thrum context add"),
            "{why}"
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_key_that_is_not_in_use_is_removed() {
        let folder = std::env::temp_dir().join(format!("thrum-tokens-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let own = folder.join(token_file("prod"));
        std::fs::write(&own, "x_y_z").unwrap();
        remove_token(&folder, "prod", Some(&own)).unwrap();
        assert!(own.exists());
        let other = folder.join("other");
        std::fs::write(&other, "x_y_z").unwrap();
        remove_token(&folder, "prod", Some(&other)).unwrap();
        assert!(!own.exists() && other.exists());
        remove_token(&folder, "prod", None).unwrap();
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn an_unknown_context_gets_the_nearest_name() {
        let contexts = Contexts::parse(r#"{"contexts": {"prod": {"url": "https://b"}}}"#).unwrap();
        let why = contexts.get("prud").unwrap_err();
        assert_eq!(why.downcast_ref().map(Failure::code), Some(3));
        assert!(why.to_string().contains("did you mean 'prod'?"), "{why}");
    }

    #[test]
    fn names_are_parts_of_file_names_and_keys_are_parts_of_a_head() {
        for name in ["prod", "a.b_c-D9"] {
            assert_eq!(parse_name(name).as_deref(), Ok(name));
        }
        for name in ["", "..", "a/b", "a b", ".hidden"] {
            assert!(parse_name(name).is_err(), "{name}");
        }
        assert!(token("x", "thrum_a_b").is_ok());
        for text in ["", "a b", "a\r\nX: y", "\u{fc}"] {
            assert!(token("x", text).is_err(), "{text:?}");
        }
    }
}
