//! Backups over the interface.

use std::io::{Seek as _, Write as _};

use http_body_util::BodyExt as _;
use tower::ServiceExt as _;

use super::*;

pub(super) fn backup(name: &str, state: &str) -> Backup {
    Backup {
        name: name.to_owned(),
        state: state.to_owned(),
        began_at: "2026-11-26T22:15:00Z".to_owned(),
        bytes: 7,
        expected_bytes: None,
        failure: None,
    }
}

/// A file without a name, of so many bytes.
pub(super) fn file(len: usize) -> File {
    let path = std::env::temp_dir().join(format!("thrum-backup-{}-{len}", std::process::id()));
    let options = File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    let mut file = options.unwrap();
    std::fs::remove_file(&path).unwrap();
    file.write_all(&vec![7; len]).unwrap();
    file.rewind().unwrap();
    file
}

const NAME: &str = "20261126T221500Z";

#[tokio::test]
async fn a_backup_is_audited_from_its_beginning_to_its_end() {
    let operated = Operated::new("backup-made").await;
    let made = operated.post("/backups", Value::Null).await;
    assert_eq!(made.status, 202, "{}", made.body);
    assert_eq!(
        (&made.body["name"], &made.body["state"]),
        (&json!(NAME), &json!("running"))
    );
    let shown = operated.get(&format!("/backups/{NAME}")).await;
    assert_eq!(shown.body["state"], "running");
    let list = operated.get("/backups").await;
    assert_eq!(list.body["backups"], json!([]), "it is not complete");
    assert_eq!(list.body["running"]["name"], NAME);
    let log = operated.api.audit(&operated.admin, 1).await;
    assert_eq!(
        log,
        [json!(["admin", "backup.make", "", "unknown"])],
        "it has not ended"
    );
    let ended = operated.program.ended.lock().unwrap().take().unwrap();
    ended(Err("no room".to_owned()));
    // The end is written by a task of its own.
    while operated.api.audit(&operated.admin, 1).await[0][3] == "unknown" {
        tokio::task::yield_now().await;
    }
    let page = operated.get("/audit?limit=1").await;
    let entry = &page.body["entries"][0];
    assert_eq!(
        (&entry["action"], &entry["outcome"]),
        (&json!("backup.make"), &json!("failed"))
    );
    assert!(entry.to_string().contains("no room"), "{entry}");
}

#[tokio::test]
async fn a_backup_that_cannot_begin_is_refused_with_the_reason() {
    let operated = Operated::new("backup-refused").await;
    operated.program.refuse(ProgramError::BackupConflict {
        why: "10 backups are kept".to_owned(),
        remedy: "remove one",
    });
    let refused = operated.post("/backups", Value::Null).await;
    assert_eq!(refused.status, 409, "{}", refused.body);
    assert_eq!(
        (&refused.body["title"], &refused.body["remedy"]),
        (&json!("no backup now"), &json!("remove one"))
    );
    let log = operated.api.audit(&operated.admin, 1).await;
    assert_eq!(log, [json!(["admin", "backup.make", "", "failed"])]);
}

#[tokio::test]
async fn backups_are_read_page_by_page_to_their_end() {
    let operated = Operated::new("backup-pages").await;
    let names: Vec<String> = (1..=5)
        .rev()
        .map(|day| format!("2026112{day}T221500Z"))
        .collect();
    let all = names.iter().map(|name| backup(name, "done")).collect();
    *operated.program.backups.lock().unwrap() = all;
    for limit in [1, 2, 5, 6] {
        let path = format!("/backups?limit={limit}");
        let rows = operated.api.pages(&operated.admin, &path, "backups").await;
        let found: Vec<&str> = rows
            .iter()
            .map(|row| row["name"].as_str().unwrap())
            .collect();
        assert_eq!(found, names, "{limit}");
    }
    let missing = operated.get("/backups/20200101T000000Z").await;
    assert_eq!(missing.status, 404);
    assert!(
        missing.body["remedy"]
            .as_str()
            .unwrap()
            .contains("/backups")
    );
}

#[tokio::test]
async fn the_bytes_of_a_backup_come_in_portions_and_only_while_the_caller_may_have_them() {
    let operated = Operated::new("backup-file").await;
    let path = format!("/backups/{NAME}/file");
    let missing = operated.get(&path).await;
    assert_eq!(missing.status, 404, "{}", missing.body);
    let len = 600 * 1024;
    *operated.program.file.lock().unwrap() = Some(file(len));
    let request = |client: &Client| client.request(Method::GET, &path).body(Body::empty());
    let router = &operated.api.router;
    let answer = router
        .clone()
        .oneshot(request(&operated.admin).unwrap())
        .await
        .unwrap();
    assert_eq!(answer.headers()["content-type"], "application/x-tar");
    assert_eq!(answer.headers()["content-length"], len.to_string());
    let mut body = answer.into_body();
    let mut portions = Vec::new();
    while let Some(frame) = body.frame().await {
        portions.push(frame.unwrap().into_data().unwrap().len());
    }
    assert_eq!(portions, [256 * 1024, 256 * 1024, 88 * 1024]);
    let log = operated.api.audit(&operated.admin, 1).await;
    assert_eq!(log, [json!(["admin", "backup.fetch", NAME, "done"])]);
    // A key that is removed meanwhile gets no more of it.
    let key = operated.api.key(&operated.admin, &["admin"]).await;
    *operated.program.file.lock().unwrap() = Some(file(len));
    let answer = router
        .clone()
        .oneshot(request(&key).unwrap())
        .await
        .unwrap();
    let mut body = answer.into_body();
    assert!(body.frame().await.unwrap().is_ok());
    let keys = operated.get("/keys").await;
    let id = keys.body["keys"][0]["id"].as_str().unwrap().to_owned();
    let removed = operated
        .api
        .delete(&operated.admin, &format!("/keys/{id}"))
        .await;
    assert_eq!(removed.status, 204, "{}", removed.body);
    assert!(body.frame().await.unwrap().is_err());
    // Nor does one without the scope get any of it.
    let reader = operated.api.key(&operated.admin, &["config:write"]).await;
    assert_eq!(operated.api.get(&reader, &path).await.status, 403);
}

#[tokio::test]
async fn a_backup_is_removed_by_its_name() {
    let operated = Operated::new("backup-removed").await;
    let removed = operated
        .api
        .delete(&operated.admin, &format!("/backups/{NAME}"))
        .await;
    assert_eq!(removed.status, 204, "{}", removed.body);
    assert_eq!(operated.program.take_asked(), [format!("remove {NAME}")]);
    let log = operated.api.audit(&operated.admin, 1).await;
    assert_eq!(log, [json!(["admin", "backup.remove", NAME, "done"])]);
}
