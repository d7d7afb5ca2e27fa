//! The store on disk and in memory.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::file::too_large;
use super::*;
use crate::Credential;

const HASH: &str = "$salted-plain$none$$c2VjcmV0";

/// A folder that is gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("thrum-users-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self) -> PathBuf {
        self.0.join("users.jsonl")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn rules(texts: &[&str]) -> RuleList {
    let texts = texts.iter().map(|text| (*text).to_owned()).collect();
    RuleList::parse(texts, "test").unwrap()
}

fn names(names: &[&str]) -> Vec<Box<str>> {
    names.iter().map(|name| (*name).into()).collect()
}

#[test]
fn a_saved_store_is_read_again() {
    let folder = Folder::new("again");
    let mut locked = LockedStore::open(&folder.file()).unwrap();
    assert!(locked.store.is_empty());
    let user = User {
        password: Some(PasswordHash::parse(HASH).unwrap()),
        roles: names(&["ops"]),
        groups: names(&["night"]),
        rules: rules(&["allow pubsub devices/%c/#", "deny user:x sub $SYS/#"]),
        is_superuser: true,
        is_disabled: true,
        scram: Some(Credential::of("secret").unwrap()),
    };
    locked.store.set_user("alice \"the\" first", user.clone());
    locked.store.set_user("bob", User::default());
    let group = Group {
        roles: names(&["ops", "audit"]),
        rules: rules(&["allow sub night/#"]),
    };
    locked.store.set_group("night", group);
    let role = Role {
        rules: rules(&["allow sub #"]),
    };
    locked.store.set_role("ops", role);
    locked.save().unwrap();
    drop(locked);
    let store = read(&folder.file()).unwrap();
    let found = store.user("alice \"the\" first").unwrap();
    assert_eq!(found.password, user.password);
    assert_eq!(found.scram, user.scram);
    assert_eq!(found.rules.texts(), user.rules.texts());
    assert_eq!((&found.roles, &found.groups), (&user.roles, &user.groups));
    assert!(found.is_superuser && found.is_disabled);
    let bob = store.user("bob").unwrap();
    assert!(bob.password.is_none() && !bob.is_superuser && bob.rules.is_empty());
    assert_eq!(
        store.all_roles(&found.roles, &found.groups),
        names(&["ops", "audit"])
    );
    let lists = store.rules_of(&found.roles, &found.groups);
    let texts: Vec<&String> = lists.flat_map(RuleList::texts).collect();
    assert_eq!(texts, ["allow sub night/#", "allow sub #"]);
}

#[test]
fn only_the_owner_may_read_the_file_and_no_temporary_one_stays() {
    let folder = Folder::new("mode");
    for _ in 0..2 {
        let mut locked = LockedStore::open(&folder.file()).unwrap();
        locked.store.set_user("alice", User::default());
        // Left by a process that was killed.
        fs::write(folder.0.join("users.jsonl.new"), "damaged").unwrap();
        locked.save().unwrap();
    }
    let mut found: Vec<(String, u32)> = fs::read_dir(&folder.0)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
            (entry.file_name().into_string().unwrap(), mode)
        })
        .collect();
    found.sort();
    let expected = [("users.jsonl", 0o600), ("users.jsonl.lock", 0o600)];
    assert_eq!(found, expected.map(|(name, mode)| (name.to_owned(), mode)));
}

#[test]
fn a_link_to_the_file_stays_a_link() {
    let folder = Folder::new("link");
    let target = folder.0.join("real.jsonl");
    fs::write(&target, "").unwrap();
    std::os::unix::fs::symlink(&target, folder.file()).unwrap();
    let mut locked = LockedStore::open(&folder.file()).unwrap();
    locked.store.set_user("alice", User::default());
    locked.save().unwrap();
    assert!(fs::symlink_metadata(folder.file()).unwrap().is_symlink());
    assert!(read(&target).unwrap().user("alice").is_some());
}

