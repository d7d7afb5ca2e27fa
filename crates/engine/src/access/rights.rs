//! Rights to publish of a client that may be disconnected, as far as rules alone decide.

use thrum_access::{Identity, Resolved, Rules};

use super::Shared;
use crate::access::RuleSource;

/// The client's own rules.
#[derive(Clone, Copy, Debug)]
pub enum OwnRules<'a> {
    /// The rules are known; none if the client has no rules of its own.
    Known(Option<&'a Rules>),
    /// The client had rules of its own, which were not stored.
    Unknown,
}

/// Resolves the rules about a client in the order of the policy, up to the first source that is not
/// known: actions that only later sources decide are undecided.
pub fn publish_rights(identity: &Identity, own: OwnRules<'_>, shared: &Shared) -> Resolved {
    if identity.is_superuser {
        return Resolved::everything();
    }
    let policy = &shared.access.policy;
    let mut resolved = Resolved::default();
    for source in &policy.order {
        let rules = match (source, own) {
            (RuleSource::AllClients, _) => Some(&*policy.rules),
            (RuleSource::Client, OwnRules::Known(rules)) => rules,
            (RuleSource::Client, OwnRules::Unknown) => return resolved,
            (RuleSource::Gatekeeper, _) if shared.asks() => return resolved,
            (RuleSource::Gatekeeper, _) => None,
        };
        // If too many rules match the client, everything that is not decided yet is denied.
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
    const ALL_CLIENTS: RuleSource = RuleSource::AllClients;

    fn rules(text: &str) -> Rules {
        Rules::parse(text, "test").unwrap()
    }

    /// Whether `a` may be published, by the rules for all clients and the client's own rules.
    fn decided(order: [RuleSource; 2], all_clients: &str, own: OwnRules<'_>) -> Option<bool> {
        let policy = Policy {
            rules: Arc::new(rules(all_clients)),
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
        assert_eq!(decided([ALL_CLIENTS, CLIENT], denies, known), Some(false));
        assert_eq!(decided([CLIENT, ALL_CLIENTS], denies, known), Some(true));
        let without_gatekeeper = [RuleSource::Gatekeeper, ALL_CLIENTS];
        assert_eq!(decided(without_gatekeeper, denies, known), Some(false));
        let none = OwnRules::Known(None);
        assert_eq!(decided([ALL_CLIENTS, CLIENT], "", none), Some(false));
    }

    #[test]
    fn rules_after_unknown_rules_decide_nothing() {
        let unknown = OwnRules::Unknown;
        let denies = "deny all pub a";
        assert_eq!(decided([ALL_CLIENTS, CLIENT], denies, unknown), Some(false));
        assert_eq!(decided([ALL_CLIENTS, CLIENT], "", unknown), None);
        assert_eq!(decided([CLIENT, ALL_CLIENTS], denies, unknown), None);
    }
}
