//! Users and rules in PostgreSQL.

use serde_json::json;
use thrum_backends::client::{Authenticator, LoginAttempt, secret_file};
use thrum_backends::restart::{self, Restartable as _};
use thrum_backends::server::{PASSWORD, Postgres, Tls};
use thrum_backends::silent_server::{self, SilentServer};
use thrum_backends::sql;
use thrum_codec::ReasonCode;
use thrum_conformance::folder::Folder;

#[test]
fn users_rules_and_hashes_are_read_from_postgresql() {
    let (server, folder) = (Postgres::start(), Folder::new("postgres-secret"));
    server.execute(&sql::tables());
    let settings = sql::settings(&server.url(), &secret_file(&folder, "password", PASSWORD));
    sql::knows_users(&settings);
    sql::knows_rules(&settings);
    sql::knows_salts(&settings);
    sql::takes_names_as_names(&settings);
}

#[test]
fn columns_of_other_types_are_read_and_the_password_can_be_a_parameter() {
    let (server, folder) = (Postgres::start(), Folder::new("postgres-types"));
    server.execute(&format!(
        "CREATE TYPE effect AS ENUM ('allow', 'deny');
         CREATE TABLE person (name TEXT, hash CHAR(90), roles TEXT[], admin SMALLINT);
         INSERT INTO person VALUES ('ann', '{}', ARRAY['a', 'b c'], 1), ('bob', sha256('secret')::text, NULL, 0);
         CREATE TABLE rights (effect effect, qos INTEGER);
         INSERT INTO rights VALUES ('deny', 2);",
        sql::BCRYPT
    ));
    let password = secret_file(&folder, "password", PASSWORD);
    let mut settings = json!({ "sql": { "db": {
        "url": server.url(),
        "password_file": password,
        "query": "SELECT hash AS password_hash, roles, admin AS is_superuser FROM person WHERE name = %u",
        "rules_query": "SELECT effect AS permission, 'all' AS action, 'eq a/#' AS topic, qos FROM rights",
        "refresh": 0,
    }}});
    let ann = Authenticator::open(&settings).admits("ann", "secret");
    assert!(ann.identity.is_superuser);
    assert_eq!(ann.refresh_secs, None);
    let rules = ann.rules.expect("rules");
    assert_eq!(
        rules.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["deny all pubsub(qos=2) eq a/#"]
    );
    // The query verifies the password: a row means that it is right.
    settings["sql"]["db"]["query"] = json!(
        "SELECT ${password} AS password_hash FROM person WHERE name = ${username} \
         AND hash = sha256(${password}::bytea)::text"
    );
    settings["sql"]["db"]["hash"] = json!({ "algorithm": "plain" });
    let authenticator = Authenticator::open(&settings);
    authenticator.admits("bob", "secret");
    authenticator.refuses("bob", "wrong", ReasonCode::BadUserNameOrPassword);
}

#[test]
fn a_restarted_server_needs_no_restart_of_ours() {
    let (mut server, folder) = (Postgres::start(), Folder::new("postgres-restart"));
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
fn a_server_that_is_down_at_the_start_is_used_once_it_is_up() {
    let (mut server, folder) = (Postgres::start(), Folder::new("postgres-late"));
    server.execute(&sql::tables());
    server.kill();
    let settings = sql::settings(&server.url(), &secret_file(&folder, "password", PASSWORD));
    let authenticator = Authenticator::open(&settings);
    authenticator.refuses("ann", "secret", ReasonCode::ServerUnavailable);
    server.restart();
    restart::admits_again(&authenticator, &LoginAttempt::new("ann", "secret"));
}

#[test]
fn a_suspended_server_blocks_no_client_and_serves_when_resumed() {
    let (server, folder) = (Postgres::start(), Folder::new("postgres-hang"));
    server.execute("CREATE TABLE nap (name TEXT); INSERT INTO nap VALUES ('ann');");
    let authenticator = Authenticator::open(&json!({ "sql": { "db": {
        "url": server.url(),
        "password_file": secret_file(&folder, "password", PASSWORD),
        "query": "SELECT 'secret' AS password_hash, pg_sleep(CASE name WHEN 'ann' THEN 0 ELSE 60 END)::text
                  FROM (SELECT ${username} AS name) AS asked",
        "hash": { "algorithm": "plain" },
        "pool": 2,
        "timeout": "1s",
    }}}));
    for _ in 0..5 {
        authenticator.refuses("slow", "secret", ReasonCode::ServerUnavailable);
    }
    // The refused logins hold no connection any more.
    authenticator.admits("ann", "secret");
    assert_eq!(authenticator.counts("db").timeouts, 5);
}

#[test]
fn logins_at_a_silent_server_are_bounded() {
    let (silent, folder) = (SilentServer::start(), Folder::new("postgres-silent"));
    let url = format!("postgresql://thrum@127.0.0.1:{}/postgres", silent.port());
    let mut settings = sql::settings(&url, &secret_file(&folder, "password", PASSWORD));
    settings["sql"]["db"]["in_flight"] = json!(4);
    settings["sql"]["db"]["timeout"] = json!("1s");
    silent_server::logins_are_bounded(&Authenticator::open(&settings), 4);
}

#[test]
fn tls_is_checked_against_the_given_authority() {
    let (mut server, folder) = (Postgres::start(), Folder::new("postgres-tls"));
    server.execute(&sql::tables());
    let (right, wrong) = (Tls::new(), Tls::new());
    server.take_tls(&right.certificate, &right.key);
    let url = format!(
        "{}?sslmode=verify-full",
        server.url().replace("127.0.0.1", "localhost")
    );
    let mut settings = sql::settings(&url, &secret_file(&folder, "password", PASSWORD));
    settings["sql"]["db"]["ca"] = json!(folder.write("right.pem", &right.certificate));
    Authenticator::open(&settings).admits("ann", "secret");
    settings["sql"]["db"]["ca"] = json!(folder.write("wrong.pem", &wrong.certificate));
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason_and_without_the_password() {
    let refusal = |url: &str, query: &str| {
        Authenticator::refusal(json!({ "sql": { "db": { "url": url, "query": query } } }))
    };
    for (url, query, expected) in [
        (
            "oracle://h/x",
            "SELECT 1",
            "auth.sql.db.url: must begin with postgresql://",
        ),
        ("", "SELECT 1", "auth.sql.db.url: must begin with"),
        (
            "postgresql://h/x",
            "",
            "auth.sql.db.query: the query is empty",
        ),
        (
            "postgresql://h/x",
            "SELECT '${username}'",
            "auth.sql.db.query: ${username} stands inside quotes",
        ),
        (
            "postgresql://h/x",
            "SELECT ${user}",
            "auth.sql.db.query: ${user} is not known",
        ),
        (
            "postgresql://u:hunter2@h:x/x",
            "SELECT 1",
            "auth.sql.db.url: is not a URL",
        ),
    ] {
        let refusal = refusal(url, query);
        assert!(refusal.contains(expected), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}
