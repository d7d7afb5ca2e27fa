//! The files of the dashboard in the program, compressed when it was built.

use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use aws_lc_rs::digest::{SHA256, digest};
use axum::Router;
use axum::body::Bytes;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY,
};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use flate2::read::GzDecoder;

/// Their paths and their bytes, made by `build.rs`.
static FILES: &[(&str, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/dashboard.rs"));

const INDEX: &str = "index.html";
/// Files below it have a name of their own for each content.
const UNCHANGING: &str = "assets/";

/// One file. However many readers have it, it is in memory once in each form.
#[derive(Clone, Debug)]
struct Asset {
    path: &'static str,
    packed: &'static [u8],
    /// Unpacked for the first reader that takes no compressed one.
    plain: Arc<OnceLock<Bytes>>,
    tag: HeaderValue,
}

/// The routes of the dashboard; none if it was not built.
pub(super) fn router() -> Option<Router> {
    routes(FILES)
}

fn routes(files: &'static [(&str, &[u8])]) -> Option<Router> {
    let is_index = |(path, _): &&(&str, &[u8])| *path == INDEX;
    let &(path, packed) = files.iter().find(is_index)?;
    let index = Asset::new(path, packed);
    let mut router = Router::new()
        .route("/", of(index.clone()))
        // The link that makes the first administrator.
        .route("/setup", of(index));
    for &(path, packed) in files.iter().filter(|file| !is_index(file)) {
        router = router.route(&format!("/{path}"), of(Asset::new(path, packed)));
    }
    Some(router)
}

fn of(asset: Asset) -> axum::routing::MethodRouter {
    get(async move |headers: HeaderMap| asset.answer(&headers))
}

/// Names a content.
fn tag_of(packed: &[u8]) -> HeaderValue {
    let digest = digest(&SHA256, packed);
    let name = URL_SAFE_NO_PAD.encode(&digest.as_ref()[..12]);
    // Weak: it is that of the compressed and of the plain form.
    HeaderValue::try_from(format!("W/\"{name}\"")).expect("its characters are visible")
}

impl Asset {
    fn new(path: &'static str, packed: &'static [u8]) -> Self {
        Self {
            path,
            packed,
            plain: Arc::default(),
            tag: tag_of(packed),
        }
    }

    fn answer(&self, asked: &HeaderMap) -> Response {
        let known = asked.get_all(IF_NONE_MATCH).iter();
        if known.into_iter().any(|known| names(known, &self.tag)) {
            return (StatusCode::NOT_MODIFIED, self.head()).into_response();
        }
        if accepts_gzip(asked) {
            let encoding = [(CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
            let packed = Bytes::from_static(self.packed);
            return (self.head(), encoding, packed).into_response();
        }
        (self.head(), self.plain()).into_response()
    }

    fn plain(&self) -> Bytes {
        let unpacked = || {
            let mut plain = Vec::new();
            let read = GzDecoder::new(self.packed).read_to_end(&mut plain);
            read.expect("the build of the program has packed it");
            Bytes::from(plain)
        };
        self.plain.get_or_init(unpacked).clone()
    }

    fn head(&self) -> HeaderMap {
        let keeping = if self.path.starts_with(UNCHANGING) {
            "public, max-age=31536000, immutable"
        } else {
            "no-cache"
        };
        let values = [
            (CONTENT_TYPE, HeaderValue::from_static(kind_of(self.path))),
            (CACHE_CONTROL, HeaderValue::from_static(keeping)),
            (VARY, HeaderValue::from_static("accept-encoding")),
            (ETAG, self.tag.clone()),
        ];
        values.into_iter().collect()
    }
}

/// Whether a header `If-None-Match` names a content.
fn names(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else {
        return false;
    };
    let plain = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.trim() == "*" || known.split(',').any(|one| plain(one) == plain(tag))
}

/// Whether the reader takes a compressed answer.
fn accepts_gzip(asked: &HeaderMap) -> bool {
    let lines = asked.get_all(ACCEPT_ENCODING).iter();
    let all = lines.filter_map(|line| line.to_str().ok());
    let mut any = false;
    for coding in all.flat_map(|line| line.split(',')) {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().trim_start_matches("q=");
        let is_refused = !weight.is_empty() && weight.parse::<f32>().is_ok_and(|q| q <= 0.0);
        match name.trim().to_ascii_lowercase().as_str() {
            "gzip" | "x-gzip" => return !is_refused,
            "*" => any = !is_refused,
            _ => {}
        }
    }
    any
}

fn kind_of(path: &str) -> &'static str {
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use axum::body::Body;
    use axum::extract::Request;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    const PAGE: &[u8] = b"<!doctype html><title>thrum</title>";

    fn packed(bytes: &[u8]) -> &'static [u8] {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(bytes).unwrap();
        packer.finish().unwrap().leak()
    }

    fn dashboard() -> Router {
        let files = [
            ("index.html", packed(PAGE)),
            ("assets/index-1a2b.js", packed(b"start()")),
        ];
        routes(Box::leak(Box::new(files))).unwrap()
    }

    async fn ask(path: &str, headers: &[(&str, &str)]) -> (StatusCode, HeaderMap, Vec<u8>) {
        let mut request = Request::get(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).unwrap();
        let (head, body) = dashboard().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes().to_vec();
        (head.status, head.headers, bytes)
    }

    #[tokio::test]
    async fn a_reader_gets_the_compressed_file_if_it_takes_one_and_else_the_plain_one() {
        for (accepted, expected) in [
            ("gzip, deflate, br", packed(PAGE)),
            ("br;q=1.0, *;q=0.1", packed(PAGE)),
            ("x-gzip", packed(PAGE)),
            ("gzip;q=0, br", PAGE),
            ("br", PAGE),
        ] {
            let (status, headers, bytes) = ask("/", &[("accept-encoding", accepted)]).await;
            assert_eq!((status, &*bytes), (StatusCode::OK, expected), "{accepted}");
            assert_eq!(headers.contains_key(CONTENT_ENCODING), expected != PAGE);
        }
        assert_eq!(ask("/setup", &[]).await.2, PAGE);
    }

    #[tokio::test]
    async fn a_browser_asks_again_for_pages_and_keeps_what_never_changes() {
        let (_, page, _) = ask("/", &[]).await;
        assert_eq!(page[CACHE_CONTROL], "no-cache");
        assert_eq!(page[CONTENT_TYPE], "text/html; charset=utf-8");
        let tag = page[ETAG].to_str().unwrap();
        let (status, headers, bytes) = ask("/", &[("if-none-match", tag)]).await;
        assert_eq!((status, bytes.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(headers[ETAG], page[ETAG]);
        assert_eq!(
            ask("/", &[("if-none-match", "W/\"0\"")]).await.0,
            StatusCode::OK
        );
        let (_, script, bytes) = ask("/assets/index-1a2b.js", &[]).await;
        assert_eq!(bytes, b"start()");
        assert!(
            script[CACHE_CONTROL]
                .to_str()
                .unwrap()
                .contains("immutable")
        );
        assert_eq!(script[CONTENT_TYPE], "text/javascript; charset=utf-8");
    }

    #[test]
    fn readers_that_take_no_compressed_file_share_the_plain_one() {
        let asset = Asset::new("index.html", packed(PAGE));
        let other = asset.clone();
        let (first, second) = (asset.plain(), other.plain());
        assert_eq!((&*first, first.as_ptr()), (PAGE, second.as_ptr()));
    }

    #[test]
    fn without_a_dashboard_there_are_no_routes_of_it() {
        assert!(routes(&[]).is_none());
    }
}
