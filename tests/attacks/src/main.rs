//! `thrum-attacks BINARY…`: attacks each of these brokers, and prints a table of the outcomes.

use std::env;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use thrum_attacks::table::{self, Candidate};

const USAGE: &str = "\
Usage: thrum-attacks [--only TEXT] BINARY…

Attacks each of these brokers in turn, on a core of its own where there are two, and prints a table. --only runs the attacks
whose names contain the text. Ends with 1 if the last broker does not hold.
";

fn main() -> io::Result<ExitCode> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let mut only = String::new();
    if arguments.first().is_some_and(|first| first == "--only") && arguments.len() > 1 {
        only = arguments.remove(1);
        arguments.remove(0);
    }
    let mut output = io::stdout().lock();
    if arguments.is_empty() || arguments.iter().any(|argument| argument.starts_with('-')) {
        output.write_all(USAGE.as_bytes())?;
        return Ok(ExitCode::from(2));
    }
    let core = leave_a_core();
    // Only root may.
    fs::write(GROUP, NICENESS).unwrap_or_default();
    let candidates: Vec<_> = arguments
        .iter()
        .map(|program| Candidate::new(Path::new(program), core))
        .collect();
    writeln!(output, "{}\n", machine(core))?;
    for candidate in &candidates {
        let version = candidate.site.run(&["version"], "");
        let version = version.lines().next().unwrap_or_default();
        writeln!(output, "- {}: {version}", candidate.name)?;
    }
    writeln!(output)?;
    let failed = table::run(&candidates, &only, &mut output)?;
    Ok(ExitCode::from(u8::from(failed > 0)))
}

/// Other programs of the machine disturb less: Linux gives cores to groups of processes, each of a
/// session.
const GROUP: &str = "/proc/self/autogroup";
const NICENESS: &str = "-15";

/// The attackers and the probe stay on another core than the broker; the broker's core, if there
/// are two.
fn leave_a_core() -> Option<usize> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core));
    let (broker, own) = (cores.next()?, cores.next()?);
    let mut set = CpuSet::new();
    set.set(own);
    sched_setaffinity(None, &set).ok()?;
    Some(broker)
}

fn machine(core: Option<usize>) -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = read("/proc/cpuinfo");
    let model = cores
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let kernel = read("/proc/sys/kernel/osrelease");
    let place = core.map_or("on any core", |_| "on a core of its own");
    format!(
        "{}, Linux {}; each broker {place}.",
        model.unwrap_or("?"),
        kernel.trim()
    )
}
