//! Users and rules in a file of SQLite.

use std::path::Path;

use serde_json::Value;
use thrum_backends::client::Door;
use thrum_backends::sql;
use thrum_codec::ReasonCode;
use thrum_conformance::folder::Folder;

fn settings(file: &str) -> Value {
    sql::settings(&format!("sqlite://{file}"), Path::new(""))
}

#[test]
fn users_rules_and_hashes_are_read_from_sqlite() {
    let folder = Folder::new("sqlite");
    let settings = settings(&sql::sqlite_file(&folder));
    sql::knows_users(&settings);
    sql::knows_rules(&settings);
    sql::knows_salts(&settings);
    sql::takes_names_as_names(&settings);
}

#[test]
fn a_file_that_is_missing_lets_nobody_in_and_is_used_when_it_is_there() {
    let folder = Folder::new("sqlite-late");
    let door = Door::open(&settings(&folder.file("users.db")));
    door.refuses("ann", "secret", ReasonCode::ServerUnavailable);
    assert!(
        !folder.path().join("users.db").exists(),
        "a database is never made"
    );
    sql::sqlite_file(&folder);
    thrum_backends::death::comes_back(
        &door,
        &thrum_backends::client::Visitor::new("ann", "secret"),
    );
}
