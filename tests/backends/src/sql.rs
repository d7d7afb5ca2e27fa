//! Checks for every SQL database.

use std::path::Path;

use serde_json::{Value, json};
use thrum_codec::{QoS, ReasonCode};

use crate::client::{Authenticator, LoginAttempt, LoginResult, may_publish, resolved};
use crate::process::run_as_myself;
use thrum_conformance::folder::Folder;

/// bcrypt of `secret`.
pub const BCRYPT: &str = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";
/// SHA-256 of the salt and `secret`.
pub const SHA256: &str = "6b92515c2d9e73bcdb5519c272e4f807b556dc9ddf6c23a8e9b1bd98b026bc29";
/// PBKDF2 with HMAC-SHA-256, 4,096 iterations, of `secret`.
pub const PBKDF2: &str = "30f2cf6d690086dfe2af84f3554b075448d9b059bdce296237591e7fe5ea56f7";
/// The salt of both.
pub const SALT: &str = "salt-of-cat";

/// Names that would change a query if they became a part of it.
const INJECTIONS: [&str; 14] = [
    "ann' OR '1'='1",
    "ann'--",
    "ann';-- ",
    "' OR 1=1 #",
    "ann\" OR \"\"=\"",
    "ann`",
    "ann\\",
    "\\' OR 1=1 -- ",
    "x' UNION SELECT password_hash, salt, 1, '' FROM mqtt_user -- ",
    "${username}",
    "%u",
    "$1",
    "?",
    "; DROP TABLE mqtt_user",
];

/// Tables as EMQX has them, with users and rules. Boolean columns are what the database makes of
/// `BOOLEAN`.
///
/// # Panics
/// There are no random numbers.
pub fn tables() -> String {
    let argon2 = thrum_auth::hash::create(b"secret").expect("a hash");
    format!(
        "CREATE TABLE mqtt_user (username VARCHAR(100) PRIMARY KEY, password_hash VARCHAR(200), salt VARCHAR(40),
           is_superuser BOOLEAN, roles VARCHAR(100));
         CREATE TABLE mqtt_acl (id INTEGER PRIMARY KEY, username VARCHAR(100), permission VARCHAR(10),
           action VARCHAR(10), topic VARCHAR(200), qos VARCHAR(10), retain BOOLEAN);
         INSERT INTO mqtt_user VALUES ('ann', '{BCRYPT}', NULL, false, 'reader,writer');
         INSERT INTO mqtt_user VALUES ('bob', '{argon2}', '', NULL, NULL);
         INSERT INTO mqtt_user VALUES ('root', '{BCRYPT}', NULL, true, '');
         INSERT INTO mqtt_user VALUES ('cat', '{SHA256}', '{SALT}', false, NULL);
         INSERT INTO mqtt_user VALUES ('eve', '{PBKDF2}', '{SALT}', false, NULL);
         INSERT INTO mqtt_user VALUES ('dan', 'damaged', NULL, false, NULL);
         INSERT INTO mqtt_user VALUES ('fay', NULL, NULL, false, NULL);
         INSERT INTO mqtt_user VALUES ('o''neil \u{00e4}', '{BCRYPT}', NULL, false, NULL);
         INSERT INTO mqtt_acl VALUES (1, 'ann', 'deny', 'publish', 'up/${{username}}/secret/#', NULL, NULL);
         INSERT INTO mqtt_acl VALUES (2, 'ann', 'allow', 'publish', 'up/${{username}}/#', '0,1', false);
         INSERT INTO mqtt_acl VALUES (3, 'ann', 'allow', 'subscribe', 'down/%c/+', '', NULL);
         INSERT INTO mqtt_acl VALUES (4, 'bob', 'allow', 'perhaps', 'x', NULL, NULL);"
    )
}

/// A file of SQLite with these tables; its path.
///
/// # Panics
/// There is no Python with SQLite.
pub fn sqlite_file(folder: &Folder) -> String {
    let script =
        "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(open(sys.argv[2]).read())";
    let statements = folder.write("tables.sql", &tables()).display().to_string();
    let file = folder.file("users.db");
    run_as_myself(&["python3", "-c", script, &file, &statements]);
    file
}

/// Settings of the backend `db`.
pub fn settings(url: &str, password_file: &Path) -> Value {
    json!({ "sql": { "db": {
        "url": url,
        "password_file": password_file,
        "query": "SELECT password_hash, salt, is_superuser, roles FROM mqtt_user WHERE username = ${username} LIMIT 1",
        "rules_query": "SELECT permission, action, topic, qos, retain FROM mqtt_acl \
                        WHERE username = ${username} ORDER BY id",
    }}})
}

