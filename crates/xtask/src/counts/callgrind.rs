//! Builds the program of cases and counts the instructions of each case with callgrind.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::str::Lines;
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::Counts;
use crate::workspace::{Workspace, cargo};

const PACKAGE: &str = "thrum-counts";
/// The function of the program in which callgrind collects, matched by the end of its path.
const COUNTED: &str = "*thrum_counts*counted*";
/// Number of operations counted for each case: enough to use each of its topics once.
const TIMES: u32 = 1_000;
/// The C library selects a version of `memcpy` by the features of the processor. Without these
/// features it selects the same one on every x86-64 machine; its other criteria, vendor and model,
/// are emulated by valgrind and equal everywhere. The library ignores names that it does not know.
const C_LIBRARY: &str =
    "glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-AVX_Fast_Unaligned_Load,-AVX512F,-AVX512VL,-ERMS,-FSRM";

/// The compiled program of cases.
pub(super) struct Counter {
    program: PathBuf,
    compiler: String,
}

impl Counter {
    /// Builds the program with the settings of a release of thrum, regardless of compiler flags in
    /// the environment.
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        if Command::new("valgrind").arg("--version").output().is_err() {
            bail!("valgrind is missing: apt-get install valgrind (`make setup` does it)");
        }
        let build = cargo(&workspace.root)
            .args(["build", "--release", "--package", PACKAGE])
            .args(["--message-format", "json-render-diagnostics"])
            .env("RUSTFLAGS", "")
            .stderr(Stdio::inherit())
            .output()?;
        if !build.status.success() {
            bail!("{PACKAGE} does not build");
        }
        let program = executable(&String::from_utf8_lossy(&build.stdout))
            .with_context(|| format!("the messages of cargo contain no program of {PACKAGE}"))?;
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let version = Command::new(rustc).arg("-vV").output()?;
        let compiler = compiler_of(&String::from_utf8_lossy(&version.stdout))
            .context("the output of rustc -vV lacks the release or the host")?;
        Ok(Self { program, compiler })
    }

    /// Version and host of the compiler: counts of different compilers are not comparable.
    pub(super) fn compiler(&self) -> &str {
        &self.compiler
    }

    /// Counts all cases, as many at the same time as there are cores.
    pub(super) fn count_all(&self) -> Result<Counts> {
        let list = Command::new(&self.program).arg("list").output()?;
        let list = checked(&list, "the list of cases")?;
        let waiting = Mutex::new(list.lines());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..cores)
                .map(|_| scope.spawn(|| self.count_some(&waiting)))
                .collect();
            let mut counts = Counts::new();
            for thread in threads {
                let some = thread.join().map_err(|_| anyhow!("a thread has failed"))?;
                counts.extend(some?);
            }
            Ok(counts)
        })
    }

    /// Counts cases until none is left.
    fn count_some(&self, waiting: &Mutex<Lines<'_>>) -> Result<Counts> {
        std::iter::from_fn(|| waiting.lock().ok()?.next())
            .map(|name| Ok((name.to_owned(), self.count(name)?)))
            .collect()
    }

    /// Instructions of one operation of a case.
    fn count(&self, name: &str) -> Result<f64> {
        let profile = self.profile(name);
        // An empty environment, so that no variable changes the stack layout or a decision.
        let output = Command::new("valgrind")
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("GLIBC_TUNABLES", C_LIBRARY)
            .args(["--tool=callgrind", &format!("--toggle-collect={COUNTED}")])
            .arg(format!("--callgrind-out-file={}", profile.display()))
            .arg(&self.program)
            .args([name, &TIMES.to_string()])
            .output()?;
        checked(&output, name)?;
        let text =
            std::fs::read_to_string(&profile).with_context(|| format!("{}", profile.display()))?;
        let instructions = instructions_of(&text)
            .with_context(|| format!("callgrind collected nothing for {name}"))?;
        Ok(f64::from(instructions) / f64::from(TIMES))
    }

    /// Path of callgrind's profile of a case, for `callgrind_annotate`.
    fn profile(&self, name: &str) -> PathBuf {
        self.program
            .with_file_name(format!("{PACKAGE}.{name}.callgrind"))
    }
}

/// The output of a program if it succeeded.
fn checked(output: &Output, what: &str) -> Result<String> {
    if !output.status.success() {
        let error = String::from_utf8_lossy(&output.stderr);
        bail!("{what}: {}\n{error}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The program in the messages of cargo.
fn executable(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == PACKAGE)
        .find_map(|message| Some(message["executable"].as_str()?.into()))
}

/// Release and host from the output of `rustc -vV`.
fn compiler_of(version: &str) -> Option<String> {
    let field = |name| version.lines().find_map(|line| line.strip_prefix(name));
    Some(format!(
        "rustc {} {}",
        field("release: ")?,
        field("host: ")?
    ))
}

/// The sum in a profile; `None` if nothing was collected.
fn instructions_of(profile: &str) -> Option<u32> {
    let totals = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))?;
    totals.trim().parse().ok().filter(|count| *count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_a_profile_is_read_and_an_empty_profile_has_none() {
        let profile = |count: &str| {
            format!(
                "version: 1\nevents: Ir\nsummary: {count}\n\nfn=(1) main\n1 5\n\ntotals: {count}\n"
            )
        };
        assert_eq!(instructions_of(&profile("123456")), Some(123_456));
        assert_eq!(instructions_of(&profile("0")), None);
        assert_eq!(instructions_of("events: Ir\n"), None);
    }

    #[test]
    fn the_program_is_found_among_the_messages_of_cargo() {
        let library = r#"{"target":{"name":"thrum_codec"},"executable":null}"#;
        let program = r#"{"target":{"name":"thrum-counts"},"executable":"/t/thrum-counts"}"#;
        let messages = format!("{library}\n{program}\nnot json\n");
        assert_eq!(executable(&messages), Some("/t/thrum-counts".into()));
        assert_eq!(executable(library), None);
    }

    #[test]
    fn the_compiler_is_identified_by_release_and_host() {
        let version = "rustc 1.95.0 (x 2026-04-14)\nbinary: rustc\nhost: x86_64-unknown-linux-gnu\nrelease: 1.95.0\n";
        let name = "rustc 1.95.0 x86_64-unknown-linux-gnu";
        assert_eq!(compiler_of(version).as_deref(), Some(name));
        assert_eq!(compiler_of("rustc 1.95.0"), None);
    }
}
