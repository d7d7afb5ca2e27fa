//! Topic names and topic filters: the checks of both, and matching of one by the other.

/// A topic filter that follows the rules of the specification, shared or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TopicFilter<'a>(&'a str);

/// The parts of `$share/GROUP/FILTER`; `$queue/FILTER` has the group `$queue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedFilter<'a> {
    /// Name of the group.
    pub group: &'a str,
    /// Filter without the prefix.
    pub filter: &'a str,
}

/// Why a topic name or filter is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid topic filter")]
pub struct TopicError;

impl<'a> TopicFilter<'a> {
    /// Checks a filter.
    ///
    /// # Errors
    /// Empty, a NUL, a wildcard that is not a whole level, `#` not last, a bad share name.
    pub fn parse(_text: &'a str) -> Result<Self, TopicError> {
        todo!()
    }
    /// As the client wrote it.
    pub const fn as_str(self) -> &'a str {
        self.0
    }
    /// The parts of a shared filter.
    pub fn shared(self) -> Option<SharedFilter<'a>> {
        todo!()
    }
    /// The filter to match topics with: without the share prefix.
    pub fn matched_part(self) -> &'a str {
        todo!()
    }
    /// Has `+` or `#`.
    pub fn has_wildcard(self) -> bool {
        todo!()
    }
}

/// Whether a topic name fits a filter without share prefix.
pub fn matches(_filter: &str, _topic: &str) -> bool {
    todo!()
}
/// Whether the text may be the topic of a PUBLISH.
pub fn is_valid_name(_topic: &str) -> bool {
    todo!()
}
