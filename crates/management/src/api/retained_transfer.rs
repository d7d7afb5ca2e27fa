//! `/retained/export` and `/retained/import`: retained messages as lines of JSON, streamed both
//! ways, so that their number does not matter; and `DELETE /retained`.

use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::Json;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use thrum_broker::{
    Cursor, Page, RETAINED_BATCH_MAX, ROWS_MAX, RetainedMessage, RetainedQuery, RetainedRow,
};
use tokio::time::{Sleep, sleep};
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, Audited};
use super::pace::{PACE_BYTES, PACE_TIME};
use super::request::{Parameters, is_array};
use super::retained_line::RetainedLine;
use super::time_limit::TimeLimit;
use super::{ApiState, Problem};
use crate::audit::Change;
use crate::login::Scope;

/// Media type of lines of JSON.
const JSON_LINES: &str = "application/jsonl";
/// Messages that an export asks the broker for at once. They stay where the broker has them.
const EXPORT_ROWS: usize = 250;
/// Bytes of lines that an export makes at once; one line may be longer.
const EXPORT_BYTES: usize = 256 * 1024;
/// Bytes of a line of an import: the largest payload that a client can send, as base64 and as text.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// A client has to send so many bytes of an import, or the rest of it, within [`PORTION_TIME`].
const PORTION_BYTES: usize = PACE_BYTES;
/// Time for a portion of an import, without that in which messages are stored.
const PORTION_TIME: Duration = PACE_TIME;
/// Lines after which other requests have their turn: all of them may be in one part of the body.
const LINES_OF_TURN: usize = 1000;
/// Bytes of messages that are stored at once.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Parameters of an export.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExportParameters {
    /// A topic filter; everything if absent.
    filter: Option<String>,
}

/// Writes the retained messages that match a filter, a line of JSON each.
///
/// The next ones are read when the client has taken the last ones. An answer that ends without its
/// last chunk is not complete.
#[utoipa::path(
    get,
    path = "/retained/export",
    operation_id = "export_retained",
    tag = "messages",
    params(ExportParameters),
    responses(
        (
            status = 200,
            description = "A `RetainedLine` in each line.",
            body = String,
            content_type = "application/jsonl",
        ),
        Asked,
    ),
)]
pub(super) async fn export(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<ExportParameters>,
) -> Result<Response, Problem> {
    let filter = parameters.filter.unwrap_or_else(|| "#".to_owned());
    // An invalid filter is a problem, and not the end of a stream.
    let export = Export::begin(api, sender, filter).await?;
    let lines = stream::unfold(Some(export), |export| async move {
        let mut export = export?;
        match export.lines().await {
            Ok(lines) if lines.is_empty() => None,
            Ok(lines) => Some((Ok(lines), Some(export))),
            Err(problem) => Some((Err(io::Error::other(problem.detail)), None)),
        }
    });
    let kind = [(CONTENT_TYPE, JSON_LINES)];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// An export under way.
struct Export {
    api: ApiState,
    sender: Sender,
    filter: String,
    rows: std::vec::IntoIter<RetainedRow>,
    /// Where the rows after these begin.
    next: Option<Cursor>,
}

impl Export {
    async fn begin(api: ApiState, sender: Sender, filter: String) -> Result<Self, Problem> {
        let page = page(api.clone(), &filter, None).await?;
        Ok(Self {
            api,
            sender,
            filter,
            rows: page.rows.into_iter(),
            next: page.next,
        })
    }

    /// The next lines, up to [`EXPORT_BYTES`] but at least one; empty at the end.
    async fn lines(&mut self) -> Result<Bytes, Problem> {
        self.sender.check_still(&self.api, Scope::MessagesRead)?;
        while self.rows.as_slice().is_empty() {
            let Some(next) = self.next.take() else {
                return Ok(Bytes::new());
            };
            let page = page(self.api.clone(), &self.filter, Some(next)).await?;
            (self.rows, self.next) = (page.rows.into_iter(), page.next);
        }
        let mut lines = Vec::new();
        while lines.len() < EXPORT_BYTES
            && let Some(row) = self.rows.next()
        {
            serde_json::to_writer(&mut lines, &RetainedLine::new(&row)).map_err(|error| {
                let status = StatusCode::INTERNAL_SERVER_ERROR;
                Problem::new(status, "not written", error.to_string(), "report this")
            })?;
            lines.push(b'\n');
        }
        Ok(lines.into())
    }
}

async fn page(
    api: ApiState,
    filter: &str,
    cursor: Option<Cursor>,
) -> Result<Page<RetainedRow>, Problem> {
    let query = RetainedQuery {
        filter: filter.to_owned(),
        limit: EXPORT_ROWS,
        cursor,
    };
    api.query(move |queries| queries.retained(&query)).await
}

/// The effect of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Imported {
    /// Messages that were stored.
    pub imported: usize,
}

