//! The relation of the topics of one filter to those of another.
//!
//! Topics are taken by their number of levels. The alphabet of a level is endless, so among the
//! topics of one length that a filter matches there is always one whose levels at the filter's
//! wildcards appear in no rule: rules cover all of them only if a single rule does. So the decision
//! of rules about a filter is known exactly from the lengths at which one of them covers it and
//! those at which one of them overlaps it.

/// Numbers of levels, counted from those of the subscription: bit 0 is as many as it has before its
/// `#`, bit 1 one more. The last bit stands for every number from 127 more on.
pub(super) type Lengths = u128;

const LAST: u32 = Lengths::BITS - 1;

/// The relation of the topics of a rule to those of a subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Relation {
    /// Lengths at which both have topics in common; none if they have none.
    pub(super) lengths: Lengths,
    /// At these lengths the rule has every topic of the subscription.
    pub(super) covers: bool,
    /// Levels that the rule has more than the subscription, both without `#`.
    pub(super) extra: usize,
}

const DISJOINT: Relation = Relation {
    lengths: 0,
    covers: false,
    extra: 0,
};

/// The levels of a filter, and whether it ends with `#`.
#[derive(Clone)]
struct Levels<'a> {
    /// The rest; none if nothing is left, and from the beginning for `#` alone, which has no level
    /// before it.
    rest: Option<&'a [u8]>,
    is_open: bool,
}

impl<'a> Levels<'a> {
    fn new(filter: &'a str) -> Self {
        let (rest, is_open) = match filter.as_bytes() {
            [b'#'] => (None, true),
            [parent @ .., b'/', b'#'] => (Some(parent), true),
            filter => (Some(filter), false),
        };
        Self { rest, is_open }
    }
}

impl<'a> Iterator for Levels<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.rest?;
        let end = rest.iter().position(|byte| *byte == b'/');
        self.rest = end.map(|end| &rest[end + 1..]);
        Some(&rest[..end.unwrap_or(rest.len())])
    }
}

/// Lengths that the topics of a subscription can have.
pub(super) fn lengths_of(filter: &str) -> Lengths {
    match filter {
        // A topic has at least one level.
        "#" => Lengths::MAX & !1,
        // And is not empty: `/#` does not match ``.
        "/#" => Lengths::MAX & !1,
        _ if filter.ends_with('#') => Lengths::MAX,
        _ => 1,
    }
}

/// The relation of the topics of a rule to those of a subscription. Both are valid filters. Cost:
/// their levels.
pub(super) fn relate(rule: &str, filter: &str) -> Relation {
    let subscription = Levels::new(filter);
    let is_open = subscription.is_open;
    let mut relation = compare(rule, subscription, is_open, 0);
    // The empty topic, which does not exist, would be in both.
    if rule == "/#" {
        match filter {
            "#" => relation.lengths &= !0b10,
            "+" | "+/#" | "/#" => relation.lengths &= !1,
            _ => {}
        }
    }
    relation
}

/// Lengths at which a rule has every topic that another rule and a subscription have in common.
/// `extra` are the levels that the other has more than the subscription.
pub(super) fn covers_common(rule: &str, other: &str, filter: &str, extra: usize) -> Lengths {
    let (mut other, mut subscription) = (Levels::new(other), Levels::new(filter));
    let is_open = other.is_open && subscription.is_open;
    let common = core::iter::from_fn(|| match (other.next(), subscription.next()) {
        (Some(b"+") | None, Some(level)) | (Some(level), Some(_) | None) => Some(level),
        (None, None) => None,
    });
    let relation = compare(rule, common, is_open, extra);
    if relation.covers { relation.lengths } else { 0 }
}

/// Compares a rule with levels, behind which any other may follow if they are open.
fn compare<'a>(
    rule: &str,
    mut levels: impl Iterator<Item = &'a [u8]>,
    is_open: bool,
    mut extra: usize,
) -> Relation {
    let mut rule = Levels::new(rule);
    let mut covers = true;
    let mut is_first = true;
    let shortest = 1 << extra.min(LAST as usize);
    loop {
        match (rule.next(), levels.next()) {
            (None, None) => break,
            (None, Some(level)) => {
                if !rule.is_open || (is_first && level.starts_with(b"$")) {
                    return DISJOINT;
                }
                // Its `#` covers the rest.
                break;
            }
            (Some(own), None) => {
                if !is_open || (is_first && own.starts_with(b"$")) {
                    return DISJOINT;
                }
                covers &= own == b"+";
                extra += 1;
            }
            (Some(own), Some(level)) => {
                let is_apart = match (own, level) {
                    (b"+", b"+") => false,
                    (b"+", literal) | (literal, b"+") => is_first && literal.starts_with(b"$"),
                    _ => own != level,
                };
                if is_apart {
                    return DISJOINT;
                }
                covers &= own == b"+" || own == level;
            }
        }
        is_first = false;
    }
    let (lengths, is_exact) = lengths(extra, rule.is_open);
    Relation {
        lengths: if is_open { lengths } else { lengths & shortest },
        covers: covers && is_exact,
        extra,
    }
}

/// The lengths of a rule with so many levels more than the subscription, and whether the bits say
/// them exactly.
fn lengths(extra: usize, is_open: bool) -> (Lengths, bool) {
    match u32::try_from(extra) {
        Ok(extra) if extra < LAST || (extra == LAST && is_open) => {
            let first = 1 << extra;
            (
                if is_open {
                    Lengths::MAX << extra
                } else {
                    first
                },
                true,
            )
        }
        _ => (1 << LAST, false),
    }
}
