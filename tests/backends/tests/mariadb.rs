//! Users and rules in MariaDB, as in MySQL.

use serde_json::json;
use thrum_backends::client::{Door, Visitor, secret_file};
use thrum_backends::death;
use thrum_backends::server::{MariaDb, PASSWORD};
use thrum_backends::silence::{self, Silence};
use thrum_backends::sql;
use thrum_codec::ReasonCode;
use thrum_conformance::folder::Folder;

#[test]
fn users_rules_and_hashes_are_read_from_mariadb() {
    let (server, folder) = (MariaDb::start(), Folder::new("mariadb-secret"));
    server.execute(&sql::tables());
    let settings = sql::settings(&server.url(), &secret_file(&folder, "password", PASSWORD));
    sql::knows_users(&settings);
    sql::knows_rules(&settings);
    sql::knows_salts(&settings);
    sql::takes_names_as_names(&settings);
}

#[test]
fn a_client_has_the_name_that_the_database_writes() {
    let (server, folder) = (MariaDb::start(), Folder::new("mariadb-names"));
    server.execute(&format!(
        "CREATE TABLE person (name VARCHAR(40), hash VARBINARY(200), admin INT UNSIGNED,
           roles SET('a', 'b'), effect ENUM('allow', 'deny')) CHARACTER SET utf8mb4;
         INSERT INTO person VALUES ('ann', '{}', 1, 'a,b', 'deny');",
        sql::BCRYPT
    ));
    let door = Door::open(&json!({ "sql": { "db": {
        "url": server.url(),
        "password_file": secret_file(&folder, "password", PASSWORD),
        "query": "SELECT name AS username, hash AS password_hash, admin AS is_superuser, roles FROM person
                  WHERE name = ${username}",
        "rules_query": "SELECT effect AS permission, 'publish' AS action, 'a/#' AS topic, 1 AS qos FROM person",
    }}}));
    // To MariaDB, these names are equal.
    for name in ["ann", "ANN", "ann "] {
        let ann = door.admits(name, "secret");
        assert_eq!(ann.identity.username.as_deref(), Some("ann"));
        assert!(ann.identity.is_superuser);
        assert_eq!(ann.identity.roles, ["a", "b"].map(Box::<str>::from));
        assert_eq!(ann.rules.map(|rules| rules.len()), Some(1));
    }
    door.refuses("ANN", "Secret", ReasonCode::BadUserNameOrPassword);
}

#[test]
fn a_server_that_dies_and_comes_back_needs_no_restart_of_ours() {
    let (mut server, folder) = (MariaDb::start(), Folder::new("mariadb-death"));
    server.execute(&sql::tables());
    let settings = sql::settings(&server.url(), &secret_file(&folder, "password", PASSWORD));
    let door = Door::open(&settings);
    death::is_survived(&door, "db", &Visitor::new("ann", "secret"), &mut server);
}

#[test]
fn a_silent_server_and_a_crowd_are_bounded() {
    let (silence, folder) = (Silence::start(), Folder::new("mariadb-silence"));
    let url = format!("mysql://thrum@127.0.0.1:{}/thrum", silence.port());
    let mut settings = sql::settings(&url, &secret_file(&folder, "password", PASSWORD));
    settings["sql"]["db"]["in_flight"] = json!(4);
    settings["sql"]["db"]["timeout"] = json!("1s");
    silence::is_bounded(&Door::open(&settings), 4);
}