/// Stores the retained messages of the body, a line of JSON each, without a message to subscribers.
///
/// Messages in front of a line that is refused may be stored.
#[utoipa::path(
    post,
    path = "/retained/import",
    operation_id = "import_retained",
    tag = "messages",
    request_body(
        content = Option<String>,
        content_type = "application/jsonl",
        description = "A `RetainedLine` in each line.",
    ),
    responses((status = 200, body = Imported), Asked, Audited),
)]
pub(super) async fn import(
    State(api): State<ApiState>,
    sender: Sender,
    limit: TimeLimit,
    request: Request,
) -> Result<Json<Imported>, Problem> {
    // The lines have a limit of their own, and so has each question.
    limit.lift();
    let change = Change::new("retained.import", "");
    let make = import_all(api.clone(), sender.clone(), request);
    let made = Box::pin(api.audited_among(&api.imports, &sender, change, make));
    Ok(Json(made.await?))
}

/// How often it is looked whether who imports may still do it, however little it sends.
const LOOK_TIME: Duration = Duration::from_secs(5);

async fn import_all(api: ApiState, sender: Sender, request: Request) -> Result<Imported, Problem> {
    let mut imported = 0;
    // Without its client it ends early, and the import with it.
    let lines = Lines::new(request.into_body());
    let ends = no_longer_allowed(&api, &sender);
    let done = tokio::select! {
        done = import_lines(api.clone(), &sender, lines, &mut imported) => done,
        problem = ends => Err(problem),
    };
    match done {
        Ok(()) => Ok(Imported { imported }),
        Err(problem) if imported > 0 => {
            let detail = format!("{}; {imported} messages are imported", problem.detail);
            Err(Problem { detail, ..problem })
        }
        Err(problem) => Err(problem),
    }
}

/// Waits until the caller may no longer import.
async fn no_longer_allowed(api: &ApiState, sender: &Sender) -> Problem {
    loop {
        sleep(LOOK_TIME).await;
        if let Err(problem) = sender.check_still(api, Scope::MessagesWrite) {
            return problem;
        }
    }
}

/// Counts the messages that are stored, also those in front of an error.
async fn import_lines(
    api: ApiState,
    sender: &Sender,
    mut lines: Lines,
    imported: &mut usize,
) -> Result<(), Problem> {
    let mut batch = Batch::default();
    while let Some(line) = lines.next().await? {
        batch.add(&line)?;
        if batch.is_full() {
            sender.check_still(&api, Scope::MessagesWrite)?;
            batch.store(api.clone(), imported).await?;
            lines.begin_portion();
        }
    }
    sender.check_still(&api, Scope::MessagesWrite)?;
    batch.store(api, imported).await
}

/// The lines of a body.
struct Lines {
    body: BodyDataStream,
    /// Bytes that were read; those of the lines that were returned go with the next reading.
    rest: Vec<u8>,
    /// Where the first line begins that was not returned.
    start: usize,
    /// Up to here no further line ends.
    searched: usize,
    /// Number of the last line.
    number: usize,
    has_ended: bool,
    /// Bytes of the portion that are there.
    portion_bytes: usize,
    /// Runs while the portion is read.
    portion_time: Pin<Box<Sleep>>,
}

