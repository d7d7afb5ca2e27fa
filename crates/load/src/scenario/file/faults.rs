//! Reads the faults: `[[faults]]` with a time and one thing that is done.

use super::super::{Fault, FaultKind, Victims};
use super::reader::{Reader, Section};
use super::values;

/// Most faults of a scenario.
const FAULTS_MAX: usize = 100;

/// The kinds of faults.
const KINDS: [&str; 4] = ["disconnect", "stop_reading", "freeze", "hook"];

pub(super) const KEYS: [&str; 6] = [
    "at",
    "lasts",
    "disconnect",
    "stop_reading",
    "freeze",
    "hook",
];

/// All faults in the order of the file.
pub(super) fn read(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<Fault> {
    let sections = reader.tables(root, "faults");
    if sections.len() > FAULTS_MAX {
        reader.blame("faults", &format!("more than {FAULTS_MAX} faults"));
        return Vec::new();
    }
    let faults = sections.iter().filter_map(|section| fault(reader, section));
    faults.collect()
}

fn fault(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<Fault> {
    reader.check_keys(section, &KEYS);
    let at = reader.required(section, "at", values::span);
    let lasts = reader.value(section, "lasts", values::span);
    let kinds: Vec<&str> = KINDS.into_iter().filter(|kind| section.has(kind)).collect();
    let [kind] = kinds.as_slice() else {
        let message = format!("give exactly one of {}", KINDS.join(", "));
        reader.blame(section.path(), &message);
        return None;
    };
    let kind = match *kind {
        "disconnect" => disconnect(reader, section)?,
        "stop_reading" => FaultKind::StopReading {
            victims: victims_of(reader, section, "stop_reading")?,
        },
        "freeze" => FaultKind::Freeze {
            victims: victims_of(reader, section, "freeze")?,
        },
        _ => FaultKind::Hook {
            command: reader.value(section, "hook", values::text)?,
        },
    };
    Some(Fault {
        at: at?,
        lasts: lasts.unwrap_or_default(),
        kind,
    })
}

fn disconnect(reader: &mut Reader<'_>, section: &Section<'_>) -> Option<FaultKind> {
    let table = reader.table(section, "disconnect", &["group", "share", "how"])?;
    let reset = reader.value(&table, "how", |value| match value.as_str() {
        Some("reset") => Ok(true),
        Some("close") => Ok(false),
        _ => Err("expected \"reset\" or \"close\"".to_owned()),
    });
    Some(FaultKind::Disconnect {
        victims: victims(reader, &table),
        reset: reset.unwrap_or_default(),
    })
}

fn victims_of(reader: &mut Reader<'_>, section: &Section<'_>, key: &str) -> Option<Victims> {
    let table = reader.table(section, key, &["group", "share"])?;
    Some(victims(reader, &table))
}

fn victims(reader: &mut Reader<'_>, table: &Section<'_>) -> Victims {
    Victims {
        group: reader.value(table, "group", values::text),
        share: reader.value(table, "share", values::share).unwrap_or(1.0),
    }
}
