//! The engine: the measured processes, and one run.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use thrum_bench::observe::Observer;
use thrum_bench::{BrokerProcess, RunOptions, Target};
use thrum_compare::versus::Running;
use thrum_load::scenario::Scenario;
use thrum_report::RunResult;
use thrum_transport::Endpoint;

use super::arguments::{DEFAULT_TARGET, MeasureArgs, OutputArgs, TargetArgs};
use super::complaint::Complaint;
use super::control::Control;
use super::interrupt::end_now;
use super::live_view::View;
use super::overall::Overall;
use super::progress::{Lines, Quiet};
use crate::tui;

/// Bytes of a password on standard input: MQTT allows as many.
const PASSWORD_BYTES_MAX: u64 = 64 * 1024;

/// Runs scenarios against the targets of the command line.
#[derive(Clone)]
pub(super) struct Engine {
    options: RunOptions,
    username: Option<String>,
    password: Option<String>,
    /// The control broker of the agents, if there are any.
    _control: Option<Arc<Control>>,
    /// No target was given: the default one is used for all that the scenario does not name.
    by_default: bool,
}

/// A run that ended with figures.
#[derive(Clone, Debug)]
pub(super) struct Finished {
    /// Every figure.
    pub(super) result: RunResult,
    /// The histograms of every second.
    pub(super) latency_log: Option<String>,
    /// Why they are incomplete.
    pub(super) log_error: Option<String>,
}

impl Engine {
    /// Checks the flags.
    pub(super) fn new(
        target: &TargetArgs,
        measure: &MeasureArgs,
        interrupt: Arc<AtomicBool>,
    ) -> anyhow::Result<Self> {
        let mut targets = Vec::new();
        for text in &target.target {
            let (name, url) = named(text);
            targets.push(Target {
                name: name.to_owned(),
                process: measure.pid.unwrap_or(BrokerProcess::Detect),
                tls: target.tls.options(),
                ..Target::new(Endpoint::parse(url).map_err(Complaint::usage)?)
            });
        }
        let by_default = targets.is_empty();
        if by_default {
            targets.push(Target {
                process: measure.pid.unwrap_or(BrokerProcess::Detect),
                tls: target.tls.options(),
                ..Target::new(Endpoint::parse(DEFAULT_TARGET).map_err(Complaint::usage)?)
            });
        }
        let control = measure.agents.map(|count| {
            let secret_file = measure.secret_file.as_deref();
            Control::new(count, measure.control.as_deref(), secret_file)
        });
        let control = control.transpose()?.map(Arc::new);
        Ok(Self {
            options: RunOptions {
                targets,
                agents: control.as_ref().map(|control| control.wanted.clone()),
                threads: measure.threads,
                interrupt,
                on_fault: measure.on_fault.clone(),
                latency_log: None,
                command: command_line(std::env::args()),
                asks_for_stages: true,
            },
            username: target.username.clone(),
            password: password(target)?,
            by_default,
            _control: control,
        })
    }

    /// The same against a broker that was started here. Of several targets the first one has the
    /// process, whose children are the others.
    pub(super) fn against(
        &self,
        running: &Running,
        version: &str,
        on_fault: Option<&str>,
    ) -> Result<Self, Complaint> {
        let mut other = self.clone();
        other.by_default = false;
        let mut process = BrokerProcess::Pid(running.pid());
        let targets = running.targets().iter().map(|(name, url)| {
            Ok(Target {
                name: name.clone(),
                process: mem::replace(&mut process, BrokerProcess::Unknown),
                version: version.to_owned(),
                configuration: running.configuration().to_owned(),
                ..Target::new(Endpoint::parse(url).map_err(Complaint::usage)?)
            })
        });
        other.options.targets = targets.collect::<Result<_, Complaint>>()?;
        other.options.on_fault = on_fault.map(|command| running.fill(command));
        Ok(other)
    }

    /// Set when ^C is pressed.
    pub(super) fn interrupt(&self) -> &AtomicBool {
        &self.options.interrupt
    }

    /// URLs of the targets.
    pub(super) fn target(&self) -> String {
        let urls: Vec<String> = self
            .options
            .targets
            .iter()
            .map(|target| target.endpoint.to_string())
            .collect();
        urls.join(", ")
    }

    /// Whether ^C was pressed.
    pub(super) fn is_interrupted(&self) -> bool {
        self.options.interrupt.load(Ordering::Relaxed)
    }

