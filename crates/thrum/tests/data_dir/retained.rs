//! `thrum retained`.

use serde_json::json;

use crate::folder::Folder;

#[test]
fn ls_prints_a_table_and_its_sum() {
    let folder = Folder::filled("retained-ls");
    assert_eq!(
        folder.printed("retained ls --data-dir data"),
        "QOS  SIZE  PUBLISHED                 EXPIRES  TOPIC\n\
         1    2 B   2023-11-14T22:13:20.000Z  -        site/1/state\n\
         1    2 B   2023-11-14T22:13:20.000Z  -        site/2/state\n\n\
         2 retained messages: 4 B\n"
    );
    let rows = folder.json("retained ls --data-dir data --json --filter site/1/#");
    assert_eq!(
        rows,
        [json!({
            "topic": "site/1/state", "qos": 1, "payload_bytes": 2, "published_at": "2023-11-14T22:13:20.000Z", "expires_at": null,
        })]
    );
}

#[test]
fn a_line_of_an_export_has_everything_and_text_where_it_is_text() {
    let folder = Folder::filled("retained-export");
    let properties = json!({ "payload_format_indicator": 1, "content_type": "text" });
    let published_at = "2023-11-14T22:13:20.000Z";
    assert_eq!(
        folder.json("retained export - --data-dir data"),
        [
            json!({
                "topic": "site/1/state", "qos": 1, "payload": "b24=", "text": "on", "published_at": published_at,
                "properties": properties,
            }),
            json!({
                "topic": "site/2/state", "qos": 1, "payload": "/wA=", "published_at": published_at, "properties": properties,
            }),
        ]
    );
    let one = folder.json("retained export - --data-dir data --filter +/2/state");
    assert_eq!(one.len(), 1);
}

#[test]
fn exported_messages_are_the_same_when_imported_elsewhere() {
    let folder = Folder::filled("retained-move");
    folder.printed("retained export a.jsonl --data-dir data");
    folder.open("other").close().unwrap();
    let output = folder.thrum("retained import a.jsonl --data-dir other");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "imported 2 retained messages, 0 of them in the place of others\n"
    );
    folder.printed("retained export b.jsonl --data-dir other");
    let read = |name| std::fs::read_to_string(folder.path(name)).unwrap();
    assert_eq!(read("a.jsonl"), read("b.jsonl"));
    let refused = "error: cannot write b.jsonl: it exists; choose another name, or move it away\n";
    folder.check_fails("retained export b.jsonl --data-dir other", 2, refused);
}

#[test]
fn import_adds_replaces_and_if_asked_removes_the_rest() {
    let folder = Folder::filled("retained-import");
    let lines = "{\"topic\":\"site/1/state\",\"text\":\"off\"}\n\n\
                 {\"topic\":\"new\",\"text\":\"1\"}\n{\"topic\":\"new\",\"text\":\"2\",\"expires_at\":\"2100-01-01T00:00:00Z\"}\n\
                 {\"topic\":\"late\",\"text\":\"\",\"expires_at\":\"2020-01-01T00:00:00Z\"}\n";
    let output = folder.thrum_with("retained import - --data-dir data", lines);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "imported 2 retained messages, 1 of them in the place of others, left out 1 that have expired\n"
    );
    let payloads = || -> Vec<(String, Vec<u8>)> {
        let state = folder.state("data");
        let message = |place: usize| &state.messages[place].content;
        let retained = state.retained.iter();
        retained
            .map(|one| {
                (
                    one.topic.to_string(),
                    message(one.message).payload().to_vec(),
                )
            })
            .collect()
    };
    let pair = |topic: &str, payload: &[u8]| (topic.to_owned(), payload.to_vec());
    let (new, first) = (pair("new", b"2"), pair("site/1/state", b"off"));
    assert_eq!(
        payloads(),
        [new.clone(), first, pair("site/2/state", b"\xFF\x00")]
    );
    assert_eq!(folder.state("data").sessions.len(), 3);
    let line = "retained import - --data-dir data --replace-all";
    let output = folder.thrum_with(line, "{\"topic\":\"new\",\"payload\":\"Mg==\"}\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        said,
        "imported 1 retained message, 1 of them in the place of others, removed 2\n"
    );
    assert_eq!(payloads(), [new]);
}

#[test]
fn a_wrong_line_is_named_and_nothing_is_changed() {
    let folder = Folder::filled("retained-wrong");
    let before = folder.state("data");
    std::fs::write(
        folder.path("a.jsonl"),
        "{\"topic\":\"a\",\"text\":\"\"}\n{\"topic\":\"a/+\",\"text\":\"\"}\n",
    )
    .unwrap();
    folder.check_fails(
        "retained import a.jsonl --data-dir data --replace-all",
        2,
        "error: a.jsonl:2: \"a/+\" is not a topic name: it must not be empty, longer than 65535 bytes or have + # or U+0000 in it; \
         nothing was changed\n",
    );
    assert_eq!(folder.state("data"), before);
    folder.check_fails(
        "retained import b.jsonl --data-dir data",
        2,
        "error: cannot read b.jsonl: No such file or directory (os error 2)\n",
    );
}
