//! Payloads from their specification to the bytes of a message.

use std::io;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::mark::{MARK_BYTES, Mark};
use crate::scenario::PayloadSpec;

const MARK: Mark = Mark {
    publisher: 3,
    sequence: 7,
    sent_ns: 1_000,
    was_held_back: false,
};

const MARK_TEXT: &str = "100000030000000726000000000003e8";

fn filler() -> Filler {
    let mut filler = Filler::new(42);
    filler.set(4, 1_795_252_323_250);
    filler
}

fn written(template: &Template, mark: Mark) -> Vec<u8> {
    let mut out = b"of the message before".to_vec();
    template.write(mark, &mut filler(), &mut out);
    assert!(out.len() <= usize::try_from(template.bytes_max()).unwrap());
    assert_eq!(Mark::read(&out), Some(mark));
    assert!(template.matches(&out));
    out
}

fn text(template: &str) -> String {
    let template = Template::new(&PayloadSpec::Template(template.to_owned()), &no_files).unwrap();
    without_checksum(&written(&template, MARK))
}

/// A text without the eight digits that follow its mark.
fn without_checksum(payload: &[u8]) -> String {
    let text = String::from_utf8(payload.to_vec()).unwrap();
    let (before, after) = text.split_once(MARK_TEXT).unwrap();
    let (checksum, rest) = after.split_at(8);
    assert!(checksum.bytes().all(|digit| digit.is_ascii_hexdigit()));
    format!("{before}{MARK_TEXT}{rest}")
}

fn refusal(template: &str) -> String {
    let spec = PayloadSpec::Template(template.to_owned());
    Template::new(&spec, &no_files).unwrap_err().to_string()
}

/// A file system without files.
pub(crate) fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::from(io::ErrorKind::NotFound))
}

/// The payload of a file.
fn of_file(contents: &[u8]) -> Result<Template, PayloadError> {
    let spec = PayloadSpec::File(PathBuf::from("file"));
    Template::new(&spec, &|path| {
        assert_eq!(path, Path::new("file"));
        Ok(contents.to_vec())
    })
}

#[test]
fn dots_and_random_bytes_keep_their_size() {
    for bytes in [16, 17, 1_000, PAYLOAD_BYTES_MAX] {
        let length = usize::try_from(bytes).unwrap();
        let dots = Template::new(&PayloadSpec::Size(bytes), &no_files).unwrap();
        assert_eq!(dots.bytes_max(), bytes);
        assert_eq!(
            written(&dots, MARK)[MARK_BYTES..],
            vec![b'.'; length - MARK_BYTES]
        );
    }
    let random = Template::new(&PayloadSpec::Random(10_000), &no_files).unwrap();
    let payload = written(&random, MARK);
    assert_eq!(payload.len(), 10_000);
    let mut counts = [0; 256];
    for byte in &payload[MARK_BYTES..] {
        counts[usize::from(*byte)] += 1;
    }
    assert!(
        counts.iter().all(|count| (10..80).contains(count)),
        "{counts:?}"
    );
    assert_eq!(
        random,
        Template::new(&PayloadSpec::Random(10_000), &no_files).unwrap()
    );
}

#[test]
fn a_payload_without_room_for_its_mark_is_refused() {
    for spec in [PayloadSpec::Size(15), PayloadSpec::Random(0)] {
        let error = Template::new(&spec, &no_files).unwrap_err();
        assert!(matches!(error, PayloadError::TooShort { .. }), "{error}");
    }
    let error = of_file(b"fifteen bytes..").unwrap_err().to_string();
    assert_eq!(
        error,
        "a payload of 15 bytes is too short: each message begins with a mark of 16 bytes"
    );
}

#[test]
fn a_payload_beyond_the_limit_is_refused() {
    let specs = [
        PayloadSpec::Size(PAYLOAD_BYTES_MAX + 1),
        PayloadSpec::Random(u32::MAX),
        PayloadSpec::Template(".".repeat(usize::try_from(PAYLOAD_BYTES_MAX).unwrap())),
        PayloadSpec::Template("{random:65536}".repeat(256)),
    ];
    for spec in specs {
        let error = Template::new(&spec, &no_files).unwrap_err();
        assert!(matches!(error, PayloadError::TooLong), "{error}");
    }
    let length = usize::try_from(PAYLOAD_BYTES_MAX).unwrap();
    let error = of_file(&vec![0; length + 1]);
    assert!(matches!(error, Err(PayloadError::TooLong)));
    assert!(of_file(&vec![0; length]).is_ok());
}

#[test]
fn a_text_comes_after_its_mark() {
    assert_eq!(text("hello"), format!("thrum:{MARK_TEXT} hello"));
    assert_eq!(text(""), format!("thrum:{MARK_TEXT} "));
    assert_eq!(
        text("{i}/{seq} at {now} = {now_ms} {{seq}} {nothing}"),
        format!(
            "thrum:{MARK_TEXT} 4/7 at 2026-11-21T09:12:03.250Z = 1795252323250 {{seq}} {{nothing}}"
        )
    );
}

