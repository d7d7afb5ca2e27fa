//! Who watches: its place, its right to go on, and how much it gets in a second.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream::unfold;
use serde_json::json;
use thrum_broker::{HttpPort, StreamNote};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::super::entrance::Sender;
use super::super::{ApiState, Problem};
use super::hub::ViewerPlace;
use crate::login::Scope;

/// Media type of a stream of events.
pub(in crate::api) const EVENT_STREAM: &str = "text/event-stream";
/// Bytes that one viewer gets in a second.
const BYTES_PER_SECOND: i64 = 100 * 1024;
/// Bytes that a viewer may get at once, behind a pause or at the beginning: a page with all of its
/// lists.
const BURST_BYTES: i64 = 256 * 1024;
/// A reader that takes nothing for so long is cut off: before the connection is.
const STALLED_TIME: Duration = Duration::from_secs(20);
/// Pieces that wait for the connection to take them; the next one has what changed meanwhile.
const PIECES_MAX: usize = 1;

/// Whether a request asks for a stream of events.
pub(in crate::api) fn wants_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter();
    let mut types = accepted
        .filter_map(|field| field.to_str().ok())
        .flat_map(|field| field.split(','));
    types.any(|one| {
        let kind = one.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case(EVENT_STREAM)
    })
}

/// A caller that watches.
pub(in crate::api) struct Watcher {
    api: ApiState,
    sender: Sender,
    needed: Vec<Scope>,
    #[expect(dead_code, reason = "it is taken for as long as the caller watches")]
    place: ViewerPlace,
    /// When it was given something that it has not taken since, as time since the start.
    given_at: Option<Duration>,
}

impl Watcher {
    /// A caller that has all of these scopes, if there is a place for it.
    pub(in crate::api) fn begin(
        api: &ApiState,
        sender: Sender,
        needed: Vec<Scope>,
    ) -> Result<Self, Problem> {
        let place = api.live.take_place(api, &sender.caller.name)?;
        Ok(Self {
            api: api.clone(),
            sender,
            needed,
            place,
            given_at: None,
        })
    }

    /// Its name.
    pub(super) fn caller(&self) -> &Arc<str> {
        &self.sender.caller.name
    }

    /// The time since the start of the interface.
    fn now(&self) -> Duration {
        self.api.security.login.now().uptime
    }

    /// Its reader has taken what it was given; returns how long that took.
    pub(super) fn took(&mut self) -> Duration {
        let now = self.now();
        let given_at = self.given_at.take();
        given_at.map_or(Duration::ZERO, |at| now.saturating_sub(at))
    }

    fn gives(&mut self) {
        self.given_at = Some(self.now());
    }

    /// Counts a state that it does not get.
    pub(in crate::api) fn skips(&self) {
        self.api.queries.live().note_stream(StreamNote::Skipped);
    }

    /// Counts that its reader is cut off.
    fn is_cut(&self) {
        self.api.queries.live().note_stream(StreamNote::Cut);
        tracing::info!(
            caller = %self.sender.caller.name,
            "a live stream is cut off: its reader takes nothing"
        );
    }

    /// The event that ends the stream: the caller may no longer watch, or the broker stops.
    pub(super) fn end(&self) -> Option<String> {
        if self.api.queries.is_stopping() {
            return Some(ended("stopping", "the broker is stopping"));
        }
        if self.sender.port.as_ref().is_some_and(HttpPort::is_closed) {
            let why = "the broker no longer listens at this address; connect to another one";
            return Some(ended("listener_removed", why));
        }
        let login = &self.api.security.login;
        let scopes = login.scopes_now(&self.sender.caller, self.sender.session.as_ref());
        let Some(scopes) = scopes else {
            let why = "the session or the key of this stream has ended; log in again, or show \
                       another key";
            return Some(ended("login_ended", why));
        };
        let lost = self.needed.iter().find(|scope| !scopes.allows(**scope))?;
        let why = format!("this needs the scope {lost}, which you no longer have");
        Some(ended("scope_lost", &why))
    }
}

/// What is sent to a watcher, piece by piece.
pub(super) trait Live: Send + 'static {
    /// The next piece; none behind the end. It may be dropped while it waits.
    fn next(&mut self) -> impl Future<Output = Option<Bytes>> + Send;

    /// Who watches.
    fn watcher(&mut self) -> &mut Watcher;
}

/// The answer of a watcher. A task gives the pieces, so that a reader that takes none is noticed on
/// every kind of connection.
pub(super) fn answer(live: impl Live) -> Response {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    tokio::spawn(give_all(live, sender));
    let pieces = unfold(receiver, |mut receiver: mpsc::Receiver<Bytes>| async {
        let piece = receiver.recv().await?;
        Some((Ok::<_, Infallible>(piece), receiver))
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static(EVENT_STREAM)),
        // No cache keeps it, and no proxy holds it back.
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

/// Gives all pieces, or ends when the reader has gone, or takes nothing.
async fn give_all(mut live: impl Live, sender: mpsc::Sender<Bytes>) {
    loop {
        let piece = tokio::select! {
            piece = live.next() => piece,
            () = sender.closed() => None,
        };
        let Some(piece) = piece else {
            return;
        };
        live.watcher().gives();
        match timeout(STALLED_TIME, sender.send(piece)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => {
                live.watcher().is_cut();
                return;
            }
        }
    }
}

/// The event at the end of a stream.
pub(super) fn ended(reason: &str, detail: &str) -> String {
    let data = json!({ "reason": reason, "detail": detail });
    format!("event: end\ndata: {data}\n\n")
}

/// What a viewer may still get.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct Share {
    /// Below 0 after an event that was longer than what was left.
    bytes: i64,
}

impl Default for Share {
    fn default() -> Self {
        Self { bytes: BURST_BYTES }
    }
}

impl Share {
    /// So much time has passed.
    pub(super) fn grow(&mut self, time: Duration) {
        let millis = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let more = millis.saturating_mul(BYTES_PER_SECOND) / 1000;
        self.bytes = self.bytes.saturating_add(more).min(BURST_BYTES);
    }

    /// Takes so many bytes, if they are there. One that is longer than any share waits for a full
    /// one.
    pub(in crate::api) fn take(&mut self, bytes: usize) -> bool {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        if bytes.min(BURST_BYTES) > self.bytes {
            return false;
        }
        self.bytes = self.bytes.saturating_sub(bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_viewer_gets_a_burst_and_then_its_share() {
        let mut share = Share::default();
        assert!(share.take(200 * 1024) && share.take(56 * 1024));
        assert!(!share.take(1));
        share.grow(Duration::from_millis(250));
        assert!(share.take(25 * 1024) && !share.take(1));
        share.grow(Duration::from_hours(1));
        assert!(share.take(1 << 20), "a long event waits for a full share");
        share.grow(Duration::from_secs(7));
        assert!(!share.take(1), "and is paid for");
        share.grow(Duration::from_secs(1));
        assert!(share.take(1));
    }

    #[test]
    fn events_are_asked_for_by_their_media_type() {
        let asks = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            wants_events(&headers)
        };
        assert!(asks("text/event-stream"));
        assert!(asks("application/json;q=0.5, Text/Event-Stream;q=0.9"));
        assert!(!asks("*/*") && !asks("text/plain"));
        assert!(!wants_events(&HeaderMap::new()));
    }
}
