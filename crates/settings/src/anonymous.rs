//! Clients that may connect without credentials.

use serde::{Deserializer, Serialize, Serializer};

use crate::{Scalar, found, scalar, schema};

/// The clients that may connect without credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Anonymous {
    /// Clients whose address is a loopback address, or that are connected through a Unix socket.
    #[default]
    Loopback,
    /// Every client that reaches a listener.
    Allow,
    /// No client.
    Deny,
}

impl Anonymous {
    /// Whether a client without credentials is admitted, by whether it is on this machine.
    pub const fn admits(self, is_loopback: bool) -> bool {
        match self {
            Self::Allow => true,
            Self::Loopback => is_loopback,
            Self::Deny => false,
        }
    }
}

schema! {
    AnonymousSchema: ["boolean", "string"] "anonymous", "\"loopback\", true or false";
}

/// Parses the setting.
pub fn read(scalar: &Scalar) -> Option<Anonymous> {
    match scalar {
        Scalar::Boolean(true) => Some(Anonymous::Allow),
        Scalar::Boolean(false) => Some(Anonymous::Deny),
        Scalar::Text(text) => (text == "loopback").then_some(Anonymous::Loopback),
        Scalar::Integer(_) => None,
    }
}

/// Reads the setting from a file.
///
/// # Errors
/// The value is none of the three.
pub fn deserialize<'de, D>(from: D) -> Result<Anonymous, D::Error>
where
    D: Deserializer<'de>,
{
    let scalar = scalar(from, AnonymousSchema::EXPECTED)?;
    found(read(&scalar), AnonymousSchema::EXPECTED)
}

/// Writes the setting.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S>(anonymous: &Anonymous, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match anonymous {
        Anonymous::Loopback => "loopback".serialize(to),
        Anonymous::Allow => true.serialize(to),
        Anonymous::Deny => false.serialize(to),
    }
}
