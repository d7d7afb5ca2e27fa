//! The form of other crates' values in a scenario that is sent to another machine.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thrum_codec::{QoS, Version};
use thrum_report::Threshold;

fn version_of<E: serde::de::Error>(text: &str) -> Result<Version, E> {
    Version::named(text).ok_or_else(|| E::custom("unknown version of MQTT"))
}

/// A quality of service as its number.
pub(super) mod qos {
    use super::{Deserialize as _, Deserializer, QoS, Serializer};
    use serde::de::Error as _;

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over references"
    )]
    pub(in super::super) fn serialize<S: Serializer>(qos: &QoS, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u8(*qos as u8)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<QoS, D::Error> {
        match u8::deserialize(from)? {
            0 => Ok(QoS::AtMostOnce),
            1 => Ok(QoS::AtLeastOnce),
            2 => Ok(QoS::ExactlyOnce),
            _ => Err(D::Error::custom("unknown quality of service")),
        }
    }
}

/// A version as people write it.
pub(super) mod version {
    use super::{Deserialize as _, Deserializer, Serializer, Version, version_of};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        reason = "serde hands over references"
    )]
    pub(in super::super) fn serialize<S: Serializer>(
        version: &Version,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        out.serialize_str(version.name())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Version, D::Error> {
        version_of(&String::deserialize(from)?)
    }
}

/// A version that may be missing.
pub(super) mod version_if_any {
    use super::{Deserialize as _, Deserializer, Serialize as _, Serializer, Version, version_of};

    #[expect(
        clippy::trivially_copy_pass_by_ref,
        clippy::ref_option,
        reason = "serde hands over references"
    )]
    pub(in super::super) fn serialize<S: Serializer>(
        version: &Option<Version>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        version.map(Version::name).serialize(out)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Version>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        text.map(|text| version_of(&text)).transpose()
    }
}

/// Limits as name and condition.
pub(super) mod thresholds {
    use super::{Deserialize as _, Deserializer, Serializer, Threshold};
    use serde::de::Error as _;

    pub(in super::super) fn serialize<S: Serializer>(
        thresholds: &[Threshold],
        out: S,
    ) -> Result<S::Ok, S::Error> {
        let texts = thresholds
            .iter()
            .map(|threshold| (threshold.metric.name, &threshold.text));
        out.collect_seq(texts)
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<Threshold>, D::Error> {
        let texts = Vec::<(String, String)>::deserialize(from)?;
        texts
            .iter()
            .map(|(metric, condition)| {
                Threshold::parse(metric, condition).map_err(D::Error::custom)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, catalogue, find, find_document};

    #[test]
    fn every_scenario_arrives_as_it_was() {
        let documents = catalogue()
            .into_iter()
            .map(|entry| find_document(entry.name).unwrap());
        for mut scenario in documents.flat_map(|document| document.scenarios) {
            scenario.thresholds = vec![Threshold::parse("e2e.p99", "< 50ms").unwrap()];
            scenario.groups[0].client.version = Some(Version::V31);
            scenario.source_addresses = vec!["fd00::1-fd00::20".parse().unwrap()];
            let text = serde_json::to_string(&scenario).unwrap();
            let read: Scenario = serde_json::from_str(&text).unwrap();
            assert_eq!(read, scenario);
        }
    }

    #[test]
    fn unknown_values_are_refused() {
        let scenario = &find("p2p-1K").unwrap();
        let text = serde_json::to_string(scenario).unwrap();
        let version = format!("\"version\":\"{}\"", scenario.version.name());
        assert!(text.contains(&version), "{text}");
        let changed = text.replace(&version, "\"version\":\"6.0\"");
        assert!(serde_json::from_str::<Scenario>(&changed).is_err());
    }
}
