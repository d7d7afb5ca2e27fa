//! Lists in every form.

use super::*;

/// Rows from their JSON.
pub(super) fn rows(texts: &[&str]) -> Vec<Row> {
    let raw = texts.iter().map(|text| serde_json::from_str(text).unwrap());
    raw.map(Row::new).collect()
}

static LISTING: Listing = Listing {
    member: "rows",
    columns: &[
        Column::new("id", "ID", Cell::Text(4)),
        Column::new("n", "N", Cell::Count),
        Column::wide("at.size", "SIZE", Cell::Bytes),
    ],
    one: "row",
    many: "rows",
    aliases: &[("number", "n")],
    identity: "id",
    sum: "",
};

fn printed(form: ListForm, columns: &[&str]) -> String {
    let rows = rows(&[
        r#"{"id":"long one","n":12345,"at":{"size":2048},"x":["a","b"]}"#,
        r#"{"id":"a,\"\u001b","n":null,"at":{"size":1},"x":[]}"#,
    ]);
    let columns: Vec<String> = columns.iter().map(|&key| key.to_owned()).collect();
    let columns = sheet::chosen(&LISTING, &columns, form);
    sheet::text(&columns, &rows, form, 0).unwrap()
}

#[test]
fn a_table_is_short_and_a_wide_one_complete() {
    assert_eq!(
        printed(ListForm::Table, &[]),
        "ID    N\nlon…  12.3k\na,\\…  -\n"
    );
    assert_eq!(
        printed(ListForm::Wide, &[]),
        "ID          N      SIZE\nlong one    12.3k  2 KiB\na,\\\"\\u{1b}  -      1 B\n"
    );
    assert_eq!(
        printed(ListForm::Table, &["x", "number"]),
        "X    N\na,b  12.3k\n-    -\n"
    );
}

#[test]
fn json_is_as_the_broker_sent_it_without_what_controls_the_terminal() {
    assert_eq!(
        printed(ListForm::Json, &[]),
        "{\"id\":\"long one\",\"n\":12345,\"at\":{\"size\":2048},\"x\":[\"a\",\"b\"]}\n\
         {\"id\":\"a,\\\"\\u001b\",\"n\":null,\"at\":{\"size\":1},\"x\":[]}\n"
    );
    assert_eq!(printed(ListForm::Json, &[]), printed(ListForm::Jsonl, &[]));
    assert_eq!(
        printed(ListForm::Json, &["at.size", "id"]),
        "{\"at.size\":2048,\"id\":\"long one\"}\n{\"at.size\":1,\"id\":\"a,\\\"\\u001b\"}\n"
    );
}

#[test]
fn csv_and_yaml_can_be_read_again() {
    assert_eq!(
        printed(ListForm::Csv, &[]),
        "id,n,at.size\nlong one,12345,2048\n\"a,\\\"\"\\u{1b}\",,1\n"
    );
    assert_eq!(
        printed(ListForm::Yaml, &["id", "x"]),
        "- id: \"long one\"\n  x: [\"a\",\"b\"]\n- id: \"a,\\\"\\u001b\"\n  x: []\n"
    );
}

#[test]
fn a_key_may_be_written_short_or_with_hyphens() {
    assert_eq!(LISTING.key("Number"), "n");
    assert_eq!(LISTING.key("queued-messages"), "queued_messages");
    let row = rows(&[r#"{"id":"a","extra":1}"#]);
    let why = LISTING.unknown("extar", row.first()).to_string();
    assert!(
        why.starts_with(
            "rows have no extar; did you mean extra? the keys are at.size, extra, id, n"
        ),
        "{why}"
    );
}

#[test]
fn a_misspelt_key_is_refused_also_when_there_is_no_row() {
    assert!(LISTING.is_misspelt("at.sise") && LISTING.is_misspelt("nunber"));
    assert!(!LISTING.is_misspelt("created_by"), "rows may have it");
}

#[derive(clap::Parser)]
struct Given {
    #[command(flatten)]
    list: ListArgs,
    #[command(flatten)]
    filter: FilterArgs,
}

/// The list of no rows as these words of a command line ask for it.
fn without_rows(words: &[&str]) -> Result<String, String> {
    let words = ["ls"].iter().chain(words);
    let given = <Given as clap::Parser>::try_parse_from(words).unwrap();
    let view = View::filtered(&LISTING, &given.list, &given.filter);
    let text = view.text(Fetched::from(Vec::new()), false);
    text.map_err(|error| error.to_string())
}

#[test]
fn a_list_without_a_row_refuses_a_misspelt_key_wherever_it_is_given() {
    for words in [
        ["--filter", "nunber>3"],
        ["--columns", "id,nunber"],
        ["--sort", "nunber"],
    ] {
        let why = without_rows(&words).unwrap_err();
        assert!(why.contains("did you mean number?"), "{words:?}: {why}");
    }
    for words in [
        ["--filter", "number>3 created_by=a"],
        ["--columns", "id,created_by"],
        ["--sort", "created-by"],
    ] {
        without_rows(&words).unwrap();
    }
}

#[test]
fn an_interval_has_a_least_value() {
    assert_eq!(parse_interval("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(parse_interval("2s"), Ok(Duration::from_secs(2)));
    assert!(parse_interval("10ms").is_err());
    assert!(parse_interval("soon").is_err());
}
