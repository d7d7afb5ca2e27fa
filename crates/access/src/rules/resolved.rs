//! The rules for one client, with its values filled in.

use alloc::string::String;
use alloc::vec::Vec;
use core::mem::size_of;

use thrum_codec::{QoS, topic};

use super::filter::Filled;
use super::{FITTING_MAX, Rule, Rules};
use crate::Identity;

/// The rules for one client, compact: 12 bytes and the filter a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resolved {
    /// The filters, one behind the other.
    text: String,
    entries: Vec<Entry>,
    /// How many sets of rules were resolved.
    sets: u16,
    everything: bool,
    default: Option<bool>,
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where its filter ends; it begins where the one before it ends.
    end: u32,
    rule: u32,
    set: u16,
    pub(super) flags: u16,
}

/// The position of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleId {
    /// The set, counted from 0 in the order in which they were resolved.
    pub set: u16,
    /// Position in the set, for [`Rules::get`].
    pub rule: u32,
}

/// A decision, and the rule that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// None if no rule matches and there is no default.
    pub allowed: Option<bool>,
    /// None if it was the default, or a client that may do everything.
    pub rule: Option<RuleId>,
}

/// More rules match a client than can be checked for each of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "more than {FITTING_MAX} rules match one client, or a set has more than {} rules; write fewer with placeholders",
    super::RULES_MAX
)]
pub struct TooManyRules;

/// Flags of an entry. An entry matches only if the flags of the question are set too.
pub(super) mod flag {
    pub(in crate::rules) const ALLOW: u16 = 1;
    pub(in crate::rules) const PUBLISH: u16 = 1 << 1;
    pub(in crate::rules) const SUBSCRIBE: u16 = 1 << 2;
    /// Only the filter itself, not the topics it matches.
    pub(in crate::rules) const EXACT: u16 = 1 << 3;
    /// Any topic, whatever the filter is.
    pub(in crate::rules) const ANYTHING: u16 = 1 << 4;
    pub(in crate::rules) const RETAINED: u16 = 1 << 5;
    pub(in crate::rules) const NOT_RETAINED: u16 = 1 << 6;
    /// The first of three bits, by quality of service.
    pub(in crate::rules) const QOS: u16 = 1 << 7;
}

impl Entry {
    pub(super) const fn is_allow(self) -> bool {
        self.has(flag::ALLOW)
    }

    pub(super) const fn has(self, wanted: u16) -> bool {
        self.flags & wanted == wanted
    }

    pub(super) const fn id(self) -> RuleId {
        RuleId {
            set: self.set,
            rule: self.rule,
        }
    }
}

impl Resolved {
    /// Of a client that may do everything.
    #[must_use]
    pub const fn everything() -> Self {
        Self {
            text: String::new(),
            entries: Vec::new(),
            sets: 0,
            everything: true,
            default: None,
        }
    }

    /// Adds the rules of a set that can ever match this client, with its values filled in, behind
    /// the rules so far.
    ///
    /// The caller handles superusers: see [`Resolved::everything`].
    ///
    /// Cost: the rules about this client and those for all clients; a set of 100,000 rules each
    /// about another user costs some comparisons of names.
    ///
    /// # Errors
    /// If more than [`FITTING_MAX`] rules match. The resolved rules then deny everything.
    pub fn add_set(&mut self, rules: &Rules, identity: &Identity) -> Result<(), TooManyRules> {
        let mut is_good = !rules.is_too_long();
        if is_good {
            rules.for_each_about(identity, |position, rule| {
                is_good = self.add(rule, position, identity);
                is_good
            });
        }
        if !is_good {
            self.close();
        }
        self.sets = self.sets.saturating_add(1);
        is_good.then_some(()).ok_or(TooManyRules)
    }

    /// Sets the default for topics about which no rule decides; none to leave them to others.
    pub const fn set_default(&mut self, allow: Option<bool>) {
        self.default = allow;
    }

    /// The default for topics about which no rule decides.
    pub const fn default_decision(&self) -> Option<bool> {
        self.default
    }

    /// No check is needed: everything is allowed.
    #[inline]
    pub fn is_everything(&self) -> bool {
        self.everything || (self.entries.is_empty() && self.default == Some(true))
    }

    /// Number of rules that match the client.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// No rule matches the client.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// May it publish this? The topic is a topic name.
    pub fn publish(&self, topic: &str, qos: QoS, retain: bool) -> Decision {
        let kept = if retain {
            flag::RETAINED
        } else {
            flag::NOT_RETAINED
        };
        self.decide(topic, flag::PUBLISH | kept | flag_of(qos))
    }

