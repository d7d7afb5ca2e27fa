//! An API key: what a program shows instead of a password.

use zeroize::Zeroizing;

use super::base32;
use super::digest::Digest;
use super::scope::ScopeSet;

/// Random bytes of the identifier, which is public: the key is found by it.
pub(super) const ID_BYTES: usize = 5;
/// Random bytes of the secret.
pub(super) const SECRET_BYTES: usize = 32;
/// The beginning of a key, by which scanners find keys in places where none belongs.
const PREFIX: &str = "thrum";
/// Bytes of a key: longer texts are not read.
const KEY_BYTES_MAX: usize = 128;

/// What is kept of an API key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Key {
    /// A text for people, such as the name of the program.
    pub(crate) label: String,
    /// Of its secret.
    pub(super) digest: Digest,
    /// What it may do.
    pub(crate) scopes: ScopeSet,
    /// Who made it.
    pub(crate) created_by: String,
    /// Milliseconds of the Unix epoch.
    pub(crate) created_at: u64,
    /// None if it does not expire.
    pub(crate) expires_at: Option<u64>,
    /// Milliseconds of the Unix epoch; none if no use was noted: see [`super::key_use`].
    pub(crate) used_at: Option<u64>,
}

impl Key {
    /// Whether it has expired.
    pub(crate) fn is_expired(&self, wall_millis: u64) -> bool {
        self.expires_at.is_some_and(|at| at <= wall_millis)
    }
}

/// A key as its owner sends it.
#[derive(Debug)]
pub(super) struct Shown<'a> {
    pub(super) id: &'a str,
    pub(super) secret: Zeroizing<Vec<u8>>,
}

impl<'a> Shown<'a> {
    /// Reads `thrum_ID_SECRET`.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        if text.len() > KEY_BYTES_MAX {
            return None;
        }
        let rest = text.strip_prefix(PREFIX)?.strip_prefix('_')?;
        let (id, secret) = rest.split_once('_')?;
        let secret = Zeroizing::new(base32::decode(secret)?);
        (secret.len() == SECRET_BYTES).then_some(Self { id, secret })
    }
}

/// The identifier of random bytes.
pub(super) fn id_of(bytes: [u8; ID_BYTES]) -> String {
    base32::encode(&bytes).to_ascii_lowercase()
}

/// The text for the owner of a key, shown once.
pub(super) fn text_of(id: &str, secret: &[u8; SECRET_BYTES]) -> Zeroizing<String> {
    let secret = Zeroizing::new(base32::encode(secret));
    Zeroizing::new(format!("{PREFIX}_{id}_{}", secret.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_is_shown() {
        let id = id_of([7; ID_BYTES]);
        let text = text_of(&id, &[9; SECRET_BYTES]);
        assert_eq!((id.len(), text.len()), (8, 5 + 1 + 8 + 1 + 52));
        let shown = Shown::parse(&text).unwrap();
        assert_eq!((shown.id, &shown.secret[..]), (&*id, &[9; 32][..]));
        let long = format!("thrum_{id}_{}", "a".repeat(10_000));
        for wrong in [
            "",
            "thrum",
            "thrum_",
            "thrum_a_",
            "other_a_b",
            &text[1..],
            &text[..60],
            &long,
        ] {
            assert!(Shown::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn a_key_ends_at_its_time() {
        let mut key = Key {
            label: String::new(),
            digest: Digest::of(b""),
            scopes: ScopeSet::NONE,
            created_by: String::new(),
            created_at: 0,
            expires_at: Some(1000),
            used_at: None,
        };
        assert!(!key.is_expired(999) && key.is_expired(1000));
        key.expires_at = None;
        assert!(!key.is_expired(u64::MAX));
    }
}
