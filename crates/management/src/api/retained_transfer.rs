//! `/retained/export` and `/retained/import`: retained messages as lines of JSON, streamed both
//! ways, so that their number does not matter; and `DELETE /retained`.

use std::io;

use axum::Json;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use thrum_broker::{Cursor, RETAINED_BATCH_MAX, ROWS_MAX, RetainedMessage, RetainedQuery};

use super::entrance::Sender;
use super::request::Parameters;
use super::retained_line::RetainedLine;
use super::{ApiState, Problem};
use crate::audit::Change;

/// Media type of lines of JSON.
const JSON_LINES: &str = "application/jsonl";
/// Messages of one portion of an export: some hundred kilobytes with usual payloads.
const EXPORT_ROWS: usize = 250;
/// Bytes of a line of an import: the largest payload that a client can send, as base64 and as text.
const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of messages that are stored at once.
const BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Parameters of an export.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct ExportParameters {
    filter: Option<String>,
}

/// Writes the messages that match a filter, portion by portion: the next one is read when the
/// client has taken the last one.
pub(super) async fn export(
    State(api): State<ApiState>,
    Parameters(parameters): Parameters<ExportParameters>,
) -> Result<Response, Problem> {
    let filter = parameters.filter.unwrap_or_else(|| "#".to_owned());
    // An invalid filter is a problem, and not the end of a stream.
    let first = portion(api.clone(), &filter, None).await?;
    let rest = stream::unfold(first.next.clone(), move |next| {
        let (api, filter) = (api.clone(), filter.clone());
        async move {
            let portion = portion(api, &filter, Some(next?)).await;
            Some(match portion {
                Ok(portion) => (Ok(portion.lines), portion.next),
                Err(problem) => (Err(io::Error::other(problem.detail)), None),
            })
        }
    });
    let lines = stream::once(async move { Ok::<_, io::Error>(first.lines) }).chain(rest);
    let kind = [(CONTENT_TYPE, JSON_LINES)];
    Ok((kind, Body::from_stream(lines)).into_response())
}

/// Some lines of an export, and where the next ones begin.
struct Portion {
    lines: Bytes,
    next: Option<Cursor>,
}

async fn portion(api: ApiState, filter: &str, cursor: Option<Cursor>) -> Result<Portion, Problem> {
    let query = RetainedQuery {
        filter: filter.to_owned(),
        limit: EXPORT_ROWS,
        cursor,
    };
    let page = api.query(move |queries| queries.retained(&query)).await?;
    let mut lines = Vec::new();
    for row in &page.rows {
        serde_json::to_writer(&mut lines, &RetainedLine::new(row)).map_err(|error| {
            let status = StatusCode::INTERNAL_SERVER_ERROR;
            Problem::new(status, "not written", error.to_string(), "report this")
        })?;
        lines.push(b'\n');
    }
    Ok(Portion {
        lines: lines.into(),
        next: page.next,
    })
}

/// The effect of an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Messages that were stored.
    pub imported: usize,
}

/// Stores the messages of the body, a line each, without a message to subscribers.
pub(super) async fn import(
    State(api): State<ApiState>,
    sender: Sender,
    request: Request,
) -> Result<Json<Imported>, Problem> {
    let change = Change::new("retained.import", "");
    let make = import_all(api.clone(), request);
    Ok(Json(api.audited(&sender.caller, change, make).await?))
}

async fn import_all(api: ApiState, request: Request) -> Result<Imported, Problem> {
    let mut lines = Lines::new(request.into_body());
    let mut batch = Batch::default();
    let mut imported = 0;
    while let Some(line) = lines.next().await? {
        batch.add(&line)?;
        if batch.is_full() {
            imported += batch.store(api.clone(), imported).await?;
        }
    }
    imported += batch.store(api, imported).await?;
    Ok(Imported { imported })
}

