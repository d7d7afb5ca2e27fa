//! The suites, and the order in which they start.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::built::{Built, TestProgram};
use crate::workspace::Workspace;

/// Long suites, which start first, with the approximate number of seconds of each on two cores.
const LONG: [(&str, u32); 23] = [
    ("dashboard e2e", 130),
    ("bench selfcheck", 70),
    ("interop", 60),
    ("schema", 50),
    ("dashboard", 45),
    ("crash kill", 40),
    ("crash power", 40),
    ("thrum bench_tools", 31),
    ("backends mqtt", 31),
    ("dashboard budgets", 60),
    ("crash storm", 29),
    ("agents in namespaces", 25),
    ("thrum bench_disturbed", 75),
    ("thrum bench_independent", 60),
    ("thrum bench_clocks", 25),
    ("conformance normative", 20),
    ("conformance normative, durable", 20),
    ("fuzz targets", 20),
    ("conformance abuse", 15),
    ("broker lib", 15),
    ("crash faults", 10),
    ("thrum serve", 10),
    ("thrum clients", 10),
];

/// Time after which a suite is ended and fails: several times what the longest takes, and short
/// enough that the run still reports it.
const LIMIT: Duration = Duration::from_mins(10);

/// The same of `check`, which compiles everything once more beside the other suites.
const LIMIT_OF_CHECK: Duration = Duration::from_mins(30);

/// Suites that run alone, after the others: they measure time or memory, or end a broker so soon
/// after the clock was set that its disk must not be slow.
const ALONE: [&str; 9] = [
    "backends mqtt",
    "bench agents",
    "bench selfcheck",
    "crash storm",
    "dashboard budgets",
    "dashboard e2e",
    "thrum bench_clocks",
    "thrum bench_disturbed",
    "thrum bench_independent",
];

/// Conformance suites that run a second time with a broker that has a data directory.
const DURABLE: [&str; 3] = [
    "conformance abuse",
    "conformance malformed",
    "conformance normative",
];

/// Suites that may run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Company {
    /// All suites but those that run alone: it runs in the background.
    Beside,
    /// Other suites.
    Others,
    /// No other suite.
    Alone,
}

/// Programs that run once and report success by their exit code.
#[derive(Debug)]
pub(super) struct Suite {
    pub(super) name: String,
    /// Approximate duration.
    pub(super) seconds: u32,
    pub(super) limit: Duration,
    pub(super) company: Company,
    pub(super) program: PathBuf,
    arguments: Vec<OsString>,
    pub(super) folder: PathBuf,
    pub(super) environment: Vec<(&'static str, OsString)>,
}

impl Suite {
    fn new(name: String, program: PathBuf, folder: &Path) -> Self {
        let long = LONG.iter().find(|(long, _)| *long == name);
        let company = if ALONE.contains(&name.as_str()) {
            Company::Alone
        } else {
            Company::Others
        };
        Self {
            seconds: long.map_or(1, |(_, seconds)| *seconds),
            limit: LIMIT,
            company,
            program,
            arguments: Vec::new(),
            folder: folder.to_owned(),
            environment: Vec::new(),
            name,
        }
    }

    fn of_test(test: &TestProgram) -> Self {
        let mut suite = Self::new(test.name.clone(), test.path.clone(), &test.folder);
        let folder = test.folder.clone().into_os_string();
        suite.environment.push(("CARGO_MANIFEST_DIR", folder));
        suite
    }

    /// `xtask check`, which compiles in the background while the others wait.
    fn of_check(workspace: &Workspace) -> Result<Self> {
        let own = std::env::current_exe().context("the path of xtask")?;
        let mut suite = Self::new("check".to_owned(), "nice".into(), &workspace.root);
        suite.company = Company::Beside;
        suite.limit = LIMIT_OF_CHECK;
        suite.arguments = vec!["-n".into(), "19".into(), own.into(), "check".into()];
        Ok(suite)
    }

    #[cfg(test)]
    pub(super) fn of_command(name: &str, program: &str) -> Self {
        Self::new(name.to_owned(), program.into(), Path::new("."))
    }

