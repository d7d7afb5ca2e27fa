//! Mosquitto's password file.

use std::collections::BTreeMap;
use std::path::Path;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use thrum_access::Login;

use super::{Asked, Backend, BackendError, Verdict};
use crate::config::PasswordFileConfig;
use crate::hash::{Hasher, Requester};
use crate::users::{PasswordHash, name_problem};
use crate::watched::Watched;

/// Most bytes of a file: some hundred thousand users.
const FILE_BYTES_MAX: u64 = 256 << 20;

pub(crate) type Hashes = BTreeMap<Box<str>, PasswordHash>;

/// A password file. Hashes are not written back: the file is Mosquitto's.
#[derive(Debug)]
pub(crate) struct PasswordFile {
    name: String,
    file: Watched<Hashes>,
    hasher: Hasher,
}

impl PasswordFile {
    /// Reads the file.
    ///
    /// # Errors
    /// The file cannot be read, or a line is damaged.
    pub(crate) fn load(
        name: &str,
        config: &PasswordFileConfig,
        hasher: Hasher,
    ) -> Result<Self, String> {
        if config.path.as_os_str().is_empty() {
            return Err(format!(
                "auth.password_file.{name} has no file, set its path"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            file: Watched::load(&config.path, load)?,
            hasher,
        })
    }

    async fn ask(&self, login: &Login) -> Result<Verdict, BackendError> {
        let hashes = self.file.current();
        let Some(username) = login.identity.username.as_deref() else {
            return Ok(Verdict::Ignore);
        };
        let Some(hash) = hashes.get(username) else {
            return Ok(Verdict::Ignore);
        };
        let Some(password) = &login.password else {
            return Ok(Verdict::Deny("no password".into()));
        };
        let requester = Requester::login(login);
        if self
            .hasher
            .verify(hash.expose(), password, requester)
            .await?
        {
            return Ok(Verdict::Allow(Box::default()));
        }
        Ok(Verdict::Deny("wrong password".into()))
    }

    async fn waste(&self, login: &Login) -> Result<(), BackendError> {
        let (Some(username), Some(password)) = (&login.identity.username, &login.password) else {
            return Ok(());
        };
        let hashes = self.file.current();
        // Always the same for a name: its time must not reveal that the user does not exist.
        let tag = sign(&Key::new(HMAC_SHA256, b"decoy"), username.as_bytes());
        let number = usize::from(tag.as_ref()[0]);
        let Some(index) = number.checked_rem(hashes.len()) else {
            return Ok(());
        };
        match hashes.values().nth(index) {
            Some(hash) => {
                self.hasher
                    .waste(hash.expose(), password, Requester::login(login))
                    .await
            }
            None => Ok(()),
        }
    }
}

impl Backend for PasswordFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_gone(&self, username: &str) -> bool {
        !self.file.current().contains_key(username)
    }

    fn login<'a>(&'a self, login: &'a Login) -> Asked<'a, Verdict> {
        Box::pin(self.ask(login))
    }

    fn refuse<'a>(&'a self, login: &'a Login) -> Asked<'a, ()> {
        Box::pin(self.waste(login))
    }

    fn reread(&self) -> Result<bool, String> {
        self.file.refresh()
    }
}

fn load(path: &Path) -> Result<Hashes, String> {
    let shown = path.display();
    let text = thrum_files::read_named_text(path, FILE_BYTES_MAX)
        .map_err(|error| format!("cannot read {shown}: {error}"))?;
    parse_password_file(&text).map_err(|(line, what)| format!("{shown}:{line}: {what}"))
}

/// Reads lines of `user:hash`; empty lines and those that begin with `#` are skipped, as by
/// Mosquitto.
///
/// # Errors
/// The number of a line and its error; no part of a hash.
pub(crate) fn parse_password_file(text: &str) -> Result<Hashes, (usize, String)> {
    let mut hashes = Hashes::new();
    for (index, line) in text.lines().enumerate() {
        let damaged = |what: String| (index + 1, what);
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let Some((name, hash)) = line.split_once(':') else {
            return Err(damaged("expected user:hash".to_owned()));
        };
        if let Some(problem) = name_problem(name) {
            return Err(damaged(problem.to_owned()));
        }
        let hash = PasswordHash::parse(hash).map_err(|error| damaged(error.to_string()))?;
        if hashes.insert(name.into(), hash).is_some() {
            return Err(damaged(format!("the user {name:?} is there twice")));
        }
    }
    Ok(hashes)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thrum_access::{Identity, Secret};
    use thrum_codec::Version;

    use super::*;
    use crate::hash::Verified;

    /// Made by `mosquitto_passwd`.
    const FILE: &str = "# users\n\nalice:$6$N6MwR5kcsKRHlobT$C65Rq/vZdi7Uhruf39cxLQKItZhwlhYLhTar4sOqWtnju1X9z673j0dxKLf8Zys8ZNetjSng89OcQOlxB+hEPg==\n\
        bob:$7$101$TbmVBh14tXSnz8TM$8m54Rj2eqN0rN7n0ga++IKxvsApywEh7n5Mt+9MdatVW2IEZ/oPAkyl0RGTLr00ijTV7/8fNYbTGWDCoie6RGA==\n";

    fn login(username: &str, password: Option<&str>) -> Login {
        Login {
            identity: Identity {
                username: Some(username.into()),
                ..Identity::default()
            },
            is_username_verified: false,
            is_known_there: false,
            password: password.map(Secret::from),
            version: Version::V311,
            method: None,
        }
    }

    #[tokio::test]
    async fn users_of_the_file_are_admitted_and_others_left_to_the_next() {
        let path = std::env::temp_dir().join(format!("thrum-passwd-{}", std::process::id()));
        std::fs::write(&path, FILE).unwrap();
        let hasher = Hasher::start(Verified::new(0, Duration::ZERO)).unwrap();
        let config = PasswordFileConfig { path: path.clone() };
        let file = PasswordFile::load("old", &config, hasher).unwrap();
        let verdict = async |username, password| file.ask(&login(username, password)).await;
        let allowed = |verdict| matches!(verdict, Ok(Verdict::Allow(_)));
        assert!(allowed(verdict("alice", Some("secret")).await));
        assert!(allowed(verdict("bob", Some("pass word")).await));
        let denied = verdict("bob", Some("secret")).await;
        assert!(matches!(denied, Ok(Verdict::Deny(_))));
        assert!(matches!(verdict("bob", None).await, Ok(Verdict::Deny(_))));
        let unknown = verdict("carol", Some("secret")).await;
        assert!(matches!(unknown, Ok(Verdict::Ignore)));
        crate::watched::write_before(&path, format!("{FILE}carol:damaged\n"));
        let error = file.reread().unwrap_err();
        assert!(error.contains(":5: no known password hash"), "{error}");
        assert!(allowed(verdict("alice", Some("secret")).await));
        std::fs::remove_file(&path).unwrap();
    }
}
