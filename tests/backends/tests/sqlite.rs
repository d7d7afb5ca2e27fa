//! Users and rules in a file of SQLite.

use std::path::Path;

use serde_json::Value;
use thrum_backends::client::Authenticator;
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
fn a_missing_file_denies_and_is_used_once_it_exists() {
    let folder = Folder::new("sqlite-late");
    let authenticator = Authenticator::open(&settings(&folder.file("users.db")));
    authenticator.refuses("ann", "secret", ReasonCode::ServerUnavailable);
    assert!(
        !folder.path().join("users.db").exists(),
        "a database is never made"
    );
    sql::sqlite_file(&folder);
    thrum_backends::restart::admits_again(
        &authenticator,
        &thrum_backends::client::LoginAttempt::new("ann", "secret"),
    );
}
