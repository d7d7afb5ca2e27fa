//! The log: text for people or JSON for machines, on standard error, with a level that can change
//! while it runs. The management interface has the last events of it, and levels for a time.

use std::io::IsTerminal as _;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_broker::config::{LogConfig, LogFormat};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

use crate::management;

#[cfg(feature = "management")]
mod kept;
mod lines;

pub(crate) use self::lines::Ending;
use self::lines::Lines;

/// Levels of parts that write a line for what any stranger sends them, such as a reset of HTTP/2:
/// that would fill the disk. They stand first, so that `log.level` or a level for a time can name
/// these targets.
const QUIET: &str = "h2=error,hyper=error,hyper_util=error,rustls=error";

/// The log that was started.
#[derive(Debug)]
pub(crate) struct Log {
    pub(crate) level: Level,
    /// Dropped at the end of the program, so that its last lines are written.
    pub(crate) ending: Ending,
}

/// Changes the level of the log.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    handle: reload::Handle<EnvFilter, Registry>,
    /// Guards the parts of the level in force, which are set by different threads.
    parts: Arc<Mutex<Parts>>,
    /// The last events.
    #[cfg(feature = "management")]
    pub(crate) logs: Arc<thrum_management::Logs>,
}

/// What the level is made of.
#[derive(Debug, Default)]
struct Parts {
    /// That of the configuration.
    configured: String,
    /// Directives that hold for a time.
    added: Vec<String>,
}

impl Level {
    /// Sets another level, in the notation of the configuration.
    ///
    /// # Errors
    /// It is not a level.
    pub(crate) fn set(&self, level: &str) -> anyhow::Result<()> {
        self.change(|parts| level.clone_into(&mut parts.configured))
    }

    /// Adds directives to the level of the configuration, in place of those before.
    ///
    /// # Errors
    /// One of them is none.
    #[cfg(feature = "management")]
    pub(crate) fn add(&self, directives: Vec<String>) -> anyhow::Result<()> {
        self.change(|parts| parts.added = directives)
    }

    /// The level of the configuration.
    #[cfg(feature = "management")]
    pub(crate) fn configured(&self) -> String {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.configured.clone()
    }

    fn change(&self, change: impl FnOnce(&mut Parts)) -> anyhow::Result<()> {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut parts);
        Ok(self.handle.reload(filter(&parts.directives())?)?)
    }
}

impl Parts {
    /// Later directives win over earlier ones for the same target.
    fn directives(&self) -> String {
        let configured = [QUIET, self.configured.as_str()].into_iter();
        let added = self.added.iter().map(String::as_str);
        let all = configured.chain(added).filter(|part| !part.is_empty());
        all.collect::<Vec<_>>().join(",")
    }
}

/// Starts the log.
///
/// # Errors
/// The level is invalid, a log exists already, or the system has no thread.
pub(crate) fn init(config: &LogConfig) -> anyhow::Result<Log> {
    let parts = Parts {
        configured: config.level.clone(),
        added: Vec::new(),
    };
    let (filter, handle) = reload::Layer::new(filter(&parts.directives())?);
    let written = Lines::start(std::io::stderr())?;
    let ending = written.ending();
    let lines = fmt::layer().with_writer(written);
    let lines = match config.format {
        LogFormat::Text => lines.with_ansi(is_colour_wanted()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let log = tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .with(management::log_layer());
    #[cfg(feature = "management")]
    let logs = Arc::<thrum_management::Logs>::default();
    #[cfg(feature = "management")]
    let log = {
        let logs = Arc::clone(&logs);
        log.with(kept::Kept(move |event| logs.push(event)))
    };
    log.try_init()?;
    let level = Level {
        handle,
        parts: Arc::new(Mutex::new(parts)),
        #[cfg(feature = "management")]
        logs,
    };
    Ok(Log { level, ending })
}

fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    Ok(EnvFilter::builder().parse(level)?)
}

/// See <https://no-color.org>.
fn is_colour_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !refused
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a level that reach the log, of a warning of this broker and one of HTTP/2.
    #[cfg(feature = "management")]
    fn lines(configured: &str, added: &[&str]) -> Vec<String> {
        let parts = Parts {
            configured: configured.to_owned(),
            added: added.iter().map(|one| (*one).to_owned()).collect(),
        };
        let kept = Arc::<Mutex<Vec<String>>>::default();
        let log = Arc::clone(&kept);
        let keep = move |event: thrum_management::LogEvent| log.lock().unwrap().push(event.text);
        let log = tracing_subscriber::registry()
            .with(filter(&parts.directives()).unwrap())
            .with(kept::Kept(keep));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(target: "thrum_broker::worker", "ours");
            tracing::warn!(target: "h2::proto::streams::recv", "reset");
        });
        std::mem::take(&mut *kept.lock().unwrap())
    }

    #[cfg(feature = "management")]
    #[test]
    fn strangers_cannot_fill_the_log_by_parts_that_warn_of_each_of_their_frames() {
        assert_eq!(lines("info", &[]), ["ours"]);
        assert_eq!(lines("trace", &[]), ["ours"]);
        assert_eq!(lines("info,h2=warn", &[]), ["ours", "reset"]);
        assert_eq!(lines("info", &["h2=debug"]), ["ours", "reset"]);
        assert_eq!(lines("error", &[]), [""; 0]);
    }

    #[test]
    fn a_level_for_a_time_wins_over_that_of_the_configuration() {
        let parts = Parts {
            configured: "info,thrum_broker=warn".to_owned(),
            added: vec!["debug".to_owned(), "thrum_broker=trace".to_owned()],
        };
        let text = filter(&parts.directives()).unwrap().to_string();
        assert!(text.contains("thrum_broker=trace"), "{text}");
        assert!(text.contains("debug") && !text.contains("info"), "{text}");
        assert!(!text.contains("warn"), "{text}");
    }
}
