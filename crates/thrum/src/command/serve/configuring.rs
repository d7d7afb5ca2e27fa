//! The configuration as the management interface sees and changes it: plans, changes, versions.

use std::collections::BTreeMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::io;
use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value as Json;
use thrum_broker::config::Transport;
use thrum_files::is_no_room;
use thrum_management::api::{
    Applied, Configuration, ConfigurationKey, ConfigurationVersion, Difference, OverriddenKey,
    Plan, Reloaded,
};
use thrum_management::{
    ChangeOrder, ConfigurationChanges, ListenerOrder, PinnedKey, ProgramError, RollbackOrder, Thing,
};
use toml_edit::Value;

use super::reload::{Outcome, needs_restart};
use super::tasks::Serving;
use super::versions::{self, Head, Version};
use crate::config::{self, Config, Key, Kind, Loaded, Origin, managed, managed_changes};

/// A configuration that can be put in force.
struct Prepared {
    /// The file as it is now.
    before: Option<Version>,
    /// The file as it will be.
    text: String,
    head: Head,
    fresh: Loaded,
    differences: Vec<Difference>,
}

impl Serving {
    /// Every key with its value and its origin.
    pub(super) fn configuration(&self) -> Result<Configuration, ProgramError> {
        let in_force = &self.reload.in_force;
        let keys = config::keys();
        let defaults = by_key(&Config::default());
        let at_start = by_key(&self.reload.at_start);
        let shown = config::collected(&in_force.config).into_iter();
        let listed = shown.map(|(key, value)| {
            let origin = in_force.origin(&key);
            let restart = needs_restart(&key);
            let waits = restart && at_start.get(&key).map(written) != Some(written(&value));
            let json = |value: &Value| managed_changes::json_of(&keys.shown(&key, value));
            let leaf = leaf(&keys, &key);
            ConfigurationKey {
                value: json(&value),
                default: defaults.get(&key).map(json),
                origin: origin.kind().to_owned(),
                set_at: (*origin != Origin::Default).then(|| origin.to_string()),
                pinned: origin.is_pinned(),
                restart,
                waits,
                expected: leaf.map_or(String::new(), |leaf| leaf.expected().to_owned()),
                description: config::description(&keys, &key).to_owned(),
                secret: leaf.is_some_and(config::Leaf::is_secret),
                key,
            }
        });
        let data_dir = self.data_dir().ok();
        let version = match &data_dir {
            Some(data_dir) => versions::current(data_dir).map_err(|error| failed(&error))?,
            None => None,
        };
        let files = in_force.files.iter();
        Ok(Configuration {
            keys: listed.collect(),
            files: files.map(|file| file.display().to_string()).collect(),
            managed_file: data_dir.map(|folder| managed::path(&folder).display().to_string()),
            version: version.map_or(0, |version| version.head.version),
            reload_failure: self.reload.failure.clone(),
        })
    }

    /// What a change would do.
    pub(super) fn plan(&mut self, changes: &ConfigurationChanges) -> Result<Plan, ProgramError> {
        if changes.is_empty() && self.data_dir().is_err() {
            return self.plan_of_files();
        }
        let prepared = self.prepare(changes, "plan")?;
        let set: Vec<&str> = changes.keys().map(String::as_str).collect();
        let edited = other_keys(&prepared.differences, &set);
        Ok(plan(&prepared.differences, edited, prepared.fingerprint()))
    }

    /// What a reload would do.
    fn plan_of_files(&self) -> Result<Plan, ProgramError> {
        let mut fresh = config::load(&self.reload.request).map_err(|error| refused(&error))?;
        self.check(&mut fresh)?;
        let differences = self.differences(&fresh.config);
        let edited = other_keys(&differences, &[]);
        Ok(plan(&differences, edited, String::new()))
    }

    /// Makes a change, all of it or nothing.
    pub(super) fn apply(&mut self, order: &ChangeOrder) -> Result<Applied, ProgramError> {
        let prepared = self.prepare(&order.changes, &order.by)?;
        self.put_planned(prepared, &order.fingerprint)
    }

    /// The versions that can be returned to.
    pub(super) fn versions(&self) -> Result<Vec<ConfigurationVersion>, ProgramError> {
        let Ok(data_dir) = self.data_dir() else {
            return Ok(Vec::new());
        };
        let current = versions::current(&data_dir).map_err(|error| failed(&error))?;
        let current = current.map(|version| version.head.version);
        let all = versions::all(&data_dir).map_err(|error| failed(&error))?;
        let described = all.into_iter().map(|version| {
            let keys = managed_changes::values(&version.text(), managed::FILE);
            ConfigurationVersion {
                version: version.head.version,
                at: version.head.at,
                by: version.head.by,
                current: Some(version.head.version) == current,
                damaged: keys.is_err(),
                keys: keys.map_or(0, |keys| keys.len()),
            }
        });
        Ok(described.collect())
    }

