//! `cargo xtask test`: every test of the repository, several suites side by side.
//!
//! Most suites wait: for timers of a broker, for a database to start, for a disk. So a few run at
//! the same time, the long ones first, and those that measure time run alone at the end.

mod built;
mod plan;
mod running;

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use plan::Suite;

/// Suites at the same time for each core: at two cores four, which keeps both busy while no suite
/// waits for a core for long enough that its broker seems to hang.
const SUITES_OF_CORE: usize = 2;

/// What the command line asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Only suites whose name contains one of these; all if there is none.
    only: Vec<String>,
    /// Print the names and run nothing.
    lists: bool,
}

impl Options {
    /// Reads what follows `test`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--list" => options.lists = true,
                name if name.starts_with('-') => bail!("do not understand `{name}` behind `test`"),
                name => options.only.push(name.to_owned()),
            }
        }
        Ok(options)
    }

    fn wants(&self, suite: &Suite) -> bool {
        self.only.is_empty()
            || self
                .only
                .iter()
                .any(|part| suite.name.contains(part.as_str()))
    }
}

/// Builds all tests, runs those asked for, and tells whether all passed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let built = built::build(workspace)?;
    let mut suites = plan::suites(workspace, &built)?;
    suites.retain(|suite| options.wants(suite));
    if suites.is_empty() {
        bail!("no suite is named so; `cargo xtask test --list` prints the names");
    }
    if options.lists {
        for suite in &suites {
            println!("{}", suite.name);
        }
        return Ok(true);
    }
    let cores = std::thread::available_parallelism().context("the number of cores")?;
    #[expect(
        clippy::disallowed_methods,
        reason = "a tool that runs for minutes tells how long"
    )]
    let began = Instant::now();
    let failed = running::run(suites, SUITES_OF_CORE * cores.get())?;
    let seconds = began.elapsed().as_secs();
    match failed.as_slice() {
        [] => println!("test: ok after {seconds} s"),
        failed => println!("test: failed after {seconds} s in {}", failed.join(", ")),
    }
    Ok(failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let arguments: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&arguments)
    }

    #[test]
    fn suites_are_chosen_by_parts_of_their_names() {
        let suite = |name: &str| Suite::of_command(name, "true");
        let all = parse("").unwrap();
        assert!(all.wants(&suite("crash kill")) && !all.lists);
        let some = parse("crash fuzz").unwrap();
        assert!(some.wants(&suite("crash kill")) && some.wants(&suite("fuzz targets")));
        assert!(!some.wants(&suite("interop")));
        assert!(parse("--list").unwrap().lists);
        assert!(parse("--lists").is_err());
    }
}