    #[cfg(test)]
    pub(super) fn of_shell(script: &str, limit: Duration) -> Self {
        let mut suite = Self::of_command(script, "sh");
        suite.arguments = vec!["-c".into(), script.into()];
        suite.limit = limit;
        suite
    }

    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}

/// All suites, in the order of their start.
pub(super) fn suites(workspace: &Workspace, built: &Built) -> Result<Vec<Suite>> {
    let mut suites: Vec<Suite> = built.tests.iter().map(Suite::of_test).collect();
    for name in DURABLE {
        let Some(test) = built.tests.iter().find(|test| test.name == name) else {
            bail!("there is no suite `{name}`");
        };
        let mut suite = Suite::of_test(test);
        suite.name.push_str(", durable");
        suite.environment.push(("CONFORMANCE_DURABLE", "1".into()));
        suite
            .environment
            .push(("THRUM_STORAGE__MAX_DISK", "32MiB".into()));
        suites.push(suite);
    }
    for (name, script, argument) in [
        ("interop", "tests/interop/run.sh", None),
        ("schema", "tests/schema/run.sh", None),
        ("dashboard", "dashboard/test.sh", None),
        ("dashboard e2e", "dashboard/e2e.sh", Some("pages")),
        ("dashboard budgets", "dashboard/e2e.sh", Some("budgets")),
        ("agents in namespaces", "tests/agents/netns.sh", None),
    ] {
        let program = workspace.root.join(script);
        let mut suite = Suite::new(name.to_owned(), program, &workspace.root);
        suite.arguments = argument.into_iter().map(Into::into).collect();
        suites.push(suite);
    }
    suites.push(Suite::of_check(workspace)?);
    for suite in &mut suites {
        let thrum = built.thrum.clone().into_os_string();
        suite.environment.push(("THRUM_BIN", thrum));
    }
    suites.sort_by_key(|suite| (suite.company, u32::MAX - suite.seconds));
    check_names(&suites)?;
    Ok(suites)
}

/// Reports an entry of the lists without suite, which would otherwise lose its special order after
/// a rename.
fn check_names(suites: &[Suite]) -> Result<()> {
    let named = LONG.iter().map(|(name, _)| name).chain(&ALONE);
    for name in named {
        if !suites.iter().any(|suite| suite.name == *name) {
            bail!("there is no suite `{name}`: correct the lists in xtask's suites/plan.rs");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(names: &[&str]) -> Built {
        let test = |name: &&str| TestProgram {
            name: (*name).to_owned(),
            path: "/t/program".into(),
            folder: "/r/crates/c".into(),
        };
        Built {
            tests: names.iter().map(test).collect(),
            thrum: "/t/thrum".into(),
        }
    }

    fn workspace() -> Workspace {
        Workspace {
            root: "/r".into(),
            files: Vec::new(),
        }
    }

    #[test]
    fn long_suites_begin_first_and_those_that_measure_run_last() {
        let own = [
            "check",
            "interop",
            "schema",
            "dashboard",
            "dashboard e2e",
            "dashboard budgets",
            "agents in namespaces",
            "conformance normative, durable",
        ];
        let mut names: Vec<&str> = LONG.iter().map(|(name, _)| *name).collect();
        names.extend(ALONE.iter().chain(&DURABLE).chain(&["codec lib"]));
        names.retain(|name| !own.contains(name));
        names.sort_unstable();
        names.dedup();
        let suites = suites(&workspace(), &built(&names)).unwrap();
        assert_eq!((&*suites[0].name, &*suites[1].name), ("check", "interop"));
        assert!(ALONE.contains(&&*suites.last().unwrap().name));
        let durable = suites
            .iter()
            .find(|suite| suite.name == "conformance abuse, durable");
        let durable = durable.unwrap();
        let names = durable.environment.iter().map(|(name, _)| *name);
        let expected = [
            "CARGO_MANIFEST_DIR",
            "CONFORMANCE_DURABLE",
            "THRUM_STORAGE__MAX_DISK",
            "THRUM_BIN",
        ];
        assert!(names.eq(expected));
    }

    #[test]
    fn a_suite_that_no_longer_exists_is_reported() {
        let error = suites(&workspace(), &built(&DURABLE)).unwrap_err();
        assert!(error.to_string().contains("`bench selfcheck`"), "{error}");
    }
}
