//! Callers that leave while their changes are made.

use std::sync::mpsc::channel;

use tower::ServiceExt as _;

use super::*;

/// Much longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

impl FakeProgram {
    pub(super) fn wait_in_reload(&self) {
        let ends = self.ends_reload.lock().unwrap().take();
        if let Some(ends) = ends {
            self.asked.lock().unwrap().push("reload begins".to_owned());
            ends.recv_timeout(LONG).unwrap();
        }
    }
}

#[tokio::test]
async fn a_change_whose_caller_leaves_is_made_and_its_end_is_in_the_log() {
    let operated = Operated::new("left").await;
    let (end, ends) = channel();
    *operated.program.ends_reload.lock().unwrap() = Some(ends);
    let request = operated.admin.request(Method::POST, "/config/reload");
    let request = request.body(Body::empty()).unwrap();
    // The future of a request is dropped with its connection.
    let asked = tokio::spawn(operated.api.router.clone().oneshot(request));
    let begins = async {
        while operated.program.take_asked() != ["reload begins"] {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, begins).await.unwrap();
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    let last = async || operated.api.audit(&operated.admin, 1).await.remove(0);
    assert_eq!(
        last().await,
        json!(["admin", "config.reload", "", "unknown"])
    );
    end.send(()).unwrap();
    let ends = async {
        while last().await[3] == "unknown" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, ends).await.unwrap();
    assert_eq!(last().await, json!(["admin", "config.reload", "", "done"]));
    assert_eq!(operated.program.take_asked(), ["reload"]);
}
