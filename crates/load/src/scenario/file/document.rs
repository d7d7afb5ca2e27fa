//! Reads a whole file: the keys at its top, the targets, the groups and the steps.

use std::time::Duration;

use thrum_codec::Version;
use thrum_report::Threshold;
use thrum_settings::problem::{Problem, Problems};
use thrum_transport::Endpoint;
use toml_edit::{Document, Item, Value};

use super::super::{AddressRange, Group, Scenario, Stages, TargetSpec, addresses};
use super::reader::{Reader, Section, problem, source};
use super::{faults, groups, rules, stages, values};

/// Largest file.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Most brokers of a scenario.
const TARGETS_MAX: usize = 16;

/// Most steps of a sweep.
const STEPS_MAX: usize = 200;

/// Keep alive of the published benchmarks, in seconds.
const KEEP_ALIVE: u16 = 300;

/// Connections per second where the scenario does not name a rate: 1 000 clients in one second.
const CONNECT_RATE: u32 = 1_000;

/// Longest name.
const NAME_CHARS_MAX: usize = 120;

pub(super) const KEYS: [&str; 15] = [
    "name",
    "alias",
    "summary",
    "target",
    "targets",
    "version",
    "keep_alive",
    "connect_rate",
    "source_addresses",
    "stages",
    "scale",
    "groups",
    "thresholds",
    "faults",
    "steps",
];

/// The contents of a file.
#[derive(Debug)]
pub(super) struct Content {
    /// The file without its steps; `name` is empty if it has none, `toml` always.
    pub(super) scenario: Scenario,
    /// The steps of a sweep.
    pub(super) steps: Vec<Step>,
}

/// A step of a sweep.
#[derive(Debug)]
pub(super) struct Step {
    /// Its own name.
    pub(super) name: String,
    /// Keys and their values.
    pub(super) set: Vec<(String, Value)>,
}

/// Takes the TOML apart.
pub(super) fn parse<'t>(text: &'t str, origin: &str) -> Result<Document<&'t str>, Problems> {
    if text.len() > FILE_BYTES_MAX {
        let message = format!("larger than {FILE_BYTES_MAX} bytes, the limit of a scenario file");
        return Err(Problem::general(origin, message).into());
    }
    Document::parse(text).map_err(|error| {
        let message = error.message().replace('\n', ", ");
        problem(&source(origin, text), error.span(), message).into()
    })
}

/// Reads a file.
pub(super) fn read(text: &str, origin: &str) -> Result<Content, Problems> {
    let document = parse(text, origin)?;
    let mut reader = Reader::new(origin, text, document.as_item());
    let content = reader.document(&KEYS).map(|root| Content {
        scenario: scenario(&mut reader, &root),
        steps: steps(&mut reader, &root),
    });
    // Parts with errors would only cause false errors in these rules.
    if let Some(content) = content.as_ref().filter(|_| reader.is_clean()) {
        rules::check(&content.scenario, &mut reader);
    }
    reader.finish(content)
}

fn scenario(reader: &mut Reader<'_>, root: &Section<'_>) -> Scenario {
    let name = reader.value(root, "name", name).unwrap_or_default();
    let alias = reader.value(root, "alias", self::name);
    let targets = targets(reader, root);
    let (ramp, stages) = stages::read(reader, root);
    let groups = groups::read(reader, root, &targets);
    Scenario {
        alias: alias.unwrap_or_else(|| name.clone()),
        name,
        summary: reader
            .value(root, "summary", values::text)
            .unwrap_or_default(),
        version: reader
            .value(root, "version", values::version)
            .unwrap_or(Version::V311),
        connect_rate: connect_rate(reader, root, ramp, &groups),
        keep_alive: reader
            .value(root, "keep_alive", values::seconds)
            .unwrap_or(KEEP_ALIVE),
        source_addresses: reader
            .value(root, "source_addresses", source_addresses)
            .unwrap_or_default(),
        thresholds: thresholds(reader, root),
        faults: faults::read(reader, root),
        scale: reader.value(root, "scale", values::factor).unwrap_or(1.0),
        toml: String::new(),
        targets,
        stages,
        groups,
    }
}

/// The connect rate as written, or that of the ramp.
fn connect_rate(
    reader: &mut Reader<'_>,
    root: &Section<'_>,
    ramp: Option<Duration>,
    groups: &[Group],
) -> u32 {
    let written = reader.value(root, "connect_rate", values::connect_rate);
    let Some(ramp) = ramp else {
        return written.unwrap_or(CONNECT_RATE);
    };
    if written.is_some() {
        let message = "the ramp of the stages sets the connect rate, leave out one of both";
        reader.blame("connect_rate", message);
    }
    let clients: u64 = groups.iter().map(|group| u64::from(group.clients)).sum();
    let millis = ramp.as_millis().max(1);
    let rate = (u128::from(clients) * 1_000).div_ceil(millis).max(1);
    u32::try_from(rate).unwrap_or(u32::MAX)
}

