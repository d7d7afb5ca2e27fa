//! Rights of one client: the rules about it, and the gatekeeper's decisions.

mod decision_cache;
mod policy;
mod rights;

use std::cell::OnceCell;
use std::sync::Arc;

use thrum_access::{Admission, Coverage, Gatekeeper, Identity, Resolved, Rule, RuleId, Rules};
use thrum_codec::QoS;
use thrum_protocol::{MountPoint, Time};
use thrum_storage::Owner;

use crate::retained::RetainedSource;
pub use decision_cache::TopicQuestion;
use decision_cache::{DecisionCache, Opinion};
pub use policy::{Access, Policy, RuleSource};
pub use rights::{OwnRules, publish_rights};

/// Number of rules that can be compared with a filter in one unit of work.
const RULES_OF_UNIT: u64 = 8;

/// The decision about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The client may perform the action.
    Allowed,
    /// The client may not perform the action.
    Denied,
    /// The decision needs an answer of the gatekeeper.
    Ask,
}

/// What decides about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// The client may do everything: there are no rules, or it is a superuser.
    Nothing,
    /// This rule, with its place; or the text says that no rule allows the action.
    Rule(Box<str>),
    /// The rules, together.
    Rules,
    /// `acl.default`: no rule matches.
    Default,
    /// A backend: its earlier answer, or the one that it has to be asked for.
    Backend,
}

/// A PUBLISH to be authorized.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The topic without the mount point of the client.
    pub topic: &'a str,
    /// The quality of service of the PUBLISH.
    pub qos: QoS,
    /// The RETAIN flag of the PUBLISH.
    pub retain: bool,
}

/// The decision about a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    /// The client receives every message that the filter matches.
    Whole,
    /// The subscription is refused.
    Refused,
    /// The subscription is granted, and each message is checked before its delivery.
    Checked {
        /// Whether a message that no rule decides is allowed.
        or_allowed: bool,
    },
    /// The decision needs an answer of the gatekeeper.
    Ask,
}

/// The rules in force for a client.
#[derive(Debug)]
pub struct ClientAccess {
    /// The identity of the client.
    pub identity: Arc<Identity>,
    /// The mount point of the client's topics, also while the client is disconnected.
    mount: Option<MountPoint>,
    own: Option<Arc<Rules>>,
    /// The rules that precede the gatekeeper in the policy, or all rules if the gatekeeper decides
    /// about no topics.
    rules_before: Resolved,
    /// The rules that follow the gatekeeper in the policy; none if the gatekeeper decides about no
    /// topics.
    rules_after: Option<Box<Resolved>>,
    decisions: DecisionCache,
    /// The gatekeeper allowed the will of the client when the client connected.
    pub is_will_allowed: bool,
    /// The identity that the client's retained messages carry; empty before the first retained
    /// message.
    source: OnceCell<Option<Arc<RetainedSource>>>,
    /// Interval in seconds in which the gatekeeper is asked again about the client; none if it is
    /// not.
    pub refresh_secs: Option<u32>,
    /// Time of the next request to the gatekeeper about the client; none if there is none.
    pub refresh_at: Option<Time>,
    /// Generation of the [`Shared`] access from which the rules were resolved.
    generation: u64,
}

/// The access settings of the node, shared by its workers.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// The gatekeeper and the policy in force.
    pub access: Access,
    /// Number that increases with each change of the access settings.
    pub generation: u64,
}

impl Shared {
    /// Whether every client may do everything and retained messages need no source.
    pub fn is_open(&self) -> bool {
        self.access.gatekeeper.is_none()
            && self.access.policy.rules.is_empty()
            && self.access.policy.allows_by_default
            && !self.access.policy.checks_retained_source
    }

    /// Whether the gatekeeper is asked about topics.
    pub fn asks(&self) -> bool {
        let asks = |gatekeeper: &Arc<dyn Gatekeeper>| gatekeeper.has_authorizers();
        self.access.policy.order.contains(&RuleSource::Gatekeeper)
            && self.access.gatekeeper.as_ref().is_some_and(asks)
    }
}

impl ClientAccess {
    /// Creates the access of an admitted client.
    pub fn new(admission: Admission, shared: &Shared) -> Self {
        let mut access = Self {
            identity: Arc::new(admission.identity),
            mount: None,
            own: admission.rules,
            rules_before: Resolved::default(),
            rules_after: None,
            decisions: DecisionCache::default(),
            is_will_allowed: false,
            source: OnceCell::new(),
            refresh_secs: None,
            refresh_at: None,
            generation: 0,
        };
        access.resolve(shared);
        access
    }

