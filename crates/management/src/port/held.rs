//! Memory of answers that are whole before their reader has taken them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;

use crate::api::{PREFIX, Problem};

/// An answer of so many bytes is not counted: those of strangers, who get problems only.
const SMALL_BYTES: usize = 1024;
/// Bytes of the answers of one connection; the one that exceeds them still passes.
const CONNECTION_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of the answers of all connections.
const ALL_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Room for the answers of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Room {
    all: Arc<Taken>,
    connection: Arc<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: AtomicUsize,
    refused: AtomicU64,
}

impl Room {
    /// That of another connection, of the same memory.
    pub(super) fn of_connection(&self) -> Self {
        Self {
            all: Arc::clone(&self.all),
            connection: Arc::default(),
        }
    }

    /// Takes room, whether it is there or not.
    fn exceed(&self, len: usize) -> Held {
        self.connection.bytes.fetch_add(len, Ordering::Relaxed);
        self.all.bytes.fetch_add(len, Ordering::Relaxed);
        Held {
            room: self.clone(),
            len,
        }
    }

    /// Takes room; none if it is not there.
    fn take(&self, len: usize) -> Option<Held> {
        let held = Held {
            room: self.clone(),
            len,
        };
        let before = self.connection.bytes.fetch_add(len, Ordering::Relaxed);
        let of_all = self.all.bytes.fetch_add(len, Ordering::Relaxed) + len;
        if before < CONNECTION_BYTES_MAX && of_all <= ALL_BYTES_MAX {
            return Some(held);
        }
        let refused = self.all.refused.fetch_add(1, Ordering::Relaxed) + 1;
        // A flood of them must not fill the log.
        if refused.is_power_of_two() {
            tracing::warn!(
                refused,
                bytes = of_all,
                "a request at the HTTP port is refused: answers wait for readers that do not take them"
            );
        }
        None
    }
}

/// Room that is taken until this is dropped.
#[derive(Debug)]
struct Held {
    room: Room,
    len: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        let Self { room, len } = self;
        room.connection.bytes.fetch_sub(*len, Ordering::Relaxed);
        room.all.bytes.fetch_sub(*len, Ordering::Relaxed);
    }
}

/// An answer, with its room for as long as a part of it waits somewhere.
struct Kept {
    bytes: Bytes,
    #[expect(dead_code, reason = "it is held")]
    held: Held,
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Routes that change nothing though their questions have a body.
const READING: [&str; 7] = [
    "/access/login-test",
    "/access/test",
    "/config/plan",
    "/explain/drops",
    "/explain/publish",
    "/explain/subscribe",
    "/why",
];

fn changes_nothing(request: &Request) -> bool {
    let route = request.uri().path().strip_prefix(PREFIX);
    request.method().is_safe() || route.is_some_and(|route| READING.contains(&route))
}

/// Counts an answer, or refuses it; that of a change never: the change is made. Streams make each
/// piece when the one before was taken.
pub(super) async fn hold(request: Request, next: Next) -> Response {
    let room = request.extensions().get::<Room>().cloned();
    let is_read = changes_nothing(&request);
    let response = next.run(request).await;
    let len = response.body().size_hint().exact();
    let is_small = len.is_none_or(|len| len <= SMALL_BYTES as u64);
    match room {
        Some(room) if !is_small => {
            let exceed = |len| Some(room.exceed(len));
            if is_read {
                kept(|len| room.take(len), response).await
            } else {
                kept(exceed, response).await
            }
        }
        _ => response,
    }
}

async fn kept(take: impl FnOnce(usize) -> Option<Held>, response: Response) -> Response {
    let (head, body) = response.into_parts();
    // It is there: its length is known.
    let Ok(read) = body.collect().await else {
        return untaken().into_response();
    };
    let bytes = read.to_bytes();
    let Some(held) = take(bytes.len()) else {
        return untaken().into_response();
    };
    let bytes = Bytes::from_owner(Kept { bytes, held });
    Response::from_parts(head, Body::from(bytes))
}

fn untaken() -> Problem {
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "answers wait",
        format!(
            "answers wait for readers that do not take them: more than {} MiB on this connection, or {} MiB on all",
            CONNECTION_BYTES_MAX >> 20,
            ALL_BYTES_MAX >> 20
        ),
        "read the answers before you ask for more, or ask for smaller pages (limit); try again in 30 s",
    );
    // Who takes nothing for so long is cut off.
    problem.retry_after_secs = Some(30);
    problem
}

