//! A search filter (RFC 4515) with placeholders: parsed first, filled in afterwards, so that a
//! value stays a value.

use thiserror::Error;

use super::ber::{OCTETS, SEQUENCE, push, push_all};
use crate::template::{NotText, Part, Place, Placeholder, Template, TemplateError, Values};

/// Filters within filters.
const DEPTH_MAX: usize = 16;

/// A filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Filter {
    /// All of these, or any of these.
    Set { tag: u8, filters: Vec<Self> },
    /// Not this one.
    Not(Box<Self>),
    /// The attribute is present.
    Present(String),
    /// The attribute compared with a value.
    Compare {
        tag: u8,
        attribute: String,
        value: Pattern,
    },
    /// The attribute has these parts in this order; empty ones are none.
    Substrings {
        attribute: String,
        parts: Vec<Pattern>,
    },
    /// A matching rule of the server: `attribute:dn:rule:=value`.
    Extensible {
        attribute: String,
        is_dn: bool,
        rule: String,
        value: Pattern,
    },
}

/// A value with placeholders; the text between them is unescaped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pattern(Vec<Piece>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Bytes(Vec<u8>),
    Value(Placeholder),
}

/// Why a text is not a filter.
#[derive(Debug, PartialEq, Eq, Error)]
pub(super) enum FilterError {
    /// Brackets.
    #[error("brackets do not match: expected (attribute=value), (&(…)(…)), (|(…)(…)) or (!(…))")]
    Brackets,
    /// Not a comparison.
    #[error("{0:?} is not a comparison: expected attribute=value")]
    Comparison(String),
    /// `\` without two hexadecimal digits.
    #[error("a \\ must be followed by two hexadecimal digits")]
    Escape,
    /// Too deep.
    #[error("more than {DEPTH_MAX} filters within each other")]
    Depth,
    /// A placeholder is wrong.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

impl Filter {
    /// Reads a filter.
    pub(super) fn parse(text: &str) -> Result<Self, FilterError> {
        match Self::parse_one(text.trim(), DEPTH_MAX)? {
            (filter, "") => Ok(filter),
            _ => Err(FilterError::Brackets),
        }
    }

    /// Entries with this value.
    pub(super) fn equals(attribute: &str, value: &[u8]) -> Self {
        Self::Compare {
            tag: 0xa3,
            attribute: attribute.to_owned(),
            value: Pattern(vec![Piece::Bytes(value.to_vec())]),
        }
    }

    /// Appends the filter with its values; false if a value is missing.
    pub(super) fn push(&self, values: &Values<'_>, out: &mut Vec<u8>) -> Result<bool, NotText> {
        let mut is_whole = true;
        match self {
            Self::Set { tag, filters } => {
                let mut inner = Vec::new();
                for filter in filters {
                    is_whole &= filter.push(values, &mut inner)?;
                }
                push(out, *tag, &inner);
            }
            Self::Not(filter) => {
                let mut inner = Vec::new();
                is_whole = filter.push(values, &mut inner)?;
                push(out, 0xa2, &inner);
            }
            Self::Present(attribute) => push(out, 0x87, attribute.as_bytes()),
            Self::Compare {
                tag,
                attribute,
                value,
            } => {
                let value = value.fill(values)?;
                is_whole = value.is_some();
                push_all(out, *tag, |out| {
                    push(out, OCTETS, attribute.as_bytes());
                    push(out, OCTETS, &value.unwrap_or_default());
                });
            }
            Self::Substrings { attribute, parts } => {
                let filled: Option<Vec<_>> = parts
                    .iter()
                    .map(|part| part.fill(values))
                    .collect::<Result<_, _>>()?;
                is_whole = filled.is_some();
                push_substrings(attribute, &filled.unwrap_or_default(), out);
            }
            Self::Extensible {
                attribute,
                is_dn,
                rule,
                value,
            } => {
                let value = value.fill(values)?;
                is_whole = value.is_some();
                let mut inner = Vec::new();
                push_some(&mut inner, 0x81, rule.as_bytes());
                push_some(&mut inner, 0x82, attribute.as_bytes());
                push(&mut inner, 0x83, &value.unwrap_or_default());
                push_some(&mut inner, 0x84, if *is_dn { &[0xff] } else { &[] });
                push(out, 0xa9, &inner);
            }
        }
        Ok(is_whole)
    }

