//! Keys that are read at a start only.

use super::Config;

/// Keys, and tables of keys, that are read at a start only.
const AT_START: [&str; 8] = [
    "node.workers",
    "node.data_dir",
    "shared",
    "storage",
    "protection.bans",
    "limits.mailbox_messages",
    "limits.mailbox_bytes",
    "limits.tcp_keepalive",
];
/// The key among them that is not: it applies to clients that connect from then on.
const HOT_AMONG_THEM: &str = "storage.wills";

impl Config {
    /// Whether a new value of a key takes effect at a restart.
    pub fn needs_restart(key: &str) -> bool {
        let is_in = |table: &&str| {
            key.strip_prefix(*table)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        key != HOT_AMONG_THEM && AT_START.iter().any(is_in)
    }

    /// Keys whose value in another configuration takes effect at a restart.
    pub(crate) fn keys_for_restart(&self, config: &Self) -> Vec<String> {
        let mut waiting = Vec::new();
        if config.node.workers != self.node.workers {
            waiting.push("node.workers".to_owned());
        }
        if config.shared != self.shared {
            waiting.push("shared".to_owned());
        }
        if config.node.data_dir != self.node.data_dir {
            waiting.push("node.data_dir".to_owned());
        }
        let (mut storage, old_storage) = (config.storage, self.storage);
        // The new value applies to clients that connect from now on.
        storage.wills = old_storage.wills;
        if storage != old_storage {
            waiting.push("storage".to_owned());
        }
        if config.protection.bans != self.protection.bans {
            waiting.push("protection.bans".to_owned());
        }
        let (limits, old) = (&config.limits, &self.limits);
        if limits.mailbox_messages != old.mailbox_messages {
            waiting.push("limits.mailbox_messages".to_owned());
        }
        if limits.mailbox_bytes != old.mailbox_bytes {
            waiting.push("limits.mailbox_bytes".to_owned());
        }
        if limits.tcp_keepalive != old.tcp_keepalive {
            waiting.push("limits.tcp_keepalive".to_owned());
        }
        waiting
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::{Durability, Wills, Workers};

    /// A key, and another value of it.
    type Changed = (&'static str, fn(&mut Config));

    const CHANGED: [Changed; 10] = [
        ("node.workers", |to| {
            to.node.workers = Workers::Count(7);
        }),
        ("node.data_dir", |to| {
            to.node.data_dir = "x".into();
        }),
        ("node.timeline_bytes", |to| {
            to.node.timeline_bytes = 1;
        }),
        ("storage.durability", |to| {
            to.storage.durability = Durability::Os;
        }),
        ("storage.wills", |to| {
            to.storage.wills = Wills::Persistent;
        }),
        ("protection.bans", |to| {
            to.protection.bans = "x".into();
        }),
        ("limits.mailbox_bytes", |to| {
            to.limits.mailbox_bytes += 1;
        }),
        ("limits.mailbox_messages", |to| {
            to.limits.mailbox_messages += 1;
        }),
        ("limits.tcp_keepalive", |to| {
            to.limits.tcp_keepalive += Duration::from_secs(1);
        }),
        ("limits.connections", |to| {
            to.limits.connections = 5;
        }),
    ];

    #[test]
    fn a_key_waits_for_a_restart_exactly_if_it_says_so() {
        let config = Config::default();
        for (key, change) in CHANGED {
            let mut changed = config.clone();
            change(&mut changed);
            let waits = !config.keys_for_restart(&changed).is_empty();
            assert_eq!(Config::needs_restart(key), waits, "{key}");
        }
        assert!(Config::needs_restart("shared.strategy"));
        assert!(!Config::needs_restart("storage_of_others"));
    }
}
