//! Rules for all clients: from the configuration, from a file of thrum's own form and from one of
//! Mosquitto.

use std::fmt::{Debug, Display};
use std::path::Path;
use std::sync::Arc;

use thrum_access::Rules;

use crate::config::{AclConfig, DefaultAccess, DeniedPublish, PartialSubscription, RuleOrder};
use crate::watched::Watched;

/// Most bytes of a file with rules.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The rules for all clients that are in force.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Rules for all clients, in their order.
    pub rules: Arc<Rules>,
    /// Whether actions about which nothing decides are allowed.
    pub allows_by_default: bool,
    /// The order of evaluation.
    pub order: Vec<RuleOrder>,
    /// The reaction to a publish that is denied.
    pub denied_publish: DeniedPublish,
    /// The handling of a partly allowed subscription.
    pub partial: PartialSubscription,
    /// Whether retained messages are checked again when rules or users change.
    pub check_retained_source: bool,
}

/// The sources of the rules for all clients.
#[derive(Debug)]
pub(crate) struct PolicySource {
    config: AclConfig,
    listed: Rules,
    files: Vec<Watched<Rules>>,
}

impl PolicySource {
    /// Reads all of it.
    ///
    /// # Errors
    /// Every wrong rule, and its source.
    pub(crate) fn load(config: &AclConfig) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let listed = Rules::parse_list(&config.rules, "acl.rules").unwrap_or_else(|errors| {
            problems.extend(errors.iter().map(ToString::to_string));
            Rules::new()
        });
        let mut files = Vec::new();
        let mut add = |path: &Path, read: fn(&Path) -> Result<Rules, String>| {
            if path.as_os_str().is_empty() {
                return;
            }
            match Watched::load(path, read) {
                Ok(file) => files.push(file),
                Err(problem) => problems.push(problem),
            }
        };
        add(&config.file, read);
        add(&config.mosquitto_file, read_mosquitto);
        if !problems.is_empty() {
            return Err(problems);
        }
        Ok(Self {
            config: config.clone(),
            listed,
            files,
        })
    }

    /// Reads changed files again; true if there is something new. `bad` is called with each file
    /// that has a wrong rule; its old rules stay.
    pub(crate) fn reread(&self, mut bad: impl FnMut(String)) -> bool {
        let mut has_changed = false;
        for file in &self.files {
            match file.refresh() {
                Ok(is_new) => has_changed |= is_new,
                Err(error) => bad(error),
            }
        }
        has_changed
    }

    /// The rules in force. `has_users`: whether users or backends are set up.
    pub(crate) fn policy(&self, has_users: bool) -> Policy {
        let files: Vec<Arc<Rules>> = self.files.iter().map(Watched::current).collect();
        let of_files = files.iter().flat_map(|rules| rules.iter());
        let rules: Rules = self.listed.iter().chain(of_files).cloned().collect();
        // An empty file of rules counts as set up as well.
        let is_set_up = has_users || !rules.is_empty() || !files.is_empty();
        Policy {
            rules: Arc::new(rules),
            allows_by_default: match self.config.default {
                DefaultAccess::Auto => !is_set_up,
                DefaultAccess::Allow => true,
                DefaultAccess::Deny => false,
            },
            order: self.config.order.clone(),
            denied_publish: self.config.denied_publish,
            partial: self.config.partial,
            check_retained_source: self.config.check_retained_source,
        }
    }
}

fn read(path: &Path) -> Result<Rules, String> {
    let text = text(path)?;
    Rules::parse(&text, path.display().to_string()).map_err(|errors| lines(&errors))
}

fn read_mosquitto(path: &Path) -> Result<Rules, String> {
    let text = text(path)?;
    Rules::from_mosquitto(&text, path.display().to_string()).map_err(|errors| lines(&errors))
}

fn text(path: &Path) -> Result<String, String> {
    let read = thrum_files::read_named_text(path, FILE_BYTES_MAX);
    read.map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn lines(errors: &[impl Display]) -> String {
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    errors.join("\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::watched::write_before;

    #[test]
    fn a_file_that_cannot_be_used_does_not_hide_a_change_of_another() {
        let folder = std::env::temp_dir().join(format!("thrum-policy-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let config = AclConfig {
            file: folder.join("own.acl"),
            mosquitto_file: folder.join("mosquitto.acl"),
            ..AclConfig::default()
        };
        fs::write(&config.file, "allow all pub a\n").unwrap();
        fs::write(&config.mosquitto_file, "topic read a\n").unwrap();
        let source = PolicySource::load(&config).unwrap();
        let before = source.policy(true).rules.len();
        write_before(&config.file, "allow all pub a\nallow all pub b\n");
        write_before(&config.mosquitto_file, "nothing that is known\n");
        let mut bad = Vec::new();
        assert!(source.reread(|error| bad.push(error)));
        assert_eq!(bad.len(), 1, "{bad:?}");
        assert_eq!(source.policy(true).rules.len(), before + 1);
        fs::remove_dir_all(&folder).unwrap();
    }
}