    /// The filter at the beginning, and the rest.
    fn parse_one(text: &str, depth: usize) -> Result<(Self, &str), FilterError> {
        let depth = depth.checked_sub(1).ok_or(FilterError::Depth)?;
        let inner = text.strip_prefix('(').ok_or(FilterError::Brackets)?;
        let (filter, rest) = match inner.chars().next() {
            Some(sign @ ('&' | '|')) => {
                let tag = if sign == '&' { 0xa0 } else { 0xa1 };
                let (mut filters, mut rest) = (Vec::new(), inner[1..].trim_start());
                while rest.starts_with('(') {
                    let (filter, tail) = Self::parse_one(rest, depth)?;
                    filters.push(filter);
                    rest = tail.trim_start();
                }
                if filters.is_empty() {
                    return Err(FilterError::Brackets);
                }
                (Self::Set { tag, filters }, rest)
            }
            Some('!') => {
                let (filter, rest) = Self::parse_one(inner[1..].trim_start(), depth)?;
                (Self::Not(Box::new(filter)), rest.trim_start())
            }
            _ => {
                let end = inner.find(')').ok_or(FilterError::Brackets)?;
                (Self::parse_comparison(&inner[..end])?, &inner[end..])
            }
        };
        let rest = rest.strip_prefix(')').ok_or(FilterError::Brackets)?;
        Ok((filter, rest))
    }

    fn parse_comparison(text: &str) -> Result<Self, FilterError> {
        let bad = || FilterError::Comparison(text.to_owned());
        let (left, value) = text.split_once('=').ok_or_else(bad)?;
        if let Some(left) = left.strip_suffix(':') {
            return Self::parse_extensible(left, value).ok_or_else(bad)?;
        }
        let (attribute, tag) = match left.as_bytes().last() {
            Some(b'>') => (&left[..left.len() - 1], 0xa5),
            Some(b'<') => (&left[..left.len() - 1], 0xa6),
            Some(b'~') => (&left[..left.len() - 1], 0xa8),
            _ => (left, 0xa3),
        };
        if !is_name(attribute) {
            return Err(bad());
        }
        let attribute = attribute.to_owned();
        let mut parts = Pattern::parse(value)?;
        Ok(match parts.len() {
            1 => Self::Compare {
                tag,
                attribute,
                value: parts.remove(0),
            },
            _ if tag != 0xa3 => return Err(bad()),
            2 if value == "*" => Self::Present(attribute),
            _ => Self::Substrings { attribute, parts },
        })
    }

    fn parse_extensible(left: &str, value: &str) -> Option<Result<Self, FilterError>> {
        let mut names = left.split(':');
        let attribute = names.next()?;
        let mut is_dn = false;
        let mut rule = "";
        for name in names {
            match name {
                "dn" => is_dn = true,
                name if rule.is_empty() => rule = name,
                _ => return None,
            }
        }
        let is_good =
            (attribute.is_empty() || is_name(attribute)) && (rule.is_empty() || is_name(rule));
        if !is_good || (attribute.is_empty() && rule.is_empty()) {
            return None;
        }
        let value = match Pattern::parse(value) {
            Ok(mut parts) if parts.len() == 1 => parts.remove(0),
            Ok(_) => return None,
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(Self::Extensible {
            attribute: attribute.to_owned(),
            is_dn,
            rule: rule.to_owned(),
            value,
        }))
    }
}

impl Pattern {
    /// Cuts at `*`.
    fn parse(value: &str) -> Result<Vec<Self>, FilterError> {
        let mut patterns = vec![Self::default()];
        for part in Template::parse(value, Place::Lookup)?.parts() {
            match part {
                Part::Value(placeholder) => {
                    push_piece(&mut patterns, Piece::Value(placeholder.clone()));
                }
                Part::Text(text) => Self::push_text(&mut patterns, text)?,
            }
        }
        Ok(patterns)
    }

    fn push_text(patterns: &mut Vec<Self>, text: &str) -> Result<(), FilterError> {
        for (index, text) in text.split('*').enumerate() {
            if index > 0 {
                patterns.push(Self::default());
            }
            if !text.is_empty() {
                push_piece(patterns, Piece::Bytes(unescape(text)?));
            }
        }
        Ok(())
    }

    fn fill(&self, values: &Values<'_>) -> Result<Option<Vec<u8>>, NotText> {
        let mut filled = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Bytes(bytes) => filled.extend_from_slice(bytes),
                Piece::Value(placeholder) => match values.of(placeholder)? {
                    Some(value) => filled.extend_from_slice(value.as_bytes()),
                    None => return Ok(None),
                },
            }
        }
        Ok(Some(filled))
    }
}

