//! Every option that mosquitto 2.0 and 2.1 document, and what becomes of it.

mod bridge;
mod general;
mod listener;

use super::value::Form;

/// An option of mosquitto.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its name; a `*` at the end stands for any rest.
    pub(super) name: &'static str,
    /// Its scope.
    pub(super) scope: Scope,
    /// Its possible values.
    pub(super) form: Form,
    /// Its conversion.
    pub(super) fate: Fate,
}

/// The scope of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// The broker.
    General,
    /// The broker, or with `per_listener_settings` the listener above it.
    Security,
    /// The listener above it.
    Listener,
    /// The default listener, wherever it stands.
    DefaultListener,
    /// Begins a listener.
    NewListener,
    /// Begins a plugin.
    NewPlugin,
    /// The plugin above it.
    Plugin,
    /// Begins a bridge.
    NewBridge,
    /// The bridge above it.
    Bridge,
}

/// The conversion of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// A key has it.
    Carried(&'static str),
    /// A key has it, and is not quite the same.
    Noted(&'static str, &'static str),
    /// No key is needed: thrum always does this.
    Anyway(&'static str),
    /// It has no counterpart.
    Dropped {
        /// The reason.
        why: &'static str,
        /// The value that asks for nothing, and so loses nothing.
        off: &'static str,
    },
}

impl Fate {
    /// The keys that have it, for people.
    pub(super) fn keys(self) -> &'static str {
        match self {
            Self::Carried(keys) | Self::Noted(keys, _) => keys,
            Self::Anyway(_) | Self::Dropped { .. } => "",
        }
    }

    /// The note about it.
    pub(super) fn note(self) -> &'static str {
        match self {
            Self::Carried(_) => "",
            Self::Noted(_, note) | Self::Anyway(note) => note,
            Self::Dropped { why, .. } => why,
        }
    }
}

/// All options, by their kinds.
pub(super) fn all() -> impl Iterator<Item = &'static Entry> {
    let tables = [general::OPTIONS, listener::OPTIONS, bridge::OPTIONS];
    tables.into_iter().flatten()
}

/// The option of that name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    all().find(|entry| match entry.name.strip_suffix('*') {
        Some(prefix) => name.len() > prefix.len() && name.starts_with(prefix),
        None => name == entry.name,
    })
}

const fn dropped(why: &'static str) -> Fate {
    Fate::Dropped { why, off: "" }
}

const fn dropped_unless(off: &'static str, why: &'static str) -> Fate {
    Fate::Dropped { why, off }
}

const fn entry(name: &'static str, scope: Scope, form: Form, fate: Fate) -> Entry {
    Entry {
        name,
        scope,
        form,
        fate,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENTED: &str = include_str!("documented.txt");

    #[test]
    fn every_documented_option_has_its_entry_and_only_one() {
        let names: Vec<&str> = all().map(|entry| entry.name).collect();
        let unique: BTreeSet<&str> = names.iter().copied().collect();
        assert_eq!(unique.len(), names.len(), "a name has two entries");
        let documented: BTreeSet<&str> = DOCUMENTED
            .lines()
            .filter(|line| !line.starts_with('#'))
            .collect();
        assert_eq!(unique, documented);
    }

    #[test]
    fn every_option_that_is_not_carried_over_as_it_is_says_why() {
        for entry in all() {
            let note = entry.fate.note();
            let is_carried = matches!(entry.fate, Fate::Carried(_));
            assert_eq!(note.is_empty(), is_carried, "{}", entry.name);
            assert!(!note.ends_with('.') && !note.contains('|'), "{note}");
        }
    }

    #[test]
    fn a_star_stands_for_a_rest_that_is_not_empty() {
        assert_eq!(find("plugin_opt_a").unwrap().name, "plugin_opt_*");
        assert!(find("plugin_opt_").is_none());
        assert!(find("listeners").is_none());
    }
}