    /// What a return to a version would do.
    pub(super) fn plan_rollback(&mut self, version: u64) -> Result<Plan, ProgramError> {
        let prepared = self.prepare_rollback(version, "plan")?;
        let keys = managed_changes::values(&prepared.text, managed::FILE);
        let keys = keys.map_err(|problems| refused(&problems))?;
        let keys: Vec<&String> = keys.keys().collect();
        let overridden = pinned(&prepared.fresh, &keys).into_iter();
        let overridden = overridden.map(|PinnedKey { key, at }| OverriddenKey { key, set_at: at });
        // Its own keys are in managed.toml, which it replaces.
        let is_edited = |key: &&Difference| {
            let (before, after) = (&self.reload.in_force, &prepared.fresh);
            before.origin(&key.key).is_pinned() || after.origin(&key.key).is_pinned()
        };
        let edited = prepared.differences.iter().filter(is_edited);
        let edited = edited.map(|difference| difference.key.clone()).collect();
        Ok(Plan {
            overridden: overridden.collect(),
            ..plan(&prepared.differences, edited, prepared.fingerprint())
        })
    }

    /// Returns to a version, as a new version.
    pub(super) fn roll_back(&mut self, order: &RollbackOrder) -> Result<Applied, ProgramError> {
        let prepared = self.prepare_rollback(order.version, &order.by)?;
        self.put_planned(prepared, &order.fingerprint)
    }

    /// Reads files and variables again.
    pub(super) fn reload(&mut self) -> Result<Reloaded, ProgramError> {
        let Outcome { changed, waiting } = self
            .reload
            .run(&mut self.broker)
            .map_err(ProgramError::Refused)?;
        Ok(Reloaded {
            changed,
            restart: waiting,
        })
    }

    /// Opens or closes a listener until the broker is started again.
    pub(super) fn set_listener(&mut self, order: &ListenerOrder) -> Result<(), ProgramError> {
        let ListenerOrder {
            name,
            opens,
            disconnects,
        } = order;
        let listeners = &self.reload.in_force.config.listeners;
        let Some(listener) = listeners.get(name) else {
            return Err(ProgramError::Missing {
                what: Thing::Listener,
                name: name.clone(),
            });
        };
        if !opens && listener.transport == Transport::Http && self.data_dir().is_err() {
            let what = format!(
                "without {name} nobody could start it again: this broker has no data directory, and so no control \
                 socket"
            );
            return Err(ProgramError::Conflict(what));
        }
        let was_open = self.broker.is_listening(name);
        let set = self.broker.set_listener(name, *opens);
        set.map_err(|error| ProgramError::Refused(error.to_string()))?;
        if *disconnects {
            self.broker.disconnect_listener(name);
        }
        match (was_open, *opens) {
            (false, true) => tracing::info!(listener = name, "the operator has started a listener"),
            (true, false) => tracing::warn!(
                listener = name,
                "the operator has stopped a listener until the next start"
            ),
            _ => {}
        }
        Ok(())
    }

    /// The directory of the file; it is that of the start.
    pub(super) fn data_dir(&self) -> Result<PathBuf, ProgramError> {
        let data_dir = &self.reload.at_start.node.data_dir;
        if data_dir.as_os_str().is_empty() {
            return Err(ProgramError::NoDataDirectory);
        }
        Ok(data_dir.clone())
    }

    fn prepare(
        &mut self,
        changes: &ConfigurationChanges,
        by: &str,
    ) -> Result<Prepared, ProgramError> {
        let data_dir = self.data_dir()?;
        let before = versions::current(&data_dir).map_err(|error| failed(&error))?;
        let text = before.as_ref().map_or(Ok(""), Version::undamaged)?;
        let text = text.to_owned();
        let set = changes.iter().filter(|(_, value)| !value.is_null());
        let set: Vec<&String> = set.map(|(key, _)| key).collect();
        self.prepared(before, by, |head| {
            managed_changes::changed(&text, changes, head).map_err(|problems| refused(&problems))
        })
        .and_then(|prepared| match pinned(&prepared.fresh, &set) {
            pinned if pinned.is_empty() => Ok(prepared),
            pinned => Err(ProgramError::Pinned(pinned)),
        })
    }

