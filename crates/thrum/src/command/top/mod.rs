//! `thrum top`: a live screen of a running broker; where there is no terminal, a line for each
//! interval.

mod lines;
mod sample;
#[cfg(feature = "tui")]
mod screen;

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::running::Running;
use super::shown::parse_span;

const EXAMPLES: &str = "\
Examples:
  thrum top
  thrum top --context prod --sort queue --filter user=alice
  thrum top --lines 10 --interval 1s        ten lines, as for a log

Keys: r u d sort clients by rate, queue, drops; / filters; up and down mark one, k disconnects it after a question; ? help; q ends. Rates of clients are \
those of the 1,000 with the most messages, from one look to the next.";

/// Arguments of `thrum top`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    #[command(flatten)]
    running: Running,
    /// Time between two looks, at least 1s.
    #[arg(short, long, value_name = "DURATION", default_value = "2s", value_parser = parse_interval)]
    interval: Duration,
    /// What the clients are sorted by.
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    sort: Sort,
    /// Only clients for which all of these terms hold, as 'user=alice queue>100'.
    #[arg(
        long,
        value_name = "TERMS",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
    /// Print lines about the broker in place of the screen, and end after so many; without a number
    /// they do not end.
    #[arg(
        long,
        value_name = "N",
        num_args = 0..=1,
        default_missing_value = ENDLESS,
        value_parser = parse_lines,
        conflicts_with_all = ["sort", "filter"],
    )]
    lines: Option<u64>,
}

/// Order of the clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Sort {
    /// Messages in a second, both ways.
    #[default]
    Rate,
    /// Messages in the queue.
    Queue,
    /// Dropped messages.
    Drops,
}

/// Watches.
pub(crate) fn run(args: &TopArgs) -> anyhow::Result<ExitCode> {
    let broker = args.running.broker()?;
    #[cfg(feature = "tui")]
    if args.lines.is_none() && crate::tui::is_wanted(false) {
        return screen::run(args, &broker);
    }
    lines::run(args, &broker)?;
    Ok(ExitCode::SUCCESS)
}

/// The number of lines of which there is no end.
const ENDLESS: &str = "endless";

fn parse_lines(text: &str) -> Result<u64, String> {
    if text == ENDLESS {
        return Ok(u64::MAX);
    }
    match text.parse::<u64>() {
        Ok(0) => Err("at least 1; without a number the lines do not end".to_owned()),
        parsed => parsed.map_err(|_| "expected a number of lines, such as 10".to_owned()),
    }
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_span(text)?;
    if interval < Duration::from_secs(1) {
        return Err("at least 1s".to_owned());
    }
    Ok(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_an_end_after_one_or_more_or_none() {
        assert_eq!(parse_lines("1"), Ok(1));
        for wrong in ["0", "-1", "ten", ""] {
            assert!(parse_lines(wrong).is_err(), "{wrong}");
        }
    }
}
