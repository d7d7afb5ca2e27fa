//! The server's side: the steps of one login.

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use thiserror::Error;

use super::Credential;
use super::keys::{combined, hash, is_same, keyed};
use super::message::{first, last};

/// Bytes of the server's part of the nonce.
const NONCE_BYTES: usize = 18;

/// Why a client is refused. Texts contain no secret.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// A violation of the RFC's message format.
    #[error("malformed SCRAM message: {0}")]
    Malformed(&'static str),
    /// The proof does not match the credential.
    #[error("wrong SCRAM proof")]
    WrongProof,
    /// The system provides no random numbers.
    #[error("no random numbers for a nonce")]
    NoRandom,
}

/// A login between the client's two messages.
#[derive(Debug)]
pub struct Started {
    /// The claimed user, not verified yet.
    pub username: String,
    header: String,
    nonce: String,
    /// First messages of both, as the proof covers them.
    messages: String,
}

/// The end of a login that succeeded.
#[derive(Debug, PartialEq, Eq)]
pub struct Final {
    /// The server's last message, which proves its knowledge of the password.
    pub data: Vec<u8>,
}

/// Answers the client's first message. `credential` finds the stored credential of a user, or a
/// decoy.
///
/// # Errors
/// The message is malformed, or the system provides no random numbers.
pub fn start(
    data: &[u8],
    credential: impl FnOnce(&str) -> Credential,
) -> Result<(Vec<u8>, Started, Credential), Refused> {
    let mut random = [0; NONCE_BYTES];
    rand::fill(&mut random).map_err(|_| Refused::NoRandom)?;
    start_with(data, &STANDARD_NO_PAD.encode(random), credential)
}

fn start_with(
    data: &[u8],
    server_nonce: &str,
    credential: impl FnOnce(&str) -> Credential,
) -> Result<(Vec<u8>, Started, Credential), Refused> {
    let first = first(data)?;
    let credential = credential(&first.username);
    let nonce = format!("{}{server_nonce}", first.nonce);
    let salt = STANDARD.encode(&credential.salt);
    let answer = format!("r={nonce},s={salt},i={}", credential.iterations);
    let started = Started {
        messages: format!("{},{answer}", first.bare),
        header: first.header.to_owned(),
        username: first.username,
        nonce,
    };
    Ok((answer.into_bytes(), started, credential))
}

impl Started {
    /// Verifies the client's last message.
    ///
    /// # Errors
    /// The message is malformed, or does not prove the password.
    pub fn finish(&self, data: &[u8], credential: &Credential) -> Result<Final, Refused> {
        let last = last(data)?;
        if last.header != self.header.as_bytes() {
            return Err(Refused::Malformed("header differs from the first message"));
        }
        if !is_same(last.nonce.as_bytes(), self.nonce.as_bytes()) {
            return Err(Refused::Malformed("nonce differs from the first messages"));
        }
        let covered = format!("{},{}", self.messages, last.without_proof);
        let signature = keyed(&credential.stored_key, covered.as_bytes());
        let client_key = combined(last.proof, &signature);
        if !is_same(&hash(&client_key), &credential.stored_key) {
            return Err(Refused::WrongProof);
        }
        let signature = keyed(&credential.server_key, covered.as_bytes());
        let data = format!("v={}", STANDARD.encode(signature)).into_bytes();
        Ok(Final { data })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Decoys;
    use super::*;

    const FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const LAST: &[u8] = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    /// The credential of the example in RFC 7677, section 3.
    fn example(_: &str) -> Credential {
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        Credential::derive("pencil", &salt, 4096).unwrap()
    }

    fn started() -> (Vec<u8>, Started, Credential) {
        start_with(FIRST, SERVER_NONCE, example).unwrap()
    }

    #[test]
    fn the_example_of_rfc_7677_succeeds() {
        let (answer, started, credential) = started();
        assert_eq!(
            String::from_utf8(answer).unwrap(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        assert_eq!(started.username, "user");
        let end = started.finish(LAST, &credential).unwrap();
        assert_eq!(
            String::from_utf8(end.data).unwrap(),
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn a_proof_of_another_password_or_exchange_fails() {
        let (_, started, credential) = started();
        let other = Credential::derive("pencils", &credential.salt, 4096).unwrap();
        assert_eq!(started.finish(LAST, &other), Err(Refused::WrongProof));
        let replayed = start_with(FIRST, "another", example).unwrap().1;
        assert!(matches!(
            replayed.finish(LAST, &credential),
            Err(Refused::Malformed(_))
        ));
    }

    #[test]
    fn messages_that_the_rfc_does_not_know_are_refused() {
        for message in [
            "",
            "n",
            "n,,",
            "n,,n=user",
            "n,,r=nonce,n=user",
            "n,,n=,r=nonce",
            "n,,n=us=er,r=nonce",
            "n,,n=user,r=",
            "n,,n=user,r=no nce",
            "n,,m=x,n=user,r=nonce",
            "n,a=other,n=user,r=nonce",
            "p=tls-unique,,n=user,r=nonce",
            "x,,n=user,r=nonce",
        ] {
            let found = start(message.as_bytes(), example).unwrap_err();
            assert!(matches!(found, Refused::Malformed(_)), "{message}");
        }
        let long = format!("n,,n={},r=nonce", "u".repeat(5000));
        assert!(start(long.as_bytes(), example).is_err());
        let (_, started, credential) = started();
        for message in ["", "c=biws", "c=biws,r=x,p=", "c=eSws,r=x,p=AAAA", "p=x"] {
            let found = started.finish(message.as_bytes(), &credential).unwrap_err();
            assert!(matches!(found, Refused::Malformed(_)), "{message}");
        }
    }

    #[test]
    fn names_are_unescaped_and_may_be_given_twice() {
        let message = b"y,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=nonce";
        let (_, started, _) = start(message, example).unwrap();
        assert_eq!(started.username, "a,b=c");
    }

    #[test]
    fn an_unknown_user_has_the_same_salt_each_time_and_no_password() {
        let decoys = Decoys::new(b"secret of the store");
        let one = decoys.credential("nobody");
        assert_eq!(
            one,
            Decoys::new(b"secret of the store").credential("nobody")
        );
        assert_ne!(one.salt, decoys.credential("no one").salt);
        assert_ne!(one.salt, Decoys::new(b"other").credential("nobody").salt);
        let known = Credential::of("pencil").unwrap();
        assert_eq!(one.salt.len(), known.salt.len());
        assert_eq!(one.iterations, known.iterations);
        let (_, started, _) =
            start_with(FIRST, SERVER_NONCE, |name| decoys.credential(name)).unwrap();
        let last = LAST;
        let found = started.finish(last, &one);
        assert_eq!(found, Err(Refused::WrongProof));
    }
}
