//! The log: text for people or JSON for machines, on standard error, with a level that can change
//! while it runs.

use std::io::IsTerminal as _;

use thrum_broker::config::{LogConfig, LogFormat};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, fmt, reload};

/// Changes the level of the log.
#[derive(Debug)]
pub(crate) struct Level(reload::Handle<EnvFilter, Registry>);

impl Level {
    /// Sets another level, in the notation of the configuration.
    ///
    /// # Errors
    /// It is not a level.
    pub(crate) fn set(&self, level: &str) -> anyhow::Result<()> {
        Ok(self.0.reload(filter(level)?)?)
    }
}

/// Starts the log.
///
/// # Errors
/// The level is invalid, or a log exists already.
pub(crate) fn init(config: &LogConfig) -> anyhow::Result<Level> {
    let (filter, handle) = reload::Layer::new(filter(&config.level)?);
    let lines = fmt::layer().with_writer(std::io::stderr);
    let lines = match config.format {
        LogFormat::Text => lines.with_ansi(is_colour_wanted()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    tracing_subscriber::registry()
        .with(filter)
        .with(lines)
        .try_init()?;
    Ok(Level(handle))
}

fn filter(level: &str) -> anyhow::Result<EnvFilter> {
    Ok(EnvFilter::builder().parse(level)?)
}

/// See <https://no-color.org>.
fn is_colour_wanted() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !refused
}
