//! The description of the interface.

use std::collections::BTreeSet;

use super::*;
use crate::api::openapi::DOCUMENT;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/api/openapi.json");

#[tokio::test]
async fn the_committed_document_is_that_of_the_code() {
    let api = TestApi::new("document");
    let mut of_code = serde_json::to_string_pretty(&api.document()).unwrap();
    of_code.push('\n');
    if std::env::var_os("UPDATE_OPENAPI").is_some() {
        std::fs::write(FILE, &of_code).unwrap();
        return;
    }
    assert!(
        of_code == DOCUMENT,
        "docs/api/openapi.json differs from the code; write it with \
         `UPDATE_OPENAPI=1 cargo test -p thrum-management --lib openapi`, and look at the difference"
    );
}

#[tokio::test]
async fn a_caller_of_any_kind_reads_the_document() {
    let api = TestApi::with_admin("read-document");
    let stranger = Client::program("192.0.2.9");
    assert_eq!(api.get(&stranger, "/openapi.json").await.status, 401);
    let admin = api.admin().await;
    let answer = api.get(&admin, "/openapi.json").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.kind.as_deref(), Some("application/json"));
    assert_eq!(
        answer.body,
        serde_json::from_str::<Value>(DOCUMENT).unwrap()
    );
}

#[tokio::test]
async fn every_operation_and_every_part_of_it_has_a_text() {
    let api = TestApi::new("texts");
    let document = api.document();
    let tags = document["tags"].as_array().unwrap().iter();
    let tags: BTreeSet<&str> = tags.map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut names = BTreeSet::new();
    let paths = document["paths"].as_object().unwrap().iter();
    let operations = paths.flat_map(|(path, item)| {
        let methods = item.as_object().unwrap().iter();
        methods.map(move |(method, operation)| (format!("{method} {path}"), operation))
    });
    for (place, operation) in operations {
        let name = operation["operationId"].as_str().unwrap();
        assert!(names.insert(name), "{name} is there twice");
        let tag = operation["tags"][0].as_str().unwrap();
        assert!(tags.contains(tag), "{place}: {tag}");
        assert!(
            operation["security"].is_array(),
            "{place} does not say what it needs"
        );
        for text in texts(operation) {
            let text = text.as_str().unwrap_or_default();
            assert!(!text.is_empty(), "a part of {place} has no text");
        }
    }
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for (name, schema) in schemas {
        assert!(schema["description"].is_string(), "{name} has no text");
    }
    let mut references = BTreeSet::new();
    collect_references(&document, &mut references);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
}

/// What an operation says about itself, its parameters and its answers.
fn texts(operation: &Value) -> Vec<&Value> {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let answers = operation["responses"].as_object().unwrap().values();
    let answers = answers.filter(|answer| answer["$ref"].is_null());
    let parts = parameters.chain(answers).map(|part| &part["description"]);
    parts.chain([&operation["summary"]]).collect()
}

fn collect_references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            found.extend(reference.map(str::to_owned));
            for field in fields.values() {
                collect_references(field, found);
            }
        }
        Value::Array(values) => {
            for value in values {
                collect_references(value, found);
            }
        }
        _ => {}
    }
}