/// Adds to the last pattern.
fn push_piece(patterns: &mut [Pattern], piece: Piece) {
    if let Some(pattern) = patterns.last_mut() {
        pattern.0.push(piece);
    }
}

fn push_substrings(attribute: &str, parts: &[Vec<u8>], out: &mut Vec<u8>) {
    let mut inner = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let tag = match index {
            0 => 0x80,
            _ if index + 1 == parts.len() => 0x82,
            _ => 0x81,
        };
        push_some(&mut inner, tag, part);
    }
    push_all(out, 0xa4, |out| {
        push(out, OCTETS, attribute.as_bytes());
        push(out, SEQUENCE, &inner);
    });
}

/// Appends an element unless it is empty.
fn push_some(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    if !content.is_empty() {
        push(out, tag, content);
    }
}

/// Names of attributes and rules: letters, digits, `-`, `.`, and `;` before options.
fn is_name(name: &str) -> bool {
    let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b"-.;".contains(&byte);
    !name.is_empty() && name.bytes().all(is_good)
}

fn unescape(text: &str) -> Result<Vec<u8>, FilterError> {
    let mut pieces = text.split('\\');
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let digits = piece.get(..2).ok_or(FilterError::Escape)?;
        let byte = u8::from_str_radix(digits, 16).map_err(|_| FilterError::Escape)?;
        bytes.push(byte);
        bytes.extend_from_slice(&piece.as_bytes()[2..]);
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_access::Identity;

    use super::*;
    use crate::backend::ldap::ber::Reader;

    fn named(username: &str) -> Identity {
        Identity {
            username: Some(username.into()),
            ..Identity::default()
        }
    }

    fn encoded(filter: &str, username: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let filter = Filter::parse(filter).expect(filter);
        let is_whole = filter.push(&Values::of_identity(&named(username)), &mut out);
        assert_eq!(is_whole, Ok(true));
        out
    }

    #[test]
    fn filters_are_encoded_as_rfc_4511_says() {
        assert_eq!(encoded("(uid=%u)", "a*"), b"\xa3\x09\x04\x03uid\x04\x02a*");
        assert_eq!(
            encoded("(&(objectClass=*)(!(cn=a\\2ab*c*)))", ""),
            b"\xa0\x1f\x87\x0bobjectClass\xa2\x10\xa4\x0e\x04\x02cn\x30\x08\x80\x03a*b\x81\x01c"
        );
        assert_eq!(
            encoded("(memberOf:1.2.3:=x)", ""),
            b"\xa9\x14\x81\x051.2.3\x82\x08memberOf\x83\x01x"
        );
        assert_eq!(encoded("(n>=1)", ""), b"\xa5\x06\x04\x01n\x04\x011");
    }

    #[test]
    fn texts_that_are_no_filters_are_refused() {
        for text in [
            "",
            "uid=a",
            "(uid=a",
            "(uid)",
            "(&)",
            "(=a)",
            "(uid=a)(cn=b)",
            "(u id=a)",
            "(uid=\\2)",
            "(uid=\\zz)",
            "(n>=a*)",
            "(:=x)",
            "(uid=${password})",
        ] {
            assert!(Filter::parse(text).is_err(), "{text}");
        }
        let deep = format!("{}(a=b){}", "(!".repeat(40), ")".repeat(40));
        assert_eq!(Filter::parse(&deep), Err(FilterError::Depth));
    }

    #[test]
    fn a_client_without_user_name_is_not_searched_for() {
        let filter = Filter::parse("(|(uid=%u)(cn=x))").expect("a filter");
        let anonymous = Identity::default();
        let is_whole = filter.push(&Values::of_identity(&anonymous), &mut Vec::new());
        assert_eq!(is_whole, Ok(false));
    }

    proptest! {
        /// For every user name: the filter has the same parts, and the name is one value.
        #[test]
        fn no_name_changes_the_filter(username in prop_oneof![".{0,40}", "[()*&|!\\\\=a0]{0,20}"]) {
            let out = encoded("(&(objectClass=person)(uid=${username}))", &username);
            let mut reader = Reader::new(&out);
            let mut set = Reader::new(reader.next_as(0xa0).expect("and"));
            prop_assert!(reader.is_empty());
            set.next_as(0xa3).expect("the class");
            let mut comparison = Reader::new(set.next_as(0xa3).expect("the name"));
            prop_assert!(set.is_empty());
            prop_assert_eq!(comparison.next_as(OCTETS), Some(&b"uid"[..]));
            prop_assert_eq!(comparison.next_as(OCTETS), Some(username.as_bytes()));
            prop_assert!(comparison.is_empty());
        }
    }
}
