//! Users and rules in Redis.

use serde_json::{Value, json};
use thrum_backends::client::{
    Authenticator, LoginAttempt, LoginResult, may_publish, resolved, secret_file,
};
use thrum_backends::restart;
use thrum_backends::server::{PASSWORD, Redis, Tls};
use thrum_backends::silent_server::{self, SilentServer};
use thrum_backends::sql;
use thrum_codec::{QoS, ReasonCode};
use thrum_conformance::folder::Folder;

const DENIED: ReasonCode = ReasonCode::BadUserNameOrPassword;

fn fill(server: &Redis) {
    let user = |name| format!("mqtt_user:{name}");
    server.execute(&[
        "HSET",
        &user("ann"),
        "password_hash",
        sql::BCRYPT,
        "is_superuser",
        "0",
        "roles",
        "reader writer",
    ]);
    server.execute(&[
        "HSET",
        &user("root"),
        "password_hash",
        sql::BCRYPT,
        "is_superuser",
        "1",
    ]);
    server.execute(&[
        "HSET",
        &user("cat"),
        "password_hash",
        sql::SHA256,
        "salt",
        sql::SALT,
    ]);
    server.execute(&["HSET", &user("fay"), "salt", "x"]);
    server.execute(&["HSET", &user("bob"), "password_hash", sql::BCRYPT]);
    server.execute(&["SET", "hash:ann", sql::BCRYPT]);
    server.execute(&[
        "HSET",
        "mqtt_acl:ann",
        "up/%u/#",
        "publish",
        "down/${client_id}/+",
        r#"{"action":"subscribe","qos":[1,2]}"#,
    ]);
    server.execute(&[
        "HSET",
        "mqtt_acl:ann",
        "both/#",
        r#"{"action":"all","retain":false}"#,
    ]);
    server.execute(&[
        "HSET",
        "mqtt_acl:bob",
        "x",
        r#"{"action":"publish","permission":"deny"}"#,
    ]);
}

fn settings(server: &Redis, folder: &Folder) -> Value {
    json!({ "redis": { "db": {
        "url": server.url(),
        "password_file": secret_file(folder, "password", PASSWORD),
        "command": "HMGET mqtt_user:${username} password_hash salt is_superuser roles",
        "rules": "HGETALL mqtt_acl:${username}",
    }}})
}

#[test]
fn users_and_rules_are_read_from_redis() {
    let (server, folder) = (Redis::start(), Folder::new("redis-secret"));
    fill(&server);
    let mut settings = settings(&server, &folder);
    let authenticator = Authenticator::open(&settings);
    let ann = authenticator.admits("ann", "secret");
    assert_eq!(
        ann.identity.roles,
        ["reader", "writer"].map(Box::<str>::from)
    );
    assert!(!ann.identity.is_superuser);
    assert_eq!(
        may_publish(&ann, "up/ann/x", QoS::AtMostOnce, true),
        Some(true)
    );
    assert_eq!(may_publish(&ann, "up/bob/x", QoS::AtMostOnce, true), None);
    assert_eq!(
        may_publish(&ann, "both/x", QoS::AtMostOnce, false),
        Some(true)
    );
    assert_eq!(may_publish(&ann, "both/x", QoS::AtMostOnce, true), None);
    let receives = |qos| resolved(&ann).receive("down/client-of-ann/x", qos);
    assert_eq!(
        (receives(QoS::AtMostOnce), receives(QoS::AtLeastOnce)),
        (None, Some(true))
    );
    assert_eq!(
        authenticator
            .refresh(&ann.identity)
            .map(|rules| rules.len()),
        Some(3)
    );
    assert_eq!(
        authenticator.admits_certificate("ann").identity.roles,
        ann.identity.roles
    );
    assert!(authenticator.admits("root", "secret").identity.is_superuser);
    for (name, password) in [
        ("ann", "wrong"),
        ("ann", ""),
        ("nobody", "secret"),
        ("", "secret"),
    ] {
        authenticator.refuses(name, password, DENIED);
    }
    // No hash, and an invalid rule: errors of the server.
    for name in ["fay", "bob"] {
        authenticator.refuses(name, "secret", ReasonCode::ServerUnavailable);
    }
    settings["redis"]["db"]["hash"] = json!({ "algorithm": "sha256" });
    let salted = Authenticator::open(&settings);
    salted.admits("cat", "secret");
    salted.refuses("cat", "wrong", DENIED);
    for command in [
        "HGETALL mqtt_user:%u",
        "HGET mqtt_user:%u password_hash",
        "GET hash:%u",
    ] {
        let mut settings = settings.clone();
        settings["redis"]["db"]["hash"] = json!({});
        settings["redis"]["db"]["command"] = json!(command);
        let authenticator = Authenticator::open(&settings);
        authenticator.admits("ann", "secret");
        authenticator.refuses("ann", "wrong", DENIED);
        authenticator.refuses("nobody", "secret", DENIED);
    }
}

