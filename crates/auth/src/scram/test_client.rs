//! The client's side, for tests.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::credential::{hash, keyed};

/// A client that wants to log in.
pub(crate) struct Client {
    username: &'static str,
    password: &'static str,
}

impl Client {
    pub(crate) const fn new(username: &'static str, password: &'static str) -> Self {
        Self { username, password }
    }

    fn bare(&self) -> String {
        format!("n={},r=clientnonce", self.username)
    }

    pub(crate) fn first(&self) -> Vec<u8> {
        format!("n,,{}", self.bare()).into_bytes()
    }

    /// The last message, and the expected answer of the server.
    pub(crate) fn last(&self, challenge: &[u8]) -> (Vec<u8>, Vec<u8>) {
        let challenge = std::str::from_utf8(challenge).unwrap();
        let parts: Vec<&str> = challenge.split(',').map(|part| &part[2..]).collect();
        let salt = STANDARD.decode(parts[1]).unwrap();
        let mut salted = [0; 32];
        aws_lc_rs::pbkdf2::derive(
            aws_lc_rs::pbkdf2::PBKDF2_HMAC_SHA256,
            parts[2].parse().unwrap(),
            &salt,
            self.password.as_bytes(),
            &mut salted,
        );
        let client_key = keyed(&salted, b"Client Key");
        let without_proof = format!("c=biws,r={}", parts[0]);
        let covered = format!("{},{challenge},{without_proof}", self.bare());
        let signature = keyed(&hash(&client_key), covered.as_bytes());
        let proof: Vec<u8> = client_key
            .iter()
            .zip(signature)
            .map(|(a, b)| a ^ b)
            .collect();
        let last = format!("{without_proof},p={}", STANDARD.encode(proof));
        let server = keyed(&keyed(&salted, b"Server Key"), covered.as_bytes());
        let answer = format!("v={}", STANDARD.encode(server));
        (last.into_bytes(), answer.into_bytes())
    }
}
