//! The mount point of a listener, with the names of its clients in it.

use thrum_access::Identity;
use thrum_protocol::MountPoint;

/// A mount point as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountTemplate(Box<str>);

impl MountTemplate {
    /// None if there is no mount point.
    pub(super) fn new(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// The mount point of one client; none if it lacks a required name, or a name would be more
    /// than a level.
    pub(crate) fn point_of(&self, identity: &Identity) -> Option<MountPoint> {
        let mut text = String::new();
        let mut rest = &*self.0;
        while let Some((before, after)) = rest.split_once('%') {
            text.push_str(before);
            let mut letters = after.chars();
            let value = match letters.next() {
                Some('c') => Some(&*identity.client_id),
                Some('u') => identity.username.as_deref(),
                Some('%') => Some("%"),
                _ => None,
            }?;
            let is_name = !value.is_empty() && !value.contains(['/', '+', '#', '\0']);
            is_name.then(|| text.push_str(value))?;
            rest = letters.as_str();
        }
        text.push_str(rest);
        MountPoint::parse(&text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(template: &str, client_id: &str, username: Option<&str>) -> Option<String> {
        let identity = Identity {
            client_id: client_id.into(),
            username: username.map(Into::into),
            ..Identity::default()
        };
        let template = MountTemplate::new(template).unwrap();
        Some(template.point_of(&identity)?.as_str().to_owned())
    }

    #[test]
    fn names_of_the_client_are_filled_in() {
        let user = Some("anna");
        assert_eq!(point("t/%u/%c/", "c1", user).as_deref(), Some("t/anna/c1/"));
        assert_eq!(point("100%%/", "c1", None).as_deref(), Some("100%/"));
        assert_eq!(point("plain/", "c1", None).as_deref(), Some("plain/"));
    }

    #[test]
    fn names_that_are_no_level_lead_nowhere() {
        assert_eq!(point("t/%u/", "c1", None), None);
        for name in ["", "a/b", "+", "#", "a#"] {
            assert_eq!(point("t/%c/", name, None), None, "{name}");
        }
        assert_eq!(point("t/%x/", "c1", None), None);
        assert_eq!(point("t/%u", "c1", Some("anna")), None);
        assert_eq!(point("%c/", "$SYS", None), None);
    }
}
