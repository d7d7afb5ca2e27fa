//! The mount point of a listener: a topic prefix that its clients do not see.
//!
//! The prefix is added to the topics and filters that a client sends, including its will, and
//! removed from the topics that it receives. Everything else on the node uses whole topics only, so
//! clients of different mount points are isolated from each other.

use alloc::string::String;
use alloc::sync::Arc;

use thrum_codec::TopicFilter;

/// Longest mount point in bytes: long enough for several levels, and short enough that a topic of
/// the default limit still fits after it.
pub const MOUNT_POINT_BYTES_MAX: usize = 1024;

/// Longest topic name or filter on the wire, in bytes.
const TOPIC_BYTES_MAX: usize = 65_535;

/// A prefix of whole levels: it ends with `/`, contains no wildcard and does not start with `$`.
/// Clones share its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountPoint(Arc<str>);

/// Reason why a text is not a valid mount point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MountPointError {
    /// The text is empty, or its last level is incomplete.
    #[error("a mount point must end with a slash")]
    NoSlashAtEnd,
    /// The text contains `+`, `#` or U+0000.
    #[error("a mount point must not contain +, # or NUL")]
    Forbidden,
    /// The prefix `$` is reserved for topics of the broker and for shared subscriptions.
    #[error("a mount point must not begin with a dollar sign")]
    DollarInFront,
    /// The text exceeds [`MOUNT_POINT_BYTES_MAX`].
    #[error("a mount point has at most {MOUNT_POINT_BYTES_MAX} bytes")]
    TooLong,
}

impl MountPoint {
    /// Checks a prefix.
    ///
    /// # Errors
    /// The violated rule.
    pub fn parse(text: &str) -> Result<Self, MountPointError> {
        if !text.ends_with('/') {
            return Err(MountPointError::NoSlashAtEnd);
        }
        if text.contains(['+', '#', '\0']) {
            return Err(MountPointError::Forbidden);
        }
        if text.starts_with('$') {
            return Err(MountPointError::DollarInFront);
        }
        if text.len() > MOUNT_POINT_BYTES_MAX {
            return Err(MountPointError::TooLong);
        }
        Ok(Self(text.into()))
    }

    /// The prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The whole topic of the client's `topic`, in memory that the caller reuses; `None` if it
    /// exceeds the 65,535 bytes of a topic.
    pub fn mounted_topic<'s>(&self, topic: &str, scratch: &'s mut String) -> Option<&'s str> {
        scratch.clear();
        self.append("", topic, scratch)?;
        Some(scratch)
    }

    /// The whole filter of the client's `filter`; the prefix of a shared one follows
    /// `$share/GROUP/`. `None` if it exceeds the 65,535 bytes of a filter.
    pub fn mounted_filter<'s>(
        &self,
        filter: TopicFilter<'_>,
        scratch: &'s mut String,
    ) -> Option<TopicFilter<'s>> {
        let matched = filter.matched_part();
        let (share, _) = filter
            .as_str()
            .split_at(filter.as_str().len() - matched.len());
        scratch.clear();
        self.append(share, matched, scratch)?;
        // A valid filter after whole literal levels is valid.
        TopicFilter::parse(scratch).ok()
    }

    /// The topic as a client with this mount point sees it; `None` if the topic is outside of the
    /// mount point.
    pub fn seen_topic<'t>(&self, topic: &'t str) -> Option<&'t str> {
        topic
            .strip_prefix(&*self.0)
            .filter(|topic| !topic.is_empty())
    }

    fn append(&self, share: &str, rest: &str, scratch: &mut String) -> Option<()> {
        let len = share.len() + self.0.len() + rest.len();
        if len > TOPIC_BYTES_MAX {
            return None;
        }
        scratch.reserve(len);
        scratch.push_str(share);
        scratch.push_str(&self.0);
        scratch.push_str(rest);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use thrum_codec::topic::{is_valid_name, matches};

    use super::*;

    fn mount(text: &str) -> MountPoint {
        MountPoint::parse(text).unwrap()
    }

    #[test]
    fn a_mount_point_is_whole_literal_levels() {
        for text in ["/", "a/", "tenant/a b/", "//", "a$/"] {
            assert_eq!(mount(text).as_str(), text);
        }
        let error = |text: &str| MountPoint::parse(text).unwrap_err();
        assert_eq!(error(""), MountPointError::NoSlashAtEnd);
        assert_eq!(error("a"), MountPointError::NoSlashAtEnd);
        for text in ["+/", "a/#/", "a\0/", "a+/"] {
            assert_eq!(error(text), MountPointError::Forbidden);
        }
        assert_eq!(error("$share/g/"), MountPointError::DollarInFront);
        let long = "x".repeat(MOUNT_POINT_BYTES_MAX) + "/";
        assert_eq!(error(&long), MountPointError::TooLong);
        assert!(MountPoint::parse(&long[1..]).is_ok());
    }

    #[test]
    fn the_prefix_of_a_shared_filter_follows_its_group() {
        let mut scratch = String::from("old content");
        for (filter, expected) in [
            ("a/+", "m/a/+"),
            ("#", "m/#"),
            ("$share/g/a/#", "$share/g/m/a/#"),
            ("$queue/a", "$queue/m/a"),
            ("$share/g//", "$share/g/m//"),
            ("$SYS/#", "m/$SYS/#"),
        ] {
            let filter = TopicFilter::parse(filter).unwrap();
            let mounted = mount("m/").mounted_filter(filter, &mut scratch);
            assert_eq!(mounted.map(TopicFilter::as_str), Some(expected));
        }
    }

    #[test]
    fn a_topic_over_the_limit_of_the_wire_format_is_refused() {
        let longest = "x".repeat(TOPIC_BYTES_MAX - 2);
        let mut scratch = String::new();
        let mount = mount("m/");
        assert!(mount.mounted_topic(&longest, &mut scratch).is_some());
        let longer = "x".repeat(TOPIC_BYTES_MAX - 1);
        assert_eq!(mount.mounted_topic(&longer, &mut scratch), None);
        let filter = TopicFilter::parse(&longer).unwrap();
        assert_eq!(mount.mounted_filter(filter, &mut scratch), None);
    }

    #[test]
    fn topics_outside_of_the_mount_point_are_not_visible() {
        let mount = mount("m/n/");
        assert_eq!(mount.seen_topic("m/n/a"), Some("a"));
        assert_eq!(mount.seen_topic("m/n//"), Some("/"));
        for outside in ["m/n/", "m/n", "m/nn/a", "m/", "a", "M/n/a"] {
            assert_eq!(mount.seen_topic(outside), None);
        }
    }

    proptest! {
        #[test]
        fn a_client_sees_its_own_topic_unchanged(
            prefix in "([a-c/]{0,6})/",
            topic in "[a-d/\u{fc}]{1,12}",
            filter in "[a-d/\u{fc}]{0,6}(/\\+)?(/#)?",
        ) {
            let mount = mount(&prefix);
            let (mut first, mut second) = (String::new(), String::new());
            let whole = mount.mounted_topic(&topic, &mut first).unwrap();
            prop_assert!(is_valid_name(whole));
            prop_assert_eq!(mount.seen_topic(whole), Some(&*topic));
            // A filter matches with the prefix exactly if it matches without.
            if let Ok(filter) = TopicFilter::parse(&filter) {
                let mounted = mount.mounted_filter(filter, &mut second).unwrap();
                prop_assert_eq!(matches(mounted.as_str(), whole), matches(filter.as_str(), &topic));
            }
        }
    }
}