/// One address or range, or a list of them.
fn source_addresses(value: &Value) -> Result<Vec<AddressRange>, String> {
    addresses::ranges(&values::texts(value)?)
}

fn targets(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<TargetSpec> {
    if root.has("target") && root.has("targets") {
        reader.blame("target", "there are [targets] too, leave out one of both");
    }
    let mut targets = Vec::new();
    if let Some(named) = reader.open_table(root, "targets") {
        for key in named.keys() {
            let url = reader.value(&named, key, url).flatten();
            targets.push(TargetSpec {
                name: key.to_owned(),
                url,
            });
        }
        if targets.is_empty() || targets.len() > TARGETS_MAX {
            reader.blame("targets", &format!("give 1 to {TARGETS_MAX} targets"));
        }
    }
    if targets.is_empty() {
        let url = reader.value(root, "target", url).flatten();
        targets.push(TargetSpec {
            name: String::new(),
            url,
        });
    }
    targets
}

/// A broker's URL; none if empty, to be given on the command line.
fn url(value: &Value) -> Result<Option<String>, String> {
    let url = values::text(value)?;
    if url.is_empty() {
        return Ok(None);
    }
    Endpoint::parse(&url).map_err(|error| error.to_string())?;
    Ok(Some(url))
}

fn thresholds(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<Threshold> {
    let Some(section) = reader.open_table(root, "thresholds") else {
        return Vec::new();
    };
    let mut thresholds = Vec::new();
    for metric in section.keys() {
        let parsed = section
            .item(metric)
            .and_then(Item::as_str)
            .ok_or_else(|| "expected a condition such as \"< 50ms\"".to_owned())
            .and_then(|text| Threshold::parse(metric, text).map_err(|error| error.to_string()));
        match parsed {
            Ok(threshold) => thresholds.push(threshold),
            Err(message) => {
                let span = section.item(metric).and_then(Item::span);
                reader.report(span, format!("thresholds: {message}"));
            }
        }
    }
    thresholds
}

fn steps(reader: &mut Reader<'_>, root: &Section<'_>) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for section in reader.tables(root, "steps") {
        reader.check_keys(&section, &["name", "set"]);
        let name = reader.required(&section, "name", step_name);
        let set = reader.required(&section, "set", settings);
        let (Some(name), Some(set)) = (name, set) else {
            continue;
        };
        if steps.iter().any(|step| step.name == name) {
            reader.blame(
                &section.path_of("name"),
                "another step has this name, each needs its own",
            );
        }
        steps.push(Step { name, set });
    }
    if root.has("steps") && (steps.is_empty() || steps.len() > STEPS_MAX) {
        reader.blame("steps", &format!("give 1 to {STEPS_MAX} steps"));
    }
    steps
}

fn settings(value: &Value) -> Result<Vec<(String, Value)>, String> {
    let table = value
        .as_inline_table()
        .ok_or_else(|| "expected a table such as { \"groups.pub.clients\" = 10 }".to_owned())?;
    let settings = table.iter().map(|(key, value)| match value {
        Value::InlineTable(table) if table.is_dotted() => Err(format!(
            "'{key}.…' is a key of several parts: put the whole key in quotes"
        )),
        value => Ok((key.to_owned(), value.clone())),
    });
    settings.collect()
}

/// Name of a scenario; that of a step has a slash.
fn name(value: &Value) -> Result<String, String> {
    let text = values::text(value)?;
    if text.len() <= NAME_CHARS_MAX && text.split('/').all(is_name) {
        return Ok(text);
    }
    Err(format!(
        "{text:?} is not a name: use up to {NAME_CHARS_MAX} letters, digits and -_. only, no dot first"
    ))
}

fn step_name(value: &Value) -> Result<String, String> {
    let text = values::text(value)?;
    if is_name(&text) {
        return Ok(text);
    }
    Err(format!(
        "{text:?} is not a step name: use letters, digits and -_. only, no dot first"
    ))
}

/// Whether the text can be the name of a file in any folder.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('.') && text.chars().all(is_of_name)
}

const fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.')
}

/// The name of a scenario whose file has none: that of the file.
pub(super) fn name_from(origin: &str) -> String {
    let file = origin.rsplit(['/', '\\']).next().unwrap_or(origin);
    let stem = file.strip_suffix(".toml").unwrap_or(file);
    let letters = stem.trim_start_matches('.').chars().take(NAME_CHARS_MAX);
    let name: String = letters
        .map(|letter| if is_of_name(letter) { letter } else { '-' })
        .collect();
    if name.is_empty() {
        "scenario".to_owned()
    } else {
        name
    }
}

/// Lengths of stages that a file does not name. A minute is long enough for p99.9 of 1 000
/// messages/s; the published runs take 30 minutes (`--duration 30m`).
pub(super) const STAGES: Stages = Stages {
    warm_up: Duration::from_secs(5),
    hold: Duration::from_mins(1),
    drain: Duration::from_secs(5),
};
