//! `manifest.json`: what a bundle holds, and on what it was measured.

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::archive::Entry;
use super::{BundleError, LOG, MANIFEST, RESULT, SCENARIO, SCHEMA, SERIES};

/// Characters of a name that are shown.
const SHOWN_CHARS_MAX: usize = 80;

/// The manifest of a bundle; the facts are copies of those in its result.
#[derive(Debug, Serialize)]
struct Manifest<'a> {
    schema: &'static str,
    #[serde(flatten)]
    facts: Facts,
    files: Vec<FileFacts<'a>>,
}

/// Facts of a result, as it has them.
#[derive(Debug, Deserialize, Serialize)]
struct Facts {
    started: String,
    tool: Value,
    machine: Value,
    scenario: ScenarioFacts,
    brokers: Vec<BrokerFacts>,
    generator: GeneratorFacts,
}

#[derive(Debug, Deserialize, Serialize)]
struct ScenarioFacts {
    name: String,
    targets: Vec<String>,
}

#[derive(Debug, Deserialize, Serialize)]
struct BrokerFacts {
    target: String,
    version: String,
    configuration: String,
}

#[derive(Debug, Deserialize, Serialize)]
struct GeneratorFacts {
    #[serde(deserialize_with = "length", rename(serialize = "thread_count"))]
    threads: usize,
}

/// A file in the manifest.
#[derive(Debug, Serialize)]
struct FileFacts<'a> {
    name: &'a str,
    bytes: usize,
    sha256: String,
}

/// A file as a manifest that is read lists it.
#[derive(Debug, Deserialize)]
struct Listed {
    name: String,
    bytes: u64,
    sha256: String,
}

/// The part of a manifest that every version has.
#[derive(Debug, Deserialize)]
struct SchemaOnly {
    schema: String,
}

#[derive(Debug, Deserialize)]
struct FilesOnly {
    files: Vec<Listed>,
}

/// The manifest of these files, of which one is the result.
///
/// # Errors
/// The result lacks a fact.
pub(super) fn text(result: &[u8], files: &[Entry<'_>]) -> Result<String, BundleError> {
    let wrong = |error: serde_json::Error| BundleError::Result {
        why: error.to_string(),
    };
    let facts: Facts = serde_json::from_slice(result).map_err(wrong)?;
    let files = files.iter().filter(|file| file.name != MANIFEST);
    let manifest = Manifest {
        schema: SCHEMA,
        facts,
        files: files
            .map(|file| FileFacts {
                name: file.name,
                bytes: file.bytes.len(),
                sha256: sha256(file.bytes),
            })
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&manifest).map_err(wrong)?;
    text.push('\n');
    Ok(text)
}

/// Checks the version of a manifest, then that the bundle has exactly its files, each unchanged.
pub(super) fn check_files(manifest: &[u8], entries: &[Entry<'_>]) -> Result<(), BundleError> {
    let wrong = |error: serde_json::Error| BundleError::Manifest {
        why: error.to_string(),
    };
    let SchemaOnly { schema } = serde_json::from_slice(manifest).map_err(wrong)?;
    if schema != SCHEMA {
        return Err(BundleError::Schema {
            schema: shown(&schema),
        });
    }
    let FilesOnly { files } = serde_json::from_slice(manifest).map_err(wrong)?;
    for entry in entries.iter().filter(|entry| entry.name != MANIFEST) {
        let name = || entry.name.to_owned();
        if ![LOG, RESULT, SCENARIO, SERIES].contains(&entry.name) {
            return Err(BundleError::Unknown { name: name() });
        }
        let listed = files.iter().find(|file| file.name == entry.name);
        let listed = listed.ok_or_else(|| BundleError::Unknown { name: name() })?;
        let is_same = listed.bytes == u64::try_from(entry.bytes.len()).unwrap_or(u64::MAX)
            && listed.sha256 == sha256(entry.bytes);
        if !is_same {
            return Err(BundleError::Changed { name: name() });
        }
    }
    let has = |name: &str| entries.iter().any(|entry| entry.name == name);
    match files.into_iter().find(|file| !has(&file.name)) {
        Some(file) => Err(BundleError::Missing {
            name: shown(&file.name),
        }),
        None => Ok(()),
    }
}

/// A name that anyone may have written: its beginning, without characters that a terminal obeys.
fn shown(name: &str) -> String {
    let beginning: String = name.chars().take(SHOWN_CHARS_MAX).collect();
    beginning.escape_debug().to_string()
}

/// As 64 hexadecimal digits, which `sha256sum` prints too.
fn sha256(bytes: &[u8]) -> String {
    let digest = digest(&SHA256, bytes);
    digest
        .as_ref()
        .iter()
        .fold(String::new(), |mut text, byte| {
            text.extend(
                [byte >> 4, byte & 15]
                    .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])),
            );
            text
        })
}

/// Number of the elements of a list.
fn length<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<usize, D::Error> {
    let all = Vec::<serde::de::IgnoredAny>::deserialize(deserializer)?;
    Ok(all.len())
}
