//! The client's side: one login, with an answer to each of the server's messages.

use std::fmt;
use std::num::NonZeroU32;

use aws_lc_rs::rand;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

use super::keys::{self, Hash, Keys, combined, hash, is_same, keyed};
use super::{ITERATIONS_MAX, ITERATIONS_MIN};

/// Bytes of the client's part of the nonce.
const NONCE_BYTES: usize = 18;
/// The header `n,,` (no channel binding, no other identity) in Base64.
const HEADER_BASE64: &str = "biws";

/// Why a login failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// A user name or a password that cannot be sent.
    #[error("the {0} is empty or has characters that SCRAM forbids")]
    Forbidden(&'static str),
    /// The system provides no random numbers.
    #[error("the system provides no random numbers")]
    NoRandom,
    /// A violation of the RFC's message format.
    #[error("the broker's SCRAM message is malformed: {0}")]
    Malformed(&'static str),
    /// Too few or too many iterations.
    #[error(
        "the broker asks for {0} iterations; {ITERATIONS_MIN} to {ITERATIONS_MAX} are accepted"
    )]
    Iterations(u32),
    /// An error that the server tells.
    #[error("the broker refuses the login: {0}")]
    Refused(String),
    /// The server does not know the password.
    #[error("the broker does not prove that it knows the password; it may be an impostor")]
    Impostor,
}

/// User name and password in the form that SCRAM works with.
#[derive(Clone)]
pub struct Credentials {
    /// With `,` and `=` escaped for the message.
    name: String,
    password: String,
}

/// One login.
#[derive(Debug)]
pub struct Login {
    credentials: Credentials,
    nonce: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The first message is on its way.
    Begun,
    /// The proof is; the server has to answer with this signature.
    Answered(Hash),
    /// The server has proved its identity.
    Verified,
}

/// `r=nonce,s=salt,i=iterations`
#[derive(Debug)]
struct Challenge<'a> {
    nonce: &'a str,
    salt: Vec<u8>,
    iterations: NonZeroU32,
}

impl Credentials {
    /// Prepares a user name and a password by RFC 4013 (`SASLprep`).
    ///
    /// # Errors
    /// One of them is empty or has characters that SCRAM forbids.
    pub fn new(username: &str, password: &[u8]) -> Result<Self, ScramError> {
        let name = prepared(Some(username), "user name")?;
        let password = prepared(str::from_utf8(password).ok(), "password")?;
        Ok(Self {
            name: name.replace('=', "=3D").replace(',', "=2C"),
            password,
        })
    }

    /// A login with a new nonce.
    ///
    /// # Errors
    /// The system provides no random numbers.
    pub fn login(&self) -> Result<Login, ScramError> {
        let mut random = [0; NONCE_BYTES];
        rand::fill(&mut random).map_err(|_| ScramError::NoRandom)?;
        Ok(self.login_with(STANDARD_NO_PAD.encode(random)))
    }

