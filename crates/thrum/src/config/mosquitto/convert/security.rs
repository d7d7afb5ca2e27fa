//! Who may come in and who may do what: password files, anonymous clients, the ACL.

use super::super::draft::{Draft, Origin};
use super::super::scope::{Configuration, Setting};
use super::listener::Converted;
use super::plugin::Plugins;
use super::{find, text};

/// The built-in user store, which is asked before all others.
const STORE: &str = "users";
/// Options of security that no key has.
const OTHERS: [&str; 3] = ["allow_zero_length_clientid", "auto_id_prefix", "psk_file"];

/// Sets the keys of `[auth]`, `[acl]` and of each listener's security.
pub(super) fn convert(
    configuration: &Configuration,
    listeners: &[Converted<'_>],
    plugins: Plugins,
    draft: &mut Draft,
) {
    let general = &configuration.general;
    passwords(general, listeners, draft);
    anonymous(configuration, listeners, plugins, draft);
    access(general, listeners, plugins, draft);
    let own = listeners.iter().map(|listener| listener.settings);
    for settings in std::iter::once(general.as_slice()).chain(own) {
        let others = OTHERS.iter().filter_map(|name| find(settings, name));
        others.for_each(|setting| draft.by_entry(setting));
    }
}

/// A backend for each password file; a listener that has not all of them names its own.
fn passwords(general: &[Setting], listeners: &[Converted<'_>], draft: &mut Draft) {
    let shared = text(general, "password_file");
    let own =
        |listener: &Converted<'_>| text(listener.settings, "password_file").map(str::to_owned);
    let mut backends: Vec<(String, String)> = Vec::new();
    let settings = listeners
        .iter()
        .filter_map(|listener| find(listener.settings, "password_file"));
    for setting in find(general, "password_file").into_iter().chain(settings) {
        let path = setting.value.text();
        let known = backends.iter().find(|(known, _)| known == path);
        let name = known.map_or_else(|| backend_name(backends.len()), |(_, name)| name.clone());
        if known.is_none() {
            draft.set(format!("auth.password_file.{name}"), "path", path, setting);
            backends.push((path.to_owned(), name.clone()));
        }
        draft.carried(setting, format!("auth.password_file.{name}.path"));
    }
    for listener in listeners {
        let files = [shared.map(str::to_owned), own(listener)];
        let is_own = |path: &str| files.iter().flatten().any(|file| file == path);
        let names = backends.iter().filter(|(path, _)| is_own(path));
        let names: Vec<&str> = names.map(|(_, name)| name.as_str()).collect();
        if names.len() < backends.len() {
            let chain = std::iter::once(STORE).chain(names);
            let chain: toml_edit::Array = chain.collect();
            let origin = match find(listener.settings, "password_file") {
                Some(setting) => Origin::from(setting),
                None => Origin::Default("it has no password_file"),
            };
            draft.set(
                format!("listeners.{}", listener.name),
                "auth",
                chain,
                origin,
            );
        }
    }
}

/// Name of one more backend.
fn backend_name(count: usize) -> String {
    match count {
        0 => "mosquitto".to_owned(),
        count => format!("mosquitto-{}", count + 1),
    }
}

fn anonymous(
    configuration: &Configuration,
    listeners: &[Converted<'_>],
    plugins: Plugins,
    draft: &mut Draft,
) {
    let is_checked = |settings: &[Setting]| {
        let of = |settings| find(settings, "password_file").is_some();
        plugins.decide_access || of(&configuration.general) || of(settings)
    };
    let shared = find(&configuration.general, "allow_anonymous");
    match shared {
        Some(setting) => {
            draft.set("auth", "anonymous", setting.value.is_true(), setting);
            row(setting, "auth.anonymous".to_owned(), is_checked(&[]), draft);
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
            let is_checked = is_checked(listener.settings);
            row(setting, format!("{table}.anonymous"), is_checked, draft);
        }
    }
}

fn row(setting: &Setting, keys: String, is_checked: bool, draft: &mut Draft) {
    if setting.value.is_true() && !is_checked {
        let note = "clients that send a user name are refused, as there is nobody who knows it: leave it out, or add \
                    the user (thrum users add)";
        draft.noted(setting, keys, note);
    } else {
        draft.carried(setting, keys);
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
            draft.add_note(
                setting,
                "acl.rules lets everything through that comes from other listeners",
            );
        }
    }
}
