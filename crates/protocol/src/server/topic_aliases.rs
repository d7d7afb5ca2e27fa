//! Topic aliases of one connection, by direction. [MQTT-3.3.2-7]

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use hashbrown::HashMap;
use thrum_codec::ReasonCode;

use crate::Violation;

/// Shorter topics gain nothing: the alias itself takes three bytes.
const TOPIC_BYTES_MIN: usize = 4;

/// Aliases that the client set, up to the announced maximum.
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "absent for most clients, so it is one pointer"
)]
pub(super) struct InboundAliases(Option<Box<Vec<Option<Rc<str>>>>>);

impl InboundAliases {
    /// Sets the alias if there is a topic, else looks it up.
    pub(super) fn resolve(
        &mut self,
        alias: NonZeroU16,
        topic: &str,
        maximum: u16,
    ) -> Result<Option<Rc<str>>, Violation> {
        // [MQTT-3.3.2-9] [MQTT-3.3.2-12] [MQTT-3.2.2-17] [MQTT-3.2.2-18]
        if alias.get() > maximum {
            return Err(Violation::new(
                ReasonCode::TopicAliasInvalid,
                "topic alias above the topic alias maximum",
            ));
        }
        let place = usize::from(alias.get()) - 1;
        if topic.is_empty() {
            let known = self.0.as_ref().and_then(|topics| topics.get(place));
            return match known {
                Some(Some(topic)) => Ok(Some(Rc::clone(topic))),
                _ => Err(Violation::new(
                    ReasonCode::ProtocolError,
                    "topic alias without a topic",
                )),
            };
        }
        let topics = self.0.get_or_insert_default();
        if topics.len() <= place {
            topics.resize(place + 1, None);
        }
        if let Some(entry) = topics.get_mut(place)
            && entry.as_deref() != Some(topic)
        {
            *entry = Some(topic.into());
        }
        Ok(None)
    }

    /// The topic assigned to the alias.
    pub(super) fn topic(&self, alias: NonZeroU16) -> Option<&str> {
        let topics = self.0.as_ref()?;
        topics.get(usize::from(alias.get()) - 1)?.as_deref()
    }

    pub(super) fn clear(&mut self) {
        self.0 = None;
    }
}

/// Aliases set towards the client, one for each of the first topics that it is sent. `None` if
/// aliases are off, as for most clients.
#[derive(Debug, Default)]
pub(super) struct OutboundAliases(Option<Box<AliasTable>>);

#[derive(Debug)]
struct AliasTable {
    /// The lower maximum of client and server.
    maximum: u16,
    by_topic: HashMap<Box<str>, NonZeroU16>,
}

impl OutboundAliases {
    /// Creates it for up to `maximum` aliases; 0 turns aliases off. [MQTT-3.1.2-27]
    pub(super) fn new(maximum: u16) -> Self {
        let table = || {
            Box::new(AliasTable {
                maximum,
                by_topic: HashMap::new(),
            })
        };
        Self((maximum > 0).then(table))
    }

    /// The alias to send with this topic, and whether the client already knows it.
    pub(super) fn choose(&self, topic: &str) -> Option<(NonZeroU16, bool)> {
        let AliasTable { maximum, by_topic } = self.0.as_deref()?;
        if topic.len() < TOPIC_BYTES_MIN {
            return None;
        }
        if let Some(alias) = by_topic.get(topic) {
            return Some((*alias, true));
        }
        // [MQTT-3.1.2-26] [MQTT-3.3.2-8] [MQTT-3.3.2-11]
        u16::try_from(by_topic.len() + 1)
            .ok()
            .filter(|next| next <= maximum)
            .and_then(NonZeroU16::new)
            .map(|alias| (alias, false))
    }

    /// Records the chosen alias if it was sent: the client knows a new one from now on.
    pub(super) fn sent(&mut self, topic: &str, chosen: Option<(NonZeroU16, bool)>, is_sent: bool) {
        if let Some((alias, false)) = chosen
            && is_sent
            && let Some(table) = &mut self.0
        {
            table.by_topic.insert(topic.into(), alias);
        }
    }
}
