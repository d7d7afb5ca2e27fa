//! Subscriptions: the allowed part of a filter.

use thrum_codec::QoS;

use super::relation::{Lengths, Relation, covers_common, lengths_of, relate};
use super::resolved::{Entry, flag, flag_of};
use super::{Resolved, RuleId};

/// The part of the topics of a subscription's filter that the client may receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coverage {
    /// Every topic.
    Allowed,
    /// None.
    Denied,
    /// Some topics and not others: [`Resolved::receive`] tells which.
    Mixed,
    /// No rule decides about some topics, and there is no default: the system that decides about
    /// them passes its answer to [`Resolved::subscribe_or`].
    Undecided,
}

/// A rule that takes part in the decision about a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The rule; none for the default, and for a client that may do everything.
    pub rule: Option<RuleId>,
    /// Allows, or denies.
    pub allow: bool,
    /// Decides everything that the rules before it have left open; otherwise some topics of it.
    pub is_rest: bool,
}

/// Rules that only repeat the decisions of earlier ones are searched for so many times; more of
/// them count as if they decided something. Keeps the cost in proportion to the number of rules.
const REPETITION_CHECKS_MAX: u32 = 64;

const WHOLE: Relation = Relation {
    lengths: Lengths::MAX,
    covers: true,
    extra: 0,
};

impl Resolved {
    /// May it subscribe to this filter (without `$share/GROUP/`) with this quality of service?
    ///
    /// `Mixed` may stand for `Allowed` or `Denied` only if more than 64 rules merely repeat what
    /// others before them decide, or filters have 127 levels more than the subscription.
    pub fn subscribe(&self, filter: &str, qos: QoS) -> Coverage {
        self.cover(filter, qos, self.default_decision(), |_| {})
    }

    /// The same, with another default: the answer of an external system.
    pub fn subscribe_or(&self, filter: &str, qos: QoS, default: bool) -> Coverage {
        self.cover(filter, qos, Some(default), |_| {})
    }

    /// The same as [`Resolved::subscribe`], and tells which rules take part, in their order.
    pub fn explain_subscribe(&self, filter: &str, qos: QoS, tell: impl FnMut(Part)) -> Coverage {
        self.cover(filter, qos, self.default_decision(), tell)
    }

    fn cover(
        &self,
        filter: &str,
        qos: QoS,
        default: Option<bool>,
        mut tell: impl FnMut(Part),
    ) -> Coverage {
        let mut walk = Walk::new(filter);
        if self.is_superuser() {
            walk.take_rest(true, None, &mut tell);
            return walk.result();
        }
        let wanted = flag::SUBSCRIBE | flag_of(qos);
        for (position, (entry, own)) in self.entries().enumerate() {
            if !entry.has(wanted) {
                continue;
            }
            let Some(relation) = relation_of(entry, own, filter) else {
                continue;
            };
            let lengths = relation.lengths & walk.open;
            if lengths == 0 {
                continue;
            }
            let (allow, rule) = (entry.is_allow(), Some(entry.id()));
            if entry.has(flag::EXACT) && !allow {
                // Refuses this very filter: a client can still subscribe by another filter to the
                // part that earlier rules allow.
                walk.refuse(rule, &mut tell);
                return walk.result();
            }
            if relation.covers && lengths == walk.open {
                walk.take_rest(allow, rule, &mut tell);
                return walk.result();
            }
            if relation.covers {
                walk.open &= !lengths;
            } else if walk.is_repetition(allow, || {
                let common = Common {
                    own,
                    relation,
                    lengths,
                };
                self.is_repetition(position, wanted, filter, common)
            }) {
                continue;
            }
            walk.take_some(allow, rule, &mut tell);
        }
        if let Some(allow) = default {
            walk.take_rest(allow, None, &mut tell);
        }
        walk.result()
    }

    /// Whether rules before this one have decided everything that it has in common with the filter,
    /// at these lengths.
    fn is_repetition(
        &self,
        position: usize,
        wanted: u16,
        filter: &str,
        common: Common<'_>,
    ) -> bool {
        let mut left = common.lengths;
        for (entry, earlier) in self.entries().take(position) {
            // One about exactly this filter would have decided all of it.
            if entry.has(wanted) && !entry.has(flag::EXACT) {
                left &= !covers_common(earlier, common.own, filter, common.relation.extra);
            }
            if left == 0 {
                return true;
            }
        }
        false
    }
}

/// The common topics of a rule and a subscription.
#[derive(Clone, Copy)]
struct Common<'a> {
    /// The rule's own filter.
    own: &'a str,
    relation: Relation,
    /// Lengths of the topics.
    lengths: Lengths,
}

/// The relation of a rule to a subscription; none if it does not apply to it.
fn relation_of(entry: Entry, own: &str, filter: &str) -> Option<Relation> {
    if entry.has(flag::ANYTHING) || (entry.has(flag::EXACT) && own == filter) {
        return Some(WHOLE);
    }
    (!entry.has(flag::EXACT)).then(|| relate(own, filter))
}

/// The decisions of the rules so far about a subscription.
struct Walk {
    /// Lengths at which topics are undecided.
    open: Lengths,
    allows: bool,
    denies: bool,
    checks_left: u32,
}

impl Walk {
    fn new(filter: &str) -> Self {
        Self {
            open: lengths_of(filter),
            allows: false,
            denies: false,
            checks_left: REPETITION_CHECKS_MAX,
        }
    }

    /// Whether a rule adds nothing; looked up only if it matters.
    fn is_repetition(&mut self, allow: bool, look: impl FnOnce() -> bool) -> bool {
        let is_news = !if allow { self.allows } else { self.denies };
        if !is_news || self.checks_left == 0 {
            return false;
        }
        let is_repetition = look();
        self.checks_left -= u32::from(is_repetition);
        is_repetition
    }

    fn take_some(&mut self, allow: bool, rule: Option<RuleId>, tell: &mut impl FnMut(Part)) {
        self.allows |= allow;
        self.denies |= !allow;
        tell(Part {
            rule,
            allow,
            is_rest: false,
        });
    }

    fn take_rest(&mut self, allow: bool, rule: Option<RuleId>, tell: &mut impl FnMut(Part)) {
        self.allows |= allow;
        self.denies |= !allow;
        self.open = 0;
        tell(Part {
            rule,
            allow,
            is_rest: true,
        });
    }

    fn refuse(&mut self, rule: Option<RuleId>, tell: &mut impl FnMut(Part)) {
        self.allows = false;
        self.take_rest(false, rule, tell);
    }

    fn result(&self) -> Coverage {
        match (self.allows, self.denies) {
            _ if self.open != 0 => Coverage::Undecided,
            (true, true) => Coverage::Mixed,
            (true, false) => Coverage::Allowed,
            (false, _) => Coverage::Denied,
        }
    }
}