/// The lines of a body.
struct Lines {
    body: BodyDataStream,
    /// Bytes that were read and belong to no returned line.
    rest: Vec<u8>,
    /// Bytes of the rest that are known to have no end of a line.
    searched: usize,
    /// Number of the last line.
    number: usize,
    has_ended: bool,
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
            searched: 0,
            number: 0,
            has_ended: false,
        }
    }

    /// The next line that is not empty.
    async fn next(&mut self) -> Result<Option<NumberedLine>, Problem> {
        loop {
            let Some(bytes) = self.next_bytes().await? else {
                return Ok(None);
            };
            self.number += 1;
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
                let behind = self.rest.split_off(self.searched + end + 1);
                self.searched = 0;
                return Ok(Some(std::mem::replace(&mut self.rest, behind)));
            }
            self.searched = self.rest.len();
            if self.rest.len() > LINE_BYTES_MAX {
                let number = self.number + 1;
                let what = format!("line {number} has more than {LINE_BYTES_MAX} bytes");
                return Err(Problem::bad_request(what));
            }
            if self.has_ended {
                self.searched = 0;
                let bytes = std::mem::take(&mut self.rest);
                return Ok(Some(bytes).filter(|bytes| !bytes.is_empty()));
            }
            self.read().await?;
        }
    }

    async fn read(&mut self) -> Result<(), Problem> {
        match self.body.next().await {
            Some(Ok(bytes)) => self.rest.extend_from_slice(&bytes),
            Some(Err(error)) => {
                let what = format!("the body ended early: {error}");
                return Err(Problem::bad_request(what));
            }
            None => self.has_ended = true,
        }
        Ok(())
    }
}

/// Messages that are stored together.
#[derive(Default)]
struct Batch {
    messages: Vec<RetainedMessage>,
    bytes: usize,
}

impl Batch {
    fn add(&mut self, line: &NumberedLine) -> Result<(), Problem> {
        let read = serde_json::from_slice::<RetainedLine>(&line.bytes);
        let read = read.map_err(|error| error.to_string());
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

    /// Stores the messages; returns their number.
    async fn store(&mut self, api: ApiState, before: usize) -> Result<usize, Problem> {
        self.bytes = 0;
        let messages = std::mem::take(&mut self.messages);
        let wanted = messages.len();
        if wanted == 0 {
            return Ok(0);
        }
        let stored = api
            .query(move |queries| queries.store_retained(&messages))
            .await;
        let stored = stored.map_err(|problem| {
            let Problem { detail, .. } = &problem;
            let detail = format!("{detail}; {before} messages are imported");
            Problem { detail, ..problem }
        })?;
        if stored < wanted {
            let done = before + stored;
            return Err(Problem::new(
                StatusCode::INSUFFICIENT_STORAGE,
                "import incomplete",
                format!(
                    "{done} messages are imported; for the next one there is no room \
                     (limits.retained_messages, limits.retained_bytes, limits.memory or the disk)"
                ),
                "raise the limit or free space, and import again",
            ));
        }
        Ok(stored)
    }
}

/// Parameters of a removal.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveParameters {
    /// Filter that the topics match.
    filter: String,
    /// Only count them.
    #[serde(default)]
    dry_run: bool,
}

/// The effect of a removal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
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

/// Removes the messages that match a filter, portion by portion, without a message to subscribers.
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
    Ok(Json(api.audited(&sender.caller, change, make).await?))
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

    use super::*;

    fn lines(chunks: &[&str]) -> Result<Vec<(usize, String)>, Problem> {
        let chunks: Vec<Result<String, Infallible>> =
            chunks.iter().map(|chunk| Ok((*chunk).to_owned())).collect();
        let mut lines = Lines::new(Body::from_stream(stream::iter(chunks)));
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
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

    #[test]
    fn a_line_without_an_end_is_refused() {
        let part = "x".repeat(1 << 20);
        let refused = lines(&[part.as_str(); 5]).unwrap_err();
        assert!(
            refused.detail.starts_with("line 1 has more than"),
            "{refused:?}"
        );
    }
}
