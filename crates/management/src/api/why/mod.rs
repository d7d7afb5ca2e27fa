//! `/why`: measures some seconds, and ranks what makes messages slow and what drops them.

mod away;
mod drops;
mod evidence;
mod latency;
mod limitations;
mod measured;
mod unmeasured;
mod words;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thrum_broker::{DropQuery, ROWS_MAX, WaitingSubject, WildcardText, machine_figures};
use tokio::time::sleep;
use utoipa::ToSchema;

pub(crate) use self::words::quoted;

use self::away::Receivers;
use self::limitations::{Limitation, limitations};
use self::measured::{Measured, Reading};
use super::openapi::{Asked, NotFound};
use super::request::Body;
use super::time_limit::TimeLimit;
use super::{ApiState, Problem};

/// Measurements at a time, at each entrance: each looks at all clients three times.
pub(super) const WHY_MAX: usize = 2;
/// Seconds of a measurement without `seconds`.
const SECONDS: u64 = 10;
/// Most seconds of a measurement.
const SECONDS_MAX: u64 = 10;
/// Looks at what waits: at the beginning, in the middle and at the end.
const READINGS: u32 = 3;
/// Bytes of a client identifier that drops are selected by: a pattern has a limit.
const NAME_BYTES_MAX: usize = 500;

/// What to look into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhyWhat {
    /// Latency.
    Slow,
    /// Dropped messages.
    Drops,
}

/// A question why.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct WhyQuestion {
    /// `slow` or `drops`; both if absent.
    pub what: Option<WhyWhat>,
    /// About the messages of this client only.
    pub client: Option<String>,
    /// About the clients with a subscription that matches this topic or filter only.
    pub topic: Option<String>,
    /// Seconds of the measurement, from 1 to 10; 10 if absent.
    #[schema(minimum = 1, maximum = 10)]
    pub seconds: Option<u64>,
}

/// What makes messages slow, and what drops them.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Why {
    /// What was asked about, in words.
    pub about: String,
    /// Seconds of the measurement.
    pub seconds: f64,
    /// Causes of latency; null if it was not asked for.
    pub latency: Option<LatencyCauses>,
    /// Causes of dropped messages; null if they were not asked for.
    pub drops: Option<DropCauses>,
    /// What limits the answer, in words.
    pub notes: Vec<String>,
    /// The same as data, in the same order.
    #[serde(default)]
    pub limitations: Vec<WhyLimitation>,
}

/// What a measurement of latency has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LatencyState {
    /// Some cause makes messages slow.
    Slow,
    /// Messages were delivered, and none of them is slow.
    NotSlow,
    /// No message was delivered, so that nothing was measured.
    NotMeasured,
}

/// What a measurement of dropped messages has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DropsState {
    /// Messages were dropped.
    Dropping,
    /// None was dropped.
    NotDropping,
    /// The workers did not answer.
    NotMeasured,
}

/// Where the time of messages went.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LatencyCauses {
    /// The answer in a word.
    pub state: LatencyState,
    /// Messages that were dropped in a second: with them not all is well, though nothing is slow.
    pub dropped_per_second: f64,
    /// The answer in a sentence.
    pub verdict: String,
    /// Messages that were delivered meanwhile, about.
    pub messages: u64,
    /// Deliveries whose time was measured.
    pub measured_deliveries: u64,
    /// Mean time of a message within the measurement, of those that were delivered and those that
    /// still wait, in milliseconds.
    pub mean_ms: f64,
    /// Median of the measured deliveries, in milliseconds; 0 if there are none.
    pub p50_ms: f64,
    /// Their 99th percentile; 0 if there are none.
    pub p99_ms: f64,
    /// The causes, the largest first; none if nothing is slow.
    pub causes: Vec<WhyCause>,
    /// What is not the cause.
    pub not_causes: Vec<NotCause>,
    /// What was not measured, and may be a cause.
    #[serde(default)]
    pub not_measured: Vec<NotCause>,
}

