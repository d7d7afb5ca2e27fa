//! One-time codes of an app: TOTP (RFC 6238) with HMAC-SHA-1, 30 s and 6 digits, which is what all
//! apps support.

use std::fmt;

use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, Key, sign};
use zeroize::Zeroizing;

use super::{base32, digest};

/// Bytes of a secret: as many as SHA-1 has, as RFC 4226 §4 recommends.
pub(super) const SECRET_BYTES: usize = 20;
/// Seconds for which a code is the present one.
const STEP_SECS: u64 = 30;
/// Steps before and after the present one that are accepted: the clocks of phones differ, and a
/// code takes time to type (RFC 6238 §5.2 recommends at most one).
const STEPS_AROUND: u64 = 1;
/// Codes of 6 digits.
const CODES: u32 = 1_000_000;

/// The secret that a broker and an app share.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Totp(Zeroizing<[u8; SECRET_BYTES]>);

impl Totp {
    /// Of random bytes.
    pub(super) const fn new(secret: Zeroizing<[u8; SECRET_BYTES]>) -> Self {
        Self(secret)
    }

    /// Reads what [`Totp::text`] writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(base32::decode(text)?);
        let bytes: [u8; SECRET_BYTES] = bytes.as_slice().try_into().ok()?;
        Some(Self(Zeroizing::new(bytes)))
    }

    /// In base32, as apps take it.
    pub(super) fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(base32::encode(&*self.0))
    }

    /// The address that apps read from a QR code. The name may only contain characters that need no
    /// escape in an address: [`super::administrator::name_problem`].
    pub(super) fn address(&self, name: &str) -> String {
        format!(
            "otpauth://totp/thrum:{name}?secret={}&issuer=thrum&algorithm=SHA1&digits=6&period={STEP_SECS}",
            *self.text()
        )
    }

    /// The step whose code this is, if it is one of now and of a step after `used`: a code that
    /// somebody has overlooked while it was typed is worth nothing.
    pub(super) fn step_of(&self, code: &str, wall_millis: u64, used: Option<u64>) -> Option<u64> {
        let now = wall_millis / 1000 / STEP_SECS;
        let steps = now.saturating_sub(STEPS_AROUND)..=now + STEPS_AROUND;
        let mut found = None;
        // All of them, so that the time does not tell which one it was.
        for step in steps {
            if digest::is_same(&self.code(step), code) && used.is_none_or(|used| used < step) {
                found = Some(step);
            }
        }
        found
    }

    /// The code of a step: HOTP, RFC 4226 §5.3.
    fn code(&self, step: u64) -> String {
        let key = Key::new(HMAC_SHA1_FOR_LEGACY_USE_ONLY, &*self.0);
        let tag = sign(&key, &step.to_be_bytes());
        let tag = tag.as_ref();
        let place = usize::from(tag[tag.len() - 1] & 0x0F);
        let mut bytes = [0; 4];
        bytes.copy_from_slice(&tag[place..place + 4]);
        let number = u32::from_be_bytes(bytes) & 0x7FFF_FFFF;
        format!("{:06}", number % CODES)
    }
}

impl fmt::Debug for Totp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Totp(***)")
    }
}

/// The code of a secret in base32 at a time.
#[cfg(test)]
pub(crate) fn code_at(secret: &str, wall_millis: u64) -> String {
    let totp = Totp::parse(secret).expect("a secret in base32");
    totp.code(wall_millis / 1000 / STEP_SECS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totp() -> Totp {
        Totp::new(Zeroizing::new(*b"12345678901234567890"))
    }

    #[test]
    fn codes_are_those_of_rfc_6238() {
        // Appendix B has 8 digits, of which the last 6 are the code of 6 digits.
        for (secs, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(totp().code(secs / 30), code);
            assert_eq!(totp().step_of(code, secs * 1000, None), Some(secs / 30));
        }
    }

    #[test]
    fn a_code_is_accepted_for_one_step_around_its_own_and_once() {
        let code = totp().code(1000);
        let at = |step: u64, used| totp().step_of(&code, step * 30_000, used);
        for (step, is_accepted) in [
            (998, false),
            (999, true),
            (1000, true),
            (1001, true),
            (1002, false),
        ] {
            assert_eq!(at(step, None).is_some(), is_accepted, "{step}");
        }
        assert_eq!(at(1000, Some(999)), Some(1000));
        assert_eq!(at(1000, Some(1000)), None, "a code works once");
        assert_eq!(at(1000, Some(1001)), None, "nor does an earlier one");
        assert_eq!(totp().step_of("", 0, None), None);
        assert_eq!(totp().step_of("28708", 59_000, None), None);
    }

    #[test]
    fn a_secret_is_read_as_it_is_written_and_never_printed() {
        let text = totp().text();
        assert_eq!(*text, "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(Totp::parse(&text), Some(totp()));
        assert_eq!(Totp::parse("GEZDGNBV"), None);
        assert_eq!(format!("{:?}", totp()), "Totp(***)");
        assert!(
            totp()
                .address("alice")
                .starts_with("otpauth://totp/thrum:alice?secret=GEZ")
        );
    }
}