#[test]
fn names_are_parts_of_keys_and_nothing_else() {
    let (server, folder) = (Redis::start(), Folder::new("redis-names"));
    fill(&server);
    let authenticator = Authenticator::open(&settings(&server, &folder));
    for name in [
        "ann password_hash",
        "ann\r\nFLUSHALL\r\n",
        "ann\"",
        "*",
        "ann\0",
        "${username}",
        "%u",
        "ann roles",
        "\r\n$3\r\n",
        "x FLUSHALL",
    ] {
        authenticator.refuses(name, "secret", DENIED);
    }
    assert_eq!(authenticator.counts("db").errors, 0);
    authenticator.admits("ann", "secret");
    let anonymous = LoginAttempt {
        username: None,
        ..LoginAttempt::new("ann", "secret")
    };
    assert!(matches!(
        authenticator.log_in(&anonymous),
        LoginResult::Denied(DENIED)
    ));
}

#[test]
fn a_restarted_server_needs_no_restart_of_ours() {
    let (mut server, folder) = (Redis::start(), Folder::new("redis-restart"));
    fill(&server);
    let authenticator = Authenticator::open(&settings(&server, &folder));
    restart::logins_recover(
        &authenticator,
        "db",
        &LoginAttempt::new("ann", "secret"),
        &mut server,
    );
}

#[test]
fn a_wrong_password_of_ours_is_an_error_and_not_an_admission() {
    let (server, folder) = (Redis::start(), Folder::new("redis-wrong"));
    fill(&server);
    let mut settings = settings(&server, &folder);
    settings["redis"]["db"]["password_file"] = json!(secret_file(&folder, "wrong", "wrong"));
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn logins_at_a_silent_server_are_bounded() {
    let silent = SilentServer::start();
    let authenticator = Authenticator::open(&json!({ "redis": { "db": {
        "url": format!("redis://127.0.0.1:{}/0", silent.port()),
        "in_flight": 4,
        "timeout": "1s",
    }}}));
    silent_server::logins_are_bounded(&authenticator, 4);
}

#[test]
fn tls_is_checked_against_the_given_authority() {
    let (right, wrong) = (Tls::new(), Tls::new());
    let (server, port) = Redis::start_tls(&right.certificate, &right.key);
    fill(&server);
    let folder = Folder::new("redis-tls-secret");
    let mut settings = settings(&server, &folder);
    settings["redis"]["db"]["url"] = json!(format!("rediss://localhost:{port}/0"));
    settings["redis"]["db"]["ca"] = json!(folder.write("right.pem", &right.certificate));
    Authenticator::open(&settings).admits("ann", "secret");
    settings["redis"]["db"]["ca"] = json!(folder.write("wrong.pem", &wrong.certificate));
    Authenticator::open(&settings).refuses("ann", "secret", ReasonCode::ServerUnavailable);
}

#[test]
fn settings_that_cannot_work_are_refused_with_the_reason_and_without_the_password() {
    for (url, command, expected) in [
        (
            "http://h",
            "GET u:%u",
            "auth.redis.db.url: must be redis://",
        ),
        (
            "redis://:hunter2@h:x",
            "GET u:%u",
            "auth.redis.db.url: must be redis://",
        ),
        (
            "redis://h",
            "FLUSHALL",
            "auth.redis.db.command: must be HMGET",
        ),
        (
            "redis://h",
            "GET users",
            "auth.redis.db.command: the key has no placeholder",
        ),
    ] {
        let refusal = Authenticator::refusal(
            json!({ "redis": { "db": { "url": url, "command": command } } }),
        );
        assert!(refusal.contains(expected), "{refusal}");
        assert!(!refusal.contains("hunter2"), "{refusal}");
    }
}