/// A line that is not empty.
struct NumberedLine {
    number: usize,
    bytes: Vec<u8>,
}

impl Lines {
    fn new(body: Body) -> Self {
        Self {
            body: body.into_data_stream(),
            rest: Vec::new(),
            start: 0,
            searched: 0,
            number: 0,
            has_ended: false,
            portion_bytes: 0,
            portion_time: Box::pin(sleep(PORTION_TIME)),
        }
    }

    /// The time for the next portion begins.
    fn begin_portion(&mut self) {
        self.portion_bytes = 0;
        self.portion_time = Box::pin(sleep(PORTION_TIME));
    }

    /// The next line that is not empty.
    async fn next(&mut self) -> Result<Option<NumberedLine>, Problem> {
        loop {
            let Some(bytes) = self.next_bytes().await? else {
                return Ok(None);
            };
            self.number += 1;
            if self.number.is_multiple_of(LINES_OF_TURN) {
                tokio::task::yield_now().await;
            }
            if !bytes.trim_ascii().is_empty() {
                let number = self.number;
                return Ok(Some(NumberedLine { number, bytes }));
            }
        }
    }

    /// The bytes up to the next end of a line, or to the end of the body.
    async fn next_bytes(&mut self) -> Result<Option<Vec<u8>>, Problem> {
        loop {
            let mut unseen = self.rest[self.searched..].iter();
            if let Some(end) = unseen.position(|byte| *byte == b'\n') {
                let end = self.searched + end + 1;
                let line = self.rest[self.start..end].to_vec();
                (self.start, self.searched) = (end, end);
                return Ok(Some(line));
            }
            self.searched = self.rest.len();
            let unfinished = &self.rest[self.start..];
            if unfinished.len() > LINE_BYTES_MAX {
                let number = self.number + 1;
                let what = format!("line {number} has more than {LINE_BYTES_MAX} bytes");
                return Err(Problem::bad_request(what));
            }
            if self.has_ended {
                let bytes = unfinished.to_vec();
                self.start = self.rest.len();
                return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()));
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), Problem> {
        let next = tokio::select! {
            next = self.body.next() => next,
            () = self.portion_time.as_mut() => return Err(too_slow()),
        };
        match next {
            Some(Ok(bytes)) => {
                self.rest.drain(..self.start);
                self.searched -= self.start;
                self.start = 0;
                self.rest.extend_from_slice(&bytes);
                self.portion_bytes += bytes.len();
                if self.portion_bytes >= PORTION_BYTES {
                    self.begin_portion();
                }
            }
            Some(Err(error)) => {
                let what = format!("the body ended early: {error}");
                return Err(Problem::bad_request(what));
            }
            None => self.has_ended = true,
        }
        Ok(())
    }
}

fn too_slow() -> Problem {
    let (kib, seconds) = (PORTION_BYTES / 1024, PORTION_TIME.as_secs());
    Problem::new(
        StatusCode::REQUEST_TIMEOUT,
        "import too slow",
        format!("less than {kib} KiB of the body came within {seconds} s"),
        "send the lines without pauses; an import that is repeated continues where it was",
    )
}

/// Messages that are stored together.
#[derive(Default)]
struct Batch {
    messages: Vec<RetainedMessage>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, line: &NumberedLine) -> Result<(), Problem> {
        let read = if is_array(&line.bytes) {
            Err("the line is an array, not an object".to_owned())
        } else {
            let read = serde_json::from_slice::<RetainedLine>(&line.bytes);
            read.map_err(|error| error.to_string())
        };
        let message = read.and_then(RetainedLine::read).map_err(|what| {
            let number = line.number;
            Problem::bad_request(format!("line {number}: {what}"))
        })?;
        self.bytes += line.bytes.len();
        self.messages.push(message);
        Ok(())
    }

    fn is_full(&self) -> bool {
        self.messages.len() >= RETAINED_BATCH_MAX || self.bytes >= BATCH_BYTES_MAX
    }

    /// Stores the messages, and counts them.
    async fn store(&mut self, api: ApiState, imported: &mut usize) -> Result<(), Problem> {
        self.bytes = 0;
        let messages = std::mem::take(&mut self.messages);
        let wanted = messages.len();
        if wanted == 0 {
            return Ok(());
        }
        let stored = api
            .query(move |queries| queries.store_retained(&messages))
            .await?;
        *imported += stored;
        if stored < wanted {
            return Err(Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "import incomplete",
                "for the next message there is no room (limits.retained_messages, \
                 limits.retained_bytes, limits.memory or the disk)",
                "raise the limit or free space, and import again",
            ));
        }
        Ok(())
    }
}

