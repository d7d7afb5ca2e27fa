//! Rules in their order, and an index of the rules that may match a client.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ops::Range;

use super::{RULES_MAX, Rule, Who};
use crate::{Identity, Network};

/// Rules in their order: the first match decides.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    list: Vec<Rule>,
    /// Of the first rules; the last ones, which are few, are scanned.
    index: Option<Box<Index>>,
    /// Rules had to be omitted.
    is_too_long: bool,
}

/// Rules by the clients that they match.
#[derive(Clone, Debug, Default)]
struct Index {
    /// Positions of rules, by their keys.
    order: Vec<u32>,
    /// Lengths of the beginnings of client identifiers.
    prefix_lengths: Vec<usize>,
    /// Lengths that networks of IPv4 have, and those of IPv6.
    lengths_v4: Vec<u8>,
    lengths_v6: Vec<u8>,
}

/// The key of a rule.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'a> {
    Any,
    User(&'a str),
    Client(&'a str),
    /// With its length first, to find the existing lengths.
    ClientPrefix(usize, &'a str),
    Role(&'a str),
    Group(&'a str),
    Network(Network),
    Listener(&'a str),
    CommonName(&'a str),
}

/// So few rules are scanned faster than an index is built.
const UNINDEXED_MAX: usize = 64;

impl Rules {
    /// No rule.
    pub const fn new() -> Self {
        Self {
            list: Vec::new(),
            index: None,
            is_too_long: false,
        }
    }

    /// Adds a rule behind the others.
    ///
    /// More than [`RULES_MAX`] are not kept: from then on rules cannot be resolved for any client,
    /// so that everything is denied.
    pub fn push(&mut self, rule: Rule) {
        self.add(RULES_MAX, rule);
        // Twice as many each time: a rule is sorted a few times in all.
        if self.list.len() - self.indexed() > UNINDEXED_MAX.max(self.indexed()) {
            self.build_index();
        }
    }

    /// The rule at a position.
    pub fn get(&self, position: usize) -> Option<&Rule> {
        self.list.get(position)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The rules in their order.
    pub fn iter(&self) -> core::slice::Iter<'_, Rule> {
        self.list.iter()
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// Calls with every rule that matches the client and its position, in their order, until told
    /// to stop.
    ///
    /// Cost: the rules about this client and those for all clients, not all rules.
    pub(super) fn for_each_about<'a>(
        &'a self,
        identity: &Identity,
        mut visit: impl FnMut(u32, &'a Rule) -> bool,
    ) {
        let mut positions = Vec::new();
        if let Some(index) = &self.index {
            index.collect(&self.list, identity, &mut positions);
            positions.sort_unstable();
            positions.dedup();
        }
        let tail = (0_u32..).take(self.list.len()).skip(self.indexed());
        for position in positions.into_iter().chain(tail) {
            let rule = &self.list[position as usize];
            if rule.who.fits(identity) && !visit(position, rule) {
                return;
            }
        }
    }

    fn add(&mut self, max: usize, rule: Rule) {
        if self.list.len() < max {
            self.list.push(rule);
        } else {
            self.is_too_long = true;
        }
    }

    fn indexed(&self) -> usize {
        self.index.as_ref().map_or(0, |index| index.order.len())
    }

    fn build_index(&mut self) {
        let list = &self.list;
        let mut index = self.index.take().unwrap_or_default();
        index.order = (0_u32..).take(list.len()).collect();
        // A stable sort: rules of one key stay in their order.
        index
            .order
            .sort_by(|left, right| key_at(list, *left).cmp(&key_at(list, *right)));
        index.prefix_lengths.clear();
        index.lengths_v4.clear();
        index.lengths_v6.clear();
        for position in &index.order {
            match key_at(list, *position) {
                Key::ClientPrefix(length, _) => index.prefix_lengths.push(length),
                Key::Network(network) if network.address().is_ipv4() => {
                    index.lengths_v4.push(network.prefix());
                }
                Key::Network(network) => index.lengths_v6.push(network.prefix()),
                _ => {}
            }
        }
        // They are sorted.
        index.prefix_lengths.dedup();
        for lengths in [&mut index.lengths_v4, &mut index.lengths_v6] {
            lengths.sort_unstable();
            lengths.dedup();
        }
        self.index = Some(index);
    }
}

impl Index {
    /// Appends the positions of the rules that any key of the client leads to.
    fn collect(&self, list: &[Rule], identity: &Identity, positions: &mut Vec<u32>) {
        let mut take = |key: Key<'_>| {
            positions.extend_from_slice(&self.order[self.range(list, key)]);
        };
        take(Key::Any);
        take(Key::Client(&identity.client_id));
        take(Key::Listener(&identity.listener));
        if let Some(name) = identity.username.as_deref() {
            take(Key::User(name));
        }
        if let Some(name) = identity.common_name() {
            take(Key::CommonName(name));
        }
        for name in &identity.roles {
            take(Key::Role(name));
        }
        for name in &identity.groups {
            take(Key::Group(name));
        }
        for &length in &self.prefix_lengths {
            if let Some(prefix) = identity.client_id.get(..length) {
                take(Key::ClientPrefix(length, prefix));
            }
        }
        let Some(address) = identity.address else {
            return;
        };
        let address = address.to_canonical();
        let lengths = if address.is_ipv4() {
            &self.lengths_v4
        } else {
            &self.lengths_v6
        };
        for &length in lengths {
            if let Some(network) = Network::new(address, length) {
                take(Key::Network(network));
            }
        }
    }

    /// Where the rules of a key are in the order.
    fn range(&self, list: &[Rule], key: Key<'_>) -> Range<usize> {
        let start = self
            .order
            .partition_point(|position| key_at(list, *position) < key);
        let count = self.order[start..].partition_point(|position| key_at(list, *position) == key);
        start..start + count
    }
}

fn key_at(list: &[Rule], position: u32) -> Key<'_> {
    match &list[position as usize].who {
        Who::All | Who::Anonymous | Who::Authenticated => Key::Any,
        Who::User(name) => Key::User(name),
        Who::Client(id) => Key::Client(id),
        Who::ClientPrefix(prefix) => Key::ClientPrefix(prefix.len(), prefix),
        Who::Role(name) => Key::Role(name),
        Who::Group(name) => Key::Group(name),
        Who::Network(network) => Key::Network(*network),
        Who::Listener(name) => Key::Listener(name),
        Who::CommonName(name) => Key::CommonName(name),
    }
}

impl Extend<Rule> for Rules {
    fn extend<I: IntoIterator<Item = Rule>>(&mut self, rules: I) {
        let rules = rules.into_iter();
        self.list.reserve(rules.size_hint().0.min(RULES_MAX));
        for rule in rules {
            self.add(RULES_MAX, rule);
        }
        if self.list.len() - self.indexed() > UNINDEXED_MAX {
            self.build_index();
        }
    }
}

impl FromIterator<Rule> for Rules {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        let mut set = Self::new();
        set.extend(rules);
        set
    }
}

impl<'a> IntoIterator for &'a Rules {
    type Item = &'a Rule;
    type IntoIter = core::slice::Iter<'a, Rule>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl PartialEq for Rules {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list && self.is_too_long == other.is_too_long
    }
}

impl Eq for Rules {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Resolved, TooManyRules};

    #[test]
    fn rules_that_had_to_be_left_out_deny_everything() {
        let rule = Rule::parse("allow all pub a", "test").expect("a rule");
        let mut rules = Rules::new();
        for _ in 0..3 {
            rules.add(3, rule.clone());
        }
        let identity = Identity::default();
        assert_eq!(Resolved::default().add_set(&rules, &identity), Ok(()));
        rules.add(3, rule);
        assert_eq!(rules.len(), 3);
        let mut resolved = Resolved::default();
        assert_eq!(resolved.add_set(&rules, &identity), Err(TooManyRules));
        let decision = resolved.publish("a", thrum_codec::QoS::AtMostOnce, false);
        assert_eq!(decision.allowed, Some(false));
    }

    fn rule(text: &str) -> Rule {
        Rule::parse(text, "test").expect("a rule")
    }

    #[test]
    fn single_rules_are_indexed_when_most_of_them_are_not() {
        let mut rules = Rules::new();
        for (count, indexed) in [(64, 0), (65, 65), (130, 65), (131, 131)] {
            while rules.len() < count {
                rules.push(rule("allow user:u pub a"));
            }
            assert_eq!(rules.indexed(), indexed, "{count}");
        }
    }

    #[test]
    fn a_list_is_indexed_when_more_than_a_few_of_its_rules_are_not() {
        let mut rules = Rules::new();
        for (count, indexed) in [(64, 0), (65, 65), (129, 65), (130, 130)] {
            let more = count - rules.len();
            rules.extend(core::iter::repeat_n(rule("allow user:u pub a"), more));
            assert_eq!(rules.indexed(), indexed, "{count}");
        }
    }

    #[test]
    fn sets_with_the_same_rules_are_equal() {
        let set = |texts: &[&str]| texts.iter().map(|text| rule(text)).collect::<Rules>();
        let texts = ["allow user:u pub a", "deny all pub b"];
        assert_eq!(set(&texts), set(&texts));
        assert_ne!(set(&texts), set(&texts[..1]));
        assert_ne!(set(&texts), set(&["allow user:u pub a", "deny all pub c"]));
        let mut too_long = set(&texts);
        too_long.add(2, rule("allow all pub a"));
        assert_ne!(set(&texts), too_long);
    }

    #[test]
    fn an_indexed_set_asks_the_same_rules_in_the_same_order() {
        let people = [
            "all",
            "anonymous",
            "authenticated",
            "user:u",
            "user:v",
            "client:c",
        ];
        let others = [
            "client:c*",
            "client:cd*",
            "role:r",
            "group:g",
            "ip:10.0.0.0/8",
        ];
        let rest = [
            "ip:10.1.0.0/16",
            "ip:fd00::/8",
            "listener:l",
            "cn:n",
            "role:s",
        ];
        let mut texts = Vec::new();
        for round in 0..6 {
            for who in people.iter().chain(&others).chain(&rest) {
                texts.push(alloc::format!("allow {who} pub t/{round}"));
            }
        }
        let indexed: Rules = texts.iter().map(|text| rule(text)).collect();
        assert_eq!(indexed.indexed(), texts.len());
        let identities = [
            ("c", Some("u"), "10.1.2.3"),
            ("cde", None, "10.2.0.1"),
            ("x", Some("v"), "fd00::1"),
            ("", None, "192.0.2.1"),
        ];
        for (client_id, username, address) in identities {
            let identity = Identity {
                client_id: client_id.into(),
                username: username.map(Into::into),
                roles: alloc::vec!["r".into()],
                groups: alloc::vec!["g".into()],
                address: address.parse().ok(),
                listener: "l".into(),
                ..Identity::default()
            };
            let mut asked = Vec::new();
            indexed.for_each_about(&identity, |position, _| {
                asked.push(position as usize);
                true
            });
            let fitting = |position: &usize| indexed.list[*position].who.fits(&identity);
            let expected: Vec<_> = (0..texts.len()).filter(fitting).collect();
            assert_eq!(asked, expected, "{identity:?}");
            let mut first = 0;
            indexed.for_each_about(&identity, |_, _| {
                first += 1;
                first < 2
            });
            assert_eq!(first, 2, "the callback ends the search");
        }
    }
}
