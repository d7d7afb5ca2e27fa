//! Users and rules in MariaDB, as in MySQL.

use serde_json::json;
use thrum_backends::client::{Authenticator, LoginAttempt, secret_file};
use thrum_backends::restart;
use thrum_backends::server::{MariaDb, PASSWORD};
use thrum_backends::silent_server::{self, SilentServer};
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
fn a_client_has_the_name_stored_in_the_database() {
    let (server, folder) = (MariaDb::start(), Folder::new("mariadb-names"));
    server.execute(&format!(
        "CREATE TABLE person (name VARCHAR(40), hash VARBINARY(200), admin INT UNSIGNED,
           roles SET('a', 'b'), effect ENUM('allow', 'deny')) CHARACTER SET utf8mb4;
         INSERT INTO person VALUES ('ann', '{}', 1, 'a,b', 'deny');",
        sql::BCRYPT
    ));
    let authenticator = Authenticator::open(&json!({ "sql": { "db": {
        "url": server.url(),
        "password_file": secret_file(&folder, "password", PASSWORD),
        "query": "SELECT name AS username, hash AS password_hash, admin AS is_superuser, roles FROM person
                  WHERE name = ${username}",
        "rules_query": "SELECT effect AS permission, 'publish' AS action, 'a/#' AS topic, 1 AS qos FROM person",
    }}}));
    // To MariaDB, these names are equal.
    for name in ["ann", "ANN", "ann "] {
        let ann = authenticator.admits(name, "secret");
        assert_eq!(ann.identity.username.as_deref(), Some("ann"));
        assert!(ann.identity.is_superuser);
        assert_eq!(ann.identity.roles, ["a", "b"].map(Box::<str>::from));
        assert_eq!(ann.rules.map(|rules| rules.len()), Some(1));
    }
    authenticator.refuses("ANN", "Secret", ReasonCode::BadUserNameOrPassword);
}

#[test]
fn a_restarted_server_needs_no_restart_of_ours() {
    let (mut server, folder) = (MariaDb::start(), Folder::new("mariadb-restart"));
    server.execute(&sql::tables());
    let settings = sql::settings(&server.url(), &secret_file(&folder, "password", PASSWORD));
    let authenticator = Authenticator::open(&settings);
    restart::logins_recover(
        &authenticator,
        "db",
        &LoginAttempt::new("ann", "secret"),
        &mut server,
    );
}

#[test]
fn logins_at_a_silent_server_are_bounded() {
    let (silent, folder) = (SilentServer::start(), Folder::new("mariadb-silent"));
    let url = format!("mysql://thrum@127.0.0.1:{}/thrum", silent.port());
    let mut settings = sql::settings(&url, &secret_file(&folder, "password", PASSWORD));
    settings["sql"]["db"]["in_flight"] = json!(4);
    settings["sql"]["db"]["timeout"] = json!("1s");
    silent_server::logins_are_bounded(&Authenticator::open(&settings), 4);
}
