//! The log: one level in place of types, one destination.

use super::super::draft::{Draft, Origin};
use super::super::scope::Setting;

/// The default log types.
const DEFAULT: Level = Level::Info;

/// From silent to talkative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Off,
    Error,
    Warn,
    Info,
    Debug,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }

    /// The level that has the messages of a type.
    fn of(word: &str) -> Self {
        match word {
            "error" => Self::Error,
            "warning" => Self::Warn,
            "notice" | "information" => Self::Info,
            "debug" | "all" => Self::Debug,
            _ => Self::Off,
        }
    }
}

/// Sets the level, if it is not the default one.
pub(super) fn convert(general: &[Setting], draft: &mut Draft) {
    let of = |name: &str| -> Vec<&Setting> {
        let settings = general.iter();
        settings
            .filter(|setting| setting.entry.name == name)
            .collect()
    };
    let (types, destinations) = (of("log_type"), of("log_dest"));
    for setting in types.iter().chain(&destinations) {
        row(setting, draft);
    }
    if let Some(silent) = destinations
        .last()
        .filter(|last| last.value.text() == "none")
    {
        return draft.set("log", "level", Level::Off.name(), *silent);
    }
    // As in mosquitto, none revokes the types before it.
    let counting = types
        .rsplit(|setting| setting.value.text() == "none")
        .next();
    let counting = counting.unwrap_or_default();
    let most = counting
        .iter()
        .max_by_key(|setting| Level::of(setting.value.text()));
    let level = most.map_or(Level::Off, |setting| Level::of(setting.value.text()));
    if let Some(origin) = most.or_else(|| types.last()).filter(|_| level != DEFAULT) {
        draft.set("log", "level", level.name(), Origin::from(*origin));
    }
}

fn row(setting: &Setting, draft: &mut Draft) {
    match (setting.entry.name, setting.value.text()) {
        ("log_dest", "stderr" | "none") => draft.carried(setting, ""),
        ("log_dest", "topic") => draft.dropped(
            setting,
            "the log is not published; it goes to standard error",
        ),
        ("log_dest", _) => draft.dropped(
            setting,
            "the log goes to standard error, where systemd or the shell can redirect it",
        ),
        (_, "subscribe" | "unsubscribe" | "websockets" | "internal") => {
            draft.dropped(setting, "the log has no such lines");
        }
        _ => draft.carried(setting, "log.level"),
    }
}
