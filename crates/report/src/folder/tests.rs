//! Run folders in the temporary folder of the machine.

use super::*;
use crate::sample;

/// A folder of its own for each test.
struct Parent(PathBuf);

impl Parent {
    fn new(test: &str) -> Self {
        let name = format!("thrum-report-{}-{test}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn file(&self, text: &str) -> PathBuf {
        fs::create_dir_all(&self.0).unwrap();
        let path = self.0.join(RESULT);
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Parent {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[test]
fn a_run_folder_is_never_overwritten() {
    let parent = Parent::new("same");
    let create = || RunFolder::create(&parent.0, "1970-01-01T00:00:00Z", "x/1 000").unwrap();
    let (first, second) = (create(), create());
    assert_eq!(first.path(), parent.0.join("1970-01-01T000000Z-x-1-000"));
    assert_eq!(second.path(), parent.0.join("1970-01-01T000000Z-x-1-000-2"));
}

#[test]
fn a_written_folder_is_complete_and_read_back() {
    let parent = Parent::new("round");
    let run = sample::run();
    let folder = RunFolder::create(&parent.0, &run.started, &run.scenario.name).unwrap();
    let files = Files {
        html: Some("<html>"),
        hlog: Some("#log\n"),
        compat: None,
    };
    folder.write(&run, &files).unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "env.json",
            "junit.xml",
            "latency.hgrm",
            "latency.hlog",
            "report.html",
            "report.md",
            "result.json",
            "run.toml",
            "series.csv",
            "summary.txt",
        ]
    );
    assert!(read(folder.path()).unwrap() == run);
    assert!(read(&folder.path().join(RESULT)).unwrap() == run);
    assert_eq!(read_hlog(folder.path()).unwrap().as_deref(), Some("#log\n"));
    assert_eq!(read_hlog(&parent.0).unwrap(), None);
}

#[test]
fn unmeasured_figures_are_not_read_as_zero() {
    let parent = Parent::new("none");
    let mut run = sample::idle_run();
    run.generator.usage = None;
    let json = serde_json::to_string(&run).unwrap();
    let read = read(&parent.file(&json)).unwrap();
    assert_eq!(read.generator, run.generator);
    assert_eq!(read.latency_ns.e2e, None);
}

#[test]
fn runs_are_listed_with_their_time_and_verdict() {
    let parent = Parent::new("list");
    assert!(list(&parent.0).unwrap().is_empty());
    for started in ["2026-11-22T00:00:00Z", "2026-11-21T00:00:00Z"] {
        let folder = RunFolder::create(&parent.0, started, "x").unwrap();
        let mut run = sample::run();
        run.started = started.to_owned();
        folder.write(&run, &Files::default()).unwrap();
    }
    fs::create_dir(parent.0.join("empty")).unwrap();
    fs::create_dir(parent.0.join("other")).unwrap();
    fs::write(parent.0.join("other").join(RESULT), "{}").unwrap();
    let runs = list(&parent.0).unwrap();
    let heads: Vec<&RunHead> = runs
        .iter()
        .filter_map(|entry| entry.run.as_ref().ok())
        .collect();
    assert_eq!(runs.len(), 3);
    let started: Vec<&str> = heads.iter().map(|head| head.started.as_str()).collect();
    assert_eq!(started, ["2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"]);
    assert_eq!(heads[0].scenario.name, "p2p-1K");
    assert!(heads[0].verdict.pass && heads[0].metrics.contains_key("e2e.p99"));
}

#[test]
fn a_result_of_another_version_is_distinguished() {
    let parent = Parent::new("errors");
    for (text, says) in [
        ("nonsense", "is not the result of a run: expected"),
        ("{}", "is not the result of a run: it names no schema"),
        (
            "{\"schema\":\"other/2\"}",
            "is not the result of a run: its schema is 'other/2'",
        ),
        (
            "{\"schema\":\"thrum-bench-result/1\"}",
            "is of an older version (thrum-bench-result/1",
        ),
        (
            "{\"schema\":\"thrum-bench-result/3\"}",
            "is of a newer version (thrum-bench-result/3",
        ),
        (
            "{\"schema\":\"thrum-bench-result/2\",\"rates\":7}",
            "is not the result of a run: invalid",
        ),
    ] {
        let error = read(&parent.file(text)).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
    }
    let error = read(&parent.0.join("nowhere")).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("give a run folder or its result.json"),
        "{error}"
    );
}
