//! The processes of a suite: found by a variable in their environment, which children inherit.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Variable that each process of a suite has.
pub(super) const VARIABLE: &str = "XTASK_SUITE";

/// Most threads of a process in a report.
const MAX_THREADS: usize = 32;

/// Tells the processes of a suite from all others.
pub(super) struct Mark(String);

impl Mark {
    pub(super) fn of(suite: &str) -> Self {
        Self(format!("{}:{suite}", std::process::id()))
    }

    pub(super) fn value(&self) -> &str {
        &self.0
    }

    /// One line for each process: its command, and what its threads wait for. Tests run in threads
    /// that have their names.
    pub(super) fn report(&self) -> String {
        let mut report = Vec::new();
        for folder in self.processes() {
            let command = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
            let command = command.replace('\0', " ");
            let number = folder.file_name().unwrap_or_default().display();
            report.push(format!("  process {number}: {}", command.trim_end()));
            report.extend(threads(&folder));
        }
        report.join("\n")
    }

    /// Kills all processes of the suite.
    pub(super) fn kill(&self) {
        for folder in self.processes() {
            let number = folder.file_name().unwrap_or_default();
            // A process that ended meanwhile is none the worse for it.
            drop(Command::new("kill").arg("-KILL").arg(number).output());
        }
    }

    fn processes(&self) -> Vec<PathBuf> {
        let entry = format!("{VARIABLE}={}", self.0).into_bytes();
        let has_mark = |folder: &PathBuf| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|one| one == entry)
        };
        let Ok(all) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        let folders = all.flatten().map(|one| one.path());
        folders.filter(has_mark).collect()
    }
}

/// Name, state and place in the kernel of each thread.
fn threads(process: &Path) -> Vec<String> {
    let Ok(all) = fs::read_dir(process.join("task")) else {
        return Vec::new();
    };
    let read = |folder: &Path, file| fs::read_to_string(folder.join(file)).unwrap_or_default();
    let describe = |folder: PathBuf| {
        let name = read(&folder, "comm");
        let stat = read(&folder, "stat");
        // The state follows the name, which may contain anything.
        let state = stat
            .rsplit(") ")
            .next()
            .and_then(|rest| rest.chars().next());
        let state = state.unwrap_or('?');
        let wait = read(&folder, "wchan");
        format!("    {} {state} {wait}", name.trim_end())
    };
    let folders = all.flatten().map(|one| one.path());
    folders.take(MAX_THREADS).map(describe).collect()
}
