//! `/trace`: the packets of some seconds, as JSON lines or as pcapng; or as server-sent events
//! while they pass.

use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use thrum_access::Network;
use thrum_broker::{LiveTrace, TraceItem, TraceRequest, TraceSubject};
use tokio::time::sleep;
use utoipa::ToSchema;

use super::entrance::Sender;
use super::openapi::{Asked, Audited};
use super::request::{Parameters, parsed};
use super::stream::{Watcher, wants_events};
use super::{ApiState, Problem, trace_stream};
use crate::audit::Look;
use crate::login::{Caller, Refusal, Scope};
use crate::trace::{Pcapng, line};

/// Seconds of a trace without `seconds`.
const SECONDS: u64 = 5;
/// Most seconds: the request ends after 15.
const SECONDS_MAX: u64 = 10;
/// Packets of a trace without `packets`.
const PACKETS: u64 = 1000;
/// Most packets: a line of JSON takes some 400 bytes, and all are in memory at once.
const PACKETS_MAX: u64 = 10_000;
/// Most bytes of packets, for the same reason.
const BYTES_MAX: u64 = 4 * 1024 * 1024;
/// The trace is looked at at this interval.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// What to trace, and how much of it.
#[derive(Debug, Default, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TraceParameters {
    /// All packets of the client with this identifier.
    client: Option<String>,
    /// PUBLISH packets of all clients whose topic matches this filter.
    topic: Option<String>,
    /// All packets of clients at this address or in this network.
    address: Option<String>,
    /// With payloads.
    payloads: bool,
    /// The trace ends after so many seconds: up to 10, and 5 if absent; as a stream of events up to
    /// 3,600, and 60 if absent.
    #[param(minimum = 1, maximum = 3600)]
    seconds: Option<u64>,
    /// The trace ends after so many packets: up to 10,000, as a stream of events up to 1,000,000,
    /// and 1,000 if absent.
    #[param(minimum = 1, maximum = 1_000_000)]
    packets: Option<u64>,
    /// Form of the answer; `jsonl` if absent.
    #[param(inline)]
    format: Format,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Jsonl,
    Pcapng,
}

impl TraceParameters {
    fn request(&self, bounds: Bounds) -> Result<TraceRequest, Problem> {
        let subject = match (&self.client, &self.topic, &self.address) {
            (Some(client), None, None) => TraceSubject::Client(client.as_str().into()),
            (None, Some(topic), None) => TraceSubject::Topic(topic.as_str().into()),
            (None, None, Some(address)) => {
                TraceSubject::Address(parsed::<Network>("address", address)?)
            }
            _ => {
                let what = "a trace is about one of client, topic and address";
                return Err(Problem::bad_request(what));
            }
        };
        let seconds = self.seconds.unwrap_or(bounds.seconds);
        let seconds = within("seconds", seconds, bounds.seconds_max)?;
        let packets = self.packets.unwrap_or(PACKETS);
        Ok(TraceRequest {
            subject,
            payloads: self.payloads,
            time: Duration::from_secs(seconds),
            packets_max: within("packets", packets, bounds.packets_max)?,
            bytes_max: bounds.bytes_max,
        })
    }
}

fn within(name: &str, number: u64, most: u64) -> Result<u64, Problem> {
    if !(1..=most).contains(&number) {
        let what = format!("{name} is a number from 1 to {most}, not {number}");
        return Err(Problem::bad_request(what));
    }
    Ok(number)
}

/// Whether the answer is a stream of events, and the bounds that follow.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    seconds: u64,
    seconds_max: u64,
    packets_max: u64,
    bytes_max: u64,
}

/// Of an answer that is in memory until the trace has ended.
const WHOLE: Bounds = Bounds {
    seconds: SECONDS,
    seconds_max: SECONDS_MAX,
    packets_max: PACKETS_MAX,
    bytes_max: BYTES_MAX,
};
/// Of a stream: as many packets as its share of 100 KB/s lets through in an hour.
const STREAMED: Bounds = Bounds {
    seconds: 60,
    seconds_max: 3600,
    packets_max: 1_000_000,
    bytes_max: 1 << 30,
};

