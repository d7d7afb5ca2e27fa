//! `thrum why`: what makes messages slow, and what drops them.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

use clap::{Args, ValueEnum};
use thrum_figures::percent;
use thrum_management::api::{NotCause, Why, WhyCause, WhyQuestion, WhyWhat};

use super::Failure;
use super::running::{Form, Output, Running};
use super::shown::{json_line, name};

const EXAMPLES: &str = "\
Examples:
  thrum why --data-dir /var/lib/thrum
  thrum why slow --seconds 5 --data-dir /var/lib/thrum
  thrum why client meter-17 --data-dir /var/lib/thrum
  thrum why topic 'site/#' -o json -c thrum.toml

It measures ten seconds, ranks the causes with figures and cures, and says what is not the cause.
Without --data-dir or -c the broker is that of /etc/thrum/thrum.toml.";

/// Arguments of `thrum why`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct WhyArgs {
    /// What to look into; latency and dropped messages of all clients without it.
    #[arg(value_enum)]
    about: Option<About>,
    /// Client identifier, or topic or filter.
    #[arg(value_name = "ID|TOPIC")]
    name: Option<String>,
    /// Seconds of the measurement.
    #[arg(long, value_name = "N", default_value_t = 10,
          value_parser = clap::value_parser!(u64).range(1..=10))]
    seconds: u64,
    #[command(flatten)]
    running: Running,
    #[command(flatten)]
    output: Output,
}

/// What to look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum About {
    /// Latency only.
    Slow,
    /// Dropped messages only.
    Drops,
    /// The messages of one client.
    Client,
    /// The messages to the clients that subscribe to a topic.
    Topic,
}

impl WhyArgs {
    fn question(&self) -> anyhow::Result<WhyQuestion> {
        let mut question = WhyQuestion {
            seconds: Some(self.seconds),
            ..WhyQuestion::default()
        };
        match (self.about, &self.name) {
            (None, None) => {}
            (Some(About::Slow), None) => question.what = Some(WhyWhat::Slow),
            (Some(About::Drops), None) => question.what = Some(WhyWhat::Drops),
            (Some(About::Client), Some(client)) => question.client = Some(client.clone()),
            (Some(About::Topic), Some(topic)) => question.topic = Some(topic.clone()),
            (Some(About::Client), None) => {
                return Err(Failure::usage(
                    "which client? thrum why client ID; thrum clients ls lists them",
                ));
            }
            (Some(About::Topic), None) => {
                return Err(Failure::usage(
                    "which topic? thrum why topic TOPIC, or a filter as 'site/#'",
                ));
            }
            (_, Some(name)) => {
                return Err(Failure::usage(format!(
                    "{name:?} stands for nothing here: thrum why client {name} or thrum why topic {name}"
                )));
            }
        }
        Ok(question)
    }
}