    /// The observer of a run, which may be one of a series: the live view, lines, or none; a note
    /// goes into the result. A ^C in
    /// the live view is one to this engine.
    pub(super) fn observer(
        &self,
        output: &OutputArgs,
        prefix: &str,
        title: &str,
        overall: Option<Overall>,
    ) -> Box<dyn Observer> {
        let series = overall.as_ref().map(|overall| overall.short_text(None));
        let interrupt = || Arc::clone(&self.options.interrupt);
        if tui::is_wanted(output.no_tui || output.json)
            && let Ok(view) = tui::BenchView::start(title, series.as_deref(), interrupt(), end_now)
        {
            return Box::new(View::new(view, output.note.clone(), overall));
        }
        if output.json && output.no_tui {
            Box::new(Quiet(output.note.clone()))
        } else {
            Box::new(Lines::new(prefix, output.note.clone(), overall))
        }
    }

    /// Runs a scenario; the histograms of every second are kept in `folder` meanwhile.
    pub(super) fn run(
        &self,
        mut scenario: Scenario,
        folder: &Path,
        observer: &mut dyn Observer,
    ) -> Result<Finished, Complaint> {
        for group in &mut scenario.groups {
            let client = &mut group.client;
            client.username = client.username.take().or_else(|| self.username.clone());
            client.password = client.password.take().or_else(|| self.password.clone());
        }
        let several = scenario
            .targets
            .iter()
            .any(|target| !target.name.is_empty() && target.url.is_none());
        let mut options = self.options.clone();
        if self.by_default && several {
            // Several brokers cannot all be the usual one.
            options.targets.clear();
        }
        let made = fs::create_dir_all(folder);
        made.map_err(|error| {
            Complaint::usage(format!("cannot make {}: {error}", folder.display()))
        })?;
        let log = folder.join(format!(".latency-{}.hlog", std::process::id()));
        options.latency_log = Some(log.clone());
        let outcome = thrum_bench::run(scenario, &options, observer);
        let latency_log = fs::read_to_string(&log).ok();
        // It may not have been made yet.
        fs::remove_file(&log).ok();
        let outcome = outcome.map_err(|error| Complaint::new(&error, error.exit_code()))?;
        Ok(Finished {
            result: outcome.result,
            latency_log,
            log_error: outcome.log_error,
        })
    }
}

/// `NAME=URL`; a URL has its scheme before any `=`.
pub(super) fn named(target: &str) -> (&str, &str) {
    match target.split_once('=') {
        Some((name, url)) if !name.contains([':', '/']) => (name, url),
        _ => ("", target),
    }
}

/// The line that repeats the run, without the password that a URL may hold.
fn command_line(words: impl Iterator<Item = String>) -> String {
    let words = words.map(|word| {
        let Some((before, after)) = word.split_once("://") else {
            return word;
        };
        match after.rsplit_once('@') {
            Some((user, host)) if user.contains(':') => {
                let name = user.split(':').next().unwrap_or_default();
                format!("{before}://{name}:***@{host}")
            }
            _ => word,
        }
    });
    let words: Vec<String> = words.map(quoted).collect();
    words.join(" ")
}

/// A word without characters that a shell interprets.
pub(super) fn quoted(word: String) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:=,@%+*".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

fn password(target: &TargetArgs) -> anyhow::Result<Option<String>> {
    let Some(file) = &target.password_file else {
        return Ok(None);
    };
    let failed = || format!("cannot read {}", file.display());
    if file == Path::new("/dev/stdin") {
        // Its other lines may be changes of the run, which come later.
        let mut line = String::new();
        let input = std::io::stdin().lock();
        input
            .take(PASSWORD_BYTES_MAX)
            .read_line(&mut line)
            .with_context(failed)?;
        return Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()));
    }
    let text = fs::read_to_string(file).with_context(failed)?;
    Ok(Some(text.lines().next().unwrap_or_default().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_may_have_names() {
        let with = |urls: &[&str]| {
            let target = TargetArgs {
                target: urls.iter().map(|url| (*url).to_owned()).collect(),
                ..TargetArgs::default()
            };
            Engine::new(&target, &MeasureArgs::default(), Arc::default())
        };
        assert_eq!(with(&[]).unwrap().target(), "mqtt://127.0.0.1:1883");
        let two = with(&["a=mqtt://left", "b=mqtts://right"]).unwrap();
        assert_eq!(two.target(), "mqtt://left:1883, mqtts://right:8883");
        assert_eq!(two.options.targets[1].name, "b");
        assert!(with(&["a=gopher://left"]).is_err());
    }

    #[test]
    fn the_line_that_is_kept_can_be_repeated_and_has_no_password() {
        let words = [
            "thrum",
            "bench",
            "run",
            "p2p-1K",
            "--threshold",
            "e2e.p99 < 5ms",
            "--target",
            "mqtt://me:secret@host",
        ];
        let line = command_line(words.iter().map(|word| (*word).to_owned()));
        assert_eq!(
            line,
            "thrum bench run p2p-1K --threshold 'e2e.p99 < 5ms' --target mqtt://me:***@host"
        );
    }
}
