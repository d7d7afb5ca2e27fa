//! The rest of a body, behind the answer: a request may be refused before its body was read, and a
//! client that goes on sending would find its connection closed before it sees why.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{CONNECTION, CONTENT_LENGTH, EXPECT};
use axum::http::{HeaderValue, StatusCode, Version};
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
    let mut response = routed(router, request).await?;
    // The router writes the length of a body that is not there, and not that of the whole one.
    if response.status() == StatusCode::NOT_MODIFIED {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    Ok(response)
}

async fn routed(router: Router, request: Request) -> Result<Response, Infallible> {
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
        // can tell its next request from a body. One that is too long is not waited for.
        if expects_continue || response.status() == StatusCode::PAYLOAD_TOO_LARGE {
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
    use axum::http::Method;
    use axum::routing::get;
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

    use super::*;

    /// A connection whose requests are refused without a look at their bodies.
    fn refusing() -> DuplexStream {
        refusing_with(StatusCode::UNAUTHORIZED)
    }

    fn refusing_with(status: StatusCode) -> DuplexStream {
        let (near, far) = tokio::io::duplex(16 * 1024);
        let router = Router::new().fallback(move || async move { status });
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

    #[tokio::test]
    async fn an_answer_without_a_body_says_no_wrong_length() {
        let router = Router::new()
            .route("/known", get(|| async { StatusCode::NOT_MODIFIED }))
            .route("/whole", get(|| async { "all of it" }));
        let length = async |method: Method, path: &str| {
            let request = Request::builder().method(method).uri(path);
            let request = request.body(Body::empty()).unwrap();
            let response = answer(router.clone(), request).await.unwrap();
            let length = response.headers().get(CONTENT_LENGTH).cloned();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (
                length.map(|length| length.to_str().unwrap().to_owned()),
                body.len(),
            )
        };
        assert_eq!(length(Method::GET, "/known").await, (None, 0));
        let whole = Some("9".to_owned());
        assert_eq!(length(Method::HEAD, "/whole").await, (whole.clone(), 0));
        assert_eq!(length(Method::GET, "/whole").await, (whole, 9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_request_is_too_long_says_that_it_ends() {
        let mut far = refusing_with(StatusCode::PAYLOAD_TOO_LARGE);
        let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        far.write_all(head.as_bytes()).await.unwrap();
        let answer = read_to_end(far).await;
        assert!(answer.starts_with("http/1.1 413 "), "{answer}");
        assert!(answer.contains("connection: close\r\n"), "{answer}");
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
