//! From the plugin's file to lines of the user store.

use super::*;

fn check(text: &str, lines: &[&str], notes: &[&str]) {
    let found = users(text).unwrap();
    assert_eq!(found.lines, lines);
    assert_eq!(found.notes, notes);
}

#[test]
fn users_keep_their_hashes_roles_and_groups() {
    check(
        r#"{
            "defaultACLAccess": {"publishClientSend": false, "publishClientReceive": true, "subscribe": false, "unsubscribe": true},
            "clients": [
                {"username": "admin", "textname": "x", "password": "aGFzaA==", "salt": "c2FsdA==", "iterations": 101,
                 "roles": [{"rolename": "low", "priority": 1}, {"rolename": "high", "priority": 5}, {"rolename": "none"}]},
                {"username": "new", "encoded_password": "$argon2id$v=19$x", "disabled": true}
            ],
            "groups": [
                {"groupname": "second", "clients": [{"username": "admin"}]},
                {"groupname": "first", "roles": [{"rolename": "high"}], "clients": [{"username": "admin", "priority": 3}]}
            ],
            "roles": []
        }"#,
        &[
            r#"{"group":"second","roles":[]}"#,
            r#"{"group":"first","roles":["high"]}"#,
            r#"{"groups":["first","second"],"password":"$7$101$c2FsdA==$aGFzaA==","roles":["high","low","none"],"user":"admin"}"#,
            r#"{"disabled":true,"password":"$argon2id$v=19$x","user":"new"}"#,
        ],
        &[],
    );
}

fn role(acls: &str) -> String {
    format!(
        r#"{{"defaultACLAccess": {{"publishClientReceive": true}}, "roles": [{{"rolename": "r", "acls": [{acls}]}}]}}"#
    )
}

#[test]
fn entries_become_rules_in_the_order_of_their_priorities() {
    check(
        &role(
            r#"{"acltype": "subscribePattern", "topic": "a/%u/#", "allow": true},
               {"acltype": "publishClientSend", "topic": "b", "priority": 1, "allow": true},
               {"acltype": "publishClientSend", "topic": "b/c", "priority": 2, "allow": false},
               {"acltype": "subscribeLiteral", "topic": "\u0023", "allow": true},
               {"acltype": "subscribeLiteral", "topic": "plain", "allow": true},
               {"acltype": "publishClientReceive", "topic": "secret/#", "allow": false},
               {"acltype": "publishClientReceive", "topic": "open/#", "allow": true},
               {"acltype": "unsubscribePattern", "topic": "\u0023", "allow": true}"#,
        ),
        &[
            r#"{"role":"r","rules":["deny sub secret/#","deny pub b/c","allow pub b","allow sub eq #","allow sub plain","allow sub a/%u/#"]}"#,
        ],
        &[],
    );
}

#[test]
fn filters_are_written_so_that_they_mean_the_same() {
    check(
        &role(
            r#"{"acltype": "publishClientSend", "topic": "a b/%c/100%/\"", "allow": true},
               {"acltype": "publishClientSend", "topic": "", "allow": true}"#,
        ),
        &[r#"{"role":"r","rules":["allow pub \"a b/%c/100%%/\\\"\""]}"#],
        &[],
    );
}

#[test]
fn differences_are_reported() {
    check(
        r#"{
            "defaultACLAccess": {"publishClientSend": true},
            "anonymousGroup": "guests",
            "clients": [{"username": "a", "clientid": "c1"}],
            "roles": [{"rolename": "r", "allowwildcardsubs": false, "acls": [
                {"acltype": "unsubscribeLiteral", "topic": "x", "allow": false},
                {"acltype": "other", "topic": "x"}
            ]}]
        }"#,
        &[r#"{"role":"r","rules":[]}"#, r#"{"user":"a"}"#],
        &[
            "role \"r\" may subscribe with wildcards (allowwildcardsubs false is not known here)",
            "role \"r\" may unsubscribe from x: every client may",
            "role \"r\": entry of the unknown kind \"other\" left out",
            "user \"a\" has no password: set one with thrum users passwd",
            "user \"a\" may connect with every client identifier, not only with \"c1\"",
            "defaultACLAccess lets every client publish what no role denies: that is acl.default = \"allow\", for both at once",
            "defaultACLAccess denies receiving what no role allows: here every client that may subscribe may receive",
            "anonymousGroup \"guests\": give clients without user name their rights in acl.rules, as in \"allow anonymous sub a/#\"",
        ],
    );
}

#[test]
fn another_file_is_refused() {
    assert!(users("[]").is_err());
    assert!(users("user:hash").is_err());
}
