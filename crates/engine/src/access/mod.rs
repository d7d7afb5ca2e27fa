//! Rights of one client: the rules about it, and the gatekeeper's decisions.

mod policy;
mod remembered;
mod rights;

use std::cell::OnceCell;
use std::sync::Arc;

use thrum_access::{Admission, Coverage, Gatekeeper, Identity, Resolved, Rule, RuleId, Rules};
use thrum_codec::QoS;
use thrum_protocol::{MountPoint, Time};
use thrum_storage::Owner;

use crate::retained::RetainedSource;
pub use policy::{Access, Policy, RuleSource};
pub use remembered::Asked;
use remembered::{Opinion, Remembered};
pub use rights::{OwnRules, publish_rights};

/// Rules that are compared with a filter in one unit of work.
const RULES_OF_UNIT: u64 = 8;

/// The decision about an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allowed,
    Denied,
    /// The gatekeeper has to be asked first.
    Ask,
}

/// A PUBLISH to be authorized.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// As the client names it, or in full for a request.
    pub topic: &'a str,
    /// The quality of service that it wants.
    pub qos: QoS,
    /// It wants it retained.
    pub retain: bool,
}

/// How a subscription is granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grant {
    Whole,
    Refused,
    /// Each message is checked; the field holds the default for messages without a rule.
    Checked {
        or_allowed: bool,
    },
    /// The gatekeeper has to be asked first.
    Ask,
}

/// The rules in force for a client.
#[derive(Debug)]
pub struct ClientAccess {
    /// Who it is.
    pub identity: Arc<Identity>,
    /// The mount point of its topics, also while it is away.
    mount: Option<MountPoint>,
    own: Option<Arc<Rules>>,
    /// The rules before the gatekeeper, or all rules.
    front: Resolved,
    /// The rules after a gatekeeper without opinion; none if it is never asked.
    behind: Option<Box<Resolved>>,
    remembered: Remembered,
    /// The gatekeeper allowed its will when it was left.
    pub is_will_allowed: bool,
    /// The identity in its retained messages, once there is one.
    source: OnceCell<Option<Arc<RetainedSource>>>,
    /// Interval of requests to the gatekeeper about the client, and the next time.
    pub refresh_secs: Option<u32>,
    /// When the gatekeeper is asked about it next.
    pub refresh_at: Option<Time>,
    /// Generation of the access from which this was made.
    generation: u64,
}

/// The access of the node, as workers hold it.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    /// Who decides, and by what.
    pub access: Access,
    /// Increases with each change.
    pub generation: u64,
}

impl Shared {
    /// Every client may do everything while this access is in force, and publishers need not be
    /// known.
    pub fn is_open(&self) -> bool {
        self.access.gatekeeper.is_none()
            && self.access.policy.rules.is_empty()
            && self.access.policy.allows_by_default
            && !self.access.policy.checks_retained_source
    }

    /// Whether the gatekeeper decides about topics.
    pub fn asks(&self) -> bool {
        let asks = |gatekeeper: &Arc<dyn Gatekeeper>| gatekeeper.has_authorizers();
        self.access.policy.order.contains(&RuleSource::Gatekeeper)
            && self.access.gatekeeper.as_ref().is_some_and(asks)
    }
}

impl ClientAccess {
    /// The access of an admitted client.
    pub fn new(admission: Admission, shared: &Shared) -> Self {
        let mut access = Self {
            identity: Arc::new(admission.identity),
            mount: None,
            own: admission.rules,
            front: Resolved::default(),
            behind: None,
            remembered: Remembered::default(),
            is_will_allowed: false,
            source: OnceCell::new(),
            refresh_secs: None,
            refresh_at: None,
            generation: 0,
        };
        access.resolve(shared);
        access
    }

    /// Adds the client's mount point, and whether the gatekeeper allowed its will.
    pub fn entered(mut self, mount: Option<MountPoint>, is_will_allowed: bool) -> Self {
        self.mount = mount;
        self.is_will_allowed = is_will_allowed;
        self
    }

    /// The same client under the rules in force now.
    pub fn made_anew(&self, shared: &Shared) -> Self {
        Self::new(self.admission(), shared).entered(self.mount.clone(), self.is_will_allowed)
    }

    /// The admission, with the client's own rules.
    pub fn admission(&self) -> Admission {
        Admission {
            identity: (*self.identity).clone(),
            rules: self.own.clone(),
            ..Admission::default()
        }
    }

    /// Grants exactly the same rights as the other one, so that earlier grants need no second
    /// check.
    pub fn allows_the_same(&self, other: &Self) -> bool {
        self.mount == other.mount && self.front == other.front && self.behind == other.behind
    }

