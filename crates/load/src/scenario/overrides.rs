//! Changes of a scenario from the command line: scale, rate, size, stages.

use std::time::Duration;

use thrum_codec::{QoS, Version};
use thrum_figures::whole;

use super::changed::noted;
use super::pattern::forms;
use super::{
    AddressRange, Arrivals, Group, PAYLOAD_BYTES_MIN, PayloadSpec, Rate, Scenario, load, to_toml,
};

/// Changes to a scenario; `None` keeps the scenario's value.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the scenario's of the same name")]
pub struct Overrides {
    pub publishers: Option<u32>,
    pub subscribers: Option<u32>,
    pub connections: Option<u32>,
    pub rate: Option<Rate>,
    pub arrivals: Option<Arrivals>,
    pub payload_bytes: Option<u32>,
    pub qos: Option<QoS>,
    pub connect_rate: Option<u32>,
    pub source_addresses: Option<Vec<AddressRange>>,
    pub version: Option<Version>,
    pub warm_up: Option<Duration>,
    pub hold: Option<Duration>,
    pub drain: Option<Duration>,
    /// Factor for the clients of every group and the connect rate, applied before the other
    /// changes.
    pub scale: Option<f64>,
}

/// Why a scenario cannot be changed so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OverrideError {
    /// The scenario has no client of that kind.
    #[error("{scenario} has no {kind}: leave out --{kind}")]
    NoSuchClients {
        /// Name of the scenario.
        scenario: String,
        /// `publishers`, `subscribers` or `connections`.
        kind: &'static str,
    },
    /// None left.
    #[error("--{flag} must be at least 1")]
    Zero {
        /// Name of the flag.
        flag: &'static str,
    },
    /// Each publisher has subscribers of its own.
    #[error(
        "{scenario} gives each publisher {each} subscriber{}: {publishers} publishers do not fit {subscribers} subscribers; give {}",
        if *each == 1 { "" } else { "s" },
        if *each == 1 { "both the same number".to_owned() } else { format!("{each} times as many subscribers as publishers") }
    )]
    Unpaired {
        /// Name of the scenario.
        scenario: String,
        /// Subscribers of each publisher.
        each: u32,
        /// The requested number.
        publishers: u32,
        /// The requested number.
        subscribers: u32,
    },
    /// No room for publisher, sequence and time.
    #[error(
        "--payload {bytes} is too small: each message carries its publisher, its sequence and its send time, 16 bytes in all"
    )]
    PayloadTooSmall {
        /// The requested number.
        bytes: u32,
    },
    /// Not above 0.
    #[error("--scale {factor} must be a number above 0")]
    Scale {
        /// The requested number.
        factor: String,
    },
    /// A rule of scenarios is broken.
    #[error("{scenario} cannot be changed so: {reason}")]
    DoesNotFit {
        /// Name of the scenario.
        scenario: String,
        /// The error.
        reason: String,
    },
}

impl Scenario {
    /// Applies the changes, names them in the summary and writes the changed scenario as its file.
    ///
    /// # Errors
    /// A change that does not fit the scenario.
    pub fn with(mut self, overrides: &Overrides) -> Result<Self, OverrideError> {
        if *overrides == Overrides::default() {
            return Ok(self);
        }
        if let Some(factor) = overrides.scale {
            self.scale_by(factor)?;
        }
        self.resize_groups(overrides)?;
        self.shape_messages(overrides)?;
        if let Some(connect_rate) = overrides.connect_rate {
            self.connect_rate = at_least_one(connect_rate, "connect-rate")?;
        }
        if let Some(addresses) = &overrides.source_addresses {
            self.source_addresses.clone_from(addresses);
        }
        self.version = overrides.version.unwrap_or(self.version);
        self.stages.warm_up = overrides.warm_up.unwrap_or(self.stages.warm_up);
        self.stages.hold = overrides.hold.unwrap_or(self.stages.hold);
        self.stages.drain = overrides.drain.unwrap_or(self.stages.drain);
        if self.stages.hold.is_zero() {
            return Err(OverrideError::Zero { flag: "duration" });
        }
        self.summary = noted(&self.summary, &overrides.words(&self));
        self.toml = to_toml(&self);
        self.check_file()?;
        Ok(self)
    }

