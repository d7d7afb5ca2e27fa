//! Runs suites at the same time and prints the output of those that failed.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::mpsc::SyncSender;
use std::sync::{Mutex, PoisonError, mpsc};

use anyhow::Result;

use super::one::{self, Ended};
use super::plan::{Company, Suite};

/// Runs all suites, at most `most` at the same time, and returns the names of those that failed.
pub(super) fn run(suites: Vec<Suite>, most: usize) -> Result<Vec<String>> {
    let total = suites.len();
    let (sender, ended) = mpsc::sync_channel(total.max(1));
    std::thread::scope(|scope| {
        scope.spawn(move || in_turn(suites, most, &sender));
        let mut failed = Vec::new();
        for (number, ended) in ended.iter().enumerate() {
            let ended = ended?;
            print(&ended, number + 1, total)?;
            if !ended.is_passed {
                failed.push(ended.name);
            }
        }
        Ok(failed)
    })
}

/// Runs those that bear company, then those that do not.
fn in_turn(suites: Vec<Suite>, most: usize, ended: &SyncSender<Result<Ended>>) {
    let (mut beside, mut together, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for suite in suites {
        match suite.company {
            Company::Beside => beside.push(suite),
            Company::Others => together.push(suite),
            Company::Alone => alone.push(suite),
        }
    }
    std::thread::scope(|scope| {
        scope.spawn(|| side_by_side(beside, 1, ended));
        side_by_side(together, most, ended);
    });
    side_by_side(alone, 1, ended);
}

fn side_by_side(suites: Vec<Suite>, most: usize, ended: &SyncSender<Result<Ended>>) {
    let threads = most.min(suites.len());
    // The lock is held to take the next suite.
    let waiting = Mutex::new(VecDeque::from(suites));
    let run_next = || Some(one::run(&next(&waiting)?));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| std::iter::from_fn(run_next).try_for_each(|one| ended.send(one)));
        }
    });
}

fn next(waiting: &Mutex<VecDeque<Suite>>) -> Option<Suite> {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.pop_front()
}

fn print(ended: &Ended, number: usize, count: usize) -> Result<()> {
    let mut out = io::stdout().lock();
    let verdict = if ended.is_passed { "ok" } else { "FAILED" };
    let took = ended.took.as_secs_f64();
    if !ended.is_passed {
        writeln!(out, "----- {}", ended.name)?;
        out.write_all(&ended.output)?;
    }
    writeln!(
        out,
        "{number:>3}/{count} {verdict:<6} {took:>6.1} s  {}",
        ended.name
    )?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn suite(name: &str, program: &str) -> Suite {
        Suite::of_command(name, program)
    }

    #[test]
    fn every_suite_is_run_and_failed_ones_are_reported() {
        let suites = [
            suite("a", "true"),
            suite("b", "false"),
            suite("c", "true"),
            suite("d", "false"),
        ];
        for most in [1, 3] {
            let suites = suites
                .iter()
                .map(|one| suite(&one.name, one.program.to_str().unwrap()));
            let mut failed = run(suites.collect(), most).unwrap();
            failed.sort();
            assert_eq!(failed, ["b", "d"]);
        }
    }

    #[test]
    fn what_runs_in_the_background_has_ended_before_a_suite_runs_alone() {
        let mut slow = Suite::of_shell("sleep 0.3", Duration::from_mins(1));
        slow.company = Company::Beside;
        let mut quick = suite("quick", "true");
        quick.company = Company::Alone;
        let (sender, ended) = mpsc::sync_channel(2);
        in_turn(vec![quick, slow], 2, &sender);
        drop(sender);
        let names: Vec<String> = ended.iter().map(|ended| ended.unwrap().name).collect();
        assert_eq!(names, ["sleep 0.3", "quick"]);
    }

    #[test]
    fn a_program_that_does_not_start_is_an_error() {
        let error = run(vec![suite("a", "/no/such/program")], 2).unwrap_err();
        assert!(format!("{error:#}").contains("/no/such/program does not start"));
    }
}
