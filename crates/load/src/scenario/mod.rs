//! The contents of a run: groups of clients, their publishing and subscribing, and the stages.
//! Data, no behaviour.

mod addresses;
mod catalogue;
mod changed;
mod changes;
mod confined;
mod file;
mod grammar;
mod model;
mod overrides;
mod pattern;
mod sets;
mod wire;
mod words;

use std::time::Duration;

use thrum_codec::QoS;
use thrum_figures::{SECOND_NS, fraction, whole};

pub use addresses::{AddressError, AddressRange, SOURCE_ADDRESSES_MAX};
pub use catalogue::{Entry, UnknownScenario, catalogue, find, find_document, find_toml};
pub use changes::{ChangeError, Changes};
pub use confined::{ReachError, check_confined};
pub use file::{CLIENTS_MAX, load, load_with, to_toml};
pub use model::{
    Arrivals, ClientSpec, Document, Fault, FaultKind, Group, Network, PayloadSpec, PublishSpec,
    Reconnect, Scenario, Shape, Stages, SubscribeSpec, TargetSpec, Victims, WillSpec,
};
pub use overrides::{OverrideError, Overrides};
pub use pattern::fill;
pub use sets::{BASIC_SET, ScenarioSet, sets};

/// Bytes that each message carries to be recognised: publisher, sequence and send time.
pub const PAYLOAD_BYTES_MIN: u32 = 16;

/// Messages per second of one publisher, kept as the time from one to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Rate {
    /// Nanoseconds between two messages of one publisher.
    pub period_ns: u64,
}

impl Rate {
    /// Longest time between two messages: a day.
    pub const PERIOD_NS_MAX: u64 = 86_400 * SECOND_NS;

    /// A whole number of messages per second; 0 counts as 1.
    pub const fn per_second(messages: u64) -> Self {
        Self {
            period_ns: SECOND_NS / if messages == 0 { 1 } else { messages },
        }
    }

    /// Reads messages per second, minute or hour: `50`, `50/s`, `0.5`, `6/m`; none if not positive
    /// or slower than one a day.
    pub fn parse(text: &str) -> Option<Self> {
        let (number, per_ns) = match text.split_once('/') {
            None | Some((_, "s")) => (text.split('/').next()?, SECOND_NS),
            Some((number, "m" | "min")) => (number, 60 * SECOND_NS),
            Some((number, "h")) => (number, 3600 * SECOND_NS),
            Some(_) => return None,
        };
        let messages: f64 = number.parse().ok()?;
        let period_ns = fraction(per_ns) / messages;
        let is_possible = (1.0..=fraction(Self::PERIOD_NS_MAX)).contains(&period_ns);
        is_possible.then(|| Self {
            period_ns: whole(period_ns),
        })
    }

    /// Messages per second.
    pub fn messages_per_second(self) -> f64 {
        fraction(SECOND_NS) / fraction(self.period_ns)
    }
}

impl Scenario {
    /// Clients of all groups.
    pub fn clients(&self) -> u32 {
        self.groups.iter().map(|group| group.clients).sum()
    }

    /// Clients that publish.
    pub fn publishers(&self) -> u32 {
        self.groups
            .iter()
            .filter(|group| group.publish.is_some())
            .map(|group| group.clients)
            .sum()
    }

    /// Clients that subscribe.
    pub fn subscribers(&self) -> u32 {
        let subscribing = self.groups.iter().filter(|group| group.subscribe.is_some());
        subscribing.map(|group| group.clients).sum()
    }

    /// Messages offered per second by all publishers.
    pub fn offered_rate(&self) -> f64 {
        let publishing = self
            .groups
            .iter()
            .filter_map(|group| Some((group.clients, group.publish.as_ref()?)));
        publishing.fold(0.0, |sum, (clients, publish)| {
            sum + f64::from(clients) * publish.rate.messages_per_second()
        })
    }

    /// Quality of service that messages are delivered with; none without both sides.
    pub fn delivery_qos(&self) -> Option<QoS> {
        let published = self
            .groups
            .iter()
            .filter_map(|group| Some(group.publish.as_ref()?.qos));
        let subscribed = self
            .groups
            .iter()
            .filter_map(|group| Some(group.subscribe.as_ref()?.qos));
        Some(published.max()?.min(subscribed.max()?))
    }

    /// Whether a message may be delivered more than once: only where a publisher or the broker
    /// sends it with QoS 1, and may repeat it.
    pub fn may_duplicate(&self) -> bool {
        let published = || {
            self.groups
                .iter()
                .filter_map(|group| group.publish.as_ref())
        };
        let subscribed = self
            .groups
            .iter()
            .filter_map(|group| group.subscribe.as_ref());
        let repeats_publish = published().any(|publish| publish.qos == QoS::AtLeastOnce);
        let repeats_delivery = published().any(|publish| publish.qos != QoS::AtMostOnce)
            && subscribed
                .into_iter()
                .any(|subscribe| subscribe.qos == QoS::AtLeastOnce);
        repeats_publish || repeats_delivery
    }

    /// Time to open all connections at the connect rate.
    pub fn ramp(&self) -> Duration {
        let rate = u64::from(self.connect_rate.max(1));
        Duration::from_nanos(u64::from(self.clients()) * SECOND_NS / rate)
    }
}

impl Victims {
    /// Whether a client is one of them, by its number in its group: spread evenly.
    pub fn include(&self, group: &str, number: u32) -> bool {
        if self.group.as_ref().is_some_and(|wanted| wanted != group) {
            return false;
        }
        let below = |clients: u32| (f64::from(clients) * self.share).floor();
        below(number + 1) > below(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_per_second_minute_and_hour() {
        assert_eq!(Rate::parse("50"), Some(Rate::per_second(50)));
        assert_eq!(Rate::parse("50/s"), Some(Rate::per_second(50)));
        assert_eq!(
            Rate::parse("0.5"),
            Some(Rate {
                period_ns: 2 * SECOND_NS
            })
        );
        assert_eq!(
            Rate::parse("6/m"),
            Some(Rate {
                period_ns: 10 * SECOND_NS
            })
        );
        assert_eq!(
            Rate::parse("1/h"),
            Some(Rate {
                period_ns: 3600 * SECOND_NS
            })
        );
        for text in ["", "0", "-1", "nan", "1/d", "1/w", "0.01/h", "fast"] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }

    #[test]
    fn victims_are_spread_evenly() {
        let tenth = Victims {
            group: None,
            share: 0.1,
        };
        let chosen: Vec<u32> = (0..100)
            .filter(|number| tenth.include("any", *number))
            .collect();
        assert_eq!(chosen.len(), 10);
        assert!(
            chosen
                .windows(2)
                .all(|pair| (9..=11).contains(&(pair[1] - pair[0])))
        );
        let all = Victims {
            group: Some("a".to_owned()),
            share: 1.0,
        };
        assert!((0..100).all(|number| all.include("a", number)));
        assert!(!all.include("b", 0));
    }
}
