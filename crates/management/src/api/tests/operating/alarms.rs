//! Alarms, the node and its storage.

use super::*;

#[tokio::test]
async fn alarms_are_shown_and_their_history_is_read_page_by_page() {
    let alarms = Mutex::new(None);
    let api = TestApi::of("operating-alarms", |queries| {
        let managed = Managed::from(queries);
        *alarms.lock().unwrap() = Some(managed.alarms());
        managed
    });
    let api = api.and_admin();
    let admin = api.admin().await;
    let alarms = alarms.into_inner().unwrap().unwrap();
    let queries = api.broker.as_ref().unwrap().queries();
    // No other alarm may come from the machine of the test.
    let thresholds = thrum_broker::config::AlarmsConfig {
        cpu: 0,
        open_files: 0,
        queues: 0,
        ..Default::default()
    };
    let look = |reload_failure: Option<&str>| {
        let outside = crate::Outside {
            thresholds: &thresholds,
            connections_max: 10,
            disk_free: None,
            reload_failure: reload_failure.map(str::to_owned),
            audit_failure: None,
        };
        alarms.look(&queries, &outside);
    };
    for round in 0..3 {
        look(Some(&format!("failure {round}")));
        let raised = api.get(&admin, "/alarms").await;
        let alarm = &raised.body["alarms"][0];
        assert_eq!(
            (&alarm["name"], &alarm["severity"], &alarm["of"]),
            (&json!("reload_failed"), &json!("warning"), &Value::Null)
        );
        let what = alarm["what"].as_str().unwrap();
        assert!(what.ends_with(&format!("failure {round}")), "{what}");
        look(None);
        assert_eq!(api.get(&admin, "/alarms").await.body["alarms"], json!([]));
    }
    let mut path = "/alarms/history?limit=2".to_owned();
    let mut numbers = Vec::new();
    loop {
        let page = api.get(&admin, &path).await.body;
        let rows = page["alarms"].as_array().unwrap().iter();
        numbers.extend(rows.map(|row| row["number"].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else {
            break;
        };
        path = format!("/alarms/history?limit=2&cursor={next}");
    }
    assert_eq!(numbers, [3, 2, 1]);
    let exact = api.get(&admin, "/alarms/history?limit=3").await;
    assert_eq!(exact.body["next"], Value::Null);
}

#[tokio::test]
async fn node_storage_and_alarms_are_shown() {
    let operated = Operated::new("node").await;
    let node = operated.get("/node").await;
    let workers = node.body["workers"].as_array().unwrap();
    assert!(
        workers.len() == 1 && workers[0]["cpu_secs"].is_number(),
        "{workers:?}"
    );
    assert_eq!(node.body["process"]["id"], std::process::id());
    let storage = operated.get("/storage").await;
    assert_eq!(storage.body, json!({ "health": "memory", "disk": null }));
    let alarms = operated.get("/alarms").await;
    assert_eq!(alarms.body, json!({ "alarms": [] }));
    let history = operated.get("/alarms/history").await;
    assert_eq!(history.body, json!({ "alarms": [], "next": null }));
}