/// Traces packets of a client, of an address or about a topic for some seconds.
///
/// The answer follows when the trace has ended; with `Accept: text/event-stream` it begins at once,
/// and may take an hour and 1,000,000 packets. Payloads need the scope `messages:read` as well, and
/// are a line of the audit log.
#[utoipa::path(
    get,
    path = "/trace",
    operation_id = "trace_packets",
    tag = "diagnosis",
    params(TraceParameters),
    responses(
        (status = 200, description = "The packets, as lines of JSON or as a capture.", content(
            (String = "application/jsonl"),
            (String = "application/x-pcapng"),
            (String = "text/event-stream"),
        )),
        Asked,
        Audited,
    ),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    sender: Sender,
    headers: HeaderMap,
    Parameters(parameters): Parameters<TraceParameters>,
) -> Result<Response, Problem> {
    if parameters.payloads && !sender.caller.may(Scope::MessagesRead) {
        return Err(Refusal::NoScope(Scope::MessagesRead).into());
    }
    let is_stream = wants_events(&headers);
    let request = parameters.request(if is_stream { STREAMED } else { WHOLE })?;
    if is_stream {
        if parameters.format == Format::Pcapng {
            let what = "a stream of events has no format pcapng; ask without \
                        Accept: text/event-stream";
            return Err(Problem::bad_request(what));
        }
        let mut needed = vec![Scope::ClientsRead];
        needed.extend(parameters.payloads.then_some(Scope::MessagesRead));
        let caller = sender.caller.clone();
        let watcher = Watcher::begin(&api, sender, needed)?;
        note_look(&api, &caller, &request).await?;
        let live = api.query(move |queries| queries.trace(&request)).await?;
        return Ok(trace_stream::events_of(live, watcher, parameters.payloads));
    }
    note_look(&api, &sender.caller, &request).await?;
    let live = api.query(move |queries| queries.trace(&request)).await?;
    let (kind, bytes) = match parameters.format {
        Format::Jsonl => ("application/jsonl", lines(live, parameters.payloads).await?),
        Format::Pcapng => ("application/x-pcapng", capture(live).await),
    };
    Ok(([(CONTENT_TYPE, kind)], bytes).into_response())
}

/// Writes down whose payloads a trace shows, before it does.
async fn note_look(api: &ApiState, caller: &Caller, request: &TraceRequest) -> Result<(), Problem> {
    if !request.payloads {
        return Ok(());
    }
    let subject = match &request.subject {
        TraceSubject::Client(client_id) => format!("client {client_id}"),
        TraceSubject::Topic(filter) => format!("topic {filter}"),
        TraceSubject::Address(network) => format!("address {network}"),
    };
    let look = Look {
        by: "trace",
        subjects: vec![subject],
    };
    api.looks(caller, look).await
}

/// The lines of a trace, up to its end. The trace ends early if the request does.
async fn lines(mut live: LiveTrace, payloads: bool) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    while let Some(item) = next(&mut live).await {
        let line = serde_json::to_string(&line(&item, payloads));
        let line = line.map_err(|error| Problem::bad_request(error.to_string()))?;
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
    }
    Ok(bytes)
}

async fn capture(mut live: LiveTrace) -> Vec<u8> {
    let mut pcapng = Pcapng::new();
    while let Some(item) = next(&mut live).await {
        pcapng.add(&item);
    }
    pcapng.take()
}

/// What the trace tells next; none behind its end.
async fn next(live: &mut LiveTrace) -> Option<TraceItem> {
    while !live.has_ended() {
        if let Some(item) = live.poll() {
            return Some(item);
        }
        sleep(POLL_INTERVAL).await;
    }
    None
}