#[cfg(test)]
mod tests {
    use axum::http::Method;
    use axum::routing::any;
    use axum::{Router, middleware};
    use tower::ServiceExt as _;

    use super::*;

    const MIB: usize = 1024 * 1024;

    async fn ask(room: &Room, len: usize) -> Response {
        send(room, Method::GET, len).await
    }

    async fn send(room: &Room, method: Method, len: usize) -> Response {
        send_to("/", room, method, len).await
    }

    async fn send_to(path: &str, room: &Room, method: Method, len: usize) -> Response {
        let router = Router::new()
            .fallback(any(move || async move { vec![7; len] }))
            .layer(middleware::from_fn(hold));
        let request = Request::builder().uri(path).method(method);
        let mut request = request.body(Body::empty()).unwrap();
        request.extensions_mut().insert(room.clone());
        router.oneshot(request).await.unwrap()
    }

    #[tokio::test]
    async fn answers_that_wait_on_a_connection_have_a_limit_until_they_are_taken() {
        let room = Room::default();
        let mut waiting = Vec::new();
        for _ in 0..4 {
            let answer = ask(&room, MIB).await;
            assert_eq!(answer.status(), StatusCode::OK);
            waiting.push(answer);
        }
        let refused = ask(&room, MIB).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(ask(&room, SMALL_BYTES).await.status(), StatusCode::OK);
        // A part of one that waits in a connection is the memory of all of it.
        let read = waiting.pop().unwrap().into_body().collect().await.unwrap();
        let part = read.to_bytes().split_off(MIB - 1);
        assert_eq!(part[..], [7]);
        let refused = ask(&room, MIB).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        drop(part);
        assert_eq!(ask(&room, MIB).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn a_long_answer_passes_alone_and_those_of_all_connections_have_a_limit() {
        let all = Room::default();
        let mut waiting = Vec::new();
        for _ in 0..6 {
            let answer = ask(&all.of_connection(), 10 * MIB).await;
            assert_eq!(answer.status(), StatusCode::OK);
            waiting.push(answer);
        }
        let refused = ask(&all.of_connection(), 10 * MIB).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(ask(&all, 100).await.status(), StatusCode::OK);
        drop(waiting);
        assert_eq!(all.all.bytes.load(Ordering::Relaxed), 0);
        let answer = ask(&all.of_connection(), 10 * MIB).await;
        assert_eq!(answer.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn the_answer_of_a_change_is_not_refused() {
        let room = Room::default();
        let waiting = ask(&room, CONNECTION_BYTES_MAX).await;
        assert_eq!(
            ask(&room, MIB).await.status(),
            StatusCode::TOO_MANY_REQUESTS
        );
        for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
            let answer = send(&room, method.clone(), MIB).await;
            assert_eq!(answer.status(), StatusCode::OK, "{method}");
        }
        // It counts like others, for as long as it waits.
        drop(waiting);
        let change = send(&room, Method::POST, CONNECTION_BYTES_MAX).await;
        assert_eq!(
            ask(&room, MIB).await.status(),
            StatusCode::TOO_MANY_REQUESTS
        );
        drop(change);
        assert_eq!(room.all.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(ask(&room, MIB).await.status(), StatusCode::OK);
    }

    #[tokio::test]
    async fn the_answer_of_a_question_with_a_body_is_refused_as_others() {
        let document = include_str!("../../../../docs/api/openapi.json");
        let room = Room::default();
        let waiting = ask(&room, CONNECTION_BYTES_MAX).await;
        for route in READING {
            assert!(
                document.contains(&format!("\"{route}\": {{")),
                "{route} is no route"
            );
            let path = format!("{PREFIX}{route}");
            let answer = send_to(&path, &room, Method::POST, MIB).await;
            assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS, "{route}");
        }
        drop(waiting);
    }

    #[tokio::test]
    async fn an_answer_that_is_long_waits_behind_a_short_one() {
        let room = Room::default();
        let short = ask(&room, 2 * SMALL_BYTES).await;
        let long = ask(&room, 10 * MIB).await;
        assert_eq!(long.status(), StatusCode::OK);
        let refused = ask(&room, 2 * SMALL_BYTES).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        drop((short, long));
    }
}
