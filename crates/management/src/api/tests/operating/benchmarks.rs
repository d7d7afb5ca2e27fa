//! Benchmarks over the interface, without a process.

use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;
use crate::program::{BenchmarkOrder, BenchmarkRefusal};

/// Benchmarks that remember what they were asked, and refuse as told.
#[derive(Debug, Default)]
pub(super) struct FakeBenchmarks {
    asked: Mutex<Vec<String>>,
    refuses: Mutex<Option<ProgramError>>,
}

impl FakeBenchmarks {
    fn ask<T: Default>(&self, what: String) -> Result<T, ProgramError> {
        self.asked.lock().unwrap().push(what);
        match self.refuses.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => Ok(T::default()),
        }
    }

    fn refuse(&self, refusal: BenchmarkRefusal) {
        let why = "the reason".to_owned();
        *self.refuses.lock().unwrap() = Some(ProgramError::Benchmark { refusal, why });
    }

    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn words(order: &BenchmarkOrder) -> String {
    let password = order
        .password
        .as_ref()
        .and_then(|secret| secret.expose_str());
    let (scenario, by) = (order.scenario.as_deref(), &order.by);
    format!(
        "{} {} {by}",
        scenario.unwrap_or("toml"),
        password.unwrap_or("-")
    )
}

impl Benchmarks for FakeBenchmarks {
    fn limits(&self) -> BenchmarkLimits {
        BenchmarkLimits {
            why_not: Some("a reason".to_owned()),
            ..BenchmarkLimits::default()
        }
    }

    fn scenarios(&self) -> Result<Vec<BenchmarkScenario>, ProgramError> {
        self.ask("scenarios".to_owned())
    }

    fn check(&self, order: &BenchmarkOrder) -> Result<BenchmarkCheck, ProgramError> {
        self.ask(format!("check {}", words(order)))
    }

    fn start(&self, order: BenchmarkOrder) -> Result<String, ProgramError> {
        self.ask(format!("start {}", words(&order)))
    }

    fn runs(&self) -> Result<Vec<BenchmarkRun>, ProgramError> {
        self.ask("runs".to_owned())
    }

    fn run(&self, id: &str) -> Result<BenchmarkRunInFull, ProgramError> {
        self.ask(format!("run {id}"))
    }

    fn samples(&self, id: &str, after: u64, most: usize) -> Result<BenchmarkSamples, ProgramError> {
        self.ask(format!("samples {id} {after} {most}"))
    }

    fn stop(&self, id: &str) -> Result<(), ProgramError> {
        self.ask(format!("stop {id}"))
    }

    fn remove(&self, id: &str) -> Result<(), ProgramError> {
        self.ask(format!("remove {id}"))
    }

    fn set_baseline(&self, id: &str, is_baseline: bool) -> Result<(), ProgramError> {
        self.ask(format!("baseline {id} {is_baseline}"))
    }

    fn file(&self, id: &str, name: &str) -> Result<Vec<u8>, ProgramError> {
        self.ask(format!("file {id} {name}"))
    }

    fn compare(&self, ids: &[String]) -> Result<BenchmarkComparison, ProgramError> {
        self.ask(format!("compare {}", ids.join(" ")))
    }
}

#[tokio::test]
async fn requests_about_benchmarks_reach_the_program() {
    let operated = Operated::new("benchmarks").await;
    let asked = || operated.program.benchmarks.take_asked();
    let limits = operated.get("/benchmarks/limits").await;
    assert_eq!(
        (
            limits.status,
            &limits.body["available"],
            &limits.body["why_not"]
        ),
        (200, &json!(false), &json!("a reason"))
    );
    let order = json!({ "scenario": "devices", "username": "u", "password": "hidden" });
    assert_eq!(
        operated
            .post("/benchmarks/check", order.clone())
            .await
            .status,
        200
    );
    assert_eq!(operated.post("/benchmarks/runs", order).await.status, 201);
    assert_eq!(
        asked(),
        ["check devices hidden admin", "start devices hidden admin"]
    );
    for (path, body, status) in [
        ("/benchmarks/runs/a/stop", Value::Null, 202),
        (
            "/benchmarks/runs/a/baseline",
            json!({ "baseline": true }),
            204,
        ),
    ] {
        assert_eq!(operated.post(path, body).await.status, status, "{path}");
    }
    let removed = operated.api.ask(
        &operated.admin,
        Method::DELETE,
        "/benchmarks/runs/a",
        Value::Null,
    );
    assert_eq!(removed.await.status, 204);
    for path in [
        "/benchmarks/scenarios",
        "/benchmarks/runs",
        "/benchmarks/runs/a",
        "/benchmarks/runs/a/samples?after=7",
        "/benchmarks/compare?runs=a,b,c",
    ] {
        assert_eq!(operated.get(path).await.status, 200, "{path}");
    }
    assert_eq!(
        asked(),
        [
            "stop a",
            "baseline a true",
            "remove a",
            "scenarios",
            "runs",
            "run a",
            "samples a 7 600",
            "compare a b c",
        ]
    );
}

