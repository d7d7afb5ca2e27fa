//! `with` of who may be anonymous.

use super::{Anonymous, AnonymousSchema, Deserializer, Scalar, Serialize, Serializer};

pub(in crate::config) fn deserialize<'de, D>(from: D) -> Result<Anonymous, D::Error>
where
    D: Deserializer<'de>,
{
    let scalar = super::scalar(from, AnonymousSchema::EXPECTED)?;
    super::found(read(&scalar), AnonymousSchema::EXPECTED)
}

/// Who is meant.
pub(super) fn read(scalar: &Scalar) -> Option<Anonymous> {
    match scalar {
        Scalar::Boolean(true) => Some(Anonymous::Everyone),
        Scalar::Boolean(false) => Some(Anonymous::Nobody),
        Scalar::Text(text) => (text == "loopback").then_some(Anonymous::Loopback),
        Scalar::Integer(_) => None,
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde calls"
)]
pub(in crate::config) fn serialize<S>(anonymous: &Anonymous, to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match anonymous {
        Anonymous::Loopback => "loopback".serialize(to),
        Anonymous::Everyone => true.serialize(to),
        Anonymous::Nobody => false.serialize(to),
    }
}
