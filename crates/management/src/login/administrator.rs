//! An administrator: a person that manages the broker.

use thrum_access::Secret;
use thrum_auth::users::PasswordHash;

use super::digest::Digest;
use super::refusal::Refusal;
use super::scope::Role;
use super::totp::Totp;

/// Most bytes of a name.
pub(crate) const NAME_BYTES_MAX: usize = 64;
/// Fewest characters of a password. NIST SP 800-63B-4 asks for 15 where it is the only factor and
/// for 8 beside another one; guesses are slowed here.
const PASSWORD_CHARS_MIN: usize = 12;
/// Most bytes of a password: more than any person or generator needs, and little to hash.
pub(crate) const PASSWORD_BYTES_MAX: usize = 1024;

/// An administrator.
#[derive(Clone, Debug)]
pub(crate) struct Administrator {
    /// What it may do.
    pub(crate) role: Role,
    /// Its password.
    pub(crate) password: PasswordHash,
    /// None without one-time codes.
    pub(super) totp: Option<Totp>,
    /// Codes for the loss of the app, each valid once.
    pub(super) recovery: Vec<Digest>,
    /// May not log in.
    pub(crate) is_disabled: bool,
    /// Milliseconds of the Unix epoch.
    pub(crate) created_at: u64,
}

/// What the audit log shows of an administrator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdministratorState {
    /// Its role.
    pub(crate) role: Role,
    /// May not log in.
    pub(crate) is_disabled: bool,
    /// Logs in with a one-time code.
    pub(crate) has_totp: bool,
}

impl Administrator {
    /// Its state.
    pub(crate) const fn state(&self) -> AdministratorState {
        AdministratorState {
            role: self.role,
            is_disabled: self.is_disabled,
            has_totp: self.has_totp(),
        }
    }

    /// Whether one-time codes are asked for.
    pub(crate) const fn has_totp(&self) -> bool {
        self.totp.is_some()
    }

    /// Recovery codes that are left.
    pub(crate) const fn recovery_codes_left(&self) -> usize {
        self.recovery.len()
    }

    /// It logs in without a one-time code from now on.
    pub(super) fn remove_totp(&mut self) {
        self.totp = None;
        self.recovery.clear();
    }

    /// Takes away a recovery code; false if it is none.
    pub(super) fn use_recovery_code(&mut self, code: &str) -> bool {
        let code = code.replace('-', "").to_ascii_uppercase();
        let found = self
            .recovery
            .iter()
            .position(|kept| kept.is_of(code.as_bytes()));
        found.map(|place| self.recovery.remove(place)).is_some()
    }
}

/// The error in a name of an administrator; none if it is valid. Names are in addresses, cookies'
/// logs and one-time codes, so they have no character with a meaning there.
pub(crate) fn name_problem(name: &str) -> Option<&'static str> {
    let is_plain = |one: char| one.is_ascii_alphanumeric() || "-._@".contains(one);
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.chars().all(is_plain) {
        return Some("a name has 1 to 64 letters, digits, or characters of -._@");
    }
    // Names in the audit log of callers that are no administrators.
    ["local", "anonymous"]
        .contains(&name)
        .then_some("local and anonymous stand for other callers")
}

/// Refuses a name that is not valid.
pub(crate) fn check_name(name: &str) -> Result<(), Refusal> {
    match name_problem(name) {
        Some(problem) => Err(Refusal::Invalid(problem.to_owned())),
        None => Ok(()),
    }
}

/// Refuses a password that is too short, too long, or the name.
pub(crate) fn check_password(name: &str, password: &Secret) -> Result<(), Refusal> {
    let bytes = password.expose();
    let chars = password
        .expose_str()
        .map_or(bytes.len(), |text| text.chars().count());
    let what = if chars < PASSWORD_CHARS_MIN {
        format!("a password has at least {PASSWORD_CHARS_MIN} characters, this one has {chars}")
    } else if bytes.len() > PASSWORD_BYTES_MAX {
        format!("a password has at most {PASSWORD_BYTES_MAX} bytes")
    } else if bytes == name.as_bytes() {
        "the password is the name".to_owned()
    } else {
        return Ok(());
    };
    Err(Refusal::Invalid(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_character_with_a_meaning_elsewhere() {
        for name in ["a", "alice", "alice.b@example.org", "A-1_x"] {
            assert_eq!(name_problem(name), None, "{name}");
        }
        let long = "x".repeat(NAME_BYTES_MAX + 1);
        for name in [
            "",
            "a b",
            "a:b",
            "a/b",
            "a\n",
            "\u{fc}",
            "local",
            "anonymous",
            &long,
        ] {
            assert!(name_problem(name).is_some(), "{name}");
        }
    }

    #[test]
    fn a_password_is_neither_short_nor_endless_nor_the_name() {
        let check = |password: &str| check_password("administrator", &Secret::from(password));
        assert!(check("eleven char").is_err());
        assert!(check("twelve chars").is_ok());
        assert!(
            check(&"\u{fc}".repeat(11)).is_err(),
            "22 bytes are 11 characters"
        );
        assert!(check("administrator").is_err());
        assert!(check(&"x".repeat(1024)).is_ok());
        assert!(check(&"x".repeat(1025)).is_err());
    }
}