    /// Every group by the same factor; the rate of each client stays. Subscribers of `{i%N}` stay N
    /// at least, or some topics would have no subscriber.
    fn scale_by(&mut self, factor: f64) -> Result<(), OverrideError> {
        if !(factor.is_finite() && factor > 0.0) {
            return Err(OverrideError::Scale {
                factor: factor.to_string(),
            });
        }
        for group in &mut self.groups {
            let subscribed = group
                .subscribe
                .iter()
                .flat_map(|subscribe| &subscribe.filters);
            let needed = subscribed.map(|filter| forms(filter)).max().unwrap_or(1);
            let least = needed.min(group.clients);
            group.clients = scaled(group.clients, factor).max(least);
        }
        self.connect_rate = scaled(self.connect_rate, factor);
        self.scale *= factor;
        Ok(())
    }

    fn resize_groups(&mut self, overrides: &Overrides) -> Result<(), OverrideError> {
        let each = self.subscribers_of_each_publisher();
        let (mut publishers, mut subscribers) = (overrides.publishers, overrides.subscribers);
        if let Some(each) = each {
            publishers = publishers.or_else(|| Some(subscribers? / each));
            subscribers = subscribers.or_else(|| Some(publishers?.saturating_mul(each)));
        }
        self.resize("publishers", publishers, |group| group.publish.is_some())?;
        self.resize("subscribers", subscribers, |group| {
            group.subscribe.is_some()
        })?;
        self.resize("connections", overrides.connections, |group| {
            group.publish.is_none() && group.subscribe.is_none()
        })?;
        if let Some(each) = each
            && self.publishers().saturating_mul(each) != self.subscribers()
        {
            return Err(OverrideError::Unpaired {
                scenario: self.name.clone(),
                each,
                publishers: self.publishers(),
                subscribers: self.subscribers(),
            });
        }
        Ok(())
    }

    /// Deals clients to the groups that are meant, in proportion to what they had; each keeps at
    /// least one.
    fn resize(
        &mut self,
        kind: &'static str,
        clients: Option<u32>,
        is_meant: impl Fn(&Group) -> bool,
    ) -> Result<(), OverrideError> {
        let Some(clients) = clients else {
            return Ok(());
        };
        let clients = u64::from(at_least_one(clients, kind)?);
        let meant = self.groups.iter_mut().filter(|group| is_meant(group));
        let mut groups: Vec<&mut Group> = meant.collect();
        let total: u64 = groups.iter().map(|group| u64::from(group.clients)).sum();
        if groups.is_empty() {
            return Err(OverrideError::NoSuchClients {
                scenario: self.name.clone(),
                kind,
            });
        }
        let (mut before, mut dealt) = (0, 0);
        for group in &mut groups {
            before += u64::from(group.clients);
            let share = (clients * before / total).saturating_sub(dealt).max(1);
            group.clients = u32::try_from(share).unwrap_or(u32::MAX);
            dealt += share;
        }
        Ok(())
    }

    fn shape_messages(&mut self, overrides: &Overrides) -> Result<(), OverrideError> {
        if let Some(bytes) = overrides.payload_bytes
            && bytes < PAYLOAD_BYTES_MIN
        {
            return Err(OverrideError::PayloadTooSmall { bytes });
        }
        let payload = overrides.payload_bytes.map(PayloadSpec::Size);
        for group in &mut self.groups {
            if let Some(publish) = &mut group.publish {
                publish.rate = overrides.rate.unwrap_or(publish.rate);
                publish.arrivals = overrides.arrivals.unwrap_or(publish.arrivals);
                publish.qos = overrides.qos.unwrap_or(publish.qos);
                publish.payload = payload.clone().unwrap_or_else(|| publish.payload.clone());
            }
            if let Some(subscribe) = &mut group.subscribe {
                subscribe.qos = overrides.qos.unwrap_or(subscribe.qos);
            }
        }
        Ok(())
    }

    /// How many subscribers each publisher has for itself, in a scenario that gives it its own.
    fn subscribers_of_each_publisher(&self) -> Option<u32> {
        let filters = self
            .groups
            .iter()
            .filter_map(|group| group.subscribe.as_ref())
            .flat_map(|subscribe| &subscribe.filters);
        let has_own = filters.into_iter().any(|filter| filter.contains("{i}"));
        let each = self.subscribers().checked_div(self.publishers())?;
        (has_own && each > 0 && self.subscribers() == self.publishers() * each).then_some(each)
    }

