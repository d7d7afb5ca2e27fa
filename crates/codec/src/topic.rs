//! Topic names and topic filters: validity checks and matching.

use crate::wire::FIELD_BYTES_MAX;

/// A valid topic filter, shared or not.
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

/// The text is not a valid topic name or filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid topic filter")]
pub struct TopicError;

const SHARE: &str = "$share/";
const QUEUE: &str = "$queue/";
const QUEUE_GROUP: &str = "$queue";

impl<'a> TopicFilter<'a> {
    /// Checks a filter.
    ///
    /// # Errors
    /// The text is empty, contains U+0000, has a wildcard that is not a whole level, has `#` before
    /// the last level, or has an invalid share name.
    pub fn parse(text: &'a str) -> Result<Self, TopicError> {
        // [MQTT-4.7.3-3] [MQTT3-4.7.3-3]
        if text.len() > FIELD_BYTES_MAX {
            return Err(TopicError);
        }
        let filter = if let Some(rest) = text.strip_prefix(SHARE) {
            // [MQTT-4.8.2-2]
            let (group, filter) = rest.split_once('/').ok_or(TopicError)?;
            // [MQTT-4.8.2-1]
            if group.is_empty() || group.bytes().any(|byte| matches!(byte, b'+' | b'#' | 0)) {
                return Err(TopicError);
            }
            filter
        } else {
            text.strip_prefix(QUEUE).unwrap_or(text)
        };
        if is_valid_filter(filter) {
            Ok(Self(text))
        } else {
            Err(TopicError)
        }
    }

    /// A filter that [`Self::parse`] accepted before.
    pub(crate) const fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// The text as the client sent it.
    pub const fn as_str(self) -> &'a str {
        self.0
    }

    /// The parts of a shared filter; `None` for any other.
    pub fn shared(self) -> Option<SharedFilter<'a>> {
        if let Some(rest) = self.0.strip_prefix(SHARE) {
            let (group, filter) = rest.split_once('/')?;
            return Some(SharedFilter { group, filter });
        }
        let filter = self.0.strip_prefix(QUEUE)?;
        Some(SharedFilter {
            group: QUEUE_GROUP,
            filter,
        })
    }

    /// The filter without the share prefix, which topics are matched against.
    pub fn matched_part(self) -> &'a str {
        self.shared().map_or(self.0, |shared| shared.filter)
    }

    /// Whether the filter contains `+` or `#`.
    pub fn has_wildcard(self) -> bool {
        // A share name contains neither, so the prefix need not be removed.
        self.0.bytes().any(|byte| matches!(byte, b'+' | b'#'))
    }
}

/// Whether a topic name matches a filter without share prefix.
///
/// The filter must be valid; topics that begin with `$` match no filter that begins with a
/// wildcard.
#[inline]
pub fn matches(filter: &str, topic: &str) -> bool {
    let (mut filter, mut topic) = (filter.as_bytes(), topic.as_bytes());
    // [MQTT-4.7.2-1] [MQTT3-4.7.2-1]
    if topic.first() == Some(&b'$') && matches!(filter.first(), Some(b'+' | b'#')) {
        return false;
    }
    // Byte by byte, so nothing is normalised. [MQTT-4.7.3-4] [MQTT3-4.7.3-4]
    loop {
        (filter, topic) = match (filter, topic) {
            ([b'+', filter @ ..], _) => (filter, behind_level(topic)),
            // `#` also matches the parent level: `a/#` matches `a`.
            ([b'#'], _) | ([] | [b'/', b'#'], []) => return true,
            ([wanted, filter @ ..], [found, topic @ ..]) if wanted == found => (filter, topic),
            _ => return false,
        };
    }
}

/// The rest of a topic name after its first level.
#[inline]
fn behind_level(topic: &[u8]) -> &[u8] {
    let end = topic
        .iter()
        .position(|&byte| byte == b'/')
        .unwrap_or(topic.len());
    topic.get(end..).unwrap_or_default()
}

/// Whether the text is a valid topic name of a PUBLISH.
#[inline]
pub fn is_valid_name(topic: &str) -> bool {
    // [MQTT-4.7.3-1] [MQTT-4.7.3-3] [MQTT3-4.7.3-1] [MQTT3-4.7.3-3]
    !topic.is_empty() && topic.len() <= FIELD_BYTES_MAX && !has_forbidden(topic.as_bytes())
}

/// The levels of a topic name or filter, including empty ones.
#[inline]
pub fn levels(text: &str) -> core::str::Split<'_, char> {
    text.split('/')
}

/// Number of levels that [`levels`] returns: one more than the number of separators.
#[inline]
pub fn level_count(text: &str) -> usize {
    1 + text.bytes().filter(|&byte| byte == b'/').count()
}

/// Whether the text contains a character that no topic name may have: a wildcard or U+0000.
#[inline]
pub(crate) fn has_forbidden(topic: &[u8]) -> bool {
    // No early exit: names are short and usually valid, and the compiler turns the loop into a few
    // vector instructions. [MQTT-4.7.0-1] [MQTT-4.7.3-2] [MQTT3-4.7.1-1] [MQTT3-4.7.3-2]
    topic
        .iter()
        .fold(false, |bad, &byte| bad | matches!(byte, b'+' | b'#' | 0))
}

/// Whether a filter without share prefix is valid.
fn is_valid_filter(filter: &str) -> bool {
    // [MQTT-4.7.3-1] [MQTT-4.7.3-2] [MQTT3-4.7.3-1] [MQTT3-4.7.3-2]
    if filter.is_empty() {
        return false;
    }
    if !has_forbidden(filter.as_bytes()) {
        return true;
    }
    let mut levels = levels(filter);
    while let Some(level) = levels.next() {
        let valid = match level {
            // [MQTT-4.7.1-1] [MQTT3-4.7.1-2]
            "#" => levels.next().is_none(),
            // [MQTT-4.7.1-2] [MQTT3-4.7.1-3]
            "+" => true,
            literal => !has_forbidden(literal.as_bytes()),
        };
        if !valid {
            return false;
        }
    }
    true
}
