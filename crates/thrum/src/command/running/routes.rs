//! The routes that commands use, compared with the description of the interface.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Method;

/// What commands ask for; `thrum api` asks for anything.
const USED: [(Method, &str); 70] = [
    (Method::Get, "/access/rules"),
    (Method::Post, "/access/test"),
    (Method::Get, "/admins"),
    (Method::Post, "/admins"),
    (Method::Delete, "/admins/{}"),
    (Method::Patch, "/admins/{}"),
    (Method::Post, "/admins/{}/password"),
    (Method::Get, "/alarms"),
    (Method::Get, "/alarms/history"),
    (Method::Get, "/audit"),
    (Method::Get, "/backups"),
    (Method::Post, "/backups"),
    (Method::Delete, "/backups/{}"),
    (Method::Get, "/backups/{}"),
    (Method::Get, "/backups/{}/file"),
    (Method::Delete, "/bans"),
    (Method::Get, "/bans"),
    (Method::Post, "/bans"),
    (Method::Get, "/clients"),
    (Method::Delete, "/clients/{}"),
    (Method::Get, "/clients/{}"),
    (Method::Post, "/clients/{}/ban"),
    (Method::Get, "/clients/{}/timeline"),
    (Method::Post, "/config/apply"),
    (Method::Post, "/config/plan"),
    (Method::Post, "/config/reload"),
    (Method::Post, "/config/rollback"),
    (Method::Get, "/config/versions"),
    (Method::Get, "/drops"),
    (Method::Post, "/explain/drops"),
    (Method::Post, "/explain/publish"),
    (Method::Post, "/explain/subscribe"),
    (Method::Get, "/groups"),
    (Method::Post, "/import/users"),
    (Method::Get, "/keys"),
    (Method::Post, "/keys"),
    (Method::Delete, "/keys/{}"),
    (Method::Get, "/listeners"),
    (Method::Post, "/listeners/reload-certificates"),
    (Method::Post, "/listeners/{}/start"),
    (Method::Post, "/listeners/{}/stop"),
    (Method::Get, "/logs"),
    (Method::Get, "/logs/level"),
    (Method::Put, "/logs/level"),
    (Method::Get, "/metrics"),
    (Method::Delete, "/retained"),
    (Method::Get, "/retained"),
    (Method::Get, "/retained/export"),
    (Method::Post, "/retained/import"),
    (Method::Get, "/retained/message"),
    (Method::Get, "/roles"),
    (Method::Delete, "/roles/{}"),
    (Method::Put, "/roles/{}"),
    (Method::Post, "/setup-link"),
    (Method::Get, "/slow"),
    (Method::Get, "/status"),
    (Method::Get, "/subscriptions"),
    (Method::Get, "/topics"),
    (Method::Get, "/topics/topic"),
    (Method::Get, "/trace"),
    (Method::Get, "/user-groups"),
    (Method::Delete, "/user-groups/{}"),
    (Method::Put, "/user-groups/{}"),
    (Method::Get, "/users"),
    (Method::Post, "/users"),
    (Method::Delete, "/users/{}"),
    (Method::Get, "/users/{}"),
    (Method::Patch, "/users/{}"),
    (Method::Post, "/users/{}/password"),
    (Method::Post, "/why"),
];

/// The same with any name of a parameter.
fn without_names(path: &str) -> String {
    let mut text = String::new();
    let mut is_name = false;
    for one in path.chars() {
        match one {
            '{' => {
                text.push_str("{}");
                is_name = true;
            }
            '}' => is_name = false,
            one if !is_name => text.push(one),
            _ => {}
        }
    }
    text
}

#[test]
fn every_route_that_a_command_uses_is_in_the_description_of_the_interface() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/openapi.json");
    let described: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let paths = described["paths"].as_object().unwrap();
    let described: BTreeMap<String, &Value> = paths
        .iter()
        .map(|(path, methods)| {
            let path = path.strip_prefix("/api/v1").unwrap_or(path);
            (without_names(path), methods)
        })
        .collect();
    for (method, path) in USED {
        let found = described.get(path);
        let found = found.unwrap_or_else(|| panic!("no route {path}"));
        let method = method.name().to_lowercase();
        assert!(found.get(&method).is_some(), "{method} {path}");
    }
}

/// Files of commands that ask a running broker.
fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|end| end == "rs") {
            into.push(path);
        }
    }
}

#[test]
fn every_path_in_the_code_of_a_command_is_among_them() {
    let mut files = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/command");
    sources(&folder, &mut files);
    let known: BTreeSet<&str> = USED.iter().map(|(_, path)| *path).collect();
    let mut found = BTreeSet::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        // Tests are at the end of a file, and have files of their own.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let asks = code.contains("running::") || code.contains("listing::");
        let asks = asks && !file.ends_with("running/routes.rs");
        let literals = code.split('"').skip(1).step_by(2);
        for literal in literals.filter(|_| asks) {
            let path = without_names(literal.split('?').next().unwrap_or_default());
            let is_path = path.strip_prefix('/').is_some_and(|rest| {
                !rest.is_empty()
                    && rest
                        .chars()
                        .all(|one| one.is_ascii_lowercase() || "/{}-".contains(one))
            });
            if is_path {
                assert!(known.contains(&*path), "{path} in {}", file.display());
                found.insert(path);
            }
        }
    }
    let found: BTreeSet<&str> = found.iter().map(String::as_str).collect();
    assert_eq!(found, known, "nothing that no command asks is among them");
}