    fn prepare_rollback(&mut self, version: u64, by: &str) -> Result<Prepared, ProgramError> {
        let data_dir = self.data_dir()?;
        let text = if version == 0 {
            String::new()
        } else {
            let all = versions::all(&data_dir).map_err(|error| failed(&error))?;
            let found = all.into_iter().find(|one| one.head.version == version);
            let found = found.ok_or_else(|| ProgramError::Missing {
                what: Thing::Version,
                name: version.to_string(),
            })?;
            found.text().into_owned()
        };
        let before = versions::current(&data_dir).map_err(|error| failed(&error))?;
        self.prepared(before, by, |head| {
            let none = ConfigurationChanges::new();
            let changed = managed_changes::changed(&text, &none, head);
            changed.map_err(|problems| {
                ProgramError::Damaged(format!(
                    "version {version} is damaged too: {problems}\nnothing was changed"
                ))
            })
        })
    }

    /// Checks a file that does not exist yet, as a reload would.
    fn prepared(
        &mut self,
        before: Option<Version>,
        by: &str,
        text: impl FnOnce(&[String]) -> Result<String, ProgramError>,
    ) -> Result<Prepared, ProgramError> {
        let data_dir = self.data_dir()?;
        let next = versions::next(&data_dir).map_err(|error| failed(&error))?;
        let head = Head::new(next, by);
        let text = text(&head.lines())?;
        let loaded = config::load_with(&self.reload.request, &text);
        let mut fresh = loaded.map_err(|problems| refused(&problems))?;
        self.check(&mut fresh)?;
        Ok(Prepared {
            differences: self.differences(&fresh.config),
            before,
            text,
            head,
            fresh,
        })
    }

    /// Checks whether the broker could take a configuration over.
    fn check(&self, fresh: &mut Loaded) -> Result<(), ProgramError> {
        self.reload.fit(fresh);
        let checked = self.broker.check_reload(fresh);
        checked.map_err(|error| ProgramError::Refused(format!("{error:#}")))
    }

    /// Puts it in force if it is what was planned.
    fn put_planned(
        &mut self,
        prepared: Prepared,
        fingerprint: &str,
    ) -> Result<Applied, ProgramError> {
        if prepared.fingerprint() != fingerprint {
            return Err(ProgramError::Changed);
        }
        self.put_in_force(prepared)
    }

    fn put_in_force(&mut self, prepared: Prepared) -> Result<Applied, ProgramError> {
        let data_dir = self.data_dir()?;
        let Prepared {
            before,
            text,
            head,
            fresh,
            differences,
        } = prepared;
        versions::put(&data_dir, &text).map_err(|error| not_written(&error))?;
        if let Err(error) = self.reload.take_over(fresh, &mut self.broker) {
            let back = versions::take_back(&data_dir, before.as_ref());
            if let Err(error) = back {
                tracing::error!(%error, "the file of a change that failed stays, and holds from the next start on");
            }
            return Err(ProgramError::Refused(error));
        }
        Ok(Applied {
            version: head.version,
            restart: waiting(&differences),
            differences,
        })
    }

    /// What differs from what is in force.
    fn differences(&self, fresh: &Config) -> Vec<Difference> {
        let keys = config::keys();
        let at_start = by_key(&self.reload.at_start);
        let before = by_key(&self.reload.in_force.config);
        let after = by_key(fresh);
        let mut all: Vec<&String> = before.keys().chain(after.keys()).collect();
        all.sort();
        all.dedup();
        let differs = all.into_iter().filter(|key| {
            let (before, after) = (before.get(*key), after.get(*key));
            before.map(written) != after.map(written)
        });
        let shown = |key: &str, value: Option<&Value>| -> Option<Json> {
            value.map(|value| managed_changes::json_of(&keys.shown(key, value)))
        };
        let difference = |key: &String| {
            let after = after.get(key);
            let waits = at_start.get(key).map(written) != after.map(written);
            Difference {
                key: key.clone(),
                before: shown(key, before.get(key)),
                after: shown(key, after),
                restart: needs_restart(key) && waits,
            }
        };
        differs.map(difference).collect()
    }
}