/// Checks right, wrong and unknown users; every kind of hash; rights, rules and roles.
///
/// # Panics
/// One of these is wrong.
pub fn knows_users(settings: &Value) {
    let authenticator = Authenticator::open(settings);
    let ann = authenticator.admits("ann", "secret");
    assert_eq!(
        ann.identity.roles,
        ["reader", "writer"].map(Box::<str>::from)
    );
    assert!(!ann.identity.is_superuser);
    assert_eq!(ann.refresh_secs, Some(300));
    assert!(authenticator.admits("root", "secret").identity.is_superuser);
    assert!(
        authenticator
            .admits("o'neil \u{00e4}", "secret")
            .identity
            .roles
            .is_empty()
    );
    let denied = ReasonCode::BadUserNameOrPassword;
    for (username, password) in [
        ("ann", "Secret"),
        ("ann", ""),
        ("nobody", "secret"),
        ("", "secret"),
    ] {
        authenticator.refuses(username, password, denied);
    }
    let not_text = LoginAttempt {
        password: Some(vec![0xff, 0x00]),
        ..LoginAttempt::new("ann", "")
    };
    assert!(
        matches!(authenticator.log_in(&not_text), LoginResult::Denied(reason) if reason == denied)
    );
    // An unverifiable hash is an error of the server, not of the client.
    for username in ["dan", "fay"] {
        authenticator.refuses(username, "secret", ReasonCode::ServerUnavailable);
    }
    // A client with unreadable rules is not admitted: one of them could be a denial.
    authenticator.refuses("bob", "secret", ReasonCode::ServerUnavailable);
    let counts = authenticator.counts("db");
    assert_eq!((counts.allowed, counts.errors), (3, 3));
}

/// Checks that the rules of a user decide, in their order.
///
/// # Panics
/// They do not.
pub fn knows_rules(settings: &Value) {
    let authenticator = Authenticator::open(settings);
    let ann = authenticator.admits("ann", "secret");
    for (topic, qos, retain, expected) in [
        ("up/ann/x", QoS::AtLeastOnce, false, Some(true)),
        ("up/ann/x", QoS::AtLeastOnce, true, None),
        ("up/ann/x", QoS::ExactlyOnce, false, None),
        ("up/ann/secret/x", QoS::AtMostOnce, false, Some(false)),
        ("up/bob/x", QoS::AtMostOnce, false, None),
    ] {
        assert_eq!(
            may_publish(&ann, topic, qos, retain),
            expected,
            "{topic} {qos:?} {retain}"
        );
    }
    let receives = |topic| resolved(&ann).receive(topic, QoS::AtMostOnce);
    assert_eq!(receives("down/client-of-ann/x"), Some(true));
    assert_eq!(receives("down/other/x"), None);
    let certified = authenticator.admits_certificate("ann");
    assert_eq!(certified.identity.roles, ann.identity.roles);
    assert_eq!(certified.rules.map(|rules| rules.len()), Some(3));
    let refreshed = authenticator.refresh(&ann.identity);
    assert_eq!(refreshed.map(|rules| rules.len()), Some(3));
}

/// Hash and salt in columns, in every way that EMQX makes them.
///
/// # Panics
/// One is not verified.
pub fn knows_salts(settings: &Value) {
    for (username, hash) in [
        (
            "cat",
            json!({ "algorithm": "sha256", "salt_position": "prefix" }),
        ),
        (
            "eve",
            json!({ "algorithm": "pbkdf2-sha256", "iterations": 4096 }),
        ),
    ] {
        let mut settings = settings.clone();
        settings["sql"]["db"]["hash"] = hash;
        let authenticator = Authenticator::open(&settings);
        authenticator.admits(username, "secret");
        authenticator.refuses(username, "wrong", ReasonCode::BadUserNameOrPassword);
    }
}

/// Checks that names with SQL in them are unknown users and have no effect.
///
/// # Panics
/// A name has an effect.
pub fn takes_names_as_names(settings: &Value) {
    let authenticator = Authenticator::open(settings);
    for name in INJECTIONS {
        authenticator.refuses(name, "secret", ReasonCode::BadUserNameOrPassword);
        let client = LoginAttempt {
            client_id: name.to_owned(),
            ..LoginAttempt::new("nobody", name)
        };
        assert!(matches!(
            authenticator.log_in(&client),
            LoginResult::Denied(ReasonCode::BadUserNameOrPassword)
        ));
    }
    assert_eq!(authenticator.counts("db").errors, 0);
    authenticator.admits("ann", "secret");
}
