//! Which rules a client has, and which of them decide about a topic: the code of the broker, run
//! dry.

use thiserror::Error;
use thrum_access::rules::Part;
use thrum_access::{Admission, Coverage, Gatekeeper as _, Resolved, Rule, RuleId, Rules};
use thrum_codec::{QoS, TopicFilter, topic};

use crate::config::RuleOrder;
use crate::policy::Policy;
use crate::service::AuthService;

/// An action of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessQuestion {
    /// It publishes.
    Publish {
        /// Topic name.
        topic: String,
        /// Quality of service.
        qos: QoS,
        /// The retain flag.
        retain: bool,
    },
    /// It subscribes.
    Subscribe {
        /// Topic filter.
        filter: String,
        /// Quality of service.
        qos: QoS,
    },
}

/// The text is no topic.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is not a {kind}")]
pub struct NotATopic {
    text: String,
    kind: &'static str,
}

/// What the rules say about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessTested {
    /// `allowed`, `denied`, or `allowed in part`.
    pub verdict: &'static str,
    /// All of it is allowed, or of a subscription a part.
    pub is_allowed: bool,
    /// The rules that decided.
    pub rules: Vec<DecidingRule>,
    /// Why, if no rule decided.
    pub otherwise: Option<&'static str>,
    /// A backend is asked as well, and may decide otherwise.
    pub asks_others: bool,
}

/// A rule that decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecidingRule {
    /// The rule.
    pub text: String,
    /// Where it stands.
    pub source: String,
}

/// A rule in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EffectiveRule {
    /// `rules` (for all clients) or `client` (the client's own, and those of its groups and roles):
    /// a word of `acl.order`.
    pub of: &'static str,
    /// The rule.
    pub text: String,
    /// Where it stands: a file and its line, a role, a user.
    pub source: String,
}

impl DecidingRule {
    fn of(rule: &Rule) -> Self {
        Self {
            text: rule.to_string(),
            source: rule.source().to_string(),
        }
    }
}

impl AccessQuestion {
    /// Whether its text is what the action takes.
    ///
    /// # Errors
    /// It is not.
    pub fn check(&self) -> Result<(), NotATopic> {
        let (text, kind, is_good) = match self {
            Self::Publish { topic, .. } => (
                topic,
                "topic name (without + and #)",
                topic::is_valid_name(topic),
            ),
            Self::Subscribe { filter, .. } => {
                (filter, "topic filter", TopicFilter::parse(filter).is_ok())
            }
        };
        let wrong = || NotATopic {
            text: text.clone(),
            kind,
        };
        is_good.then_some(()).ok_or_else(wrong)
    }
}

impl AuthService {
    /// What the rules in force say about an action of a client.
    pub fn test_access(&self, client: &Admission, question: &AccessQuestion) -> AccessTested {
        let policy = self.policy();
        let asks_others = self.has_authorizers() && policy.order.contains(&RuleOrder::Remote);
        let mut tested = Resolution::new(&policy, client).test(question);
        tested.asks_others = asks_others && !client.identity.is_superuser;
        tested
    }

    /// The rules in force in the order in which they are asked: those for all clients, and of a
    /// client its own; at most `limit` behind the first `skip`. The last part tells whether there
    /// are more.
    pub fn rules_in_order(
        &self,
        client: Option<&Admission>,
        skip: usize,
        limit: usize,
    ) -> (Vec<EffectiveRule>, bool) {
        let policy = self.policy();
        let own = client.and_then(|client| client.rules.as_deref());
        let sets = policy.order.iter().filter_map(|order| match order {
            RuleOrder::Rules => Some(("rules", &*policy.rules)),
            RuleOrder::Client => own.map(|rules| ("client", rules)),
            RuleOrder::Remote => None,
        });
        let about = |rule: &&Rule| client.is_none_or(|client| rule.who().fits(&client.identity));
        let all = sets.flat_map(|(of, rules)| rules.iter().map(move |rule| (of, rule)));
        let mut all = all.filter(|(_, rule)| about(rule)).skip(skip);
        let page = all.by_ref().take(limit).map(|(of, rule)| EffectiveRule {
            of,
            text: rule.to_string(),
            source: rule.source().to_string(),
        });
        (page.collect(), all.next().is_some())
    }
}

/// The rules about one client.
struct Resolution<'a> {
    sets: Vec<&'a Rules>,
    resolved: Resolved,
    otherwise: &'static str,
}

impl<'a> Resolution<'a> {
    fn new(policy: &'a Policy, client: &'a Admission) -> Self {
        static NONE: Rules = Rules::new();
        let sets: Vec<&Rules> = policy
            .order
            .iter()
            .filter_map(|order| match order {
                RuleOrder::Rules => Some(&*policy.rules),
                RuleOrder::Client => Some(client.rules.as_deref().unwrap_or(&NONE)),
                RuleOrder::Remote => None,
            })
            .collect();
        let mut resolved = if client.identity.is_superuser {
            Resolved::everything()
        } else {
            Resolved::default()
        };
        for rules in &sets {
            // Too many rules deny everything, which is then what is found.
            resolved.add_set(rules, &client.identity).ok();
        }
        resolved.set_default(Some(policy.allows_by_default));
        let otherwise = if client.identity.is_superuser {
            "superusers may do everything"
        } else if policy.allows_by_default {
            "no rule decides: allowed by default (acl.default)"
        } else {
            "no rule decides: denied by default (acl.default)"
        };
        Self {
            sets,
            resolved,
            otherwise,
        }
    }

    fn test(&self, question: &AccessQuestion) -> AccessTested {
        let (verdict, rules) = match question {
            AccessQuestion::Publish { topic, qos, retain } => {
                let decision = self.resolved.publish(topic, *qos, *retain);
                let is_allowed = decision.allowed == Some(true);
                let verdict = if is_allowed { "allowed" } else { "denied" };
                let rules = decision.rule.and_then(|id| self.named(id));
                (verdict, rules.into_iter().collect())
            }
            AccessQuestion::Subscribe { filter, qos } => self.subscribe(filter, *qos),
        };
        let otherwise = rules.is_empty().then_some(self.otherwise);
        AccessTested {
            verdict,
            is_allowed: verdict != "denied",
            rules,
            otherwise,
            asks_others: false,
        }
    }

    fn subscribe(&self, filter: &str, qos: QoS) -> (&'static str, Vec<DecidingRule>) {
        let parsed = TopicFilter::parse(filter);
        let matched = parsed.map_or(filter, |filter| filter.matched_part());
        let mut rules = Vec::new();
        let record = |part: Part| rules.extend(part.rule.and_then(|id| self.named(id)));
        let verdict = match self.resolved.explain_subscribe(matched, qos, record) {
            Coverage::Allowed => "allowed",
            Coverage::Denied | Coverage::Undecided => "denied",
            Coverage::Mixed => "allowed in part",
        };
        (verdict, rules)
    }

    fn named(&self, id: RuleId) -> Option<DecidingRule> {
        let set = self.sets.get(usize::from(id.set))?;
        set.get(id.rule as usize).map(DecidingRule::of)
    }
}