    /// The client's name for a topic or filter; none if it has none.
    pub fn seen<'t>(&self, topic: &'t str) -> Option<&'t str> {
        match &self.mount {
            None => Some(topic),
            Some(mount) => mount.seen_topic(topic),
        }
    }

    /// Sets other rules of the client, or another identity; false if all grants stay the same.
    pub fn renew(&mut self, admission: Admission, shared: &Shared) -> bool {
        let had_rules = self.own.is_some();
        if *self.identity != admission.identity || had_rules != admission.rules.is_some() {
            self.source = OnceCell::new();
        }
        self.identity = Arc::new(admission.identity);
        self.own = admission.rules;
        self.resolve_anew(shared)
    }

    /// The will and subscriptions of an earlier connection keep their rights until the waiting
    /// client is admitted.
    pub fn wait_behind(&mut self, before: &Self) {
        self.is_will_allowed = before.is_will_allowed;
        (self.refresh_secs, self.refresh_at) = (before.refresh_secs, before.refresh_at);
    }

    /// The publisher of its retained messages; none if its description is too large to keep.
    pub fn source(&self) -> Option<Arc<RetainedSource>> {
        let source = self.source.get_or_init(|| {
            RetainedSource::new(&self.identity, self.mount.as_ref(), self.own.is_some())
        });
        source.clone()
    }

    /// Whether it was made from the rules in force now.
    pub fn is_current(&self, shared: &Shared) -> bool {
        self.generation == shared.generation
    }

    /// Makes it from the rules in force now; false if the client's rights stay the same.
    pub fn resolve_anew(&mut self, shared: &Shared) -> bool {
        let before = (std::mem::take(&mut self.front), self.behind.take());
        self.resolve(shared);
        (&before.0, &before.1) != (&self.front, &self.behind)
    }

    /// Makes it from the rules in force now. Earlier decisions of the gatekeeper are dropped.
    pub fn resolve(&mut self, shared: &Shared) {
        self.generation = shared.generation;
        self.remembered = Remembered::default();
        self.behind = None;
        if self.identity.is_superuser {
            self.front = Resolved::everything();
            return;
        }
        let policy = &shared.access.policy;
        let mut resolved = Resolved::default();
        let none = Rules::new();
        let mut front = None;
        for source in &policy.order {
            match source {
                RuleSource::Everybody => self.add(&policy.rules, &mut resolved),
                RuleSource::Client => self.add(self.own.as_deref().unwrap_or(&none), &mut resolved),
                RuleSource::Gatekeeper if shared.asks() => {
                    front = Some(std::mem::take(&mut resolved));
                }
                RuleSource::Gatekeeper => {}
            }
        }
        resolved.set_default(Some(policy.allows_by_default));
        resolved.shrink_to_fit();
        match front {
            None => self.front = resolved,
            Some(mut front) => {
                front.shrink_to_fit();
                self.front = front;
                self.behind = Some(Box::new(resolved));
            }
        }
    }

    fn add(&self, rules: &Rules, resolved: &mut Resolved) {
        if let Err(error) = resolved.add_set(rules, &self.identity) {
            let client_id = &*self.identity.client_id;
            tracing::error!(client_id, %error, "this client may do nothing");
        }
    }

    /// The owner of its session.
    pub fn owner(&self) -> Owner<&str> {
        let user = self.identity.username.as_deref();
        user.map_or(Owner::Anonymous, Owner::User)
    }

    /// Nothing has to be checked.
    #[inline]
    pub fn is_everything(&self) -> bool {
        self.front.is_everything()
    }

    /// Decides about a PUBLISH. The topic is as the client names it.
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
        if let Some(is_allowed) = self.front.publish(topic, qos, retain).allowed {
            return (verdict(is_allowed), false);
        }
        let asked = Asked::publish(topic, qos, retain);
        match self.remembered.find(asked, now) {
            None => (Verdict::Ask, false),
            Some(Opinion::Allow) => (Verdict::Allowed, true),
            Some(Opinion::Deny) => (Verdict::Denied, true),
            Some(Opinion::Nothing) => {
                let is_allowed = self.is_allowed_behind(wanted);
                (verdict(is_allowed), true)
            }
        }
    }

    /// Decides about leaving a will, after the gatekeeper's answer.
    pub fn may_leave_will(&self, wanted: Wanted<'_>, said: Option<bool>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let by_rules = self.front.publish(topic, qos, retain).allowed;
        let by_others = by_rules.or(said);
        by_others.unwrap_or_else(|| self.is_allowed_behind(wanted))
    }

    /// Decides about publishing its will now. The gatekeeper is not asked again: its earlier
    /// permission holds.
    pub fn may_publish_will(&self, wanted: Wanted<'_>) -> bool {
        self.may_leave_will(wanted, self.is_will_allowed.then_some(true))
    }

    /// The reason of a denial, for the log: the rule and its place, or that there is none.
    pub fn denial(&self, wanted: Wanted<'_>, policy: &Policy) -> String {
        let Wanted { topic, qos, retain } = wanted;
        let nobody = "no rule allows it, and acl.default does not";
        let front = self.front.publish(topic, qos, retain);
        let sources = policy.order.as_slice();
        let asked = sources
            .iter()
            .position(|source| *source == RuleSource::Gatekeeper);
        let (before, after) = sources.split_at(asked.unwrap_or(sources.len()));
        let (decision, sources) = match &self.behind {
            Some(behind) if front.allowed.is_none() => (behind.publish(topic, qos, retain), after),
            Some(_) => (front, before),
            None => (front, sources),
        };
        if front.allowed.is_none() && decision.allowed == Some(true) {
            return "a backend denies it".to_owned();
        }
        let rule = decision.rule.and_then(|id| self.rule(id, sources, policy));
        rule.map_or_else(
            || nobody.to_owned(),
            |rule| format!("{rule} ({})", rule.source()),
        )
    }

    /// A rule by its set, of those that these sources have.
    fn rule<'a>(
        &'a self,
        id: RuleId,
        sources: &[RuleSource],
        policy: &'a Policy,
    ) -> Option<&'a Rule> {
        let sets = sources.iter().filter_map(|source| match source {
            RuleSource::Everybody => Some(Some(&*policy.rules)),
            RuleSource::Client => Some(self.own.as_deref()),
            RuleSource::Gatekeeper => None,
        });
        let mut sets = sets.skip(usize::from(id.set));
        sets.next()??.get(id.rule as usize)
    }

    /// Whether a rule forbids the PUBLISH, rather than the lack of a rule.
    pub fn forbids(&self, wanted: Wanted<'_>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let decision = self.front.publish(topic, qos, retain);
        decision.allowed == Some(false) && decision.rule.is_some()
    }

    fn is_allowed_behind(&self, wanted: Wanted<'_>) -> bool {
        let Wanted { topic, qos, retain } = wanted;
        let behind = self.behind.as_ref();
        behind.is_some_and(|behind| behind.publish(topic, qos, retain).allowed == Some(true))
    }

    /// Decides about a subscription. The filter is as the client names it, without `$share/GROUP/`.
    pub fn subscribe(&self, filter: &str, qos: QoS, now: Time) -> Grant {
        let grant = |coverage, or_allowed| match coverage {
            Coverage::Allowed => Grant::Whole,
            Coverage::Denied => Grant::Refused,
            Coverage::Mixed | Coverage::Undecided => Grant::Checked { or_allowed },
        };
        let coverage = self.front.subscribe(filter, qos);
        let Some(behind) = self
            .behind
            .as_ref()
            .filter(|_| coverage == Coverage::Undecided)
        else {
            return grant(coverage, self.front.default_decision() == Some(true));
        };
        let Some(said) = self.remembered.find(Asked::subscribe(filter, qos), now) else {
            return Grant::Ask;
        };
        let or_allowed = match said {
            Opinion::Allow => true,
            Opinion::Deny => false,
            // What is asked behind would have to be checked for each message as well if it allows a
            // part.
            Opinion::Nothing => behind.subscribe(filter, qos) == Coverage::Allowed,
        };
        grant(self.front.subscribe_or(filter, qos, or_allowed), or_allowed)
    }

    /// Decides about a message for a subscription that is checked.
    pub fn receive(&self, topic: &str, qos: QoS, or_allowed: bool) -> bool {
        self.front.receive(topic, qos).unwrap_or(or_allowed)
    }

    /// Keeps the gatekeeper's answer about the current packet.
    pub fn remember(&mut self, asked: Asked<'_>, said: Option<bool>, policy: &Policy, now: Time) {
        let until = now.plus(policy.decision_ttl);
        self.remembered.insert(asked, said, until);
    }

    /// Whether another question about the current packet is allowed.
    pub fn may_ask(&self) -> bool {
        self.remembered.may_ask()
    }

    /// The grants of the first filters of the current SUBSCRIBE, which are looked up before it is
    /// handled.
    pub fn grants(&mut self) -> &mut Vec<Grant> {
        self.remembered.grants()
    }

    /// Units of work to look a filter up: each rule is compared with it.
    pub fn filter_units(&self) -> u64 {
        let behind = self.behind.as_deref().map_or(0, Resolved::len);
        (self.front.len() + behind) as u64 / RULES_OF_UNIT + 1
    }

    /// The gatekeeper was asked about the current packet.
    pub const fn has_waited(&self) -> bool {
        self.remembered.has_needed()
    }

    /// All answers about the current packet are known, and used now.
    #[inline]
    pub fn end_packet(&mut self, decisions_max: usize) {
        self.remembered.end_packet(decisions_max);
    }
}
