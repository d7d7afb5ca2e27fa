//! `with` of a list of networks.

use serde::Deserialize;
use thrum_access::Network;

use super::{Deserializer, Serializer};

/// One of them: an error is at its place in the list.
struct WrittenNetwork(Network);

impl<'de> Deserialize<'de> for WrittenNetwork {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let network = String::deserialize(from)?.parse();
        network.map(Self).map_err(serde::de::Error::custom)
    }
}

pub(in crate::config) fn deserialize<'de, D>(from: D) -> Result<Vec<Network>, D::Error>
where
    D: Deserializer<'de>,
{
    let written = Vec::<WrittenNetwork>::deserialize(from)?;
    Ok(written
        .into_iter()
        .map(|WrittenNetwork(network)| network)
        .collect())
}

pub(in crate::config) fn serialize<S>(networks: &[Network], to: S) -> Result<S::Ok, S::Error>
where
    S: Serializer,
{
    to.collect_seq(networks.iter().map(ToString::to_string))
}