/// Asks, measures and prints.
pub(crate) fn run(args: &WhyArgs) -> anyhow::Result<ExitCode> {
    let question = serde_json::to_value(args.question()?)?;
    let (done, is_done) = sync_channel(1);
    let is_shown = std::io::stderr().is_terminal() && args.output.form == Form::Table;
    let seconds = args.seconds;
    let progress = is_shown.then(|| std::thread::spawn(move || count_down(seconds, &is_done)));
    let asked = args.running.send("/why", &question);
    drop(done);
    if let Some(progress) = progress {
        // It only writes to the terminal.
        progress.join().ok();
    }
    let why: Why = asked?;
    let mut out = std::io::stdout().lock();
    match args.output.form {
        Form::Table => write!(out, "{}", text(&why))?,
        Form::Json => writeln!(out, "{}", json_line(&why)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the seconds that are left, until the answer is there.
fn count_down(seconds: u64, is_done: &Receiver<()>) {
    let mut errors = std::io::stderr().lock();
    let mut left = seconds;
    loop {
        // A terminal that does not take it is no reason to give up.
        write!(errors, "\rmeasuring {seconds} s: {left:>2} s left ").ok();
        errors.flush().ok();
        match is_done.recv_timeout(Duration::from_secs(1)) {
            Err(RecvTimeoutError::Timeout) => left = left.saturating_sub(1),
            _ => break,
        }
    }
    write!(errors, "\r\u{1b}[K").ok();
    errors.flush().ok();
}

fn text(why: &Why) -> String {
    let mut text = format!("{:.0} s of {}\n", why.seconds, name(&why.about));
    if let Some(latency) = &why.latency {
        text.extend([format!("\nlatency  {}\n", name(&latency.verdict))]);
        causes(&mut text, &latency.causes);
        // Parts of nothing slow tell nothing.
        let has_shares = latency.causes.iter().any(|cause| cause.share > 0.0);
        others(&mut text, "not the cause", &latency.not_causes, has_shares);
        others(&mut text, "not measured", &latency.not_measured, false);
    }
    if let Some(drops) = &why.drops {
        text.extend([format!("\ndrops    {}\n", name(&drops.verdict))]);
        // Reasons without a message are many and say little.
        causes(&mut text, &drops.causes);
    }
    for note in &why.notes {
        text.extend([format!("\nnote: {}\n", name(note))]);
    }
    text
}

fn causes(text: &mut String, causes: &[WhyCause]) {
    for (cause, number) in causes.iter().zip(1..) {
        text.extend([format!(
            "  {number}  {:<15} {}\n     {:<15} -> {}\n",
            cause.name,
            name(&cause.sentence),
            "",
            name(&cause.remedy)
        )]);
        for command in &cause.commands {
            text.extend([format!("     {:<15}    {}\n", "", name(command))]);
        }
    }
}

fn others(text: &mut String, title: &str, others: &[NotCause], has_shares: bool) {
    if others.is_empty() {
        return;
    }
    text.extend([format!("  {title}:\n")]);
    for one in others {
        let share = if has_shares {
            format!(" ({})", percent(one.share))
        } else {
            String::new()
        };
        text.extend([format!(
            "     {:<15} {}{share}\n",
            one.name,
            name(&one.sentence)
        )]);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use clap::Parser;
    use thrum_management::api::{DropCauses, DropsState, LatencyCauses, LatencyState};

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        why: WhyArgs,
    }

    fn question(words: &[&str]) -> anyhow::Result<WhyQuestion> {
        let words = std::iter::once(&"why").chain(words);
        Line::try_parse_from(words)?.why.question()
    }

    #[test]
    fn a_question_is_about_the_node_a_client_or_a_topic() {
        assert_eq!(question(&[]).unwrap().seconds, Some(10));
        assert_eq!(question(&["slow"]).unwrap().what, Some(WhyWhat::Slow));
        assert_eq!(question(&["drops"]).unwrap().what, Some(WhyWhat::Drops));
        let client = question(&["client", "meter-17"]).unwrap().client;
        assert_eq!(client.as_deref(), Some("meter-17"));
        let topic = question(&["topic", "site/#"]).unwrap().topic;
        assert_eq!(topic.as_deref(), Some("site/#"));
        for wrong in [
            &["client"][..],
            &["topic"],
            &["slow", "meter-17"],
            &["fast"],
            &["--seconds", "11"],
        ] {
            assert!(question(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn causes_are_numbered_and_names_do_not_control_the_terminal() {
        let why = Why {
            about: "all messages of this broker".to_owned(),
            seconds: 10.02,
            latency: Some(LatencyCauses {
                state: LatencyState::Slow,
                dropped_per_second: 0.0,
                verdict: "a message takes 4ms".to_owned(),
                messages: 10,
                measured_deliveries: 1,
                mean_ms: 4.0,
                p50_ms: 1.0,
                p99_ms: 9.0,
                causes: vec![WhyCause {
                    name: "full_windows".to_owned(),
                    share: 0.71,
                    sentence: "71 % of the time: a\u{1b}[2Jb".to_owned(),
                    evidence: BTreeMap::new(),
                    remedy: "thrum clients get a\u{1b}[2Jb shows it".to_owned(),
                    commands: vec!["thrum clients get a".to_owned()],
                    requests: Vec::new(),
                }],
                not_causes: vec![NotCause {
                    name: "disk".to_owned(),
                    share: 0.0,
                    sentence: "nothing was written".to_owned(),
                    evidence: BTreeMap::new(),
                }],
                not_measured: vec![NotCause {
                    name: "routing".to_owned(),
                    share: 0.0,
                    sentence: "not measured: no delivery was timed".to_owned(),
                    evidence: BTreeMap::new(),
                }],
            }),
            drops: Some(DropCauses {
                verdict: "no message was dropped".to_owned(),
                state: DropsState::NotDropping,
                dropped: 0,
                dropped_per_second: 0.0,
                causes: Vec::new(),
                not_causes: Vec::new(),
                not_measured: Vec::new(),
            }),
            notes: vec!["rough".to_owned()],
            limitations: Vec::new(),
        };
        assert_eq!(
            text(&why),
            "10 s of all messages of this broker\n\
             \nlatency  a message takes 4ms\n\
             \u{20} 1  full_windows    71 % of the time: a\\u{1b}[2Jb\n\
             \u{20}                    -> thrum clients get a\\u{1b}[2Jb shows it\n\
             \u{20}                       thrum clients get a\n\
             \u{20} not the cause:\n\
             \u{20}    disk            nothing was written (0 %)\n\
             \u{20} not measured:\n\
             \u{20}    routing         not measured: no delivery was timed\n\
             \ndrops    no message was dropped\n\
             \nnote: rough\n"
        );
        let mut well = why;
        well.latency.as_mut().unwrap().causes.clear();
        let text = text(&well);
        assert!(
            text.contains("disk            nothing was written\n"),
            "{text}"
        );
    }
}
