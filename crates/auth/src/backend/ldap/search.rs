//! Searching a directory: the request, and the returned entries.

use super::ber::{
    BOOLEAN, ENUMERATED, INTEGER, OCTETS, Reader, SEQUENCE, SET, push, push_all, push_number,
};
use super::line::{NO_SUCH_OBJECT, SUCCESS};
use crate::backend::BackendError;

const SEARCH_REQUEST: u8 = 0x63;
pub(super) const SEARCH_ENTRY: u8 = 0x64;
pub(super) const SEARCH_DONE: u8 = 0x65;
pub(super) const SEARCH_REFERENCE: u8 = 0x73;

/// Result codes (RFC 4511, appendix A).
const SIZE_LIMIT_EXCEEDED: u32 = 4;
const INVALID_DN_SYNTAX: u32 = 34;
/// Most values that are used of one attribute.
const VALUES_MAX: usize = 10_000;

/// A request for entries.
pub(super) struct Search<'a> {
    pub(super) base: &'a str,
    pub(super) scope: Scope,
    /// In its form on the wire.
    pub(super) filter: Vec<u8>,
    pub(super) attributes: &'a [String],
    /// Most meaningful entries.
    pub(super) entries_max: u32,
}

/// The scope of a search.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// The entry itself.
    Base = 0,
    /// The entry and everything below.
    Subtree = 2,
}

/// An entry that was found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) dn: String,
    /// Values by name of the attribute.
    attributes: Vec<(String, Vec<Vec<u8>>)>,
}

impl Search<'_> {
    /// Appends the request.
    pub(super) fn push(&self, out: &mut Vec<u8>) {
        let mut attributes = Vec::new();
        for attribute in self.attributes {
            push(&mut attributes, OCTETS, attribute.as_bytes());
        }
        push_all(out, SEARCH_REQUEST, |out| {
            push(out, OCTETS, self.base.as_bytes());
            push_number(out, ENUMERATED, self.scope as u32);
            push_number(out, ENUMERATED, 0);
            push_number(out, INTEGER, self.entries_max);
            push_number(out, INTEGER, 0);
            push(out, BOOLEAN, &[0]);
            out.extend_from_slice(&self.filter);
            push(out, SEQUENCE, &attributes);
        });
    }

    /// The result for the entries that arrived before it.
    pub(super) fn finish(
        &self,
        code: u32,
        entries: Vec<Entry>,
    ) -> Result<Vec<Entry>, BackendError> {
        match code {
            SUCCESS | SIZE_LIMIT_EXCEEDED => Ok(entries),
            // A name from a client; a missing base is another error.
            NO_SUCH_OBJECT | INVALID_DN_SYNTAX if matches!(self.scope, Scope::Base) => Ok(entries),
            code => {
                let what = format!("the search failed with the result {code}");
                Err(BackendError::BadAnswer(what))
            }
        }
    }
}

impl Entry {
    /// Values of an attribute; the case of its name is ignored.
    pub(super) fn values(&self, attribute: &str) -> impl Iterator<Item = &[u8]> {
        let found = self
            .attributes
            .iter()
            .filter(move |(name, _)| name.eq_ignore_ascii_case(attribute));
        found.flat_map(|(_, values)| values.iter().map(Vec::as_slice))
    }

    /// Values of an attribute that are text.
    pub(super) fn texts(&self, attribute: &str) -> impl Iterator<Item = &str> {
        self.values(attribute)
            .filter_map(|value| std::str::from_utf8(value).ok())
    }

    /// Reads an entry; none if it is not an entry.
    pub(super) fn parse(content: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(content);
        let dn = String::from_utf8(reader.next_as(OCTETS)?.to_vec()).ok()?;
        let mut list = Reader::new(reader.next_as(SEQUENCE)?);
        let mut attributes = Vec::new();
        while !list.is_empty() {
            let mut attribute = Reader::new(list.next_as(SEQUENCE)?);
            let name = String::from_utf8(attribute.next_as(OCTETS)?.to_vec()).ok()?;
            let mut set = Reader::new(attribute.next_as(SET)?);
            let mut values = Vec::new();
            while !set.is_empty() {
                values.push(set.next_as(OCTETS)?.to_vec());
            }
            (values.len() <= VALUES_MAX).then_some(())?;
            attributes.push((name, values));
        }
        Some(Self { dn, attributes })
    }
}
