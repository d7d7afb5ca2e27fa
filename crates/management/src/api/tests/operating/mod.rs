//! The configuration, listeners, the log and alarms, with a program that a test can look into.

mod alarms;
mod backups;
mod benchmarks;
mod left;
mod log_streams;
mod rollback;

use std::fs::File;
use std::sync::Mutex;
use std::sync::mpsc::Receiver;

use super::live::pause;
use super::*;
use crate::program::{
    BackupEnded, Benchmarks, ChangeOrder, ConfigurationChanges, ListenerOrder, OpenBackup,
    PinnedKey, Program, ProgramError, RollbackOrder,
};
use crate::{LogEvent, LogLevel, Logs, Thing};

/// A program that remembers what it was asked, and refuses as told.
#[derive(Default)]
struct FakeProgram {
    asked: Mutex<Vec<String>>,
    refuses: Mutex<Option<ProgramError>>,
    /// What a plan or a rollback changes; one of the limits without it.
    differs: Mutex<Option<Difference>>,
    /// Keys that a rollback would change because files were edited.
    edited: Mutex<Vec<String>>,
    /// The time that a change of the level takes.
    slowness: Mutex<Duration>,
    /// Complete backups, and the one that is made.
    backups: Mutex<Vec<Backup>>,
    running: Mutex<Option<Backup>>,
    /// Takes the end of that one.
    ended: Mutex<Option<BackupEnded>>,
    /// The contents of each backup.
    file: Mutex<Option<File>>,
    benchmarks: benchmarks::FakeBenchmarks,
    /// Ends the next reload.
    ends_reload: Mutex<Option<Receiver<()>>>,
}

impl std::fmt::Debug for FakeProgram {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("FakeProgram")
    }
}

impl FakeProgram {
    fn difference(&self) -> Difference {
        self.differs
            .lock()
            .unwrap()
            .clone()
            .unwrap_or_else(difference)
    }

    fn ask<T>(&self, what: String, answer: T) -> Result<T, ProgramError> {
        self.asked.lock().unwrap().push(what);
        match self.refuses.lock().unwrap().clone() {
            Some(error) => Err(error),
            None => Ok(answer),
        }
    }

    fn refuse(&self, error: ProgramError) {
        *self.refuses.lock().unwrap() = Some(error);
    }