    fn login_with(&self, nonce: String) -> Login {
        Login {
            credentials: self.clone(),
            nonce,
            state: State::Begun,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Credentials(***)")
    }
}

impl Login {
    /// The message for CONNECT.
    pub fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.first_bare()).into_bytes()
    }

    /// Answers an AUTH of the server: the proof, or nothing if the server proves itself already
    /// here.
    ///
    /// # Errors
    /// The message is malformed, refuses the login, or proves that the server is another.
    pub fn answer(&mut self, message: &[u8]) -> Result<Vec<u8>, ScramError> {
        match self.state {
            State::Begun => self.prove(message),
            State::Answered(_) => self.verify(message).map(|()| Vec::new()),
            State::Verified => Err(ScramError::Malformed("it comes after the last one")),
        }
    }

    /// Takes the data of CONNACK: a server that has not proved its identity must do so now.
    ///
    /// # Errors
    /// The server has not proved that it knows the password.
    pub fn finish(&mut self, message: &[u8]) -> Result<(), ScramError> {
        match self.state {
            State::Verified => Ok(()),
            State::Begun => Err(ScramError::Impostor),
            State::Answered(_) => self.verify(message),
        }
    }

    fn first_bare(&self) -> String {
        format!("n={},r={}", self.credentials.name, self.nonce)
    }

    fn prove(&mut self, message: &[u8]) -> Result<Vec<u8>, ScramError> {
        let text = text(message)?;
        let challenge = Challenge::read(text)?;
        // Without a part by the server, its answer could be a replay.
        let is_ours = challenge.nonce.starts_with(&self.nonce);
        if !is_ours || challenge.nonce.len() == self.nonce.len() {
            return Err(ScramError::Malformed("another nonce than the client's"));
        }
        let password = &self.credentials.password;
        let keys = Keys::derive(password, &challenge.salt, challenge.iterations);
        let last = format!("c={HEADER_BASE64},r={}", challenge.nonce);
        let covered = format!("{},{text},{last}", self.first_bare());
        let signature = keyed(&hash(keys.client.as_slice()), covered.as_bytes());
        let proof = combined(*keys.client, &signature);
        self.state = State::Answered(keyed(&keys.server, covered.as_bytes()));
        Ok(format!("{last},p={}", STANDARD.encode(proof)).into_bytes())
    }

    fn verify(&mut self, message: &[u8]) -> Result<(), ScramError> {
        let State::Answered(expected) = &self.state else {
            return Err(ScramError::Impostor);
        };
        let text = text(message)?;
        if let Some(why) = text.strip_prefix("e=") {
            return Err(ScramError::Refused(why.escape_debug().to_string()));
        }
        let signature = text
            .split(',')
            .next()
            .and_then(|first| first.strip_prefix("v="));
        let signature = STANDARD.decode(signature.unwrap_or_default());
        let signature = signature.map_err(|_| ScramError::Malformed("signature"))?;
        if !is_same(&signature, expected) {
            return Err(ScramError::Impostor);
        }
        self.state = State::Verified;
        Ok(())
    }
}

impl<'a> Challenge<'a> {
    fn read(text: &'a str) -> Result<Self, ScramError> {
        if let Some(why) = text.strip_prefix("e=") {
            return Err(ScramError::Refused(why.escape_debug().to_string()));
        }
        let mut attributes = text.split(',');
        // The rest after these three is for extensions; a mandatory one would precede them.
        let mut next = |name: &str, what| {
            let attribute = attributes.next().and_then(|one| one.strip_prefix(name));
            attribute.ok_or(ScramError::Malformed(what))
        };
        let nonce = next("r=", "no nonce")?;
        let salt = STANDARD.decode(next("s=", "no salt")?);
        let iterations: u32 = next("i=", "no iterations")?
            .parse()
            .map_err(|_| ScramError::Malformed("iterations"))?;
        if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&iterations) {
            return Err(ScramError::Iterations(iterations));
        }
        Ok(Self {
            nonce,
            salt: salt.map_err(|_| ScramError::Malformed("salt"))?,
            iterations: NonZeroU32::new(iterations).ok_or(ScramError::Iterations(iterations))?,
        })
    }
}