#[tokio::test]
async fn a_start_is_audited_without_its_password() {
    let operated = Operated::new("benchmarks-audit").await;
    let order = json!({ "scenario": "devices", "username": "u", "password": "hidden" });
    operated.post("/benchmarks/runs", order).await;
    operated.post("/benchmarks/runs/a/stop", Value::Null).await;
    let log = operated.get("/audit?limit=2").await.body.to_string();
    assert!(
        log.contains("benchmark.start") && log.contains("benchmark.stop"),
        "{log}"
    );
    assert!(log.contains("devices") && !log.contains("hidden"), "{log}");
}

#[tokio::test]
async fn every_refusal_has_its_status_its_cause_and_its_remedy() {
    let operated = Operated::new("benchmarks-refused").await;
    for (refusal, status) in [
        (BenchmarkRefusal::LeftOut, 501),
        (BenchmarkRefusal::Off, 409),
        (BenchmarkRefusal::Running, 409),
        (BenchmarkRefusal::Ended, 409),
        (BenchmarkRefusal::Invalid, 422),
        (BenchmarkRefusal::NotAnswered, 500),
        (BenchmarkRefusal::NotComparable, 409),
    ] {
        operated.program.benchmarks.refuse(refusal);
        let refused = operated
            .post("/benchmarks/runs", json!({ "scenario": "devices" }))
            .await;
        assert_eq!(refused.status, status, "{refusal:?}");
        assert_eq!(refused.body["detail"], "the reason");
        assert!(!refused.body["remedy"].as_str().unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_bad_order_and_a_bad_comparison_never_reach_the_program() {
    let operated = Operated::new("benchmarks-bad").await;
    for body in [
        json!({}),
        json!({ "scenario": "--help" }),
        json!({ "scenario": "x.toml" }),
    ] {
        assert_eq!(operated.post("/benchmarks/runs", body).await.status, 400);
    }
    for runs in ["a", "a,a", "a,b,c,d,e"] {
        let path = format!("/benchmarks/compare?runs={runs}");
        assert_eq!(operated.get(&path).await.status, 400, "{runs}");
    }
    assert_eq!(
        operated
            .get("/benchmarks/runs/a/files/run.json")
            .await
            .status,
        404
    );
    assert!(operated.program.benchmarks.take_asked().is_empty());
}

#[tokio::test]
async fn a_file_is_handed_out_as_one_that_a_browser_only_stores() {
    let operated = Operated::new("benchmarks-file").await;
    let path = "/benchmarks/runs/20261127T065959Z-00/files/report.html";
    let request = operated
        .admin
        .request(Method::GET, path)
        .body(Body::empty())
        .unwrap();
    let response = operated.api.router.clone().oneshot(request).await.unwrap();
    let headers = response.headers().clone();
    let header = |name: &str| headers[name].to_str().unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(
        header("content-disposition"),
        "attachment; filename=\"20261127T065959Z-00-report.html\""
    );
    assert_eq!(header("x-content-type-options"), "nosniff");
    assert!(header("content-security-policy").starts_with("sandbox;"));
    assert!(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
    let asked = operated.program.benchmarks.take_asked();
    assert_eq!(asked, ["file 20261127T065959Z-00 report.html"]);
}
