//! `/explain/…`: what would happen to a packet of a client, step by step, in words and as data.
//! Nothing is done.

mod login;
mod words;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{
    DropsAnswer, Foreseen, GroupAnswer, PublishAnswer, PublishQuestion, QueueState,
    SessionReceiver, Step, StepOutcome, SubscribeExplained, SubscribeQuestion, drop_reason_name,
};
use thrum_codec::QoS;
use utoipa::ToSchema;

pub use login::ExplainedLogin;

use super::client_detail::{Dropped, Queue};
use super::openapi::{Asked, NotFound};
use super::request::Body;
use super::timeline::TimelineEvent;
use super::{ApiState, Problem};

/// Largest payload that may be asked about: more than a packet of MQTT can have.
const PAYLOAD_BYTES_MAX: usize = 268_435_455;

/// A PUBLISH to be explained.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PublishToExplain {
    /// Client identifier.
    pub client_id: String,
    /// The topic as the client writes it.
    pub topic: String,
    /// Quality of service; 0 if absent.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub qos: u8,
    /// It is to be retained.
    #[serde(default)]
    pub retain: bool,
    /// Bytes of the payload; 0 if absent.
    #[serde(default)]
    pub payload_bytes: usize,
}

/// A filter to be explained.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubscribeToExplain {
    /// Client identifier.
    pub client_id: String,
    /// The filter as the client writes it.
    pub filter: String,
    /// Quality of service; 0 if absent.
    #[serde(default)]
    #[schema(maximum = 2)]
    pub qos: u8,
}

/// A client whose drops are to be explained.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DropsToExplain {
    /// Client identifier.
    pub client_id: String,
}

/// A step of a packet's way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ExplainedStep {
    /// What is looked at: `access`, `name`, `limit`, `mount_point`, `reserved`, `disk`, `sinks`.
    pub check: String,
    /// `passes`, `refuses` or `depends` (on an answer that is not known now).
    pub outcome: String,
    /// Reason code of 5.0; null unless it refuses.
    pub reason_code: Option<u8>,
    /// The step in words.
    pub text: String,
}

/// What would happen to a PUBLISH.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct PublishExplanation {
    /// It would be accepted; null if that depends on an answer that is not known now.
    pub accepted: Option<bool>,
    /// How the client was admitted, and as whom.
    #[serde(default)]
    pub login: Option<ExplainedLogin>,
    /// The steps up to the receivers; the last one may refuse it.
    pub steps: Vec<ExplainedStep>,
    /// The topic by which receivers are found, with the mount point; null if it is refused.
    pub topic: Option<String>,
    /// Reasons why the client is slowed or not read now, in words.
    pub limited: Vec<String>,
    /// Sessions that it matches, at most 100.
    pub receivers: Vec<ExplainedReceiver>,
    /// Sessions beyond them.
    pub more_receivers: usize,
    /// Subscriptions that it matches, of all of these: one session may have several.
    #[serde(default)]
    pub matching_subscriptions: usize,
    /// Shared groups that it matches.
    pub groups: Vec<ExplainedGroup>,
}

/// A session that a PUBLISH matches.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedReceiver {
    /// Client identifier.
    pub client_id: String,
    /// Its filters that match, with the mount point.
    pub filters: Vec<String>,
    /// Quality of service of the delivery.
    #[schema(maximum = 2)]
    pub qos: u8,
    /// `sent`, `queued`, `queued_for_older`, `held`, `dropped` or `passed_over`: of `dropped` and
    /// `passed_over` the client does not get the message.
    pub outcome: String,
    /// Reason of a drop, as in `$SYS/broker/publish/messages/dropped`; null otherwise.
    pub drop_reason: Option<String>,
    /// The outcome in words.
    pub text: String,
    /// Its queue and window.
    pub queue: ExplainedQueue,
}

/// The queue and the window of a session.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedQueue {
    /// The client is connected.
    pub connected: bool,
    /// The client does not take its output.
    pub congested: bool,
    /// What is in the queue.
    pub queued: Queue,
    /// Its limit.
    pub limit: Queue,
    /// Messages that were sent and not acknowledged.
    pub inflight: usize,
    /// Messages with QoS 1 and 2 that may be sent at once.
    pub free_window: usize,
}

/// A shared group that a PUBLISH matches.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ExplainedGroup {
    /// The filter, with `$share/GROUP/`.
    pub filter: String,
    /// A value of `shared.strategy`.
    pub strategy: String,
    /// Members.
    pub members: usize,
    /// Members whose clients are connected.
    pub connected: usize,
    /// Client identifier of the member that gets the next message of this client; null if that is
    /// left to chance.
    pub next: Option<String>,
    /// The choice in words.
    pub text: String,
}