    /// May a message with this topic go to it, through a subscription that requested this quality
    /// of service? None if no rule decides and there is no default.
    ///
    /// Needed where [`Resolved::subscribe`] returned [`Coverage::Mixed`](super::Coverage::Mixed);
    /// where it returned `Allowed`, every topic of the filter is allowed here too.
    pub fn receive(&self, topic: &str, qos: QoS) -> Option<bool> {
        self.decide(topic, flag::SUBSCRIBE | flag_of(qos)).allowed
    }

    fn decide(&self, topic: &str, wanted: u16) -> Decision {
        if self.everything {
            return Decision {
                allowed: Some(true),
                rule: None,
            };
        }
        let mut start = 0;
        for entry in &self.entries {
            let end = entry.end as usize;
            if entry.has(wanted) && entry.fits(&self.text[start..end], topic) {
                return Decision {
                    allowed: Some(entry.is_allow()),
                    rule: Some(entry.id()),
                };
            }
            start = end;
        }
        Decision {
            allowed: self.default,
            rule: None,
        }
    }

    /// The rules and their filters.
    pub(super) fn entries(&self) -> impl Iterator<Item = (Entry, &str)> {
        let mut start = 0;
        self.entries.iter().map(move |entry| {
            let filter = &self.text[start..entry.end as usize];
            start = entry.end as usize;
            (*entry, filter)
        })
    }

    /// No rule is evaluated at all.
    pub(super) const fn is_superuser(&self) -> bool {
        self.everything
    }

    /// Memory that it holds, in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.text.capacity() + self.entries.capacity() * size_of::<Entry>()
    }

    /// Frees memory that is not needed if no more rules are added.
    pub fn shrink_to_fit(&mut self) {
        self.text.shrink_to_fit();
        self.entries.shrink_to_fit();
    }

    fn add(&mut self, rule: &Rule, position: u32, identity: &Identity) -> bool {
        let filled = rule.filter.fill(identity, &mut self.text);
        let start = self.entries.last().map_or(0, |entry| entry.end as usize);
        let mut flags = flags_of(rule);
        match filled {
            Filled::Nothing => return true,
            Filled::Whole => {}
            Filled::Widened | Filled::Anything if rule.allow => {
                self.text.truncate(start);
                return true;
            }
            Filled::Widened => flags &= !flag::EXACT,
            Filled::Anything => flags = flags & !flag::EXACT | flag::ANYTHING,
        }
        if flags & flag::EXACT != 0 {
            // A topic name is as good a filter; a filter with wildcards is not a valid topic for a
            // publish.
            if self.text[start..].contains(['+', '#']) {
                flags &= !flag::PUBLISH;
            } else {
                flags &= !flag::EXACT;
            }
        }
        let Ok(end) = u32::try_from(self.text.len()) else {
            return false;
        };
        self.entries.push(Entry {
            end,
            rule: position,
            set: self.sets,
            flags,
        });
        self.entries.len() <= FITTING_MAX
    }

    /// Denies everything, whatever follows.
    fn close(&mut self) {
        self.text.clear();
        self.entries.clear();
        self.everything = false;
        self.entries.push(Entry {
            end: 0,
            rule: 0,
            set: self.sets,
            flags: flag::ANYTHING | !flag::ALLOW & !flag::EXACT,
        });
    }
}

impl Entry {
    /// Whether it applies to a message with this topic.
    #[inline]
    fn fits(self, filter: &str, topic: &str) -> bool {
        if self.flags & (flag::EXACT | flag::ANYTHING) == 0 {
            return topic::matches(filter, topic);
        }
        self.has(flag::ANYTHING) || (self.is_allow() && topic::matches(filter, topic))
    }
}

pub(super) const fn flag_of(qos: QoS) -> u16 {
    flag::QOS << qos as u16
}

fn flags_of(rule: &Rule) -> u16 {
    let actions = rule.actions;
    [
        (rule.allow, flag::ALLOW),
        (actions.publish, flag::PUBLISH),
        (actions.subscribe, flag::SUBSCRIBE),
        (rule.filter.is_exact, flag::EXACT),
        (actions.retain != Some(false), flag::RETAINED),
        (actions.retain != Some(true), flag::NOT_RETAINED),
    ]
    .into_iter()
    .filter(|(is_set, _)| *is_set)
    .fold(u16::from(actions.qos.0) * flag::QOS, |flags, (_, flag)| {
        flags | flag
    })
}
