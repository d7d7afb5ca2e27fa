//! The rest of a body, behind the answer: a request may be refused before its body was read, and a
//! client that goes on sending would find its connection closed before it sees why.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONNECTION, EXPECT};
use axum::http::{HeaderValue, Version};
use axum::response::Response;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::oneshot;
use tokio::time::timeout;
use tower::ServiceExt as _;

/// Bytes of a rest that are read and dropped: a file that somebody took for a small one.
const REST_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Time for it.
const REST_TIME: Duration = Duration::from_secs(5);

/// Answers a request; what nobody read of its body is read and dropped beside the answer.
pub(crate) async fn answer(router: Router, request: Request) -> Result<Response, Infallible> {
    // HTTP/2 ends the stream.
    if request.version() > Version::HTTP_11 {
        return router.oneshot(request).await;
    }
    let expects_continue = request.headers().contains_key(EXPECT);
    let (back, mut returned) = oneshot::channel();
    let lend = |body| {
        Body::new(Lent {
            body,
            back: Some(back),
        })
    };
    let mut response = router.oneshot(request.map(lend)).await?;
    if let Ok(body) = returned.try_recv() {
        // A client that waits for `100 Continue` may leave the body out or send it, and nobody
        // can tell its next request from a body.
        if expects_continue {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
        tokio::spawn(timeout(REST_TIME, drop_rest(body)));
    }
    Ok(response)
}

async fn drop_rest(mut body: Body) {
    let mut left = REST_BYTES_MAX;
    while let Some(Ok(frame)) = body.frame().await {
        let len = frame.data_ref().map_or(0, Bytes::len);
        match left.checked_sub(len) {
            Some(less) => left = less,
            None => return,
        }
    }
}

/// A body that returns when its reader drops it before its end.
struct Lent {
    body: Body,
    back: Option<oneshot::Sender<Body>>,
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            return;
        }
        if let Some(back) = self.back.take() {
            // Nobody waits for it when the request itself has ended.
            back.send(std::mem::take(&mut self.body)).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    /// A connection whose requests are refused without a look at their bodies.
    fn refusing() -> DuplexStream {
        let (near, far) = tokio::io::duplex(16 * 1024);
        let router = Router::new().fallback(|| async { StatusCode::UNAUTHORIZED });
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            answer(router.clone(), request.map(Body::new))
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(near), service));
        far
    }

    fn head(length: &str) -> String {
        format!("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n{length}\r\n\r\n")
    }

    async fn read_to_end(mut far: DuplexStream) -> String {
        let mut answer = String::new();
        far.read_to_string(&mut answer).await.unwrap();
        answer.make_ascii_lowercase();
        answer
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_waits_for_continue_sees_a_refusal_and_the_end_instead() {
        for length in ["Content-Length: 1000000", "Transfer-Encoding: chunked"] {
            let mut far = refusing();
            far.write_all(head(length).as_bytes()).await.unwrap();
            let answer = read_to_end(far).await;
            assert!(answer.starts_with("http/1.1 401 "), "{length}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{answer}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_wait_for_continue_sees_a_refusal_behind_its_body() {
        let body = vec![b'x'; 1_000_000];
        let chunked = [b"f4240\r\n", &body[..], b"\r\n0\r\n\r\n"].concat();
        for (length, body) in [
            ("Content-Length: 1000000", body),
            ("Transfer-Encoding: chunked", chunked),
        ] {
            let mut far = refusing();
            far.write_all(head(length).as_bytes()).await.unwrap();
            far.write_all(&body).await.unwrap();
            let answer = read_to_end(far).await;
            assert!(answer.starts_with("http/1.1 401 "), "{length}: {answer}");
            assert!(answer.contains("connection: close\r\n"), "{answer}");
        }
    }
}
