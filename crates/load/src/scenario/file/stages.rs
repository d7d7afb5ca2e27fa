//! Reads the stages: `["ramp 30s", "warmup 10s", "hold 5m", "drain 10s"]`.

use std::time::Duration;

use thrum_settings::parse_span;
use toml_edit::Value;

use super::super::Stages;
use super::document::STAGES;
use super::reader::{Reader, Section};
use super::values;

/// Longest stage.
const STAGE_MAX: Duration = Duration::from_hours(30 * 24);

/// The stages in their order.
const NAMES: [&str; 4] = ["ramp", "warmup", "hold", "drain"];

/// The length of the ramp, if the file names it, and those of the other stages.
pub(super) fn read(reader: &mut Reader<'_>, root: &Section<'_>) -> (Option<Duration>, Stages) {
    reader
        .value(root, "stages", stages)
        .unwrap_or((None, STAGES))
}

fn stages(value: &Value) -> Result<(Option<Duration>, Stages), String> {
    let mut ramp = None;
    let mut stages = STAGES;
    let mut last = None;
    for text in values::texts(value)? {
        let (index, length) = stage(&text)?;
        if last.is_some_and(|last| last >= index) {
            let order = NAMES.join(", ");
            return Err(format!(
                "'{text}' is out of order: the stages are {order}, each at most once"
            ));
        }
        last = Some(index);
        match index {
            0 => ramp = Some(length),
            1 => stages.warm_up = length,
            2 => stages.hold = length,
            _ => stages.drain = length,
        }
    }
    if stages.hold.is_zero() || ramp.is_some_and(|ramp| ramp.is_zero()) {
        return Err("ramp and hold must last longer than 0s".to_owned());
    }
    Ok((ramp, stages))
}

fn stage(text: &str) -> Result<(usize, Duration), String> {
    let wrong = || {
        format!(
            "'{text}' is not a stage: write one of {} and its length, such as \"hold 5m\" (30 days at most)",
            NAMES.join(", ")
        )
    };
    let (name, length) = text.split_once(' ').ok_or_else(wrong)?;
    let index = NAMES.iter().position(|known| *known == name);
    let length = parse_span(length.trim()).filter(|length| *length <= STAGE_MAX);
    index.zip(length).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads stages from their TOML.
    fn check(toml: &str) -> Result<(Option<Duration>, Stages), String> {
        stages(&toml.parse().unwrap())
    }

    #[test]
    fn stages_that_are_left_out_keep_their_length() {
        let (ramp, read) = check("[\"ramp 30s\", \"hold 5m\"]").unwrap();
        assert_eq!(ramp, Some(Duration::from_secs(30)));
        let hold = Duration::from_mins(5);
        assert_eq!(read, Stages { hold, ..STAGES });
        assert_eq!(check("[]").unwrap(), (None, STAGES));
    }

    #[test]
    fn stages_out_of_order_twice_or_unknown_are_refused() {
        for (toml, part) in [
            (
                "[\"hold 5m\", \"warmup 1s\"]",
                "'warmup 1s' is out of order",
            ),
            ("[\"hold 5m\", \"hold 1s\"]", "'hold 1s' is out of order"),
            ("[\"cool 5m\"]", "'cool 5m' is not a stage"),
            ("[\"hold\"]", "'hold' is not a stage"),
            ("[\"hold 31000h\"]", "is not a stage"),
            ("[\"hold 0s\"]", "longer than 0s"),
            ("[\"ramp 0s\"]", "longer than 0s"),
        ] {
            let message = check(toml).unwrap_err();
            assert!(message.contains(part), "{message}");
        }
    }
}
