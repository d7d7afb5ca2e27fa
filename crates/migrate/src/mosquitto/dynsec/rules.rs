//! Entries of a role as rules.

use std::cmp::Reverse;

use serde::Deserialize;

use super::Role;

/// An entry of a role.
#[derive(Deserialize)]
pub(super) struct Acl {
    acltype: String,
    topic: String,
    #[serde(default)]
    priority: i64,
    #[serde(default)]
    allow: bool,
}

/// Kinds of entries, in the order in which they are asked.
const KINDS: [(&str, Kind); 4] = [
    ("publishClientReceive", Kind::Receive),
    ("publishClientSend", Kind::Publish),
    ("subscribeLiteral", Kind::SubscribeLiteral),
    ("subscribePattern", Kind::SubscribePattern),
];
/// Kinds without a counterpart: every client may unsubscribe.
const UNSUBSCRIBE: [&str; 2] = ["unsubscribeLiteral", "unsubscribePattern"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Receive,
    Publish,
    SubscribeLiteral,
    SubscribePattern,
}

/// The rules of a role in their order: the first that fits decides.
pub(super) fn of(role: &Role, notes: &mut Vec<String>) -> Vec<String> {
    let name = &role.rolename;
    let is_of = |acl: &Acl, kind: &str| acl.acltype.eq_ignore_ascii_case(kind);
    if !role.allow_wildcards {
        notes.push(format!(
            "role {name:?} may subscribe with wildcards (allowwildcardsubs false is not known here)"
        ));
    }
    for acl in &role.acls {
        let is_unsubscribe = UNSUBSCRIBE.iter().any(|kind| is_of(acl, kind));
        if is_unsubscribe && !acl.allow {
            let topic = &acl.topic;
            notes.push(format!(
                "role {name:?} may unsubscribe from {topic}: every client may"
            ));
        }
        if !is_unsubscribe && !KINDS.iter().any(|(kind, _)| is_of(acl, kind)) {
            let kind = &acl.acltype;
            notes.push(format!(
                "role {name:?}: entry of the unknown kind {kind:?} left out"
            ));
        }
    }
    let mut rules = Vec::new();
    for (word, kind) in KINDS {
        let mut acls: Vec<&Acl> = role.acls.iter().filter(|acl| is_of(acl, word)).collect();
        acls.sort_by_key(|acl| Reverse(acl.priority));
        rules.extend(acls.into_iter().filter_map(|acl| rule(acl, kind)));
    }
    rules
}

fn rule(acl: &Acl, kind: Kind) -> Option<String> {
    // Every client that may subscribe may receive, so only denials matter.
    if acl.topic.is_empty() || kind == Kind::Receive && acl.allow {
        return None;
    }
    let verdict = if acl.allow { "allow" } else { "deny" };
    let action = if kind == Kind::Publish { "pub" } else { "sub" };
    let has_wildcard = acl.topic.contains(['+', '#']);
    let exactly = if kind == Kind::SubscribeLiteral && has_wildcard {
        "eq "
    } else {
        ""
    };
    Some(format!(
        "{verdict} {action} {exactly}{}",
        filter(&acl.topic)
    ))
}

/// A filter as a rule has it: a percent sign that begins no placeholder is doubled, and white space
/// needs quotes.
fn filter(topic: &str) -> String {
    let mut text = String::new();
    let mut letters = topic.chars().peekable();
    while let Some(letter) = letters.next() {
        text.push(letter);
        if letter == '%' && !matches!(letters.peek(), Some('c' | 'u')) {
            text.push('%');
        }
    }
    if text.contains(|letter: char| letter.is_whitespace() || letter == '"') {
        let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
        return format!("\"{escaped}\"");
    }
    text
}