#[test]
fn a_text_that_begins_with_a_place_is_no_object() {
    assert_eq!(text("{seq};{i}"), format!("thrum:{MARK_TEXT} 7;4"));
    assert_eq!(text(" {seq};"), format!("thrum:{MARK_TEXT}  7;"));
    assert_eq!(text("{{seq}};"), format!("thrum:{MARK_TEXT} {{seq}};"));
}

#[test]
fn a_mark_is_the_first_member_of_an_object() {
    for (template, expected) in [
        ("{}", ""),
        (" { } ", " "),
        (r#"{"a":1}"#, r#","a":1"#),
        (r#"{"a":{"b":{"seq":{seq}}}}"#, r#","a":{"b":{"seq":7}}"#),
        (" \n{\n  \"id\": \"{i}\"\n}", ",\n  \"id\": \"4\"\n"),
    ] {
        let payload = text(template);
        let expected = format!(r#"{{"thrum":"{MARK_TEXT}"{expected}}}"#);
        assert_eq!(payload.trim_end(), expected);
        let value: Value = serde_json::from_str(&payload).unwrap();
        assert_eq!(value["thrum"], MARK_TEXT);
    }
}

#[test]
fn every_place_is_valid_in_an_object() {
    let payload = text(
        r#"{"i":{i},"seq":{seq},"ms":{now_ms},"at":"{now}","hex":"{random:9}","int":{int:-5:5},
        "float":{float:-0.5:0.125},"id":"{uuid}","mixed":"dev-{i}-{seq}","pair":{i}.{seq}}"#,
    );
    let value: Value = serde_json::from_str(&payload).unwrap();
    assert_eq!(
        (value["i"].as_u64(), value["seq"].as_u64()),
        (Some(4), Some(7))
    );
    assert_eq!(value["ms"].as_u64(), Some(1_795_252_323_250));
    assert_eq!(value["at"], "2026-11-21T09:12:03.250Z");
    assert_eq!(value["hex"].as_str().unwrap().len(), 9);
    assert!((-5..=5).contains(&value["int"].as_i64().unwrap()));
    assert!((-0.5..=0.125).contains(&value["float"].as_f64().unwrap()));
    assert_eq!(value["id"].as_str().unwrap().len(), 36);
    assert_eq!(value["mixed"], "dev-4-7");
    assert_eq!(value["pair"].as_f64(), Some(4.7));
}

#[test]
fn a_bad_template_is_reported_with_its_place() {
    assert_eq!(
        refusal("temperature\n= {float:0}"),
        "bad payload template: line 2, column 3: {float:0} needs two limits, such as {float:-5:40.5}"
    );
    let json = refusal("{\"a\": {i},\n \"b\": {now}}");
    assert!(
        json.ends_with("expected value at line 2 column 7"),
        "{json}"
    );
    let json = refusal(r#"{"a": {sequence}}"#);
    assert!(
        json.ends_with("key must be a string at line 1 column 8"),
        "{json}"
    );
    let json = refusal(r#"{"a": -{int:-5:5}}"#);
    assert!(json.ends_with(r#": {"a": --5}"#), "{json}");
    let json = refusal(r#"{"a": {i}{seq}}"#);
    assert!(json.ends_with(r#": {"a": 00}"#), "{json}");
    let json = refusal(r#"{"a": {int:-5:5}{i}}"#);
    assert!(json.ends_with(r#": {"a": 00}"#), "{json}");
    for template in ["{", "{hello}", "{}}", r#"{"a":1} {"b":2}"#] {
        let error =
            Template::new(&PayloadSpec::Template(template.to_owned()), &no_files).unwrap_err();
        assert!(
            matches!(error, PayloadError::Json { .. }),
            "{template}: {error}"
        );
    }
    let error = refusal(&"{i}".repeat(PLACES_MAX + 1));
    assert_eq!(
        error,
        "the payload template has 1025 places: at most 1024 are filled in"
    );
}

#[test]
fn a_binary_file_keeps_its_size() {
    for contents in [
        b"\x00\x01binary file with a tail".as_slice(),
        b"{ this is not JSON, {i} is no place here }",
        b"{\"bad utf-8\":\"\xFF\"        }",
    ] {
        let template = of_file(contents).unwrap();
        let payload = written(&template, MARK);
        assert_eq!(payload.len(), contents.len());
        assert_eq!(payload[MARK_BYTES..], contents[MARK_BYTES..]);
    }
}

#[test]
fn a_json_file_gets_a_member_and_no_places() {
    let template = of_file(b"\n{\n \"a\": \"{i}\"\n}\n").unwrap();
    let payload = written(&template, MARK);
    let value: Value = serde_json::from_str(&without_checksum(&payload)).unwrap();
    assert_eq!(
        (&value["a"], &value["thrum"]),
        (&"{i}".into(), &MARK_TEXT.into())
    );
}

#[test]
fn a_missing_file_is_named() {
    let spec = PayloadSpec::File(PathBuf::from("/no/payload"));
    let error = Template::new(&spec, &no_files).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read the payload from /no/payload: "),
        "{error}"
    );
}

/// Templates of all kinds.
fn all_kinds() -> [Template; 6] {
    let text = |text: &str| PayloadSpec::Template(text.to_owned());
    [
        PayloadSpec::Size(16),
        PayloadSpec::Size(1_000),
        PayloadSpec::Random(1_000),
        text("{now} {uuid} {random:40} {float:0:1}"),
        text(r#"{"at":{now_ms},"hex":"{random:40}"}"#),
        text(""),
    ]
    .map(|spec| Template::new(&spec, &no_files).unwrap())
}

#[test]
fn a_payload_of_another_length_matches_no_template() {
    for template in all_kinds() {
        let payload = written(&template, MARK);
        for length in 0..payload.len() {
            assert!(!template.matches(&payload[..length]), "{length}");
        }
        for byte in [b'.', b'0', b'}', 0] {
            let longer = [payload.as_slice(), &[byte]].concat();
            assert!(!template.matches(&longer));
        }
    }
}

#[test]
fn a_flipped_bit_anywhere_but_in_a_binary_mark_matches_no_template() {
    for template in all_kinds() {
        let payload = written(&template, MARK);
        let is_binary = payload[0] < b'@';
        for at in if is_binary { MARK_BYTES } else { 0 }..payload.len() {
            for bit in 0..8 {
                let mut flipped = payload.clone();
                flipped[at] ^= 1 << bit;
                assert!(!template.matches(&flipped), "bit {bit} at {at}");
            }
        }
    }
}

#[test]
fn the_body_of_another_message_matches_no_text() {
    let template = &all_kinds()[3];
    let mut filler = filler();
    let [mut one, mut other] = [Vec::new(), Vec::new()];
    template.write(MARK, &mut filler, &mut one);
    template.write(MARK, &mut filler, &mut other);
    let behind_mark = one.len() - 40;
    one[behind_mark..].copy_from_slice(&other[behind_mark..]);
    assert!(!template.matches(&one));
}

#[test]
fn only_places_with_a_time_need_one() {
    let needs_time = |text: &str| {
        Template::new(&PayloadSpec::Template(text.to_owned()), &no_files)
            .unwrap()
            .needs_time()
    };
    assert!(needs_time("{now}") && needs_time(r#"{"at":{now_ms}}"#));
    assert!(!needs_time("{i} {uuid}"));
    assert!(
        !Template::new(&PayloadSpec::Size(16), &no_files)
            .unwrap()
            .needs_time()
    );
}

/// Valid contents of a JSON string, placeholders and broken placeholders included.
fn string() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        "[ -!#-\\[\\]-~é]{0,6}",
        Just("{i}".to_owned()),
        Just("{now}".to_owned()),
        Just("{{seq}}".to_owned()),
        Just("{float:-1:2.5}".to_owned()),
        Just("{random:20}".to_owned()),
        Just("{".to_owned()),
        Just("}".to_owned()),
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.concat())
}

fn number() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "{i}",
        "{seq}",
        "{now_ms}",
        "{int:-3:3}",
        "{float:0:1}",
        "12",
        "null",
        "{}",
    ])
    .prop_map(str::to_owned)
}

proptest! {
    #[test]
    fn objects_stay_valid_and_within_their_length(
        members in prop::collection::vec((string(), number()), 0..6),
        publisher in 0..crate::mark::PUBLISHERS_MAX,
        sequence: u32,
        sent_ns in 0_u64..1 << 57,
        was_held_back: bool,
    ) {
        let members: Vec<String> = members
            .iter()
            .enumerate()
            .map(|(index, (text, number))| format!(r#""{index}":["{text}",{number}]"#))
            .collect();
        let source = format!("{{{}}}", members.join(","));
        let mark = Mark { publisher, sequence, sent_ns, was_held_back };
        // A text may happen to spell a place with bad limits; all else is fine.
        let template = match Template::new(&PayloadSpec::Template(source), &no_files) {
            Err(PayloadError::Place(_)) => return Ok(()),
            template => template.unwrap(),
        };
        let payload = written(&template, mark);
        let value: Value = serde_json::from_slice(&payload).unwrap();
        prop_assert_eq!(value.as_object().unwrap().len(), members.len() + 1);
    }

    #[test]
    fn any_text_is_sent_or_refused(source in "(\\{|\\}|:|i|seq|int|random|[0-9]|\"|,|é|\n){0,12}", mark_ns in 0_u64..1 << 57) {
        let mark = Mark { sent_ns: mark_ns, ..MARK };
        if let Ok(template) = Template::new(&PayloadSpec::Template(source), &no_files) {
            written(&template, mark);
        }
    }
}
