//! Exports and imports of retained messages whose callers lose their right meanwhile.

use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::BodyDataStream;
use futures_util::{StreamExt as _, stream};
use hyper::body::{Body as HttpBody, Bytes, Frame, SizeHint};
use thrum_broker::RETAINED_BATCH_MAX;
use tokio::sync::mpsc;

use super::*;

/// Lines of retained messages with these numbers.
fn lines(numbers: Range<usize>) -> String {
    let lines = numbers.map(|number| {
        let line = json!({ "topic": format!("r/{number}"), "qos": 0, "payload": "AA==" });
        format!("{line}\n")
    });
    lines.collect()
}

impl TestApi {
    /// A program with a key that has one scope, and the path of the key.
    async fn removable_key(&self, admin: &Client, scope: &str) -> (Client, String) {
        let body = json!({ "label": "test", "scopes": [scope], "expires_secs": null });
        let made = self.post(admin, "/keys", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let key = made.body["key"].as_str().unwrap();
        let id = made.body["id"].as_str().unwrap();
        let program = Client::program("192.0.2.7").with_key(key);
        (program, format!("/keys/{id}"))
    }

    async fn export(&self, program: &Client) -> BodyDataStream {
        let request = program.request(Method::GET, "/retained/export");
        let service = TowerToHyperService::new(self.router.clone());
        let answer = service.call(request.body(Body::empty()).unwrap()).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 200);
        answer.into_body().into_data_stream()
    }

    async fn retained(&self, admin: &Client) -> u64 {
        let status = self.get(admin, "/status").await;
        status.body["retained_messages"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn an_export_ends_with_the_key_that_began_it() {
    let api = TestApi::with_admin("export-key");
    let admin = api.admin().await;
    let text = lines(0..600);
    let stored = api
        .send(&admin, Method::POST, "/retained/import", &text)
        .await;
    assert_eq!(stored.body, json!({ "imported": 600 }));
    let (program, path) = api.removable_key(&admin, "messages:read").await;
    let mut body = api.export(&program).await;
    let first = body.next().await.unwrap().unwrap();
    assert_eq!(std::str::from_utf8(&first).unwrap().lines().count(), 250);
    let removed = api.delete(&admin, &path).await;
    assert!((200..300).contains(&removed.status), "{}", removed.body);
    let error = body.next().await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("the key of this request has ended"),
        "{error}"
    );
    assert!(body.next().await.is_none(), "and nothing follows");
}

#[tokio::test]
async fn an_export_holds_few_large_messages_at_once() {
    let api = TestApi::with_admin("export-large");
    let admin = api.admin().await;
    let payload = "x".repeat(100_000);
    for number in 0..8 {
        let line = json!({ "topic": format!("r/{number}"), "text": payload }).to_string();
        let path = "/retained/import";
        let stored = api.send(&admin, Method::POST, path, &line).await;
        assert_eq!(stored.body, json!({ "imported": 1 }));
    }
    let (program, _) = api.removable_key(&admin, "messages:read").await;
    let mut body = api.export(&program).await;
    let mut counts = Vec::new();
    while let Some(lines) = body.next().await {
        let lines = lines.unwrap();
        counts.push(std::str::from_utf8(&lines).unwrap().lines().count());
    }
    assert_eq!(counts, [2; 4]);
}

#[tokio::test]
async fn an_import_ends_with_the_key_that_began_it() {
    let api = TestApi::with_admin("import-key");
    let admin = api.admin().await;
    let (program, path) = api.removable_key(&admin, "messages:write").await;
    let (sender, receiver) = mpsc::channel(1);
    let parts = stream::unfold(receiver, |mut receiver: mpsc::Receiver<String>| async {
        let part = receiver.recv().await?;
        Some((Ok::<_, Infallible>(part), receiver))
    });
    let request = program.request(Method::POST, "/retained/import");
    let request = request.body(Body::from_stream(parts)).unwrap();
    let batch = RETAINED_BATCH_MAX as u64;
    let send = async {
        sender.send(lines(0..RETAINED_BATCH_MAX)).await.unwrap();
        let mut looks = 0..1000;
        while api.retained(&admin).await != batch && looks.next().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let removed = api.delete(&admin, &path).await;
        assert!((200..300).contains(&removed.status), "{}", removed.body);
        let more = RETAINED_BATCH_MAX..RETAINED_BATCH_MAX + 10;
        sender.send(lines(more)).await.unwrap();
        drop(sender);
    };
    let (answer, ()) = tokio::join!(api.answer(request), send);
    assert_eq!(
        (answer.status, &answer.body["title"]),
        (401, &json!("login ended"))
    );
    let detail = answer.body["detail"].as_str().unwrap();
    let expected = format!("has ended; {batch} messages are imported");
    assert!(detail.ends_with(&expected), "{detail}");
    assert_eq!(api.retained(&admin).await, batch);
}

/// A body that nobody may read.
struct Announced(u64);

impl HttpBody for Announced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        panic!("it is read")
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0)
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_by_its_length_is_refused_before_it_is_read() {
    let api = TestApi::with_admin("announced");
    let admin = api.admin().await;
    for (path, len) in [
        ("/login", 16 * 1024 + 1),
        ("/publish", BODY_BYTES_MAX as u64 + 1),
        ("/import/users?format=mosquitto", 16 * 1024 * 1024 + 1),
    ] {
        let request = admin.request(Method::POST, path);
        let request = request.header(CONTENT_TYPE, "application/json");
        let body = Body::new(Announced(len));
        let refused = api.answer(request.body(body).unwrap()).await;
        assert_eq!(refused.status, 413, "{path}: {}", refused.body);
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(detail.contains(&format!("at most {}", len - 1)), "{detail}");
    }
}

#[tokio::test]
async fn a_body_in_chunks_that_is_too_long_is_refused_with_the_limit_of_its_route() {
    let api = TestApi::with_admin("chunks");
    let admin = api.admin().await;
    for (path, most) in [("/login", 16 * 1024), ("/publish", BODY_BYTES_MAX)] {
        let chunk = || Ok::<_, Infallible>(Bytes::from(vec![b' '; most / 2 + 1]));
        let body = Body::from_stream(stream::iter([chunk(), chunk()]));
        let request = admin.request(Method::POST, path);
        let request = request.header(CONTENT_TYPE, "application/json");
        let refused = api.answer(request.body(body).unwrap()).await;
        assert_eq!(refused.status, 413, "{path}: {}", refused.body);
        let detail = refused.body["detail"].as_str().unwrap();
        let expected = format!("more than {most} bytes, and this route takes at most {most}");
        assert!(detail.ends_with(&expected), "{detail}");
    }
}