/// Why messages were dropped.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropCauses {
    /// The answer in a word.
    pub state: DropsState,
    /// The answer in a sentence.
    pub verdict: String,
    /// Messages that were dropped meanwhile, with those that the rules denied.
    pub dropped: u64,
    /// The same in a second.
    pub dropped_per_second: f64,
    /// The causes, the largest first.
    pub causes: Vec<WhyCause>,
    /// What is not the cause.
    pub not_causes: Vec<NotCause>,
    /// What was not measured, and may be a cause.
    #[serde(default)]
    pub not_measured: Vec<NotCause>,
}

/// A cause.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyCause {
    /// Its name, which does not change between versions.
    pub name: String,
    /// Its part of the time or of the dropped messages, from 0 to 1; the shares of all causes and
    /// of what is not the cause sum to 1.
    pub share: f64,
    /// What it is, with figures.
    pub sentence: String,
    /// The figures.
    pub evidence: BTreeMap<String, Value>,
    /// What to do about it.
    pub remedy: String,
    /// Lines for a shell that do it; none if no single one does.
    #[serde(default)]
    pub commands: Vec<String>,
    /// The same as requests of this API.
    #[serde(default)]
    pub requests: Vec<String>,
}

/// Something that is not the cause, or was not measured.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NotCause {
    /// Its name, which does not change between versions.
    pub name: String,
    /// Its part, from 0 to 1.
    pub share: f64,
    /// The figure that tells, or why there is none.
    pub sentence: String,
    /// The figures.
    #[serde(default)]
    pub evidence: BTreeMap<String, Value>,
}

/// Something that limits the answer, as data.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct WhyLimitation {
    /// Its name, which does not change between versions.
    pub name: String,
    /// The figures.
    pub evidence: BTreeMap<String, Value>,
}

impl WhyQuestion {
    fn subject(&self) -> Result<WaitingSubject, Problem> {
        match (&self.client, &self.topic) {
            (None, None) => Ok(WaitingSubject::Node),
            (Some(client), None) => Ok(WaitingSubject::Client(client.as_str().into())),
            (None, Some(topic)) => Ok(WaitingSubject::Topic(topic.as_str().into())),
            (Some(_), Some(_)) => {
                let what = "a question is about one client, or about one topic, not both";
                Err(Problem::bad_request(what))
            }
        }
    }

    fn time(&self) -> Result<Duration, Problem> {
        let seconds = self.seconds.unwrap_or(SECONDS);
        if (1..=SECONDS_MAX).contains(&seconds) {
            return Ok(Duration::from_secs(seconds));
        }
        let what = format!("seconds is a number from 1 to {SECONDS_MAX}, not {seconds}");
        Err(Problem::bad_request(what))
    }

    fn about(&self) -> String {
        match (&self.client, &self.topic) {
            (Some(client), _) => format!("the messages of the client {client}"),
            (None, Some(topic)) => format!("the messages to the subscribers of {topic}"),
            (None, None) => "all messages of this broker".to_owned(),
        }
    }

    fn drops(&self) -> DropQuery {
        let client = self.client.as_deref().map(|client| {
            let name = known_name(client);
            if name.len() == client.len() {
                WildcardText::new(name)
            } else {
                WildcardText::new(&format!("{name}*"))
            }
        });
        DropQuery {
            client,
            topic: self.topic.clone(),
            limit: ROWS_MAX,
            ..DropQuery::default()
        }
    }
}

/// The beginning of a client identifier that selects its drops.
fn known_name(client: &str) -> &str {
    &client[..client.floor_char_boundary(NAME_BYTES_MAX)]
}

/// Measures some seconds, and ranks what makes messages slow and what drops them.
///
/// The answer follows at the end of the measurement, which ends early if the request does. Two
/// measurements run at a time.
#[utoipa::path(
    post,
    path = "/why",
    operation_id = "ask_why",
    tag = "diagnosis",
    request_body = WhyQuestion,
    responses((status = 200, body = Why), NotFound, Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    limit: TimeLimit,
    Body(question): Body<WhyQuestion>,
) -> Result<Json<Why>, Problem> {
    let (subject, time) = (question.subject()?, question.time()?);
    // A measurement has its own limit, and each look the time of the broker for an answer.
    limit.lift();
    let Ok(permit) = api.why_permits.clone().try_acquire_owned() else {
        return Err(busy(time));
    };
    let mut readings = Vec::new();
    for number in 0..READINGS {
        if number > 0 {
            sleep(time / (READINGS - 1)).await;
        }
        let reading = read(&api, &question, &subject).await?;
        if number == 0 {
            check(&question, &reading)?;
        }
        readings.push(reading);
    }
    drop(permit);
    let is_whole = question.client.is_none() && question.topic.is_none();
    let mut measured = Measured::between(&readings, is_whole);
    measured.receivers = receivers(api, &measured).await?;
    Ok(Json(answer(&question, measured)))
}