    /// Adds the client's mount point, and whether the gatekeeper allowed the client's will.
    #[must_use]
    pub fn with_mount(mut self, mount: Option<MountPoint>, is_will_allowed: bool) -> Self {
        self.mount = mount;
        self.is_will_allowed = is_will_allowed;
        self
    }

    /// Creates the access of the same client under the rules in force now.
    #[must_use]
    pub fn with_current_rules(&self, shared: &Shared) -> Self {
        Self::new(self.admission(), shared).with_mount(self.mount.clone(), self.is_will_allowed)
    }

    /// Returns the admission of the client, with the client's own rules.
    pub fn admission(&self) -> Admission {
        Admission {
            identity: (*self.identity).clone(),
            rules: self.own.clone(),
            ..Admission::default()
        }
    }

    /// Name of the backend that admitted the client; none if no backend did.
    pub fn backend(&self) -> Option<&str> {
        self.identity.backend.as_deref()
    }

    /// Whether both grant the same rights, so that earlier grants need no second check.
    pub fn allows_the_same(&self, other: &Self) -> bool {
        self.mount == other.mount
            && self.rules_before == other.rules_before
            && self.rules_after == other.rules_after
    }

    /// Removes the mount point from a topic or filter; none if the topic is outside the mount
    /// point.
    pub fn seen<'t>(&self, topic: &'t str) -> Option<&'t str> {
        match &self.mount {
            None => Some(topic),
            Some(mount) => mount.seen_topic(topic),
        }
    }

    /// Replaces the identity and the client's own rules; false if all grants stay the same.
    pub fn renew(&mut self, admission: Admission, shared: &Shared) -> bool {
        let had_rules = self.own.is_some();
        if *self.identity != admission.identity || had_rules != admission.rules.is_some() {
            self.source = OnceCell::new();
        }
        self.identity = Arc::new(admission.identity);
        self.own = admission.rules;
        self.resolve_current(shared)
    }

    /// Copies the permission of the will and the time of the next request to the gatekeeper from
    /// the access of the client's earlier connection, until the gatekeeper has admitted the new
    /// connection.
    pub fn inherit_until_admitted(&mut self, before: &Self) {
        self.is_will_allowed = before.is_will_allowed;
        (self.refresh_secs, self.refresh_at) = (before.refresh_secs, before.refresh_at);
    }

    /// The source of the client's retained messages; none if its encoding exceeds the limit of
    /// bytes.
    pub fn source(&self) -> Option<Arc<RetainedSource>> {
        let source = self.source.get_or_init(|| {
            RetainedSource::new(&self.identity, self.mount.as_ref(), self.own.is_some())
        });
        source.clone()
    }

    /// Whether the rules in force now were resolved.
    pub fn is_current(&self, shared: &Shared) -> bool {
        self.generation == shared.generation
    }

    /// Resolves the rules in force now; false if the client's rights stay the same.
    pub fn resolve_current(&mut self, shared: &Shared) -> bool {
        let before = (
            std::mem::take(&mut self.rules_before),
            self.rules_after.take(),
        );
        self.resolve(shared);
        (&before.0, &before.1) != (&self.rules_before, &self.rules_after)
    }

    /// Resolves the rules in force now, and drops earlier decisions of the gatekeeper.
    pub fn resolve(&mut self, shared: &Shared) {
        self.generation = shared.generation;
        self.decisions = DecisionCache::default();
        self.rules_after = None;
        if self.identity.is_superuser {
            self.rules_before = Resolved::everything();
            return;
        }
        let policy = &shared.access.policy;
        let mut resolved = Resolved::default();
        let none = Rules::new();
        let mut rules_before = None;
        for source in &policy.order {
            match source {
                RuleSource::AllClients => self.add(&policy.rules, &mut resolved),
                RuleSource::Client => self.add(self.own.as_deref().unwrap_or(&none), &mut resolved),
                RuleSource::Gatekeeper if shared.asks() => {
                    rules_before = Some(std::mem::take(&mut resolved));
                }
                RuleSource::Gatekeeper => {}
            }
        }
        resolved.set_default(Some(policy.allows_by_default));
        resolved.shrink_to_fit();
        match rules_before {
            None => self.rules_before = resolved,
            Some(mut rules_before) => {
                rules_before.shrink_to_fit();
                self.rules_before = rules_before;
                self.rules_after = Some(Box::new(resolved));
            }
        }
    }

    fn add(&self, rules: &Rules, resolved: &mut Resolved) {
        if let Err(error) = resolved.add_set(rules, &self.identity) {
            let client_id = &*self.identity.client_id;
            tracing::error!(client_id, %error, "this client may do nothing");
        }
    }

    /// The owner of the client's session.
    pub fn owner(&self) -> Owner<&str> {
        let user = self.identity.username.as_deref();
        user.map_or(Owner::Anonymous, Owner::User)
    }

    /// Whether the client may do everything, so that nothing is checked.
    #[inline]
    pub fn is_everything(&self) -> bool {
        self.rules_before.is_everything()
    }

    /// Decides about a PUBLISH, whose topic has no mount point.
    pub fn publish(&self, wanted: Wanted<'_>, now: Time) -> Verdict {
        self.look_up(wanted, now).0
    }

    /// Decides about a PUBLISH, and returns whether an earlier decision of the gatekeeper was used.
    pub fn look_up(&self, wanted: Wanted<'_>, now: Time) -> (Verdict, bool) {
        let Wanted { topic, qos, retain } = wanted;
        let verdict = |is_allowed| {
            if is_allowed {
                Verdict::Allowed
            } else {
                Verdict::Denied
            }
        };
        if let Some(is_allowed) = self.rules_before.publish(topic, qos, retain).allowed {
            return (verdict(is_allowed), false);
        }
        let asked = TopicQuestion::publish(topic, qos, retain);
        match self.decisions.find(asked, now) {
            None => (Verdict::Ask, false),
            Some(Opinion::Allow) => (Verdict::Allowed, true),
            Some(Opinion::Deny) => (Verdict::Denied, true),
            Some(Opinion::Undecided) => {
                let is_allowed = self.is_allowed_after(wanted);
                (verdict(is_allowed), true)
            }
        }
    }

    /// Decides about the will of a CONNECT; `answer` is the gatekeeper's, none if it has no
    /// opinion.
    pub fn may_leave_will(&self, wanted: Wanted<'_>, answer: Option<bool>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let by_rules = self.rules_before.publish(topic, qos, retain).allowed;
        let by_others = by_rules.or(answer);
        by_others.unwrap_or_else(|| self.is_allowed_after(wanted))
    }

    /// Decides about publishing the client's will now. The gatekeeper is not asked again: its
    /// earlier permission holds.
    pub fn may_publish_will(&self, wanted: Wanted<'_>) -> bool {
        self.may_leave_will(wanted, self.is_will_allowed.then_some(true))
    }

    /// Decides about a PUBLISH as [`ClientAccess::publish`], and says what decided.
    pub(crate) fn decided_by(
        &self,
        wanted: Wanted<'_>,
        policy: &Policy,
        now: Time,
    ) -> (Verdict, DecidedBy) {
        let Wanted { topic, qos, retain } = wanted;
        let (verdict, is_remembered) = self.look_up(wanted, now);
        let by = match verdict {
            Verdict::Ask => DecidedBy::Backend,
            Verdict::Denied => DecidedBy::Rule(self.denial(wanted, policy).into()),
            Verdict::Allowed if is_remembered => DecidedBy::Backend,
            Verdict::Allowed => {
                let decision = self.rules_before.publish(topic, qos, retain);
                let sources = policy.order.as_slice();
                let rule = decision.rule.and_then(|id| self.rule(id, sources, policy));
                rule.map_or(DecidedBy::Default, |rule| {
                    DecidedBy::Rule(format!("{rule} ({})", rule.source()).into())
                })
            }
        };
        (verdict, by)
    }

    /// Describes for the log why a PUBLISH is denied: the rule and its place, or that no rule
    /// matches.
    pub fn denial(&self, wanted: Wanted<'_>, policy: &Policy) -> String {
        let Wanted { topic, qos, retain } = wanted;
        let no_rule = "no rule allows it, and acl.default does not";
        let rules_before = self.rules_before.publish(topic, qos, retain);
        let sources = policy.order.as_slice();
        let asked = sources
            .iter()
            .position(|source| *source == RuleSource::Gatekeeper);
        let (before, after) = sources.split_at(asked.unwrap_or(sources.len()));
        let (decision, sources) = match &self.rules_after {
            Some(rules_after) if rules_before.allowed.is_none() => {
                (rules_after.publish(topic, qos, retain), after)
            }
            Some(_) => (rules_before, before),
            None => (rules_before, sources),
        };
        if rules_before.allowed.is_none() && decision.allowed == Some(true) {
            return "a backend denies it".to_owned();
        }
        let rule = decision.rule.and_then(|id| self.rule(id, sources, policy));
        rule.map_or_else(
            || no_rule.to_owned(),
            |rule| format!("{rule} ({})", rule.source()),
        )
    }

    /// Finds a rule by its set and number among the rules of these sources.
    fn rule<'a>(
        &'a self,
        id: RuleId,
        sources: &[RuleSource],
        policy: &'a Policy,
    ) -> Option<&'a Rule> {
        let sets = sources.iter().filter_map(|source| match source {
            RuleSource::AllClients => Some(Some(&*policy.rules)),
            RuleSource::Client => Some(self.own.as_deref()),
            RuleSource::Gatekeeper => None,
        });
        let mut sets = sets.skip(usize::from(id.set));
        sets.next()??.get(id.rule as usize)
    }

    /// Whether a rule denies the PUBLISH, rather than the lack of a rule.
    pub fn forbids(&self, wanted: Wanted<'_>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let decision = self.rules_before.publish(topic, qos, retain);
        decision.allowed == Some(false) && decision.rule.is_some()
    }

    fn is_allowed_after(&self, wanted: Wanted<'_>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let rules_after = self.rules_after.as_ref();
        rules_after.is_some_and(|rules_after| {
            rules_after.publish(topic, qos, retain).allowed == Some(true)
        })
    }

    /// Decides about a subscription, whose filter has neither the mount point nor `$share/GROUP/`.
    pub fn subscribe(&self, filter: &str, qos: QoS, now: Time) -> Grant {
        let grant = |coverage, or_allowed| match coverage {
            Coverage::Allowed => Grant::Whole,
            Coverage::Denied => Grant::Refused,
            Coverage::Mixed | Coverage::Undecided => Grant::Checked { or_allowed },
        };
        let coverage = self.rules_before.subscribe(filter, qos);
        let Some(rules_after) = self
            .rules_after
            .as_ref()
            .filter(|_| coverage == Coverage::Undecided)
        else {
            return grant(coverage, self.rules_before.default_decision() == Some(true));
        };
        let Some(answer) = self
            .decisions
            .find(TopicQuestion::subscribe(filter, qos), now)
        else {
            return Grant::Ask;
        };
        let or_allowed = match answer {
            Opinion::Allow => true,
            Opinion::Deny => false,
            // Rules that allow a part of the filter would have to be evaluated for each message as
            // well.
            Opinion::Undecided => rules_after.subscribe(filter, qos) == Coverage::Allowed,
        };
        grant(
            self.rules_before.subscribe_or(filter, qos, or_allowed),
            or_allowed,
        )
    }

    /// Decides about a message for a subscription whose messages are checked.
    pub fn receive(&self, topic: &str, qos: QoS, or_allowed: bool) -> bool {
        self.rules_before.receive(topic, qos).unwrap_or(or_allowed)
    }

    /// Stores the gatekeeper's answer to a question about the current packet.
    pub fn remember(
        &mut self,
        asked: TopicQuestion<'_>,
        answer: Option<bool>,
        policy: &Policy,
        now: Time,
    ) {
        let until = now.plus(policy.decision_ttl);
        self.decisions.insert(asked, answer, until);
    }

    /// Whether the limit of questions about the current packet leaves room for one more.
    pub fn may_ask(&self) -> bool {
        self.decisions.may_ask()
    }

    /// The decisions about the first filters of the current SUBSCRIBE, made before the packet is
    /// handled.
    pub fn grants(&mut self) -> &mut Vec<Grant> {
        self.decisions.grants()
    }

    /// Units of work of a decision about a filter: each rule is compared with it.
    pub fn filter_units(&self) -> u64 {
        let rules_after = self.rules_after.as_deref().map_or(0, Resolved::len);
        (self.rules_before.len() + rules_after) as u64 / RULES_OF_UNIT + 1
    }

    /// Whether the gatekeeper was asked about the current packet.
    pub const fn has_waited(&self) -> bool {
        self.decisions.has_needed()
    }

    /// Ends the current packet, whose decisions have been used, and keeps at most `decisions_max`
    /// of them.
    #[inline]
    pub fn end_packet(&mut self, decisions_max: usize) {
        self.decisions.end_packet(decisions_max);
    }
}
