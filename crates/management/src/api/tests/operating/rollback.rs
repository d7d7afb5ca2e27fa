//! `/config/rollback`, `/config/apply` and their plans.

use super::*;

#[tokio::test]
async fn a_rollback_does_what_was_planned_or_nothing() {
    let operated = Operated::new("rollback-planned").await;
    let rollback = async |body: Value| {
        operated.program.take_asked();
        let answer = operated.post("/config/rollback", body).await;
        (answer, operated.program.take_asked())
    };
    let plan = operated.post("/config/plan", json!({ "version": 1 })).await;
    assert_eq!((plan.status, &plan.body["fingerprint"]), (200, &json!("f")));
    let seen = json!({ "version": 1, "fingerprint": "f" });
    let (done, asked) = rollback(seen.clone()).await;
    assert_eq!(done.status, 200, "{}", done.body);
    // What was checked and is in the audit log is what is done.
    assert_eq!(asked, ["plan rollback 1", "roll back 1 f admin"]);
    let (late, asked) = rollback(json!({ "version": 1, "fingerprint": "e" })).await;
    assert_eq!(
        (late.status, &late.body["title"]),
        (409, &json!("changed meanwhile"))
    );
    assert_eq!(asked, ["plan rollback 1"]);
    // Edits of files come in force only for somebody who has seen them.
    operated
        .program
        .edited
        .lock()
        .unwrap()
        .push("limits.memory".to_owned());
    let (edited, asked) = rollback(json!({ "version": 1 })).await;
    assert_eq!(
        (edited.status, &edited.body["title"]),
        (409, &json!("files were edited"))
    );
    assert!(
        edited.body["detail"].to_string().contains("limits.memory"),
        "{}",
        edited.body
    );
    assert_eq!(asked, ["plan rollback 1"]);
    assert_eq!(rollback(seen).await.0.status, 200);
    let both = json!({ "version": 1, "changes": { "limits.memory": 1 } });
    assert_eq!(operated.post("/config/plan", both).await.status, 400);
}

#[tokio::test]
async fn a_change_whose_plan_is_not_the_one_that_was_checked_is_not_made() {
    let operated = Operated::new("apply-planned").await;
    let changes = json!({ "limits.max_packet": "2MB" });
    let body = json!({ "changes": changes, "fingerprint": "e" });
    let late = operated.post("/config/apply", body).await;
    assert_eq!(
        (late.status, &late.body["title"]),
        (409, &json!("changed meanwhile"))
    );
    // It would be that of the caller again when the change is made.
    assert_eq!(operated.program.take_asked(), [format!("plan {changes}")]);
}
