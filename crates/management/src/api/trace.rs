//! `/trace`: the packets of some seconds, as JSON lines or as pcapng.

use std::time::Duration;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use thrum_access::Network;
use thrum_broker::{LiveTrace, TraceItem, TraceRequest, TraceSubject};
use tokio::time::sleep;

use super::entrance::Sender;
use super::request::{Parameters, parsed};
use super::{ApiState, Problem};
use crate::login::{Refusal, Scope};
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
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct TraceParameters {
    client: Option<String>,
    topic: Option<String>,
    address: Option<String>,
    payloads: bool,
    seconds: Option<u64>,
    packets: Option<u64>,
    format: Format,
}

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Jsonl,
    Pcapng,
}

impl TraceParameters {
    fn request(&self) -> Result<TraceRequest, Problem> {
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
        let seconds = within("seconds", self.seconds.unwrap_or(SECONDS), SECONDS_MAX)?;
        Ok(TraceRequest {
            subject,
            payloads: self.payloads,
            time: Duration::from_secs(seconds),
            packets_max: within("packets", self.packets.unwrap_or(PACKETS), PACKETS_MAX)?,
            bytes_max: BYTES_MAX,
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

pub(super) async fn show(
    State(api): State<ApiState>,
    sender: Sender,
    Parameters(parameters): Parameters<TraceParameters>,
) -> Result<Response, Problem> {
    if parameters.payloads && !sender.caller.may(Scope::MessagesRead) {
        return Err(Refusal::NoScope(Scope::MessagesRead).into());
    }
    let request = parameters.request()?;
    let live = api.query(move |queries| queries.trace(&request)).await?;
    let (kind, bytes) = match parameters.format {
        Format::Jsonl => ("application/jsonl", lines(live, parameters.payloads).await?),
        Format::Pcapng => ("application/x-pcapng", capture(live).await),
    };
    Ok(([(CONTENT_TYPE, kind)], bytes).into_response())
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
