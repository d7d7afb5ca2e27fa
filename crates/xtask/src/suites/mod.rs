//! `cargo xtask test`: runs every test of the repository, several suites at the same time.
//!
//! Most suites spend their time waiting: for timers of a broker, for the start of a database, for a
//! disk. Several suites therefore run at the same time, the long ones first, and those that measure
//! time run alone at the end. A suite that does not end is killed after its limit, and fails with
//! its output and a list of its processes.

mod built;
mod left;
mod one;
mod plan;
mod running;

use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::workspace::Workspace;
use plan::Suite;

/// Number of simultaneous suites per core. With two cores these are four, which use both cores
/// without delaying any suite so long that its broker seems to hang.
const SUITES_OF_CORE: usize = 2;

/// Options of the command line.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Selects suites whose name contains one of these; empty for all.
    only: Vec<String>,
    /// Only print the names.
    lists: bool,
}

impl Options {
    /// Parses the arguments after `test`.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self::default();
        for argument in arguments {
            match argument.as_str() {
                "--list" => options.lists = true,
                name if name.starts_with('-') => bail!("unknown argument `{name}` of `test`"),
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

/// Builds all tests, runs the selected ones, and returns whether all passed.
pub(crate) fn run(workspace: &Workspace, options: &Options) -> Result<bool> {
    let built = built::build(workspace)?;
    let mut suites = plan::suites(workspace, &built)?;
    suites.retain(|suite| options.wants(suite));
    if suites.is_empty() {
        bail!("no suite has this name; `cargo xtask test --list` prints the names");
    }
    if options.lists {
        for suite in &suites {
            println!("{}", suite.name);
        }
        return Ok(true);
    }
    let cores = std::thread::available_parallelism().context("the number of cores")?;
    #[expect(clippy::disallowed_methods, reason = "the tool reports its duration")]
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
