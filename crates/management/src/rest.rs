//! The rest of a body, behind the answer: a request may be refused before its body was read, and a
//! client that goes on sending would find its connection closed before it sees why.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::Version;
use axum::http::header::EXPECT;
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
    // A client that waits for leave sends nothing behind a refusal, and HTTP/2 ends the stream.
    if request.headers().contains_key(EXPECT) || request.version() > Version::HTTP_11 {
        return router.oneshot(request).await;
    }
    let (back, mut returned) = oneshot::channel();
    let lend = |body| {
        Body::new(Lent {
            body,
            back: Some(back),
        })
    };
    let response = router.oneshot(request.map(lend)).await;
    if let Ok(body) = returned.try_recv() {
        tokio::spawn(timeout(REST_TIME, drop_rest(body)));
    }
    response
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