/// Parameters of a removal.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveParameters {
    /// Filter that the topics match.
    filter: String,
    /// Only count them.
    #[serde(default)]
    dry_run: bool,
}

/// The effect of a removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RetainedRemoval {
    /// Retained messages that match the filter.
    pub matching: u64,
    /// Bytes of their payloads.
    pub payload_bytes: u64,
    /// Messages that were removed: none by a dry run.
    pub removed: u64,
    /// The first topics, at most ten.
    pub examples: Vec<String>,
}

/// Topics that are named in an answer.
const EXAMPLES: usize = 10;

/// Removes the retained messages that match a filter, without a message to subscribers.
#[utoipa::path(
    delete,
    path = "/retained",
    operation_id = "remove_retained",
    tag = "messages",
    params(RemoveParameters),
    responses((status = 200, body = RetainedRemoval), Asked, Audited),
)]
pub(super) async fn remove(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<RemoveParameters>,
) -> Result<Json<RetainedRemoval>, Problem> {
    if parameters.dry_run {
        return Ok(Json(remove_all(api, parameters).await?));
    }
    let change = Change::new("retained.remove", &parameters.filter);
    let make = remove_all(api.clone(), parameters);
    Ok(Json(api.audited(&sender, change, make).await?))
}

async fn remove_all(
    api: ApiState,
    parameters: RemoveParameters,
) -> Result<RetainedRemoval, Problem> {
    let mut removal = RetainedRemoval {
        matching: 0,
        payload_bytes: 0,
        removed: 0,
        examples: Vec::new(),
    };
    let mut cursor = None;
    loop {
        let query = RetainedQuery {
            filter: parameters.filter.clone(),
            limit: ROWS_MAX.min(RETAINED_BATCH_MAX),
            cursor: cursor.take(),
        };
        let page = api
            .clone()
            .query(move |queries| queries.retained(&query))
            .await?;
        removal.matching += page.rows.len() as u64;
        removal.payload_bytes += page.rows.iter().map(|row| row.payload_bytes).sum::<u64>();
        let topics: Vec<String> = page.rows.into_iter().map(|row| row.topic).collect();
        let missing = EXAMPLES - removal.examples.len();
        let examples = topics.iter().take(missing).cloned();
        removal.examples.extend(examples);
        if !parameters.dry_run && !topics.is_empty() {
            let removed = api
                .clone()
                .query(move |queries| queries.remove_retained(topics))
                .await?;
            removal.removed += removed.messages as u64;
        }
        cursor = page.next;
        if cursor.is_none() {
            return Ok(removal);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::timeout;

    use super::super::stream::tests::broker_and_api;
    use super::*;
    use crate::login::{Caller, NewKey, ScopeSet};

    fn lines(chunks: &[&str]) -> Result<Vec<(usize, String)>, Problem> {
        let chunks: Vec<Result<String, Infallible>> =
            chunks.iter().map(|chunk| Ok((*chunk).to_owned())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.expect("a runtime").block_on(async {
            let mut lines = Lines::new(Body::from_stream(stream::iter(chunks)));
            let mut found = Vec::new();
            while let Some(line) = lines.next().await? {
                let text = String::from_utf8_lossy(&line.bytes);
                found.push((line.number, text.trim().to_owned()));
            }
            Ok(found)
        })
    }

    #[test]
    fn lines_are_put_together_from_parts_of_a_body() {
        let found = lines(&["a", "b\nc\n", "\n", "d", "e"]).expect("lines");
        let expected = [(1, "ab"), (2, "c"), (4, "de")];
        let expected = expected.map(|(number, text)| (number, text.to_owned()));
        assert_eq!(found, expected);
        assert_eq!(lines(&[]).expect("no lines"), []);
    }

    /// Reads all lines of a body whose parts come at this interval.
    fn read_slowly(parts: usize, bytes: usize, interval: Duration) -> Result<usize, Problem> {
        let part = format!("{}\n", "x".repeat(bytes - 1));
        let parts = stream::iter(0..parts).then(move |_| {
            let part = part.clone();
            async move {
                sleep(interval).await;
                Ok::<_, Infallible>(part)
            }
        });
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build();
        runtime.expect("a runtime").block_on(async {
            let mut lines = Lines::new(Body::from_stream(parts.boxed()));
            let mut found = 0;
            while lines.next().await?.is_some() {
                found += 1;
            }
            Ok(found)
        })
    }

    #[test]
    fn an_import_may_take_long_while_its_bytes_come() {
        let interval = PORTION_TIME.mul_f64(0.9);
        let read = read_slowly(100, PORTION_BYTES, interval);
        assert_eq!(read.expect("all lines"), 100);
        let refused = read_slowly(100, PORTION_BYTES - 1, interval).unwrap_err();
        assert_eq!(refused.status, 408, "{refused:?}");
        // A byte now and then is no progress.
        let refused = read_slowly(100, 2, Duration::from_secs(1)).unwrap_err();
        assert!(
            refused.detail.starts_with("less than 64 KiB"),
            "{refused:?}"
        );
    }

    async fn count_turns(turns: Arc<AtomicUsize>) {
        loop {
            turns.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn short_lines_leave_turns_to_other_requests() {
        let part = "x\n".repeat(1 << 19);
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().build().expect("a runtime");
        runtime.block_on(async {
            let turns = Arc::new(AtomicUsize::new(0));
            let other = tokio::spawn(count_turns(Arc::clone(&turns)));
            let parts = [Ok::<_, Infallible>(part)];
            let mut lines = Lines::new(Body::from_stream(stream::iter(parts)));
            let mut found = 0;
            while let Some(line) = lines.next().await.expect("a line") {
                // What is left is not copied for each line.
                assert_eq!(lines.rest.len(), 1 << 20);
                assert_eq!(line.bytes, b"x\n");
                found += 1;
            }
            other.abort();
            assert_eq!(found, 1 << 19);
            let turns = turns.load(Ordering::Relaxed);
            assert!(turns >= found / LINES_OF_TURN, "{turns}");
        });
    }

    #[test]
    fn a_line_without_an_end_is_refused() {
        let part = "x".repeat(1 << 20);
        let refused = lines(&[part.as_str(); 5]).unwrap_err();
        assert!(
            refused.detail.starts_with("line 1 has more than"),
            "{refused:?}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_import_that_gets_nothing_ends_soon_after_the_key_of_its_caller_is_gone() {
        let (broker, api) = broker_and_api();
        let login = &api.security.login;
        let new = NewKey {
            label: "it".to_owned(),
            scopes: ScopeSet::ALL,
            expires_at: None,
            created_by: "a test".to_owned(),
        };
        let key = login.add_key(new).await.unwrap();
        let sender = Sender::from(Caller::key(&key.id, ScopeSet::ALL, None));
        let silent = stream::pending::<Result<String, Infallible>>();
        let import = import_all(api.clone(), sender, Request::new(Body::from_stream(silent)));
        let mut import = Box::pin(import);
        let waits = timeout(LOOK_TIME + Duration::from_secs(1), import.as_mut()).await;
        assert!(waits.is_err(), "its key is there");
        login.remove_key(key.id).await.unwrap();
        let ended = timeout(LOOK_TIME, import).await.unwrap();
        assert_eq!(ended.unwrap_err().status, 401);
        broker.stop();
    }
}
