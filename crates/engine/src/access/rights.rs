//! Rights to publish of a client that may be disconnected, as far as rules decide.

use thrum_access::{Identity, Resolved, Rules};

use super::Shared;
use crate::access::RuleSource;

/// The rules of a client's own.
#[derive(Clone, Copy, Debug)]
pub enum OwnRules<'a> {
    Known(Option<&'a Rules>),
    /// It had some, which are lost.
    Unknown,
}

/// The rules about a client in their order, up to the first request to another source: the rest is
/// undecided.
pub fn publish_rights(identity: &Identity, own: OwnRules<'_>, shared: &Shared) -> Resolved {
    if identity.is_superuser {
        return Resolved::everything();
    }
    let policy = &shared.access.policy;
    let mut resolved = Resolved::default();
    for source in &policy.order {
        let rules = match (source, own) {
            (RuleSource::Everybody, _) => Some(&*policy.rules),
            (RuleSource::Client, OwnRules::Known(rules)) => rules,
            (RuleSource::Client, OwnRules::Unknown) => return resolved,
            (RuleSource::Gatekeeper, _) if shared.asks() => return resolved,
            (RuleSource::Gatekeeper, _) => None,
        };
        // A client that too many rules match is denied everything from here on.
        if rules.is_some_and(|rules| resolved.add_set(rules, identity).is_err()) {
            return resolved;
        }
    }
    resolved.set_default(Some(policy.allows_by_default));
    resolved
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use thrum_codec::QoS;

    use super::*;
    use crate::access::{Access, Policy};

    const CLIENT: RuleSource = RuleSource::Client;
    const EVERYBODY: RuleSource = RuleSource::Everybody;

    fn rules(text: &str) -> Rules {
        Rules::parse(text, "test").unwrap()
    }

    /// Whether `a` may be published: by the common rules and the client's own, in this order.
    fn decided(order: [RuleSource; 2], everybody: &str, own: OwnRules<'_>) -> Option<bool> {
        let policy = Policy {
            rules: Arc::new(rules(everybody)),
            order: order.to_vec(),
            allows_by_default: false,
            ..Policy::default()
        };
        let access = Access {
            gatekeeper: None,
            policy,
        };
        let shared = Shared {
            access,
            generation: 1,
        };
        let resolved = publish_rights(&Identity::default(), own, &shared);
        resolved.publish("a", QoS::AtMostOnce, true).allowed
    }

    #[test]
    fn rules_that_are_known_decide_in_their_order() {
        let own = rules("allow all pub a");
        let known = OwnRules::Known(Some(&own));
        let denies = "deny all pub a";
        assert_eq!(decided([EVERYBODY, CLIENT], denies, known), Some(false));
        assert_eq!(decided([CLIENT, EVERYBODY], denies, known), Some(true));
        let none = OwnRules::Known(None);
        assert_eq!(decided([EVERYBODY, CLIENT], "", none), Some(false));
    }

    #[test]
    fn behind_rules_that_nobody_knows_nothing_is_decided() {
        let unknown = OwnRules::Unknown;
        let denies = "deny all pub a";
        assert_eq!(decided([EVERYBODY, CLIENT], denies, unknown), Some(false));
        assert_eq!(decided([EVERYBODY, CLIENT], "", unknown), None);
        assert_eq!(decided([CLIENT, EVERYBODY], denies, unknown), None);
    }
}
