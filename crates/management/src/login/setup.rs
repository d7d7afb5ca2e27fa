//! The link of the first start: whoever has it makes the first administrator.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use super::digest::Digest;

/// Random bytes of its secret.
pub(super) const SECRET_BYTES: usize = 24;
/// Bytes of a token that are read at most.
const TOKEN_BYTES_MAX: usize = 64;

/// The link in force; one at a time.
#[derive(Debug, Default)]
pub(super) struct Setup {
    digest: Option<Digest>,
}

/// A link that was used.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsedLink(Digest);

impl Setup {
    /// Makes another link, and ends the one before; returns its token.
    pub(super) fn renew(&mut self, secret: &[u8; SECRET_BYTES]) -> Zeroizing<String> {
        self.digest = Some(Digest::of(secret));
        Zeroizing::new(URL_SAFE_NO_PAD.encode(secret))
    }

    /// Whether it is the token of the link in force.
    pub(super) fn accepts(&self, token: &str) -> bool {
        if token.len() > TOKEN_BYTES_MAX {
            return false;
        }
        let secret = URL_SAFE_NO_PAD.decode(token).map(Zeroizing::new);
        match (&self.digest, secret) {
            (Some(digest), Ok(secret)) => digest.is_of(&secret),
            _ => false,
        }
    }

    /// Uses it up: it is there for one of all callers with the right token.
    pub(super) fn take(&mut self, token: &str) -> Option<UsedLink> {
        let is_accepted = self.accepts(token);
        is_accepted
            .then(|| self.digest.take().map(UsedLink))
            .flatten()
    }

    /// Makes a link valid again whose use has failed, unless there is a newer one.
    pub(super) fn put_back(&mut self, link: UsedLink) {
        self.digest.get_or_insert(link.0);
    }

    /// Ends it.
    pub(super) const fn end(&mut self) {
        self.digest = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_works_once_and_a_newer_one_ends_it() {
        let mut setup = Setup::default();
        assert!(!setup.accepts(""));
        let first = setup.renew(&[1; SECRET_BYTES]);
        assert!(setup.accepts(&first) && !setup.accepts("") && !setup.accepts(&first[1..]));
        let second = setup.renew(&[2; SECRET_BYTES]);
        assert!(setup.take(&first).is_none());
        let used = setup.take(&second).unwrap();
        assert!(setup.take(&second).is_none());
        setup.put_back(used);
        let used = setup.take(&second).unwrap();
        let third = setup.renew(&[3; SECRET_BYTES]);
        setup.put_back(used);
        assert!(
            !setup.accepts(&second) && setup.accepts(&third),
            "the newer one stays"
        );
        setup.end();
        assert!(setup.take(&third).is_none());
        assert!(setup.take(&"A".repeat(10_000)).is_none());
    }
}
