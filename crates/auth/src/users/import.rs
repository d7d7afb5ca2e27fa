//! Users of other programs: their names and password hashes, in the formats of those programs.

use serde_json::Value;

use super::record::{PasswordHash, name_problem};
use super::store::UserStore;
use crate::backend::parse_password_file;
use crate::hash::Scheme;

/// Most users of one import.
const USERS_MAX: usize = 1_000_000;

/// An imported user.
#[derive(Debug)]
pub struct Imported {
    /// Its name.
    pub name: String,
    /// Its password.
    pub password: ImportedPassword,
    /// Every action is allowed.
    pub is_superuser: bool,
}

/// A password in its imported form.
#[derive(Debug)]
pub enum ImportedPassword {
    /// A hash that can be verified.
    Hash(PasswordHash),
    /// The password itself: to be hashed.
    Plain(thrum_access::Secret),
}

/// Reads a password file of Mosquitto.
///
/// # Errors
/// The line and its error.
pub fn mosquitto(text: &str) -> Result<Vec<Imported>, String> {
    let hashes = parse_password_file(text);
    let hashes = hashes.map_err(|(line, what)| format!("line {line}: {what}"))?;
    let users = hashes.into_iter().map(|(name, hash)| Imported {
        name: name.into(),
        password: ImportedPassword::Hash(hash),
        is_superuser: false,
    });
    Ok(users.collect())
}

/// Reads the list of users that EMQX imports and exports as JSON: `user_id`, `password_hash` and
/// `salt` (or `password`), `is_superuser`. It does not contain the scheme of the hashes.
///
/// # Errors
/// The wrong entry and its error.
pub fn emqx_json(text: &str, scheme: &Scheme) -> Result<Vec<Imported>, String> {
    let entries: Vec<Value> = serde_json::from_str(text).map_err(|error| {
        format!(
            "expected a JSON list of users: line {}, column {}",
            error.line(),
            error.column()
        )
    })?;
    let entries = entries.iter().enumerate().map(|(index, entry)| {
        let field = |name: &str| match entry.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Bool(value)) => Some(value.to_string()),
            _ => None,
        };
        emqx_user(field, scheme).map_err(|what| format!("user {}: {what}", index + 1))
    });
    bounded(entries)
}

/// Reads the same as CSV: a line with the names of the columns, then one line for each user.
///
/// # Errors
/// The wrong line and its error.
pub fn emqx_csv(text: &str, scheme: &Scheme) -> Result<Vec<Imported>, String> {
    let mut lines = text.lines().enumerate();
    let (_, heading) = lines.next().ok_or("an empty file")?;
    let columns = cells(heading.trim_start_matches('\u{feff}'));
    if !columns.iter().any(|column| column == "user_id") {
        return Err("line 1: expected names of columns, such as user_id,password_hash,salt".into());
    }
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let users = lines.map(|(index, line)| {
        let cells = cells(line);
        let field = |name: &str| {
            let column = columns.iter().position(|column| column == name)?;
            cells.get(column).filter(|cell| !cell.is_empty()).cloned()
        };
        emqx_user(field, scheme).map_err(|what| format!("line {}: {what}", index + 1))
    });
    bounded(users)
}

/// Puts a user into the store with its other data, except its password.
pub fn merge(store: &mut UserStore, name: &str, password: PasswordHash, is_superuser: bool) {
    let mut user = store.remove_user(name).unwrap_or_default();
    user.password = Some(password);
    // The old credential is one of the old password.
    user.scram = None;
    user.is_superuser |= is_superuser;
    store.set_user(name, user);
}

fn bounded(users: impl Iterator<Item = Result<Imported, String>>) -> Result<Vec<Imported>, String> {
    let users: Vec<Imported> = users.take(USERS_MAX + 1).collect::<Result<_, _>>()?;
    if users.len() > USERS_MAX {
        return Err(format!("more than {USERS_MAX} users"));
    }
    Ok(users)
}