/// The sessions of those for which most messages were dropped.
async fn receivers(api: ApiState, measured: &Measured) -> Result<Receivers, Problem> {
    if measured.drops.is_empty() {
        return Ok(Receivers::default());
    }
    let drops = measured.drops.clone();
    let found = api
        .query(move |queries| Receivers::look_up(queries, &drops))
        .await;
    match found {
        // Without them all drops are those of connected clients. What was measured counts more.
        Err(problem) if problem.status != StatusCode::SERVICE_UNAVAILABLE.as_u16() => {
            Ok(Receivers::default())
        }
        other => other,
    }
}

/// Too many measurements run.
fn busy(time: Duration) -> Problem {
    let mut problem = Problem::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too many measurements",
        format!("{WHY_MAX} measurements run already, and each looks at all clients"),
        "ask again when one of them has ended",
    );
    problem.retry_after_secs = Some(time.as_secs());
    problem
}

/// Whether there is something to measure.
fn check(question: &WhyQuestion, reading: &Reading) -> Result<(), Problem> {
    match (&question.client, &reading.waiting) {
        (Some(client), Some(waiting)) if waiting.sessions == 0 => Err(Problem::no_client(client)),
        _ => Ok(()),
    }
}

async fn read(
    api: &ApiState,
    question: &WhyQuestion,
    subject: &WaitingSubject,
) -> Result<Reading, Problem> {
    let (subject, dropped) = (subject.clone(), question.drops());
    let looked = api
        .clone()
        .query(move |queries| {
            let waiting = queries.waiting(&subject)?;
            let drops = queries.drops(&dropped)?;
            Ok((waiting, drops.page.rows))
        })
        .await;
    let (waiting, drops) = match looked {
        Ok((waiting, mut drops)) => {
            if let Some(client) = &question.client {
                // A star in the identifier stands for itself here.
                drops.retain(|row| known_name(&row.client) == known_name(client));
            }
            (Some(waiting), drops)
        }
        // A broker that is too late to answer is measured without it.
        Err(problem) if problem.status == StatusCode::GATEWAY_TIMEOUT.as_u16() => {
            (None, Vec::new())
        }
        Err(problem) => return Err(problem),
    };
    Ok(Reading {
        at: api.queries.uptime(),
        figures: api.queries.figures(),
        machine: machine_figures(),
        waiting,
        drops,
    })
}

/// The answer from what was measured.
fn answer(question: &WhyQuestion, mut measured: Measured) -> Why {
    let is_whole = question.client.is_none() && question.topic.is_none();
    let drops = drops::causes(&measured, is_whole);
    measured.dropped = drops.dropped;
    let latency = latency::causes(&measured);
    let wants = |what| question.what.is_none_or(|wanted| wanted == what);
    let limitations = limitations(question, &measured, &latency.causes);
    Why {
        about: question.about(),
        seconds: measured.millis / 1000.0,
        notes: limitations.iter().map(Limitation::words).collect(),
        limitations: limitations.into_iter().map(WhyLimitation::from).collect(),
        latency: wants(WhyWhat::Slow).then_some(latency),
        drops: wants(WhyWhat::Drops).then_some(drops),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_is_about_one_thing_and_has_a_limit() {
        let both = WhyQuestion {
            client: Some("a".to_owned()),
            topic: Some("t".to_owned()),
            ..WhyQuestion::default()
        };
        assert_eq!(both.subject().unwrap_err().status, 400);
        for (seconds, is_valid) in [(0, false), (1, true), (10, true), (11, false)] {
            let question = WhyQuestion {
                seconds: Some(seconds),
                ..WhyQuestion::default()
            };
            assert_eq!(question.time().is_ok(), is_valid, "{seconds}");
        }
    }
}