/// What would happen to a filter.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SubscribeExplanation {
    /// It would be granted; null if that depends on an answer that is not known now.
    pub granted: Option<bool>,
    /// How the client was admitted, and as whom.
    #[serde(default)]
    pub login: Option<ExplainedLogin>,
    /// The steps; the last one may refuse it.
    pub steps: Vec<ExplainedStep>,
    /// The filter with the mount point; null if it is refused before.
    pub filter: Option<String>,
    /// Granted quality of service; null if it is refused.
    #[schema(maximum = 2)]
    pub qos: Option<u8>,
    /// The rules allow only some of its topics: each message is checked.
    pub in_part: bool,
    /// It replaces a subscription.
    pub replaces: bool,
}

/// Which messages a client did not get, and what would happen to the next one.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DropsExplanation {
    /// Client identifier.
    pub client_id: String,
    /// Messages that it did not get since its session began, or since the start of the broker, by
    /// reason.
    pub dropped: Vec<Dropped>,
    /// Its last drops, from its timeline.
    pub last: Vec<TimelineEvent>,
    /// Its queue and window.
    pub queue: ExplainedQueue,
    /// What would happen now to a small message of QoS 0, 1 and 2, in words.
    pub now: Vec<String>,
    /// Reasons why it is slowed or not read now, in words.
    pub limited: Vec<String>,
}

/// Explains what would happen to a PUBLISH of a client, step by step. Nothing is done.
#[utoipa::path(
    post,
    path = "/explain/publish",
    operation_id = "explain_publish",
    tag = "diagnosis",
    request_body = PublishToExplain,
    responses((status = 200, body = PublishExplanation), NotFound, Asked),
)]
pub(super) async fn publish(
    State(api): State<ApiState>,
    Body(asked): Body<PublishToExplain>,
) -> Result<Json<PublishExplanation>, Problem> {
    if asked.payload_bytes > PAYLOAD_BYTES_MAX {
        let what = format!("payload_bytes is at most {PAYLOAD_BYTES_MAX}");
        return Err(Problem::bad_request(what));
    }
    let question = PublishQuestion {
        client_id: asked.client_id.clone(),
        topic: asked.topic,
        qos: quality(asked.qos)?,
        retain: asked.retain,
        payload_bytes: asked.payload_bytes,
    };
    let answer = api
        .query(move |queries| {
            let login = queries.client_login(&question.client_id)?;
            Ok((queries.explain_publish(&question)?, login))
        })
        .await?;
    let (Some(answer), login) = answer else {
        return Err(Problem::no_client(&asked.client_id));
    };
    let mut explanation = PublishExplanation::from(answer);
    explanation.login = login.map(ExplainedLogin::from);
    Ok(Json(explanation))
}

/// Explains what would happen to a SUBSCRIBE of a client, step by step. Nothing is done.
#[utoipa::path(
    post,
    path = "/explain/subscribe",
    operation_id = "explain_subscribe",
    tag = "diagnosis",
    request_body = SubscribeToExplain,
    responses((status = 200, body = SubscribeExplanation), NotFound, Asked),
)]
pub(super) async fn subscribe(
    State(api): State<ApiState>,
    Body(asked): Body<SubscribeToExplain>,
) -> Result<Json<SubscribeExplanation>, Problem> {
    let question = SubscribeQuestion {
        client_id: asked.client_id.clone(),
        filter: asked.filter,
        qos: quality(asked.qos)?,
    };
    let answer = api
        .query(move |queries| {
            let login = queries.client_login(&question.client_id)?;
            Ok((queries.explain_subscribe(&question)?, login))
        })
        .await?;
    let (Some(answer), login) = answer else {
        return Err(Problem::no_client(&asked.client_id));
    };
    let mut explanation = SubscribeExplanation::from(answer);
    explanation.login = login.map(ExplainedLogin::from);
    Ok(Json(explanation))
}

/// Explains which messages a client did not get, and what would happen to the next one.
#[utoipa::path(
    post,
    path = "/explain/drops",
    operation_id = "explain_drops",
    tag = "diagnosis",
    request_body = DropsToExplain,
    responses((status = 200, body = DropsExplanation), NotFound, Asked),
)]
pub(super) async fn drops(
    State(api): State<ApiState>,
    Body(asked): Body<DropsToExplain>,
) -> Result<Json<DropsExplanation>, Problem> {
    let name = asked.client_id.clone();
    let found = api
        .query(move |queries| Ok((queries.explain_drops(&name)?, queries.timeline(&name)?)))
        .await?;
    let (Some(answer), timeline) = found else {
        return Err(Problem::no_client(&asked.client_id));
    };
    let is_drop = |event: &thrum_broker::TimelineEvent| {
        matches!(event.event, thrum_broker::ClientEvent::Dropped(_))
    };
    let last = timeline.events.into_iter().filter(is_drop);
    Ok(Json(explained(
        asked.client_id,
        &answer,
        last.map(TimelineEvent::from).collect(),
    )))
}

