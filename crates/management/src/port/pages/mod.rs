//! The pages that every build has: a first one, and the setup of the first administrator. All their
//! links are relative, so that they work below any path of a proxy.

use axum::Router;
use axum::http::HeaderName;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::IntoResponse;
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// The routes of the pages.
pub(super) fn router() -> Router {
    Router::new()
        .route("/", get(async || file(HTML, include_str!("index.html"))))
        .route(
            "/setup",
            get(async || file(HTML, include_str!("setup.html"))),
        )
        .route(
            "/setup.js",
            get(async || file(JAVASCRIPT, include_str!("setup.js"))),
        )
        .route(
            "/start.css",
            get(async || file(CSS, include_str!("start.css"))),
        )
}

fn file(kind: &'static str, text: &'static str) -> impl IntoResponse {
    let head: [(HeaderName, &str); 2] = [(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")];
    (head, text)
}