fn emqx_user(field: impl Fn(&str) -> Option<String>, scheme: &Scheme) -> Result<Imported, String> {
    let name = field("user_id").ok_or("no user_id")?;
    if let Some(problem) = name_problem(&name) {
        return Err(problem.to_owned());
    }
    let is_superuser = match field("is_superuser").as_deref() {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err("is_superuser: expected true or false".to_owned()),
    };
    let password = match (field("password_hash"), field("password")) {
        (Some(hash), None) => {
            let salt = field("salt").unwrap_or_default();
            let stored = scheme.stored(&hash, &salt);
            let hash = stored.and_then(|stored| PasswordHash::parse(&stored));
            let hash = hash.map_err(|error| {
                format!("password_hash: {error}; is it the algorithm that EMQX was set to?")
            })?;
            ImportedPassword::Hash(hash)
        }
        (None, Some(password)) => {
            ImportedPassword::Plain(thrum_access::Secret::from(password.as_str()))
        }
        _ => return Err("expected either password_hash or password".to_owned()),
    };
    Ok(Imported {
        name,
        password,
        is_superuser,
    })
}

/// Cells between commas; a cell in double quotes may have commas, and quotes twice.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.trim_end_matches('\r').chars().peekable();
    while let Some(letter) = letters.next() {
        let Some(cell) = cells.last_mut() else { break };
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(String::new()),
            other => cell.push(other),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::super::store::User;
    use super::*;
    use crate::hash::{Algorithm, SaltPosition, verify};

    /// SHA-256 of `secrets4lt`.
    const HASH: &str = "96d1d6fd3676b1d199e85516233edbfc74c98dd9253ec9b940cda372f96ff74a";

    fn suffix() -> Scheme {
        Scheme {
            algorithm: Algorithm::Sha256,
            salt_position: SaltPosition::Suffix,
            ..Scheme::default()
        }
    }

    fn is_verified(user: &Imported) -> bool {
        match &user.password {
            ImportedPassword::Hash(hash) => verify(hash.expose(), b"secret") == Ok(true),
            ImportedPassword::Plain(password) => password.expose() == b"secret",
        }
    }

    #[test]
    fn lists_of_emqx_are_read_in_both_forms() {
        let csv = format!(
            "user_id,password_hash,salt,is_superuser\r\nalice,{HASH},s4lt,true\r\n\"bob, jr\",{HASH},s4lt,\r\n\r\n"
        );
        let json = format!(
            r#"[{{"user_id":"alice","password_hash":"{HASH}","salt":"s4lt","is_superuser":true}},
                {{"user_id":"bob, jr","password_hash":"{HASH}","salt":"s4lt","is_superuser":false}}]"#
        );
        for users in [emqx_csv(&csv, &suffix()), emqx_json(&json, &suffix())] {
            let users = users.unwrap();
            let names: Vec<_> = users
                .iter()
                .map(|it| (&*it.name, it.is_superuser))
                .collect();
            assert_eq!(names, [("alice", true), ("bob, jr", false)]);
            assert!(users.iter().all(is_verified));
        }
        let plain = emqx_csv("user_id,password,is_superuser\na,secret,false", &suffix()).unwrap();
        assert!(is_verified(&plain[0]));
    }

    #[test]
    fn unreadable_entries_are_named_without_their_secret() {
        let scheme = suffix();
        for (text, expected) in [
            ("name,hash\n", "line 1: expected names of columns"),
            (
                "user_id,password_hash\na,S3cret\n",
                "line 2: password_hash: damaged",
            ),
            ("user_id,password_hash\n\n,x\n", "line 3: no user_id"),
            ("user_id,password\na,\n", "line 2: expected either"),
            (
                "user_id,password,is_superuser\na,S3cret,yes\n",
                "line 2: is_superuser",
            ),
        ] {
            let error = emqx_csv(text, &scheme).unwrap_err();
            assert!(
                error.contains(expected) && !error.contains("S3cret"),
                "{error}"
            );
        }
        assert!(emqx_json("{}", &scheme).is_err());
        assert!(mosquitto("alice").unwrap_err().starts_with("line 1: "));
    }

    #[test]
    fn a_user_that_is_there_keeps_its_rights() {
        let mut store = UserStore::default();
        let roles = vec!["ops".into()];
        store.set_user(
            "alice",
            User {
                roles,
                is_superuser: true,
                ..User::default()
            },
        );
        let hash = PasswordHash::parse("$salted-plain$none$$c2VjcmV0").unwrap();
        merge(&mut store, "alice", hash.clone(), false);
        let alice = store.user("alice").unwrap();
        assert_eq!((alice.roles.len(), alice.is_superuser), (1, true));
        assert_eq!(alice.password, Some(hash));
    }
}
