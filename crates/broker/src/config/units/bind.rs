//! `with` of listener addresses.

use serde::Deserialize;

use super::{Bind, BindSchema, Deserializer, Scalar, Serializer};

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Scalar),
    Many(Vec<Scalar>),
}

pub(in crate::config) fn deserialize<'de, D>(from: D) -> Result<Vec<Bind>, D::Error>
where
    D: Deserializer<'de>,
{
    let entries = match OneOrMany::deserialize(from) {
        Ok(OneOrMany::One(entry)) => vec![entry],
        Ok(OneOrMany::Many(entries)) => entries,
        Err(_) => return super::found(None, BindSchema::EXPECTED),
    };
    let addresses: Option<Vec<_>> = entries.into_iter().map(addresses).collect();
    let addresses = addresses.map(|lists| lists.concat());
    super::found(addresses, BindSchema::EXPECTED)
}

fn addresses(entry: Scalar) -> Option<Vec<Bind>> {
    let text = match entry {
        Scalar::Integer(port) => port.to_string(),
        Scalar::Text(text) => text,
        Scalar::Boolean(_) => return None,
    };
    if let Some(path) = text.trim().strip_prefix("unix:") {
        return (!path.is_empty()).then(|| vec![Bind::Unix(path.into())]);
    }
    let addresses = super::parse_bind(&text)?;
    Some(addresses.into_iter().map(Bind::Address).collect())
}

pub(in crate::config) fn serialize<S>(bind: &[Bind], to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    match bind {
        [address] => to.collect_str(address),
        addresses => to.collect_seq(addresses.iter().map(ToString::to_string)),
    }
}
