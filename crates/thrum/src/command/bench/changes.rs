//! Changes of a run by another program: lines of JSON on standard input.

use std::io::{BufRead, Read as _};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use thrum_bench::observe::Command;

/// Bytes of a line; a note has at most 1,000 characters.
const LINE_BYTES_MAX: u64 = 8 * 1024;
/// Changes that wait for the next frame of the run, which comes fifty times a second.
const WAITING_MAX: usize = 16;
/// Longest extension at once: a week.
const EXTEND_SECS_MAX: f64 = 7.0 * 86_400.0;

/// A line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChangeLine {
    /// Multiplies the rate of all publishers.
    Rate(f64),
    /// Sends nothing until it goes on.
    Pause,
    /// Goes on.
    Resume,
    /// Extends the hold by so many seconds.
    ExtendSecs(f64),
    /// A note for the result.
    Note(String),
}

impl TryFrom<ChangeLine> for Command {
    type Error = &'static str;

    fn try_from(line: ChangeLine) -> Result<Self, Self::Error> {
        Ok(match line {
            ChangeLine::Rate(factor) if factor.is_finite() && factor > 0.0 => Self::Rate(factor),
            ChangeLine::Rate(_) => return Err("rate is a factor above 0"),
            ChangeLine::Pause => Self::Pause,
            ChangeLine::Resume => Self::Resume,
            ChangeLine::ExtendSecs(secs) if secs > 0.0 && secs <= EXTEND_SECS_MAX => {
                Self::Extend(Duration::from_secs_f64(secs))
            }
            ChangeLine::ExtendSecs(_) => return Err("extend_secs is above 0, and at most a week"),
            ChangeLine::Note(text) => Self::Note(text),
        })
    }
}

/// Reads changes in a thread of its own, which ends with its input or with the program.
///
/// # Errors
/// There can be no thread.
pub(super) fn read_standard_input() -> std::io::Result<Receiver<Command>> {
    let (sender, changes) = sync_channel(WAITING_MAX);
    let thread = std::thread::Builder::new().name("changes".to_owned());
    thread.spawn(move || read(std::io::stdin().lock(), &sender))?;
    Ok(changes)
}

fn read(mut input: impl BufRead, changes: &SyncSender<Command>) {
    loop {
        let mut line = Vec::new();
        let read = input
            .by_ref()
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line);
        if !matches!(read, Ok(1..)) {
            return;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        match understood(&line) {
            Ok(change) => {
                if changes.send(change).is_err() {
                    // The run has ended.
                    return;
                }
            }
            Err(why) => {
                // Standard error may be closed; the run continues as it was.
                let shown = String::from_utf8_lossy(&line);
                let shown: String = shown.trim().chars().take(80).collect();
                eprint(&format!("note: a change is not understood: {why}: {shown}"));
            }
        }
    }
}

fn understood(line: &[u8]) -> Result<Command, String> {
    let line: ChangeLine = serde_json::from_slice(line).map_err(|error| error.to_string())?;
    Command::try_from(line).map_err(str::to_owned)
}

fn eprint(text: &str) {
    use std::io::Write as _;
    writeln!(std::io::stderr(), "{text}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_change_and_a_wrong_one_changes_nothing() {
        let long = format!("{{\"note\":\"{}\"}}\n", "x".repeat(9_000));
        let input = [
            "{\"rate\":1.1}\n\n\"pause\"\nnot json\n{\"rate\":-1}\n{\"extend_secs\":1e300}\n",
            &long,
            "\"resume\"\n{\"extend_secs\":2.5}\n{\"note\":\"a note\"}",
        ]
        .concat();
        let (sender, changes) = sync_channel(WAITING_MAX);
        read(input.as_bytes(), &sender);
        drop(sender);
        let read: Vec<Command> = changes.iter().collect();
        assert_eq!(
            read,
            [
                Command::Rate(1.1),
                Command::Pause,
                Command::Resume,
                Command::Extend(Duration::from_millis(2_500)),
                Command::Note("a note".to_owned()),
            ]
        );
    }
}
