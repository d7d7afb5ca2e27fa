//! All attacks on several brokers in turn, as a table.

use std::io::{self, Write};
use std::panic;
use std::path::Path;
use std::time::Duration;

use thrum_conformance::clock;

use crate::attacks::{ATTACKS, Attack};
use crate::outcome::{Outcome, Verdict};
use crate::victim::{MIB, Setup, Site, Victim};

/// How long the probe is watched without an attack.
const ALONE: Duration = Duration::from_secs(3);
/// An attack that stalls others by less than this is repeated: it may have been another program of
/// the machine.
const DOUBTFUL: Duration = Duration::from_millis(200);
/// Most repetitions. The run with the shortest stall counts.
const TRIES: usize = 3;

/// Name and binary of a broker.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// As the table calls it.
    pub name: String,
    /// The program and its arguments.
    pub site: Site,
}

impl Candidate {
    /// A binary, on this core.
    pub fn new(program: &Path, core: Option<usize>) -> Self {
        let name = program.file_name().unwrap_or(program.as_os_str());
        Self {
            name: name.to_string_lossy().into_owned(),
            site: Site {
                program: program.to_owned(),
                core,
            },
        }
    }
}

/// Runs all attacks whose names contain the text, and writes each row when it is known; returns how
/// often the last broker did not hold.
///
/// # Errors
/// The rows cannot be written.
pub fn run(candidates: &[Candidate], only: &str, to: &mut impl Write) -> io::Result<usize> {
    writeln!(
        to,
        "| | attack | broker | memory before, peak | CPU | probe p50, max | beside | verdict |\n\
         |---|---|---|---|---|---|---|---|"
    )?;
    let mut alone = Vec::new();
    for candidate in candidates {
        let quiet = watch_alone(&candidate.site, false);
        let busy = watch_alone(&candidate.site, true);
        for (name, outcome) in [
            ("no attack", &quiet),
            ("no attack, a busy neighbour", &busy),
        ] {
            write_row(to, ("–", name, candidate), outcome, Verdict::Holds)?;
        }
        alone.push(busy.rounds.longest.max(quiet.rounds.longest));
    }
    let mut failed = 0;
    for attack in ATTACKS.iter().filter(|attack| attack.name.contains(only)) {
        let mut of_last = Verdict::Holds;
        for (candidate, alone) in candidates.iter().zip(&alone) {
            let outcome = attempt(attack, &candidate.site, *alone);
            let verdict = outcome.verdict(*alone);
            write_row(
                to,
                (attack.finding, attack.name, candidate),
                &outcome,
                verdict,
            )?;
            of_last = verdict;
        }
        failed += usize::from(!matches!(of_last, Verdict::Holds | Verdict::Untried));
    }
    Ok(failed)
}

/// The probe without an attack, alone or with a busy loop on the attackers' core.
fn watch_alone(site: &Site, is_busy: bool) -> Outcome {
    let mut victim = Victim::start(site, &Setup::default());
    victim.begin();
    let start = clock::now();
    while start.elapsed() < ALONE {
        if !is_busy {
            clock::sleep(ALONE / 10);
        }
    }
    victim.end(None, String::new())
}

/// An attack, once more if its stall may have been another program's doing.
fn attempt(attack: &Attack, site: &Site, alone: Duration) -> Outcome {
    let mut best = once(attack, site);
    for _ in 1..TRIES {
        let is_doubtful = best.rounds.longest < alone + DOUBTFUL;
        if best.verdict(alone) != Verdict::Stalls || !is_doubtful {
            break;
        }
        let again = once(attack, site);
        if again.verdict(alone) != Verdict::Stalls || again.rounds.longest < best.rounds.longest {
            best = again;
        }
    }
    best
}

/// A failure of the attack itself is an outcome too.
fn once(attack: &Attack, site: &Site) -> Outcome {
    panic::catch_unwind(|| (attack.run)(site)).unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied());
        Outcome {
            wrong: Some(text.unwrap_or("the attack failed").replace('\n', " ")),
            ..Outcome::default()
        }
    })
}

fn write_row(
    to: &mut impl Write,
    (finding, name, candidate): (&str, &str, &Candidate),
    outcome: &Outcome,
    verdict: Verdict,
) -> io::Result<()> {
    let rounds = outcome.rounds;
    let figures = if rounds.count == 0 {
        "| | ".to_owned()
    } else {
        format!(
            "{}, {} MiB | {:.2} s of {:.1} | {:.2}, {:.0} ms",
            outcome.memory_before / MIB,
            outcome.memory_peak / MIB,
            outcome.cpu.as_secs_f64(),
            outcome.took.as_secs_f64(),
            rounds.median.as_secs_f64() * 1e3,
            rounds.longest.as_secs_f64() * 1e3,
        )
    };
    let words = outcome.words().replace('|', "/");
    let broker = &candidate.name;
    writeln!(
        to,
        "| {finding} | {name} | {broker} | {figures} | {words} | {} |",
        verdict.word()
    )?;
    to.flush()
}
