//! Authentication and authorization: password files, anonymous clients, the ACL.

use super::super::draft::{Draft, Origin};
use super::super::scope::{Configuration, Setting};
use super::listener::Converted;
use super::plugin::Plugins;
use super::{find, general, text};

/// The built-in user store, which is asked before all others.
const STORE: &str = "users";
/// Its file, where no data directory has one.
const STORE_FILE: &str = "users.jsonl";
/// The difference for a listener without password file if others have one.
const STRANGERS: &str = "a client that sends a user name is refused here, because the name is unknown: leave \
                         the name out, or add the user (thrum users add)";
/// The difference for an ACL if no user has a password.
const UNVERIFIED: &str = "lines behind `user` and patterns with %u match no client until there are users (thrum users add): \
                          mosquitto accepts any user name if there is no password_file, here only a verified one counts";
/// Options of security that no key has.
const OTHERS: [&str; 2] = ["auto_id_prefix", "psk_file"];

/// Sets the keys of `[auth]`, `[acl]` and of each listener's security.
pub(super) fn convert(
    configuration: &Configuration,
    listeners: &[Converted<'_>],
    plugins: Plugins,
    draft: &mut Draft,
) {
    let general = &configuration.general;
    let backends = passwords(general, listeners, draft);
    let has_store = store(general, listeners, &backends, plugins, draft);
    chains(general, listeners, &backends, has_store, draft);
    anonymous(configuration, listeners, !backends.is_empty(), draft);
    let is_verified = !backends.is_empty() || plugins.have_users || names_certificates(listeners);
    access(general, listeners, plugins, draft);
    retained_sources(general, listeners, plugins, draft);
    identifiers(general, listeners, draft);
    if !is_verified {
        unverified(general, listeners, draft);
    }
    let own = listeners.iter().map(|listener| listener.settings);
    for settings in std::iter::once(general.as_slice()).chain(own) {
        let others = OTHERS.iter().filter_map(|name| find(settings, name));
        others.for_each(|setting| draft.by_entry(setting));
    }
}

/// Whether a listener takes user names from certificates.
fn names_certificates(listeners: &[Converted<'_>]) -> bool {
    let names = ["use_identity_as_username", "use_subject_as_username"];
    listeners.iter().any(|listener| {
        let mut settings = names
            .iter()
            .filter_map(|name| find(listener.settings, name));
        settings.any(|setting| setting.value.is_true())
    })
}

/// User names are not verified, and mosquitto accepts them unchecked.
fn unverified(general: &[Setting], listeners: &[Converted<'_>], draft: &mut Draft) {
    let own = listeners.iter().map(|listener| listener.settings);
    let settings = std::iter::once(general).chain(own);
    for setting in settings.filter_map(|settings| find(settings, "acl_file")) {
        draft.add_note(setting, UNVERIFIED);
    }
}

/// A backend for each password file: gives their paths and names.
fn passwords<'a>(
    general: &'a [Setting],
    listeners: &[Converted<'a>],
    draft: &mut Draft,
) -> Vec<(&'a str, String)> {
    let mut backends: Vec<(&str, String)> = Vec::new();
    let own = listeners.iter().map(|listener| listener.settings);
    let settings = std::iter::once(general).chain(own);
    for setting in settings.filter_map(|settings| find(settings, "password_file")) {
        let path = setting.value.text();
        let known = backends.iter().find(|(known, _)| *known == path);
        let name = known.map_or_else(|| backend_name(backends.len()), |(_, name)| name.clone());
        if known.is_none() {
            draft.set(format!("auth.password_file.{name}"), "path", path, setting);
            backends.push((path, name.clone()));
        }
        draft.carried(setting, format!("auth.password_file.{name}.path"));
    }
    backends
}

/// Names of the backends of a listener.
fn names(
    general: &[Setting],
    listener: &Converted<'_>,
    backends: &[(&str, String)],
) -> Vec<String> {
    let files = [general, listener.settings].map(|settings| text(settings, "password_file"));
    let own = backends
        .iter()
        .filter(|(path, _)| files.contains(&Some(*path)));
    own.map(|(_, name)| name.clone()).collect()
}

/// Whether there is a file for the built-in store: in the data directory, or one of its own if it
/// is needed. It is for the users of a plugin, and for a listener without passwords beside others,
/// because a chain cannot be empty.
fn store(
    general: &[Setting],
    listeners: &[Converted<'_>],
    backends: &[(&str, String)],
    plugins: Plugins,
    draft: &mut Draft,
) -> bool {
    if general::persists(general) || plugins.persist {
        return true;
    }
    let has_none = |listener| names(general, listener, backends).is_empty();
    let why = if plugins.have_users {
        "for the users of the plugin"
    } else if !backends.is_empty() && listeners.iter().any(has_none) {
        "for listeners without password_file"
    } else {
        return false;
    };
    draft.set("auth", "users", STORE_FILE, Origin::Default(why));
    true
}

/// A listener that has not all of the password files names its own.
fn chains(
    general: &[Setting],
    listeners: &[Converted<'_>],
    backends: &[(&str, String)],
    has_store: bool,
    draft: &mut Draft,
) {
    for listener in listeners {
        let own = names(general, listener, backends);
        if own.len() == backends.len() {
            continue;
        }
        let users = has_store.then(|| STORE.to_owned());
        let chain: toml_edit::Array = users.into_iter().chain(own).collect();
        let origin = find(listener.settings, "password_file");
        let origin = origin.map_or(Origin::Default("it has no password_file"), Origin::from);
        draft.set(
            format!("listeners.{}", listener.name),
            "auth",
            chain,
            origin,
        );
    }
}

/// Name of one more backend.
fn backend_name(count: usize) -> String {
    match count {
        0 => "mosquitto".to_owned(),
        count => format!("mosquitto-{}", count + 1),
    }
}

/// Anonymous clients are refused unless they are allowed. `is_checked`: there is a password file
/// somewhere.
fn anonymous(
    configuration: &Configuration,
    listeners: &[Converted<'_>],
    is_checked: bool,
    draft: &mut Draft,
) {
    let has_own = |settings: &[Setting]| find(settings, "password_file").is_some();
    let is_shared = has_own(&configuration.general);
    let shared = find(&configuration.general, "allow_anonymous");
    match shared {
        Some(setting) => {
            draft.set("auth", "anonymous", setting.value.is_true(), setting);
            draft.carried(setting, "auth.anonymous");
        }
        None if configuration.has_listener => {
            let why = Origin::Default("mosquitto with a listener");
            draft.set("auth", "anonymous", false, why);
        }
        None => {
            let why = Origin::Default("mosquitto without a listener");
            draft.set("auth", "anonymous", "loopback", why);
        }
    }
    for listener in listeners {
        let own = find(listener.settings, "listener_allow_anonymous");
        let older = find(listener.settings, "allow_anonymous");
        if let (Some(_), Some(older)) = (own, older) {
            draft.dropped(older, "listener_allow_anonymous of its listener counts");
        }
        if let Some(setting) = own.or(older) {
            let table = format!("listeners.{}", listener.name);
            draft.set(&table, "anonymous", setting.value.is_true(), setting);
            let keys = format!("{table}.anonymous");
            if setting.value.is_true() && is_checked && !is_shared && !has_own(listener.settings) {
                draft.noted(setting, keys, STRANGERS);
            } else {
                draft.carried(setting, keys);
            }
        }
    }
}

/// Clients without an identifier are refused where every listener refuses them: the key is one for
/// all.
fn identifiers(general: &[Setting], listeners: &[Converted<'_>], draft: &mut Draft) {
    const NAME: &str = "allow_zero_length_clientid";
    let shared = find(general, NAME);
    let is_off = |setting: Option<&Setting>| setting.is_some_and(|one| !one.value.is_true());
    let is_off_everywhere = listeners
        .iter()
        .all(|listener| is_off(find(listener.settings, NAME).or(shared)));
    let settings = listeners
        .iter()
        .filter_map(|listener| find(listener.settings, NAME));
    let settings: Vec<&Setting> = shared.into_iter().chain(settings).collect();
    let off = settings.iter().find(|setting| is_off(Some(setting)));
    if let Some(off) = off.filter(|_| is_off_everywhere) {
        draft.set("limits", NAME, false, *off);
    }
    for setting in settings {
        match (setting.value.is_true(), is_off_everywhere) {
            (true, _) => draft.carried(setting, ""),
            (false, true) => draft.carried(setting, setting.entry.fate.keys()),
            (false, false) => draft.dropped(
                setting,
                "it applies to all listeners, and another one accepts clients without identifier",
            ),
        }
    }
}

/// Mosquitto looks whether the publisher of a retained message may still publish it, where it has
/// rules to look at.
fn retained_sources(
    general: &[Setting],
    listeners: &[Converted<'_>],
    plugins: Plugins,
    draft: &mut Draft,
) {
    const KEY: &str = "check_retained_source";
    let own = listeners.iter().map(|listener| listener.settings);
    let mut settings = std::iter::once(general).chain(own);
    let has_rules = settings.any(|settings| find(settings, "acl_file").is_some());
    if let Some(setting) = find(general, "check_retain_source") {
        draft.set("acl", KEY, setting.value.is_true(), setting);
        draft.carried(setting, setting.entry.fate.keys());
    } else if has_rules || (plugins.decide_access && plugins.have_users) {
        let why = Origin::Default("mosquitto without check_retain_source");
        draft.set("acl", KEY, true, why);
    }
}

/// The ACL of mosquitto denies what it does not allow; without one everything is allowed.
fn access(general: &[Setting], listeners: &[Converted<'_>], plugins: Plugins, draft: &mut Draft) {
    let shared = find(general, "acl_file");
    let own = |listener: &Converted<'_>| find(listener.settings, "acl_file").is_some();
    let settings = listeners
        .iter()
        .filter_map(|listener| find(listener.settings, "acl_file"));
    let settings: Vec<&Setting> = shared.into_iter().chain(settings).collect();
    let Some(first) = settings.first() else {
        let (default, why) = if plugins.decide_access {
            ("deny", "in place of the plugin that decided")
        } else {
            ("allow", "mosquitto without acl_file")
        };
        return draft.set("acl", "default", default, Origin::Default(why));
    };
    draft.set("acl", "default", "deny", *first);
    if settings.iter().any(|setting| setting.value != first.value) {
        for setting in settings {
            draft.dropped(
                setting,
                "there is one ACL for all listeners, and everything is denied until it is written: allow \
                 listener:NAME in its rules tells them apart",
            );
        }
        return;
    }
    draft.set("acl", "mosquitto_file", first.value.text(), *first);
    let open = listeners
        .iter()
        .filter(|listener| shared.is_none() && !own(listener));
    let rules: toml_edit::Array = open
        .flat_map(|listener| {
            let who = format!("allow listener:{}", listener.name);
            [format!("{who} pubsub #"), format!("{who} sub $SYS/#")]
        })
        .collect();
    let is_open_elsewhere = !rules.is_empty();
    if is_open_elsewhere {
        draft.set(
            "acl",
            "rules",
            rules,
            Origin::Default("listeners without acl_file"),
        );
    }
    for setting in settings {
        draft.carried(setting, "acl.mosquitto_file");
        if is_open_elsewhere {
            draft.add_note(setting, "acl.rules allows everything from other listeners");
        }
    }
}