#[test]
fn a_damaged_line_is_named_and_no_hash_is_shown() {
    let folder = Folder::new("damaged");
    let good = r#"{"role":"ops"}"#;
    for (line, expected) in [
        ("not json", "no JSON object, at column 2"),
        (r#"{"user":"a""#, "no JSON object"),
        (r#"{"user":"a","passwort":"x"}"#, "unknown field `passwort`"),
        (r#"{"user":"a","password":7}"#, "a value of the wrong kind"),
        (r#"{"user":"a","role":"b"}"#, "expected one of the keys"),
        (r#"{"password":"x"}"#, "expected one of the keys"),
        (r#"{"user":""}"#, "a name is empty"),
        (r#"{"user":"a\u0000b"}"#, "control characters"),
        (r#"{"role":"ops"}"#, "the role \"ops\" is there twice"),
        (r#"{"role":"a","roles":["b"]}"#, "a role has no roles"),
        (
            r#"{"group":"a","superuser":true}"#,
            "a group or role has no password",
        ),
        (
            r#"{"user":"a","password":"S3cretText"}"#,
            "no known password hash",
        ),
        (
            r#"{"user":"a","password":"$7$S3cretText"}"#,
            "damaged password hash",
        ),
        (
            r#"{"user":"a","rules":["allow everything"]}"#,
            "rule \"allow everything\": user a: ",
        ),
        (
            r#"{"user":"a","scram":{"salt":"","iterations":4096,"stored_key":"","server_key":""}}"#,
            "scram: a salt has",
        ),
    ] {
        fs::write(folder.file(), format!("{good}\n\n{line}\n")).unwrap();
        let error = read(&folder.file()).unwrap_err().to_string();
        assert!(error.contains("users.jsonl:3: "), "{error}");
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("S3cretText"), "{error}");
    }
}

#[test]
fn a_line_without_end_is_not_read_into_memory() {
    let folder = Folder::new("long");
    let length = usize::try_from(LINE_BYTES_MAX).unwrap() + 1;
    fs::write(folder.file(), "x".repeat(length)).unwrap();
    let error = read(&folder.file()).unwrap_err().to_string();
    assert!(
        error.contains("users.jsonl:1: a line has more than"),
        "{error}"
    );
}

#[test]
fn secrets_of_a_user_are_not_printed() {
    let user = User {
        password: Some(PasswordHash::parse(HASH).unwrap()),
        scram: Some(Credential::of("secret").unwrap()),
        ..User::default()
    };
    let text = format!("{user:?}");
    assert!(
        !text.contains("c2VjcmV0") && !text.contains("stored_key"),
        "{text}"
    );
}

#[test]
fn a_hundred_thousand_users_are_read() {
    let folder = Folder::new("many");
    let mut text = String::new();
    for number in 0..100_000 {
        writeln!(
            text,
            "{{\"user\":\"device-{number}\",\"password\":\"{HASH}\",\"roles\":[\"device\"],\
             \"rules\":[\"allow pubsub devices/%c/#\"]}}"
        )
        .unwrap();
    }
    fs::write(folder.file(), text).unwrap();
    let store = read(&folder.file()).unwrap();
    assert_eq!(store.users().len(), 100_000);
    assert!(store.user("device-99999").is_some());
}

#[test]
fn what_could_not_be_read_again_is_not_saved() {
    let folder = Folder::new("large");
    let mut locked = LockedStore::open(&folder.file()).unwrap();
    let rule = format!("allow pub {}", "x".repeat(60_000));
    let user = User {
        rules: rules(&[rule.as_str(); 17]),
        ..User::default()
    };
    locked.store.set_user("big", user);
    locked.save().unwrap();
    let larger = User {
        rules: rules(&[rule.as_str(); 18]),
        ..User::default()
    };
    locked.store.set_user("big", larger);
    let refused = locked.save().unwrap_err();
    assert!(matches!(refused, StoreError::TooLarge { .. }), "{refused}");
    let text = refused.to_string();
    assert!(
        text.ends_with("may take 1048576; give it fewer rules, roles or groups"),
        "{text}"
    );
    let kept = read(&folder.file()).unwrap();
    let kept = kept.user("big").unwrap().rules.texts().len();
    assert_eq!(kept, 17, "the old file is still there");
    assert_eq!(too_large(LINES_MAX, "{}"), None);
    let refused = too_large(LINES_MAX + 1, "{}").unwrap();
    assert!(refused.starts_with("more than 2000000 users"), "{refused}");
}
