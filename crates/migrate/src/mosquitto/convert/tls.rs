//! TLS of a listener.

use thrum_settings::problem::Problem;

use super::super::draft::Draft;
use super::super::scope::Setting;
use super::{find, is_true, text};

/// The options that are converted here; all others of TLS have their entry's fate.
pub(super) const OPTIONS: [&str; 8] = [
    "cafile",
    "certfile",
    "crlfile",
    "keyfile",
    "require_certificate",
    "tls_version",
    "use_identity_as_username",
    "use_subject_as_username",
];

/// Whether the listener uses TLS.
pub(super) fn is_on(settings: &[Setting]) -> bool {
    find(settings, "certfile").is_some()
}

/// Errors that mosquitto reports, or treats as a listener without TLS.
pub(super) fn wrong(settings: &[Setting]) -> Option<Problem> {
    let pairs = [("certfile", "keyfile"), ("keyfile", "certfile")];
    pairs.iter().find_map(|(one, other)| {
        let lonely = find(settings, one).filter(|_| find(settings, other).is_none())?;
        let message = format!("{one} without {other} is no TLS: add a line {other} FILE below it");
        Some(lonely.statement.wrong_name(message))
    })
}

/// Why the listener would be less safe than it was.
pub(super) fn obstacle(settings: &[Setting]) -> Option<String> {
    let has = |name: &str| find(settings, name).is_some();
    if has("tls_engine") || text(settings, "tls_keyform") == Some("engine") {
        return Some("its private key is in an OpenSSL engine: put it into a PEM file".to_owned());
    }
    let shows = is_true(settings, "require_certificate");
    if shows && is_on(settings) && has("capath") && !has("cafile") {
        return Some(
            "capath: put the certificates of the authorities into one file, and name it with cafile"
                .to_owned(),
        );
    }
    None
}

/// Sets the keys of TLS.
pub(super) fn convert(settings: &[Setting], table: &str, draft: &mut Draft) {
    let is_required = is_true(settings, "require_certificate");
    for setting in settings
        .iter()
        .filter(|setting| OPTIONS.contains(&setting.entry.name))
    {
        if is_on(settings) {
            one(setting, table, is_required, draft);
        } else if setting.value.is_true() || !setting.value.text().is_empty() {
            draft.dropped(setting, "it means nothing without certfile and keyfile");
        } else {
            draft.carried(setting, "");
        }
    }
}

fn one(setting: &Setting, table: &str, is_required: bool, draft: &mut Draft) {
    let value = setting.value.text();
    let mut carry = |key: &str, value: toml_edit::Value| {
        draft.set(table, key, value, setting);
        draft.carried(setting, format!("{table}.{key}"));
    };
    match setting.entry.name {
        "certfile" => carry("tls.cert", value.into()),
        "keyfile" => carry("tls.key", value.into()),
        "cafile" => cafile(setting, table, is_required, draft),
        "crlfile" if is_required => {
            carry(
                "tls.crl",
                [value].into_iter().collect::<toml_edit::Array>().into(),
            );
        }
        "crlfile" => draft.dropped(
            setting,
            "clients are not asked for a certificate, as require_certificate is not true",
        ),
        "require_certificate" if is_required => carry("tls.client_cert", "required".into()),
        "tls_version" if value == "tlsv1.3" => carry("tls.min_version", "1.3".into()),
        "tls_version" if value == "tlsv1.2" => draft.carried(setting, ""),
        "tls_version" => draft.noted(
            setting,
            "",
            "1.2 is the lowest version; older ones are broken",
        ),
        "use_identity_as_username" | "use_subject_as_username" => {
            username(setting, table, is_required, draft);
        }
        _ => draft.carried(setting, ""),
    }
}

/// Mosquitto verifies clients by it, and also looks in it for what leads from its own certificate
/// to the authority.
fn cafile(setting: &Setting, table: &str, is_required: bool, draft: &mut Draft) {
    let value = setting.value.text();
    draft.set(table, "tls.chain", value, setting);
    if is_required {
        draft.set(table, "tls.ca", value, setting);
        return draft.carried(setting, format!("{table}.tls.ca, {table}.tls.chain"));
    }
    let note = "it completes the chain of the server's certificate; clients are not asked for one, as \
                require_certificate is not true";
    draft.noted(setting, format!("{table}.tls.chain"), note);
}

fn username(setting: &Setting, table: &str, is_required: bool, draft: &mut Draft) {
    let part = match setting.entry.name {
        "use_identity_as_username" => "cn",
        _ => "dn",
    };
    if !setting.value.is_true() {
        return draft.carried(setting, "");
    }
    if !is_required {
        return draft.dropped(setting, "it needs require_certificate true");
    }
    draft.set(table, "tls.username", part, setting);
    let keys = format!("{table}.tls.username");
    match part {
        "cn" => draft.carried(setting, keys),
        _ => draft.noted(setting, keys, setting.entry.fate.note()),
    }
}
