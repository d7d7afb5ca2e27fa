//! `with` of the setting `anonymous` of one listener.

use super::{
    Anonymous, Deserializer, InheritedAnonymousSchema, Scalar, Serialize, Serializer, anonymous,
};

/// Stands for the setting of `auth`.
const INHERIT: &str = "inherit";

pub(in crate::config) fn deserialize<'de, D>(from: D) -> Result<Option<Anonymous>, D::Error>
where
    D: Deserializer<'de>,
{
    let anonymous = match super::scalar(from, InheritedAnonymousSchema::EXPECTED)? {
        Scalar::Text(text) if text == INHERIT => Some(None),
        scalar => anonymous::read(&scalar).map(Some),
    };
    super::found(anonymous, InheritedAnonymousSchema::EXPECTED)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "the signature that serde calls"
)]
pub(in crate::config) fn serialize<S>(
    anonymous: &Option<Anonymous>,
    to: S,
) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match anonymous {
        None => INHERIT.serialize(to),
        Some(anonymous) => anonymous::serialize(anonymous, to),
    }
}
