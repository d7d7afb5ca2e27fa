//! The real servers, each in a folder of its own on a free port of the loopback.

mod mariadb;
mod openldap;
mod postgres;
mod redis;

pub use mariadb::MariaDb;
pub use openldap::{OpenLdap, PASSWORD as READER_PASSWORD, READER};
pub use postgres::Postgres;
pub use redis::Redis;

/// The password of every server: a URL has to escape it.
pub const PASSWORD: &str = "p:@ss/word";

/// A certificate for `localhost`, which is its own authority, and its key, as PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// Certificate.
    pub certificate: String,
    /// Key.
    pub key: String,
}

impl Tls {
    /// Makes one.
    ///
    /// # Panics
    /// There are no random numbers.
    pub fn new() -> Self {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        Self {
            certificate: made.cert.pem(),
            key: made.signing_key.serialize_pem(),
        }
    }
}

impl Default for Tls {
    fn default() -> Self {
        Self::new()
    }
}