fn quality(qos: u8) -> Result<QoS, Problem> {
    match qos {
        0 => Ok(QoS::AtMostOnce),
        1 => Ok(QoS::AtLeastOnce),
        2 => Ok(QoS::ExactlyOnce),
        other => Err(Problem::bad_request(format!(
            "qos is 0, 1 or 2, and not {other}"
        ))),
    }
}

fn explained(
    client_id: String,
    answer: &DropsAnswer,
    last: Vec<TimelineEvent>,
) -> DropsExplanation {
    let dropped = answer.dropped.iter().map(|(reason, messages)| Dropped {
        reason: drop_reason_name(*reason).to_owned(),
        messages: *messages,
    });
    let now = answer.now.iter().enumerate();
    DropsExplanation {
        client_id,
        dropped: dropped.collect(),
        last,
        queue: answer.queue.into(),
        now: now
            .map(|(qos, foreseen)| {
                format!("QoS {qos}: {}", words::foreseen(*foreseen, answer.queue))
            })
            .collect(),
        limited: answer.limited.iter().map(ToString::to_string).collect(),
    }
}

/// Whether a packet passes all steps; null if that depends on an answer that is not known now.
fn accepted(steps: &[Step]) -> Option<bool> {
    if steps.iter().any(Step::is_refusal) {
        return Some(false);
    }
    let depends = |step: &Step| step.outcome == StepOutcome::Depends;
    (!steps.iter().any(depends)).then_some(true)
}

impl From<&Step> for ExplainedStep {
    fn from(step: &Step) -> Self {
        let (outcome, reason_code) = match step.outcome {
            StepOutcome::Passes => ("passes", None),
            StepOutcome::Depends => ("depends", None),
            StepOutcome::Refuses(reason) => ("refuses", Some(reason as u8)),
        };
        Self {
            check: words::name(&step.check).to_owned(),
            outcome: outcome.to_owned(),
            reason_code,
            text: words::step(step),
        }
    }
}

impl From<PublishAnswer> for PublishExplanation {
    fn from(answer: PublishAnswer) -> Self {
        Self {
            accepted: accepted(&answer.steps),
            login: None,
            steps: answer.steps.iter().map(ExplainedStep::from).collect(),
            topic: answer.topic.map(Into::into),
            limited: answer.limited.iter().map(ToString::to_string).collect(),
            receivers: answer
                .receivers
                .into_iter()
                .map(ExplainedReceiver::from)
                .collect(),
            more_receivers: answer.more_receivers,
            matching_subscriptions: answer.subscriptions,
            groups: answer
                .groups
                .into_iter()
                .map(ExplainedGroup::from)
                .collect(),
        }
    }
}

impl From<SubscribeExplained> for SubscribeExplanation {
    fn from(answer: SubscribeExplained) -> Self {
        Self {
            granted: accepted(&answer.steps),
            login: None,
            steps: answer.steps.iter().map(ExplainedStep::from).collect(),
            filter: answer.filter.map(Into::into),
            qos: answer.granted.map(QoS::as_u8),
            in_part: answer.in_part,
            replaces: answer.replaces,
        }
    }
}

impl From<SessionReceiver> for ExplainedReceiver {
    fn from(receiver: SessionReceiver) -> Self {
        let (outcome, drop_reason) = match (receiver.passed_over, receiver.foreseen) {
            (Some(_), _) => ("passed_over", None),
            (None, Foreseen::Sent) => ("sent", None),
            (None, Foreseen::Queued) => ("queued", None),
            (None, Foreseen::QueuedForOlder) => ("queued_for_older", None),
            (None, Foreseen::Held) => ("held", None),
            (None, Foreseen::Dropped(reason)) => ("dropped", Some(drop_reason_name(reason))),
        };
        let text = receiver.passed_over.map_or_else(
            || words::foreseen(receiver.foreseen, receiver.queue),
            ToOwned::to_owned,
        );
        Self {
            client_id: receiver.client_id.into(),
            filters: receiver.filters.into_iter().map(Into::into).collect(),
            qos: receiver.qos.as_u8(),
            outcome: outcome.to_owned(),
            drop_reason: drop_reason.map(ToOwned::to_owned),
            text,
            queue: receiver.queue.into(),
        }
    }
}

impl From<QueueState> for ExplainedQueue {
    fn from(state: QueueState) -> Self {
        Self {
            connected: state.is_connected,
            congested: state.is_congested,
            queued: Queue {
                messages: state.messages as u64,
                bytes: state.bytes as u64,
            },
            limit: Queue {
                messages: state.messages_max.into(),
                bytes: state.bytes_max.into(),
            },
            inflight: state.inflight,
            free_window: state.window,
        }
    }
}

impl From<GroupAnswer> for ExplainedGroup {
    fn from(group: GroupAnswer) -> Self {
        let text = words::group(&group);
        Self {
            filter: group.filter.into(),
            strategy: group.strategy.to_owned(),
            members: group.members,
            connected: group.online,
            next: group.next.map(Into::into),
            text,
        }
    }
}