impl Prepared {
    /// Differs whenever the file, another source of settings or the change differs. It is keyed, so
    /// that it tells nothing about secrets.
    fn fingerprint(&self) -> String {
        static KEY: OnceLock<RandomState> = OnceLock::new();
        let mut hasher = KEY.get_or_init(RandomState::new).build_hasher();
        let before = self.before.as_ref().map(|version| &version.bytes);
        before.hash(&mut hasher);
        // A key that is set elsewhere too differs in nothing else. The head has the time.
        let lines = self.text.lines().filter(|line| !line.starts_with('#'));
        lines.for_each(|line| line.hash(&mut hasher));
        for (key, value) in by_key(&self.fresh.config) {
            (key, written(&value)).hash(&mut hasher);
        }
        for difference in &self.differences {
            format!("{difference:?}").hash(&mut hasher);
        }
        format!("{:016x}", hasher.finish())
    }
}

fn plan(differences: &[Difference], edited: Vec<String>, fingerprint: String) -> Plan {
    Plan {
        restart: waiting(differences),
        differences: differences.to_vec(),
        edited,
        overridden: Vec::new(),
        fingerprint,
    }
}

/// Keys that differ and are neither one of those that are set nor in a table that one of them
/// names.
fn other_keys(differences: &[Difference], set: &[&str]) -> Vec<String> {
    let is_set = |key: &str| {
        set.iter().any(|set| {
            let rest = key.strip_prefix(set);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    };
    let keys = differences.iter().map(|difference| &difference.key);
    keys.filter(|key| !is_set(key)).cloned().collect()
}

fn waiting(differences: &[Difference]) -> Vec<String> {
    let waiting = differences.iter().filter(|difference| difference.restart);
    waiting.map(|difference| difference.key.clone()).collect()
}

/// The keys that are to be set here, and are set by a source that wins.
fn pinned(fresh: &Loaded, set: &[&String]) -> Vec<PinnedKey> {
    let pinned = set.iter().filter(|key| fresh.origin(key).is_pinned());
    pinned
        .map(|key| PinnedKey {
            key: (*key).clone(),
            at: fresh.origin(key).to_string(),
        })
        .collect()
}

fn by_key(config: &Config) -> BTreeMap<String, Value> {
    config::collected(config).into_iter().collect()
}

fn written(value: &Value) -> String {
    value.clone().decorated("", "").to_string()
}

fn leaf<'k>(keys: &'k Key, key: &str) -> Option<&'k config::Leaf> {
    let path: Vec<String> = key.split('.').map(str::to_owned).collect();
    match &keys.at(&path)?.kind {
        Kind::Value(leaf) => Some(leaf),
        Kind::Table(_) | Kind::Named(_) => None,
    }
}

impl Version {
    /// The text of the file in force, to which keys are added.
    fn undamaged(&self) -> Result<&str, ProgramError> {
        let damaged = |what: String| ProgramError::Damaged(format!("{what}\nnothing was changed"));
        let text = std::str::from_utf8(&self.bytes).map_err(|error| {
            damaged(format!(
                "{}: byte {} is no UTF-8",
                managed::FILE,
                error.valid_up_to()
            ))
        })?;
        managed_changes::values(text, managed::FILE)
            .map_err(|problems| damaged(problems.to_string()))?;
        Ok(text)
    }
}

/// The end has a line of its own: the last one of a problem has its carets.
fn refused(problems: &config::Problems) -> ProgramError {
    ProgramError::Refused(format!("{problems}\nnothing was changed"))
}

fn failed(error: &io::Error) -> ProgramError {
    ProgramError::Io(format!("{}: {error}", managed::FILE))
}

fn not_written(error: &io::Error) -> ProgramError {
    if is_no_room(error) {
        ProgramError::NoRoom(format!("{} cannot be written: {error}", managed::FILE))
    } else {
        failed(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_outside_of_the_tables_that_are_set_are_others() {
        let difference = |key: &str| Difference {
            key: key.to_owned(),
            before: None,
            after: None,
            restart: false,
        };
        let edits = [
            "listeners.a",
            "listeners.a.bind",
            "listeners.ab",
            "node.name",
        ];
        let edits = edits.map(difference);
        assert_eq!(
            other_keys(&edits, &["listeners.a"]),
            ["listeners.ab", "node.name"]
        );
        assert_eq!(other_keys(&edits, &["listeners", "node.name"]), [""; 0]);
        assert_eq!(other_keys(&edits, &[]).len(), 4);
    }

    #[test]
    fn a_full_disk_is_told_apart_from_other_errors() {
        let full = not_written(&io::ErrorKind::StorageFull.into());
        assert!(matches!(full, ProgramError::NoRoom(_)), "{full:?}");
        let denied = not_written(&io::ErrorKind::PermissionDenied.into());
        assert!(matches!(denied, ProgramError::Io(_)), "{denied:?}");
    }
}