    fn take_asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

fn difference() -> Difference {
    Difference {
        key: "limits.max_packet".to_owned(),
        before: Some(json!("1MiB")),
        after: Some(json!("2MB")),
        restart: false,
    }
}

fn key(name: &str, origin: &str) -> ConfigurationKey {
    ConfigurationKey {
        key: name.to_owned(),
        value: json!(1),
        default: None,
        origin: origin.to_owned(),
        set_at: None,
        pinned: origin == "file",
        restart: false,
        waits: false,
        expected: "a number".to_owned(),
        description: "What it is.".to_owned(),
        secret: false,
    }
}

fn planned() -> Plan {
    Plan {
        differences: Vec::new(),
        restart: Vec::new(),
        edited: Vec::new(),
        overridden: Vec::new(),
        fingerprint: "f".to_owned(),
    }
}

fn applied() -> Applied {
    Applied {
        version: 3,
        differences: vec![difference()],
        restart: Vec::new(),
    }
}

impl Program for FakeProgram {
    fn configuration(&self) -> Result<Configuration, ProgramError> {
        let configuration = Configuration {
            keys: vec![
                key("limits.max_packet", "file"),
                key("limits.memory", "default"),
                key("node.name", "managed"),
            ],
            files: vec!["thrum.toml".to_owned()],
            managed_file: None,
            version: 2,
            reload_failure: None,
        };
        self.ask("configuration".to_owned(), configuration)
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn plan(&self, changes: ConfigurationChanges) -> Result<Plan, ProgramError> {
        let plan = Plan {
            differences: vec![self.difference()],
            ..planned()
        };
        self.ask(format!("plan {}", json!(changes)), plan)
    }

    fn apply(&self, order: ChangeOrder) -> Result<Applied, ProgramError> {
        let ChangeOrder {
            changes,
            fingerprint,
            by,
        } = order;
        self.ask(
            format!("apply {} {fingerprint} {by}", json!(changes)),
            applied(),
        )
    }

    fn versions(&self) -> Result<Vec<ConfigurationVersion>, ProgramError> {
        let version = ConfigurationVersion {
            version: 2,
            at: None,
            by: None,
            current: true,
            keys: 1,
            damaged: false,
        };
        self.ask("versions".to_owned(), vec![version])
    }

    fn plan_rollback(&self, version: u64) -> Result<Plan, ProgramError> {
        let plan = Plan {
            differences: vec![self.difference()],
            edited: self.edited.lock().unwrap().clone(),
            ..planned()
        };
        self.ask(format!("plan rollback {version}"), plan)
    }

    fn roll_back(&self, order: RollbackOrder) -> Result<Applied, ProgramError> {
        let RollbackOrder {
            version,
            fingerprint,
            by,
        } = order;
        self.ask(format!("roll back {version} {fingerprint} {by}"), applied())
    }

    fn reload(&self) -> Result<Reloaded, ProgramError> {
        let reloaded = Reloaded {
            changed: vec!["log.level".to_owned()],
            restart: Vec::new(),
        };
        self.wait_in_reload();
        self.ask("reload".to_owned(), reloaded)
    }

    fn set_listener(&self, order: ListenerOrder) -> Result<(), ProgramError> {
        self.ask(format!("{order:?}"), ())
    }

    fn renew_certificates(&self) -> Result<Vec<String>, ProgramError> {
        self.ask("renew".to_owned(), vec!["a failure".to_owned()])
    }

    fn set_log_directives(&self, directives: Vec<String>) -> Result<(), ProgramError> {
        let slowness = *self.slowness.lock().unwrap();
        pause(slowness);
        self.ask(format!("level {}", directives.join(",")), ())
    }

    fn log_level(&self) -> String {
        "info".to_owned()
    }

    fn begin_backup(&self, ended: BackupEnded) -> Result<Backup, ProgramError> {
        let running = backups::backup("20261126T221500Z", "running");
        *self.ended.lock().unwrap() = Some(ended);
        *self.running.lock().unwrap() = Some(running.clone());
        self.ask("begin backup".to_owned(), running)
    }

    fn backups(&self) -> Result<Vec<Backup>, ProgramError> {
        Ok(self.backups.lock().unwrap().clone())
    }

    fn unfinished_backup(&self) -> Option<Backup> {
        self.running.lock().unwrap().clone()
    }

    fn open_backup(&self, name: &str) -> Result<OpenBackup, ProgramError> {
        let file = self.file.lock().unwrap().take();
        let file = file.ok_or_else(|| ProgramError::Missing {
            what: Thing::CompleteBackup,
            name: name.to_owned(),
        })?;
        let bytes = file.metadata().unwrap().len();
        self.ask(format!("open {name}"), OpenBackup { file, bytes })
    }

    fn remove_backup(&self, name: &str) -> Result<(), ProgramError> {
        self.ask(format!("remove {name}"), ())
    }

    fn benchmarks(&self) -> &dyn Benchmarks {
        &self.benchmarks
    }
}

struct Operated {
    api: TestApi,
    program: Arc<FakeProgram>,
    logs: Arc<Logs>,
    admin: Client,
}

impl Operated {
    async fn new(name: &str) -> Self {
        let (program, logs) = (Arc::<FakeProgram>::default(), Arc::<Logs>::default());
        let (asked, kept) = (Arc::clone(&program), Arc::clone(&logs));
        let managed = |queries| Managed::from(queries).with_program(asked, kept);
        let api = TestApi::of(&format!("operating-{name}"), managed).and_admin();
        let admin = api.admin().await;
        Self {
            api,
            program,
            logs,
            admin,
        }
    }