    /// Whether the changed scenario still keeps all rules of a file.
    fn check_file(&self) -> Result<(), OverrideError> {
        load(&self.toml, &self.name).map(drop).map_err(|error| {
            let messages = error.0.into_iter().map(|problem| problem.message);
            OverrideError::DoesNotFit {
                scenario: self.name.clone(),
                reason: messages.collect::<Vec<_>>().join("; "),
            }
        })
    }
}

/// A part of a number, at least 1.
fn scaled(number: u32, factor: f64) -> u32 {
    u32::try_from(whole(f64::from(number) * factor).max(1)).unwrap_or(u32::MAX)
}

const fn at_least_one(value: u32, flag: &'static str) -> Result<u32, OverrideError> {
    if value == 0 {
        Err(OverrideError::Zero { flag })
    } else {
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;

    #[test]
    fn one_side_of_a_pair_brings_the_other_along() {
        let overrides = Overrides {
            publishers: Some(20),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        assert_eq!((scenario.publishers(), scenario.subscribers()), (20, 20));
    }

    #[test]
    fn unequal_sides_of_pairs_are_refused() {
        let overrides = Overrides {
            publishers: Some(20),
            subscribers: Some(10),
            ..Overrides::default()
        };
        let error = find("p2p-1K").unwrap().with(&overrides).unwrap_err();
        assert!(matches!(
            error,
            OverrideError::Unpaired {
                publishers: 20,
                subscribers: 10,
                ..
            }
        ));
    }

    #[test]
    fn publishers_with_two_subscribers_each_keep_them() {
        let changed = |publishers, subscribers| {
            let overrides = Overrides {
                publishers,
                subscribers,
                hold: Some(Duration::from_secs(5)),
                ..Overrides::default()
            };
            find("durable-publish").unwrap().with(&overrides)
        };
        let sizes = |scenario: Scenario| (scenario.publishers(), scenario.subscribers());
        assert_eq!(sizes(changed(None, None).unwrap()), (100, 200));
        assert_eq!(sizes(changed(Some(30), None).unwrap()), (30, 60));
        assert_eq!(sizes(changed(None, Some(60)).unwrap()), (30, 60));
        let error = changed(Some(30), Some(30)).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("give 2 times as many subscribers as publishers"),
            "{error}"
        );
    }

    #[test]
    fn fan_out_scales_each_side_alone() {
        let overrides = Overrides {
            subscribers: Some(7),
            ..Overrides::default()
        };
        let scenario = find("fanout-1-1K").unwrap().with(&overrides).unwrap();
        assert_eq!((scenario.publishers(), scenario.subscribers()), (1, 7));
    }

    #[test]
    fn a_payload_without_room_for_its_marks_is_refused() {
        let overrides = Overrides {
            payload_bytes: Some(15),
            ..Overrides::default()
        };
        let error = find("p2p-1K").unwrap().with(&overrides).unwrap_err();
        assert_eq!(error, OverrideError::PayloadTooSmall { bytes: 15 });
    }

    #[test]
    fn clients_that_a_scenario_lacks_cannot_be_scaled() {
        let overrides = Overrides {
            connections: Some(5),
            ..Overrides::default()
        };
        assert!(find("p2p-1K").unwrap().with(&overrides).is_err());
        let overrides = Overrides {
            subscribers: Some(5),
            ..Overrides::default()
        };
        assert!(find("conn-tcp-10K-100").unwrap().with(&overrides).is_err());
        let overrides = Overrides {
            connections: Some(0),
            ..Overrides::default()
        };
        assert!(find("conn-tcp-10K-100").unwrap().with(&overrides).is_err());
    }

    #[test]
    fn messages_and_stages_change_as_asked() {
        let overrides = Overrides {
            rate: Some(Rate::per_second(10)),
            payload_bytes: Some(64),
            qos: Some(QoS::ExactlyOnce),
            version: Some(Version::V5),
            hold: Some(Duration::from_secs(3)),
            connect_rate: Some(42),
            arrivals: Some(Arrivals::Poisson),
            source_addresses: Some(vec!["127.0.0.2-127.0.0.9".parse().unwrap()]),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        assert!((scenario.offered_rate() - 10_000.0).abs() < 1e-6);
        let publishing = scenario
            .groups
            .iter()
            .filter_map(|group| group.publish.as_ref());
        let payloads: Vec<_> = publishing.map(|publish| &publish.payload).collect();
        assert_eq!(payloads, [&PayloadSpec::Size(64)]);
        assert_eq!(scenario.delivery_qos(), Some(QoS::ExactlyOnce));
        assert_eq!(scenario.version, Version::V5);
        assert_eq!(scenario.stages.hold, Duration::from_secs(3));
        assert_eq!(scenario.stages.warm_up, Duration::from_secs(5));
        assert_eq!(scenario.connect_rate, 42);
        assert_eq!(scenario.arrivals_text(), "poisson");
        assert!(
            scenario.summary.contains("poisson arrivals"),
            "{}",
            scenario.summary
        );
        assert!(
            scenario.toml.contains("arrivals = \"poisson\""),
            "{}",
            scenario.toml
        );
        assert!(
            scenario
                .toml
                .contains("source_addresses = [\"127.0.0.2-127.0.0.9\"]"),
            "{}",
            scenario.toml
        );
    }

    #[test]
    fn a_scaled_scenario_keeps_its_pairs_and_its_rate_per_client() {
        let overrides = Overrides {
            scale: Some(0.01),
            ..Overrides::default()
        };
        let scenario = find("p2p-1K").unwrap().with(&overrides).unwrap();
        assert_eq!((scenario.publishers(), scenario.subscribers()), (10, 10));
        assert_eq!(scenario.connect_rate, 10);
        assert!((scenario.offered_rate() - 10.0).abs() < 1e-9);
        assert!((scenario.scale - 0.01).abs() < 1e-9);
        let again = scenario.with(&overrides).unwrap();
        assert_eq!((again.publishers(), again.connect_rate), (1, 1));
        assert!((again.scale - 0.0001).abs() < 1e-9);
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let overrides = Overrides {
                scale: Some(factor),
                ..Overrides::default()
            };
            assert!(find("p2p-1K").unwrap().with(&overrides).is_err());
        }
    }

    #[test]
    fn clients_are_dealt_to_groups_of_a_kind_in_proportion() {
        let overrides = Overrides {
            subscribers: Some(20),
            ..Overrides::default()
        };
        let scenario = find("slow-reader").unwrap().with(&overrides).unwrap();
        let clients: Vec<u32> = scenario.groups.iter().map(|group| group.clients).collect();
        assert_eq!(clients, [18, 2, 10]);
        let overrides = Overrides {
            publishers: Some(10),
            ..Overrides::default()
        };
        let scenario = find("docs-bridge/10K").unwrap().with(&overrides).unwrap();
        let clients: Vec<u32> = scenario.groups.iter().map(|group| group.clients).collect();
        assert_eq!(clients, [5, 5, 5, 5]);
    }

    #[test]
    fn the_file_of_a_changed_scenario_is_the_changed_scenario() {
        let overrides = Overrides {
            rate: Rate::parse("7/m"),
            payload_bytes: Some(2_048),
            hold: Some(Duration::from_millis(1_500)),
            scale: Some(0.1),
            ..Overrides::default()
        };
        let scenario = find("docs-bridge/20K").unwrap().with(&overrides).unwrap();
        let loaded = load(&scenario.toml, "again").unwrap();
        assert_eq!(loaded.scenarios, [scenario]);
    }

    #[test]
    fn source_addresses_that_overlap_are_refused() {
        let ranges = ["127.0.0.2-127.0.0.9", "127.0.0.5"];
        let overrides = Overrides {
            source_addresses: Some(ranges.map(|range| range.parse().unwrap()).to_vec()),
            ..Overrides::default()
        };
        let error = find("p2p-1K").unwrap().with(&overrides).unwrap_err();
        assert!(error.to_string().contains("name each once"), "{error}");
    }

    #[test]
    fn a_change_against_the_rules_names_the_rule() {
        let overrides = Overrides {
            hold: Some(Duration::from_secs(5)),
            ..Overrides::default()
        };
        let error = find("reconnect-storm").unwrap().with(&overrides);
        assert_eq!(
            error.unwrap_err().to_string(),
            "reconnect-storm cannot be changed so: faults.0.at: the hold is over by then: the time counts from its start"
        );
    }
}
