//! Levels of the log that are raised or lowered for a time.

use std::time::Duration;

use thiserror::Error;

use super::LogLevel;

/// Most targets with a level of their own.
const RAISED_MAX: usize = 16;
/// Longest name of a target.
const TARGET_LEN_MAX: usize = 128;
/// Longest time of a level: a search takes no longer, and a forgotten one fills the disk.
const TIME_MAX: Duration = Duration::from_hours(24);

/// The beginning of the names of all parts of the broker.
const ALL: &str = "thrum";

/// A level for a time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Raised {
    /// The part of the program; empty for all of the broker.
    pub(crate) target: String,
    pub(crate) level: LogLevel,
    /// Time since the start of the clock until which it holds.
    pub(crate) until: Duration,
}

/// Why a level is not set.
#[derive(Debug, PartialEq, Eq, Error)]
pub(crate) enum LevelError {
    #[error(
        "{0:?} is no target: it is the name of a part of the program, such as thrum_broker or thrum_broker::door"
    )]
    Target(String),
    #[error("seconds is a number from 1 to {}", TIME_MAX.as_secs())]
    Time,
    #[error("{RAISED_MAX} targets have a level of their own already; wait, or take one back")]
    TooMany,
}

/// The levels that differ from the configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels(Vec<Raised>);

impl Levels {
    /// Sets the level of a target for a time, in place of the one it has; without a level it is
    /// that of the configuration again.
    pub(crate) fn set(
        &mut self,
        target: &str,
        level: Option<LogLevel>,
        time: Duration,
        now: Duration,
    ) -> Result<(), LevelError> {
        let is_allowed = |letter: char| letter.is_ascii_alphanumeric() || "_:".contains(letter);
        if target.len() > TARGET_LEN_MAX || !target.chars().all(is_allowed) {
            let shown = target.chars().take(60).collect();
            return Err(LevelError::Target(shown));
        }
        self.expire(now);
        let kept = self.0.iter().filter(|raised| raised.target != target);
        let mut next: Vec<Raised> = kept.cloned().collect();
        if let Some(level) = level {
            if time.is_zero() || time > TIME_MAX {
                return Err(LevelError::Time);
            }
            if next.len() >= RAISED_MAX {
                return Err(LevelError::TooMany);
            }
            next.push(Raised {
                target: target.to_owned(),
                level,
                until: now + time,
            });
        }
        self.0 = next;
        Ok(())
    }

    /// Takes back the levels whose time is over; whether there was one.
    pub(crate) fn expire(&mut self, now: Duration) -> bool {
        let before = self.0.len();
        self.0.retain(|raised| raised.until > now);
        self.0.len() < before
    }

    /// The levels.
    pub(crate) fn all(&self) -> &[Raised] {
        &self.0
    }

    /// The same as directives of the log. The one for all of the broker comes first: others refine
    /// it. It is not for the libraries beneath: that of HTTP/2 logs every frame, also those that
    /// send the log to somebody.
    pub(crate) fn directives(&self) -> Vec<String> {
        let mut all: Vec<&Raised> = self.0.iter().collect();
        all.sort_by_key(|raised| !raised.target.is_empty());
        let directive = |raised: &Raised| match raised.target.as_str() {
            "" => format!("{ALL}={}", raised.level.name()),
            target => format!("{target}={}", raised.level.name()),
        };
        all.into_iter().map(directive).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn a_level_returns_by_itself() {
        let mut levels = Levels::default();
        let (debug, trace) = (Some(LogLevel::Debug), Some(LogLevel::Trace));
        levels
            .set("thrum_broker", trace, secs(10), secs(100))
            .unwrap();
        levels.set("", debug, secs(60), secs(100)).unwrap();
        assert_eq!(levels.directives(), ["thrum=debug", "thrum_broker=trace"]);
        assert!(!levels.expire(secs(109)));
        assert!(levels.expire(secs(110)));
        assert_eq!(levels.directives(), ["thrum=debug"]);
        levels.set("", None, secs(0), secs(110)).unwrap();
        assert!(levels.all().is_empty());
    }

    #[test]
    fn a_target_has_one_level_and_there_are_few() {
        let mut levels = Levels::default();
        for number in 0..RAISED_MAX {
            let target = format!("part_{number}");
            levels
                .set(&target, Some(LogLevel::Debug), secs(9), secs(0))
                .unwrap();
        }
        let more = levels.set("more", Some(LogLevel::Debug), secs(9), secs(0));
        assert_eq!(more, Err(LevelError::TooMany));
        levels
            .set("part_0", Some(LogLevel::Trace), secs(9), secs(0))
            .unwrap();
        assert_eq!(levels.all().len(), RAISED_MAX);
        levels
            .set("more", Some(LogLevel::Debug), secs(9), secs(20))
            .unwrap();
        assert_eq!(levels.all().len(), 1, "the time of the others is over");
    }

    #[test]
    fn a_wrong_target_or_time_is_refused() {
        let mut levels = Levels::default();
        let debug = Some(LogLevel::Debug);
        for target in ["a=trace,b", "a b", "[x]", &"x".repeat(200)] {
            let error = levels.set(target, debug, secs(1), secs(0)).unwrap_err();
            assert!(matches!(error, LevelError::Target(_)), "{target}");
        }
        for time in [0, 86_401] {
            let error = levels.set("a", debug, secs(time), secs(0));
            assert_eq!(error, Err(LevelError::Time));
        }
    }
}
