//! Any text as rules, in either syntax: accepted rules are printed and parsed again as the same
//! rules, decisions are those of the reported rules, and decisions about messages agree with the
//! granted subscription.
//!
//! An input is a byte that selects the syntax, then the rules, a client identifier, a filter and a
//! topic, separated by the byte FF, which never occurs in UTF-8.

use thrum_access::{Coverage, Identity, Resolved, Rule, Rules};
use thrum_codec::topic::{is_valid_name, matches};
use thrum_codec::{QoS, TopicFilter};

use crate::{Sight, sight};

const QOS: QoS = QoS::AtLeastOnce;

/// Checks the input's rules.
///
/// # Panics
/// If one of the statements above does not hold.
pub fn target(input: &[u8]) -> Sight {
    let (first, rest) = input.split_first().unwrap_or((&0, &[]));
    let mut parts = rest
        .splitn(4, |byte| *byte == 0xFF)
        .map(String::from_utf8_lossy);
    let mut next = || parts.next().unwrap_or_default().into_owned();
    let (text, client_id, filter, topic) = (next(), next(), next(), next());
    let parsed = if first % 2 == 0 {
        Rules::parse(&text, "fuzz")
    } else {
        Rules::from_mosquitto(&text, "fuzz")
    };
    match parsed {
        Ok(rules) => {
            check_print(&rules);
            check_decisions(&rules, client_id, &filter, &topic)
        }
        Err(errors) => {
            let texts = errors.iter().map(ToString::to_string);
            assert!(texts.into_iter().all(|text| text.lines().count() == 1));
            let problem = std::mem::discriminant(&errors[0].problem);
            sight(&problem)
        }
    }
}

fn check_print(rules: &Rules) {
    for rule in rules {
        let text = rule.to_string();
        assert_eq!(text.lines().count(), 1, "{text:?}");
        let again = Rule::parse(&text, rule.source().clone());
        assert_eq!(again.as_ref(), Ok(rule), "{text}");
    }
}

fn check_decisions(rules: &Rules, client_id: String, filter: &str, topic: &str) -> Sight {
    let identity = Identity {
        client_id: client_id.into(),
        ..Identity::default()
    };
    let mut resolved = Resolved::default();
    let is_resolved = resolved.add_set(rules, &identity).is_ok();
    resolved.set_default(Some(false));
    let is_name = is_valid_name(topic);
    if is_resolved && is_name {
        check_publish(rules, &resolved, &identity.client_id, topic);
    }
    let is_filter = TopicFilter::parse(filter).is_ok_and(|filter| filter.shared().is_none());
    let coverage = is_filter.then(|| resolved.subscribe(filter, QOS));
    if is_filter && is_name && matches(filter, topic) {
        let received = resolved.receive(topic, QOS);
        let has_exact = rules.iter().any(Rule::is_exact);
        match coverage {
            Some(Coverage::Allowed) => assert_eq!(received, Some(true), "{filter:?} {topic:?}"),
            Some(Coverage::Denied) if !has_exact => {
                assert_eq!(received, Some(false), "{filter:?} {topic:?}");
            }
            _ => {}
        }
    }
    // For an unchecked topic the result may be wrong, but the function must not panic.
    resolved.publish(topic, QOS, true);
    resolved.subscribe(filter, QOS);
    sight(&(
        rules.len().min(4),
        resolved.len().min(4),
        coverage.map(|coverage| coverage as u8),
        resolved.publish(topic, QOS, false).allowed,
    ))
}

/// Checks that the reported rule decides, and that a client identifier grants access only to its
/// own topics.
fn check_publish(rules: &Rules, resolved: &Resolved, client_id: &str, topic: &str) {
    let decision = resolved.publish(topic, QOS, false);
    let named = decision
        .rule
        .and_then(|id| rules.get(usize::try_from(id.rule).ok()?));
    let Some(rule) = named else {
        assert_eq!(decision.allowed, Some(false));
        return;
    };
    assert_eq!(decision.allowed, Some(rule.is_allow()), "{rule}");
    let filter = rule.filter();
    if rule.is_allow() && filter.contains("%c") && !filter.contains("%%") {
        assert!(topic.contains(client_id), "{rule} {client_id:?} {topic:?}");
        assert!(!client_id.contains(['+', '#', '/']), "{rule} {client_id:?}");
    }
}