    async fn get(&self, path: &str) -> Answer {
        self.api.get(&self.admin, path).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.api.post(&self.admin, path, body).await
    }

    async fn put(&self, path: &str, body: Value) -> Answer {
        self.api.ask(&self.admin, Method::PUT, path, body).await
    }

    /// Waits until the program is asked for the levels of the configuration.
    async fn levels_taken_back(&self) {
        let taken_back = async {
            while self.program.take_asked() != ["level "] {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let in_time = tokio::time::timeout(Duration::from_secs(20), taken_back);
        in_time.await.unwrap();
    }
}

fn event(number: u64, level: LogLevel) -> LogEvent {
    LogEvent {
        at: 1_700_000_000_000 + number,
        level,
        target: "thrum_broker::node".to_owned(),
        text: format!("event {number}"),
        fields: vec![("client_id", "a".to_owned())],
    }
}

#[tokio::test]
async fn keys_are_listed_by_their_beginning_and_origin_and_shown_one_by_one() {
    let operated = Operated::new("keys").await;
    let names = |answer: &Answer| {
        let keys = answer.body["keys"].as_array().unwrap().iter();
        keys.map(|key| key["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let all = operated.get("/config").await;
    assert_eq!((all.status, names(&all).len()), (200, 3));
    let some = operated.get("/config?prefix=limits.&origin=file").await;
    assert_eq!(names(&some), ["limits.max_packet"]);
    let wrong = operated.get("/config?origin=moon").await;
    assert_eq!(wrong.status, 400);
    assert!(wrong.body["detail"].as_str().unwrap().contains("managed"));
    let one = operated.get("/config/node.name").await;
    assert_eq!((one.status, &one.body["origin"]), (200, &json!("managed")));
    let none = operated.get("/config/node.nme").await;
    assert_eq!(
        (none.status, &none.body["title"]),
        (404, &json!("no such key"))
    );
    let schema = operated.get("/config/schema").await;
    assert_eq!(schema.body, json!({ "type": "object" }));
    let versions = operated.get("/config/versions").await;
    assert_eq!(versions.body["versions"][0]["version"], 2);
}

#[tokio::test]
async fn a_change_is_planned_and_then_made_and_both_sides_are_in_the_audit_log() {
    let operated = Operated::new("apply").await;
    let changes = json!({ "limits.max_packet": "2MB" });
    let plan = operated
        .post("/config/plan", json!({ "changes": changes }))
        .await;
    assert_eq!((plan.status, &plan.body["fingerprint"]), (200, &json!("f")));
    operated.program.take_asked();
    let body = json!({ "changes": changes, "fingerprint": "f" });
    let done = operated.post("/config/apply", body).await;
    assert_eq!((done.status, &done.body["version"]), (200, &json!(3)));
    let asked = operated.program.take_asked();
    assert_eq!(asked[1], format!("apply {changes} f admin"));
    let page = operated.get("/audit?limit=1&action=config.*").await;
    let entry = &page.body["entries"][0];
    assert_eq!(entry["action"], "config.apply");
    assert_eq!(entry["target"], "limits.max_packet");
    assert_eq!(
        (&entry["before"], &entry["after"]),
        (&json!({ "limits.max_packet": "1MiB" }), &changes)
    );
    assert_eq!(entry["outcome"], "done");
}

#[tokio::test]
async fn keys_that_give_other_rights_are_changed_by_administrators_only() {
    let operated = Operated::new("admins-keys").await;
    let key = operated.api.key(&operated.admin, &["config:write"]).await;
    for (name, value) in [
        ("management.oidc.issuer", json!("https://mine.example")),
        ("management", json!({ "oidc": {} })),
        ("sinks.all.path", json!("/tmp/all")),
        ("telemetry.endpoint", json!("http://mine.example")),
        ("auth.anonymous", json!(null)),
        ("listeners.mqtt.tls_from", json!("")),
        ("listeners.http.proxy_from", json!(["0.0.0.0/0"])),
        ("listeners.mqtt.mount_point", json!("")),
        ("protection.bans", json!("/tmp/x")),
        ("acl.file", json!("/etc/shadow")),
        ("tls.reload_interval", json!("1s")),
        ("node.name", json!("other")),
        ("listeners.mqtt.tls.cert", json!("/etc/shadow")),
        ("listeners.mqtt", json!({ "anonymous": "allow" })),
    ] {
        let changes = json!({ "limits.max_packet": "2MB", name: value });
        let planned = json!({ "changes": changes });
        let applied = json!({ "changes": changes, "fingerprint": "f" });
        for (path, body) in [("/config/plan", planned), ("/config/apply", applied)] {
            let refused = operated.api.post(&key, path, body.clone()).await;
            assert_eq!(refused.status, 403, "{name}: {}", refused.body);
            let detail = refused.body["detail"].as_str().unwrap();
            assert_eq!(detail, format!("a change of {name} needs the scope admin"));
            assert!(operated.program.take_asked().is_empty(), "{name}");
            assert_eq!(operated.post(path, body).await.status, 200, "{name}");
            operated.program.take_asked();
        }
    }
    let other = json!({ "changes": { "limits.max_packet": "2MB" }, "fingerprint": "f" });
    let done = operated.api.post(&key, "/config/apply", other).await;
    assert_eq!(done.status, 200, "{}", done.body);
    let back = json!({ "version": 1 });
    let done = operated
        .api
        .post(&key, "/config/rollback", back.clone())
        .await;
    assert_eq!(done.status, 200, "{}", done.body);
    operated.program.take_asked();
    *operated.program.differs.lock().unwrap() = Some(Difference {
        key: "sinks.all.path".to_owned(),
        ..difference()
    });
    let refused = operated
        .api
        .post(&key, "/config/rollback", back.clone())
        .await;
    assert_eq!(refused.status, 403, "{}", refused.body);
    assert_eq!(operated.program.take_asked(), ["plan rollback 1"]);
    assert_eq!(operated.post("/config/rollback", back).await.status, 200);
    let page = operated.get("/audit?limit=1&action=config.change").await;
    assert_eq!(page.body["entries"][0]["target"], "sinks.all.path");
    assert_eq!(page.body["entries"][0]["outcome"], "refused");
}

#[tokio::test]
async fn a_new_listener_is_added_by_administrators_only() {
    let operated = Operated::new("new-listener").await;
    let key = operated.api.key(&operated.admin, &["config:write"]).await;
    let address = |before: Option<Value>, after: Option<Value>| Difference {
        key: "listeners.extra.bind".to_owned(),
        before,
        after,
        restart: false,
    };
    let (old, new) = (json!("127.0.0.1:1"), json!("127.0.0.1:2"));
    let changes = json!({ "listeners.extra.bind": new });
    for (difference, status) in [
        (address(None, Some(new.clone())), 403),
        (address(Some(old.clone()), Some(new)), 200),
        (address(Some(old), None), 200),
    ] {
        *operated.program.differs.lock().unwrap() = Some(difference);
        for (path, body) in [
            ("/config/plan", json!({ "changes": changes })),
            (
                "/config/apply",
                json!({ "changes": changes, "fingerprint": "f" }),
            ),
            ("/config/rollback", json!({ "version": 1 })),
        ] {
            operated.program.take_asked();
            let answer = operated.api.post(&key, path, body.clone()).await;
            assert_eq!(answer.status, status, "{path}: {}", answer.body);
            let asked = operated.program.take_asked();
            let is_only_planned = asked.iter().all(|one| one.starts_with("plan"));
            let why = "a change of listeners.extra.bind needs the scope admin";
            let is_refused = answer.body["detail"] == why;
            assert_eq!(is_refused, status == 403, "{}", answer.body);
            assert!(is_only_planned || !is_refused, "{asked:?}");
            assert_eq!(operated.post(path, body).await.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn each_refusal_of_the_program_has_a_status_and_a_remedy() {
    let operated = Operated::new("refusals").await;
    let pinned = PinnedKey {
        key: "node.name".to_owned(),
        at: "thrum.toml:3".to_owned(),
    };
    for (error, status, word) in [
        (ProgramError::Busy, 429, "wait"),
        (ProgramError::TimedOut, 504, "goes on"),
        (ProgramError::Stopped, 503, "stopping"),
        (
            ProgramError::Refused("did you mean x?".to_owned()),
            422,
            "mean x",
        ),
        (ProgramError::Pinned(vec![pinned]), 409, "thrum.toml:3"),
        (ProgramError::Changed, 409, "changed since"),
        (ProgramError::NoDataDirectory, 409, "data directory"),
        (
            ProgramError::Missing {
                what: Thing::Version,
                name: "9".to_owned(),
            },
            404,
            "version \"9\"",
        ),
        (
            ProgramError::Conflict("only way".to_owned()),
            409,
            "only way",
        ),
        (
            ProgramError::BackupConflict {
                why: "one at a time".to_owned(),
                remedy: "wait",
            },
            409,
            "one at a time",
        ),
        (ProgramError::Io("disk".to_owned()), 500, "disk"),
        (ProgramError::NoRoom("full".to_owned()), 507, "full"),
    ] {
        operated.program.refuse(error);
        let refused = operated
            .post("/config/rollback", json!({ "version": 9 }))
            .await;
        assert_eq!(refused.status, status, "{}", refused.body);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(word), "{detail}");
        assert!(!refused.body["remedy"].as_str().unwrap().is_empty());
    }
    let page = operated.get("/audit?action=config.*").await;
    assert_eq!(page.body["entries"], json!([]), "nothing was changed");
}

#[tokio::test]
async fn a_rollback_and_a_reload_are_audited() {
    let operated = Operated::new("rollback").await;
    let done = operated
        .post("/config/rollback", json!({ "version": 1 }))
        .await;
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(operated.program.take_asked()[1], "roll back 1 f admin");
    let reloaded = operated.post("/config/reload", Value::Null).await;
    assert_eq!(reloaded.body["changed"], json!(["log.level"]));
    let log = operated.api.audit(&operated.admin, 2).await;
    assert_eq!(
        log,
        [
            json!(["admin", "config.reload", "", "done"]),
            json!(["admin", "config.rollback", "1", "done"])
        ]
    );
    operated
        .program
        .refuse(ProgramError::Refused("no".to_owned()));
    let refused = operated.post("/config/reload", Value::Null).await;
    assert_eq!(refused.status, 422);
    let log = operated.api.audit(&operated.admin, 1).await;
    assert_eq!(log, [json!(["admin", "config.reload", "", "failed"])]);
}

#[tokio::test]
async fn certificates_are_read_again_and_failures_are_told() {
    let operated = Operated::new("certificates").await;
    let path = "/listeners/reload-certificates";
    let renewed = operated.post(path, Value::Null).await;
    assert_eq!(
        (renewed.status, &renewed.body["failures"]),
        (200, &json!(["a failure"]))
    );
    assert_eq!(operated.program.take_asked(), ["renew"]);
    // The broker of this test has no listener.
    let missing = operated
        .post("/listeners/mqtt/stop?disconnect=true", Value::Null)
        .await;
    assert_eq!(
        (missing.status, &missing.body["title"]),
        (404, &json!("no such listener"))
    );
    assert!(operated.program.take_asked().is_empty());
}

#[tokio::test]
async fn the_log_is_read_page_by_page_and_from_a_place_on() {
    let operated = Operated::new("logs").await;
    for number in 1..=5 {
        let level = if number == 3 {
            LogLevel::Warn
        } else {
            LogLevel::Info
        };
        operated.logs.push(event(number, level));
    }
    let numbers = |answer: &Answer| {
        let events = answer.body["events"].as_array().unwrap().iter();
        events
            .map(|event| event["number"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    let mut path = "/logs?limit=2".to_owned();
    let mut seen = Vec::new();
    loop {
        let page = operated.get(&path).await;
        assert_eq!(page.status, 200, "{}", page.body);
        seen.extend(numbers(&page));
        let Some(next) = page.body["next"].as_str() else {
            break;
        };
        path = format!("/logs?limit=2&cursor={next}");
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
    let after = operated.get("/logs?after=3").await;
    assert_eq!(
        (numbers(&after), &after.body["last"]),
        (vec![4, 5], &json!(5))
    );
    let warn = operated
        .get("/logs?level=warn&target=thrum_broker&text=EVENT")
        .await;
    assert_eq!(numbers(&warn), [3]);
    assert_eq!(warn.body["events"][0]["fields"]["client_id"], "a");
    for wrong in ["level=loud", "since=now", "after=1&cursor=2", "after=x"] {
        let refused = operated.get(&format!("/logs?{wrong}")).await;
        assert_eq!(refused.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn a_level_is_set_for_a_time_and_returns_by_itself() {
    let operated = Operated::new("levels").await;
    let body = json!({ "target": "thrum_broker", "level": "debug", "seconds": 1 });
    let set = operated.put("/logs/level", body).await;
    assert_eq!(set.status, 200, "{}", set.body);
    let raised = &set.body["raised"][0];
    assert_eq!(
        (&set.body["level"], &raised["target"], &raised["level"]),
        (&json!("info"), &json!("thrum_broker"), &json!("debug"))
    );
    assert_eq!(operated.program.take_asked(), ["level thrum_broker=debug"]);
    operated.api.move_on(Duration::from_secs(1));
    // The clock of the interface is the test's own, the timer is not.
    operated.levels_taken_back().await;
    assert_eq!(operated.get("/logs/level").await.body["raised"], json!([]));
    for wrong in [
        json!({ "level": "loud" }),
        json!({ "level": "debug", "seconds": 0 }),
        json!({ "level": "debug", "target": "a=trace,b" }),
    ] {
        let refused = operated.put("/logs/level", wrong).await;
        assert_eq!(refused.status, 400, "{}", refused.body);
    }
    operated
        .program
        .refuse(ProgramError::Refused("no".to_owned()));
    let refused = operated
        .put("/logs/level", json!({ "level": "trace" }))
        .await;
    assert_eq!(refused.status, 422);
    let levels = operated.get("/logs/level").await;
    assert_eq!(levels.body["raised"], json!([]), "it is as before");
}

#[tokio::test]
async fn a_level_that_cannot_be_taken_back_is_taken_back_later() {
    let operated = Operated::new("stuck-levels").await;
    let body = json!({ "target": "thrum_broker", "level": "debug", "seconds": 1 });
    assert_eq!(operated.put("/logs/level", body).await.status, 200);
    assert_eq!(operated.program.take_asked(), ["level thrum_broker=debug"]);
    let busy = ProgramError::Refused("not now".to_owned());
    operated.program.refuse(busy);
    operated.api.move_on(Duration::from_secs(1));
    operated.levels_taken_back().await;
    *operated.program.refuses.lock().unwrap() = None;
    operated.levels_taken_back().await;
    assert_eq!(operated.get("/logs/level").await.body["raised"], json!([]));
}

#[tokio::test]
async fn a_level_returns_by_itself_if_its_client_goes_away() {
    let operated = Operated::new("left-levels").await;
    *operated.program.slowness.lock().unwrap() = Duration::from_millis(500);
    let body = json!({ "target": "thrum_broker", "level": "debug", "seconds": 1 });
    let set = operated.put("/logs/level", body);
    let left = tokio::time::timeout(Duration::from_millis(100), set).await;
    assert!(left.is_err(), "it is not done yet");
    let shown = tokio::time::timeout(Duration::from_secs(20), async {
        while operated.get("/logs/level").await.body["raised"] == json!([]) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    shown.await.unwrap();
    assert_eq!(operated.program.take_asked(), ["level thrum_broker=debug"]);
    operated.api.move_on(Duration::from_secs(1));
    operated.levels_taken_back().await;
}
