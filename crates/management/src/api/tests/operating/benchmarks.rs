//! Benchmarks over the interface, without a process.

use std::sync::mpsc::{Receiver, channel};

use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;
use crate::program::{
    BenchmarkActivity, BenchmarkChange, BenchmarkOrder, BenchmarkRefusal, OpenRunFile,
};

/// Benchmarks that remember what they were asked, and refuse as told.
#[derive(Debug, Default)]
pub(super) struct FakeBenchmarks {
    asked: Mutex<Vec<String>>,
    refuses: Mutex<Option<ProgramError>>,
    /// Ends the next check.
    ends_check: Mutex<Option<Receiver<()>>>,
    /// Length of each file.
    file_bytes: Mutex<usize>,
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
    fn activity(&self) -> Option<BenchmarkActivity> {
        Some(BenchmarkActivity {
            is_running: true,
            memory_bytes: 7,
            done: 3,
            ..BenchmarkActivity::default()
        })
    }

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
        let ends = self.ends_check.lock().unwrap().take();
        if let Some(ends) = ends {
            self.asked.lock().unwrap().push("check waits".to_owned());
            ends.recv_timeout(Duration::from_secs(20)).unwrap();
        }
        self.ask(format!("check {}", words(order)))
    }

    fn start(&self, order: BenchmarkOrder) -> Result<String, ProgramError> {
        self.ask::<()>(format!("start {}", words(&order)))?;
        Ok("20261127T065959Z-00".to_owned())
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

    fn change(&self, id: &str, change: BenchmarkChange) -> Result<(), ProgramError> {
        self.ask(format!("change {id} {change:?}"))
    }

    fn remove(&self, id: &str) -> Result<(), ProgramError> {
        self.ask(format!("remove {id}"))
    }

    fn set_baseline(&self, id: &str, is_baseline: bool) -> Result<(), ProgramError> {
        self.ask(format!("baseline {id} {is_baseline}"))
    }

    fn open_file(&self, id: &str, name: &str) -> Result<OpenRunFile, ProgramError> {
        self.ask::<()>(format!("file {id} {name}"))?;
        let len = *self.file_bytes.lock().unwrap();
        Ok(OpenRunFile {
            file: backups::file(len),
            bytes: len as u64,
        })
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
        ("/benchmarks/runs/a/change", json!({ "rate": 1.1 }), 202),
        ("/benchmarks/runs/a/change", json!({ "rate": 0 }), 400),
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
            "change a Rate(1.1)",
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
async fn a_start_is_audited_with_its_target_and_its_run_and_without_its_password() {
    let operated = Operated::new("benchmarks-audit").await;
    let order = json!({ "scenario": "devices", "target": "mqtt://u:hidden@h:1883" });
    operated.post("/benchmarks/runs", order).await;
    let order = json!({ "scenario": "devices", "username": "u", "password": "hidden" });
    operated.post("/benchmarks/runs", order).await;
    operated.post("/benchmarks/runs/a/stop", Value::Null).await;
    let log = operated.get("/audit?limit=3").await.body;
    let entry = |place: usize| &log["entries"][place];
    assert_eq!(entry(0)["action"], "benchmark.stop");
    for (place, target) in [(1, Value::Null), (2, json!("mqtt://h:1883"))] {
        let started = entry(place);
        assert_eq!(
            (&started["action"], &started["target"]),
            (&json!("benchmark.start"), &json!("devices"))
        );
        assert_eq!(started["after"]["id"], "20261127T065959Z-00");
        assert_eq!(started["after"]["target"], target);
    }
    assert!(!log.to_string().contains("hidden"), "{log}");
}

#[tokio::test]
async fn every_refusal_has_its_status_its_cause_and_its_remedy() {
    let operated = Operated::new("benchmarks-refused").await;
    for (refusal, status) in [
        (BenchmarkRefusal::LeftOut, 501),
        (BenchmarkRefusal::Off, 409),
        (BenchmarkRefusal::Running, 409),
        (BenchmarkRefusal::AllBaselines, 409),
        (BenchmarkRefusal::Ended, 409),
        (BenchmarkRefusal::Invalid, 422),
        (BenchmarkRefusal::NotChanged, 409),
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

#[tokio::test]
async fn a_run_is_stopped_and_read_while_checks_wait_for_a_process() {
    let operated = Operated::new("benchmarks-busy").await;
    let benchmarks = &operated.program.benchmarks;
    let (end_check, ends) = channel();
    *benchmarks.ends_check.lock().unwrap() = Some(ends);
    let check = || {
        let request = operated.admin.request(Method::POST, "/benchmarks/check");
        let request = request.header(CONTENT_TYPE, "application/json");
        let order = json!({ "scenario": "devices" }).to_string();
        let request = request.body(Body::from(order)).unwrap();
        tokio::spawn(operated.api.router.clone().oneshot(request))
    };
    let first = check();
    let begins = async {
        while benchmarks.take_asked() != ["check waits"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), begins)
        .await
        .unwrap();
    let others: Vec<_> = (0..15).map(|_| check()).collect();
    for path in [
        "/benchmarks/limits",
        "/benchmarks/runs",
        "/benchmarks/scenarios",
    ] {
        assert_eq!(operated.get(path).await.status, 200, "{path}");
    }
    let order = json!({ "scenario": "devices" });
    assert_eq!(operated.post("/benchmarks/runs", order).await.status, 201);
    let stopped = operated.post("/benchmarks/runs/a/stop", Value::Null).await;
    assert_eq!(stopped.status, 202);
    // None of the others has reached the program, and they are told when to ask again.
    let asked = benchmarks.take_asked();
    assert_eq!(
        asked,
        ["runs", "scenarios", "start devices - admin", "stop a"]
    );
    for other in others {
        let other = other.await.unwrap().unwrap();
        assert_eq!(other.status(), 429);
        assert_eq!(other.headers()["retry-after"], "5");
    }
    end_check.send(()).unwrap();
    assert_eq!(first.await.unwrap().unwrap().status(), 200);
}

#[tokio::test]
async fn a_file_comes_in_portions_and_only_while_the_caller_may_have_it() {
    let operated = Operated::new("benchmarks-portions").await;
    let len = 150 * 1024;
    *operated.program.benchmarks.file_bytes.lock().unwrap() = len;
    let path = "/benchmarks/runs/20261127T065959Z-00/files/result.json";
    let read = async |client: &Client| {
        let request = client.request(Method::GET, path).body(Body::empty());
        let router = operated.api.router.clone();
        router.oneshot(request.unwrap()).await.unwrap()
    };
    let answer = read(&operated.admin).await;
    assert_eq!(answer.headers()["content-length"], len.to_string());
    let mut body = answer.into_body();
    let mut portions = Vec::new();
    while let Some(frame) = body.frame().await {
        portions.push(frame.unwrap().into_data().unwrap().len());
    }
    assert_eq!(portions, [64 * 1024, 64 * 1024, 22 * 1024]);

    let key = operated
        .api
        .key(&operated.admin, &["benchmarks:read"])
        .await;
    let mut body = read(&key).await.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    let keys = operated.get("/keys").await;
    let id = keys.body["keys"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/keys/{id}");
    assert_eq!(
        operated.api.delete(&operated.admin, &path).await.status,
        204
    );
    assert!(body.frame().await.unwrap().is_err());
}

#[tokio::test]
async fn files_that_nobody_reads_further_hold_up_those_of_their_caller_and_nothing_else() {
    let operated = Operated::new("benchmarks-slow").await;
    *operated.program.benchmarks.file_bytes.lock().unwrap() = 151 * 1024;
    let path = "/benchmarks/runs/20261127T065959Z-00/files/result.json";
    let read = async |client: &Client| {
        let request = client.request(Method::GET, path);
        let request = request.body(Body::empty()).unwrap();
        let router = operated.api.router.clone();
        router.oneshot(request).await.unwrap()
    };
    let admin = &operated.admin;
    let mut bodies = Vec::new();
    for _ in 0..4 {
        let answer = read(admin).await;
        assert_eq!(answer.status(), 200);
        bodies.push(answer.into_body());
    }
    let refused = read(admin).await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    // They hold up those of the same caller only.
    let key = operated.api.key(admin, &["benchmarks:read"]).await;
    assert_eq!(read(&key).await.status(), 200);
    let stopped = operated.post("/benchmarks/runs/a/stop", Value::Null).await;
    assert_eq!(stopped.status, 202);
    bodies.pop();
    assert_eq!(read(admin).await.status(), 200);
}

#[tokio::test]
async fn a_path_that_is_no_text_is_a_problem() {
    let operated = Operated::new("benchmarks-path").await;
    for path in [
        "/benchmarks/runs/%ff",
        "/benchmarks/runs/%ff/files/report.md",
        "/benchmarks/runs/a/files/%ff",
    ] {
        let refused = operated.get(path).await;
        assert_eq!(refused.status, 400, "{path}");
        assert!(refused.body["remedy"].is_string(), "{path}");
    }
}

#[tokio::test]
async fn the_runs_of_a_broker_are_in_its_metrics() {
    let operated = Operated::new("benchmarks-metrics").await;
    let request = operated.admin.request(Method::GET, "/status");
    let mut request = request.body(Body::empty()).unwrap();
    *request.uri_mut() = "/metrics".parse().unwrap();
    let answer = operated.api.router.clone().oneshot(request).await.unwrap();
    let text = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    for line in [
        "thrum_benchmark_runs_total{state=\"done\"} 3",
        "thrum_benchmark_runs_total{state=\"failed\"} 0",
        "thrum_benchmark_running 1",
        "thrum_benchmark_memory_bytes 7",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
}
