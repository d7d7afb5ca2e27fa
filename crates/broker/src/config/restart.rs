//! Keys that are read at a start only.

use super::Config;

impl Config {
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