fn prepared(text: Option<&str>, what: &'static str) -> Result<String, ScramError> {
    let prepared = text.and_then(keys::prepared);
    let prepared = prepared.filter(|text| !text.is_empty());
    prepared.ok_or(ScramError::Forbidden(what))
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    str::from_utf8(message).map_err(|_| ScramError::Malformed("not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const CHALLENGE: &str = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                             s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const SIGNATURE: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn login() -> Login {
        let credentials = Credentials::new("user", b"pencil").unwrap();
        credentials.login_with(NONCE.to_owned())
    }

    /// A login that has sent its proof.
    fn answered() -> Login {
        let mut login = login();
        login.answer(CHALLENGE.as_bytes()).unwrap();
        login
    }

    // RFC 7677, section 3.
    #[test]
    fn the_example_of_the_rfc_is_followed_to_the_letter() {
        let mut login = login();
        assert_eq!(login.first(), b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let answer = login.answer(CHALLENGE.as_bytes()).unwrap();
        assert_eq!(
            str::from_utf8(&answer),
            Ok(
                "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                 p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
            )
        );
        assert_eq!(login.finish(SIGNATURE.as_bytes()), Ok(()));
    }

    #[test]
    fn the_signature_may_come_with_a_last_auth() {
        let mut login = answered();
        assert_eq!(login.answer(SIGNATURE.as_bytes()), Ok(Vec::new()));
        assert_eq!(login.finish(b""), Ok(()));
        assert!(login.answer(SIGNATURE.as_bytes()).is_err());
    }

    #[test]
    fn a_broker_that_does_not_know_the_password_is_an_impostor() {
        assert_eq!(login().finish(b""), Err(ScramError::Impostor));
        assert_eq!(
            login().finish(SIGNATURE.as_bytes()),
            Err(ScramError::Impostor)
        );
        let other = SIGNATURE.replace("6rri", "7rri");
        for message in [other.as_str(), "v=", "v=AAAA", ""] {
            let result = answered().finish(message.as_bytes());
            assert_eq!(result, Err(ScramError::Impostor), "{message}");
        }
    }

    #[test]
    fn a_challenge_that_is_none_is_refused() {
        let change = |from, to| CHALLENGE.replacen(from, to, 1);
        for message in [
            String::new(),
            change("r=rOpr", "r=rOps"),
            change("%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", ""),
            change("s=W22", "s=*22"),
            change(",i=4096", ""),
            change("i=4096", "i=many"),
            format!("m=new,{CHALLENGE}"),
            "v=AAAA".to_owned(),
        ] {
            let result = login().answer(message.as_bytes());
            assert!(matches!(result, Err(ScramError::Malformed(_))), "{message}");
        }
        assert!(login().answer(b"\xff").is_err());
    }

    #[test]
    fn too_little_and_too_much_work_is_refused() {
        for iterations in [0, 1, 4095, 10_000_001] {
            let message = CHALLENGE.replace("4096", &iterations.to_string());
            let result = login().answer(message.as_bytes());
            assert_eq!(result, Err(ScramError::Iterations(iterations)));
        }
    }

    #[test]
    fn the_brokers_error_text_is_shown() {
        let refused = Err(ScramError::Refused("unknown-user".to_owned()));
        assert_eq!(login().answer(b"e=unknown-user"), refused);
        assert!(answered().finish(b"e=other-error").is_err());
    }

    #[test]
    fn names_are_prepared_and_escaped() {
        let first = |name| {
            let credentials = Credentials::new(name, b"x").unwrap();
            let first = credentials.login_with("n".to_owned()).first();
            String::from_utf8(first).unwrap()
        };
        assert_eq!(first("a=b,c"), "n,,n=a=3Db=2Cc,r=n");
        // A soft hyphen is mapped to nothing, a Roman numeral to letters.
        assert_eq!(first("I\u{ad}X"), "n,,n=IX,r=n");
        assert_eq!(first("\u{2168}"), "n,,n=IX,r=n");
        assert_eq!(
            Credentials::new("", b"x").unwrap_err(),
            ScramError::Forbidden("user name")
        );
        for password in [&b""[..], b"\xff", b"\x07"] {
            let error = Credentials::new("u", password).unwrap_err();
            assert_eq!(error, ScramError::Forbidden("password"));
        }
    }

    #[test]
    fn every_login_has_a_nonce_of_its_own_and_shows_no_password() {
        let credentials = Credentials::new("user", b"pencil").unwrap();
        let (one, two) = (credentials.login().unwrap(), credentials.login().unwrap());
        assert_ne!(one.first(), two.first());
        assert!(!format!("{one:?}").contains("pencil"));
    }
}
