//! `/clients/{id}/timeline`: the last events of a client, in words and as data.

mod words;

pub(super) use words::{dropped, span};

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{ClientEvent, EndCause, RefusalCause, SessionEnd, drop_reason_name};
use utoipa::ToSchema;

use super::openapi::{Asked, NotFound};
use super::request::ClientId;
use super::{ApiState, Problem};
use crate::timestamp::timestamp;

/// The last events of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Timeline {
    /// Client identifier.
    pub client_id: String,
    /// At most 200 events, the oldest first.
    pub events: Vec<TimelineEvent>,
    /// Events before them that are known to be forgotten; there may be others.
    pub forgotten: u64,
}

/// An event, or several that repeat each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimelineEvent {
    /// When it happened, or began to happen.
    #[schema(format = DateTime)]
    pub at: String,
    /// When it happened last.
    #[schema(format = DateTime)]
    pub last_at: String,
    /// How often it happened; messages, if they were dropped.
    pub count: u64,
    /// Events of such kinds that happened beside it and are not listed.
    pub others: u32,
    /// The event in words.
    pub text: String,
    /// The event as data.
    #[serde(flatten)]
    pub event: Event,
}

/// An event of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The broker accepted a CONNECT.
    Connected(NewConnection),
    /// The broker refused a CONNECT with this client identifier.
    Refused {
        /// Address and port, or the kind of connection if it has none.
        peer: String,
        /// Reason code of 5.0.
        reason_code: u8,
        /// Reason in words.
        reason: String,
    },
    /// The connection ended.
    Disconnected {
        /// Why.
        cause: Cause,
        /// Seconds that it lasted.
        connected_secs: u32,
        /// The session ended with it.
        session_ended: bool,
    },
    /// The session ended, while the client was disconnected.
    SessionEnded {
        /// Why.
        cause: SessionEnding,
    },
    /// The broker granted a filter.
    Subscribed {
        /// The filter, with the mount point.
        filter: String,
        /// Granted quality of service.
        qos: u8,
        /// The rules allow only some of its topics.
        in_part: bool,
    },
    /// The broker refused a filter.
    SubscriptionRefused {
        /// The filter, with the mount point.
        filter: String,
        /// Reason code of 5.0.
        reason_code: u8,
        /// Why.
        cause: Refusal,
    },
    /// A subscription ended.
    Unsubscribed {
        /// The filter, with the mount point.
        filter: String,
    },
    /// The rules have changed, and no longer allow a subscription.
    SubscriptionRevoked {
        /// The filter, with the mount point.
        filter: String,
    },
    /// The broker refused messages on a topic.
    PublishRefused {
        /// The topic as the client wrote it.
        topic: String,
        /// Why.
        cause: Refusal,
    },
    /// Messages were not delivered to the client.
    Dropped {
        /// The reason, as in `$SYS/broker/publish/messages/dropped`.
        reason: String,
    },
    /// The client was not read for a time, because it had used up a rate.
    Slowed {
        /// Key of the limit in the configuration.
        limit: String,
    },
    /// The will was published.
    WillPublished {
        /// Its topic.
        topic: String,
    },
    /// The will was not published.
    WillDropped {
        /// Its topic.
        topic: String,
        /// Reason in words.
        reason: String,
    },
}

/// A connection that the broker has accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewConnection {
    /// Address and port, or the kind of connection if it has none.
    pub peer: String,
    /// Name of the listener.
    pub listener: String,
    /// `3.1`, `3.1.1` or `5.0`.
    pub protocol_version: String,
    /// The connection resumed an existing session.
    pub session_present: bool,
    /// Keep alive in seconds; 0 is no limit.
    pub keep_alive_secs: u16,
    /// Seconds that the session outlives its connection; null: it does not expire.
    pub session_expiry_secs: Option<u32>,
}

/// Why a connection ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Cause {
    /// The client sent DISCONNECT.
    ByClient {
        /// It asked for its will to be published.
        with_will: bool,
    },
    /// The connection was lost without DISCONNECT.
    Lost,
    /// Nothing was received for one and a half times the keep alive.
    KeepAlive {
        /// Keep alive in seconds.
        keep_alive_secs: u16,
        /// Milliseconds since the last packet.
        silent_millis: u64,
        /// Milliseconds that it exceeded one and a half times the keep alive.
        late_millis: u64,
    },
    /// Another connection took over the session.
    TakenOver {
        /// Address and port of the other connection, or its kind if it has none.
        by: String,
    },
    /// The broker closed the connection.
    ByBroker {
        /// Reason code of 5.0.
        reason_code: u8,
        /// Reason in words.
        reason: String,
    },
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum SessionEnding {
    /// Its client stayed away for too long.
    Expired {
        /// Session expiry in seconds.
        session_expiry_secs: u32,
    },
    /// A clean start replaced it.
    CleanStart,
    /// The operator ended it.
    ByOperator,
}

/// Why the broker refused a packet or a part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Refusal {
    /// The rules do not allow it.
    Rule {
        /// The rule and its place, or that no rule allows it.
        rule: String,
    },
    /// A limit is reached.
    Limit {
        /// Key of the limit in the configuration.
        limit: String,
    },
    /// Another reason.
    Other {
        /// Reason in words.
        reason: String,
    },
}

/// Shows the last events of a client with their causes, also of a client that has gone.
#[utoipa::path(
    get,
    path = "/clients/{id}/timeline",
    operation_id = "show_client_timeline",
    tag = "diagnosis",
    params(ClientId),
    responses((status = 200, body = Timeline), NotFound, Asked),
)]
pub(super) async fn show(
    State(api): State<ApiState>,
    ClientId(client_id): ClientId,
) -> Result<Json<Timeline>, Problem> {
    let name = client_id.clone();
    let found = api.query(move |queries| queries.timeline(&name)).await?;
    if found.events.is_empty() && !found.has_session {
        return Err(Problem::no_events(&client_id));
    }
    Ok(Json(Timeline {
        client_id,
        events: found.events.into_iter().map(TimelineEvent::from).collect(),
        forgotten: found.forgotten,
    }))
}

impl From<thrum_broker::TimelineEvent> for TimelineEvent {
    fn from(event: thrum_broker::TimelineEvent) -> Self {
        Self {
            at: timestamp(event.at),
            last_at: timestamp(event.last),
            count: event.count,
            others: event.others,
            text: words::words(&event),
            event: event.event.into(),
        }
    }
}

impl From<ClientEvent> for Event {
    fn from(event: ClientEvent) -> Self {
        match event {
            ClientEvent::Connected(connection) => Self::Connected(connection.into()),
            ClientEvent::Refused { peer, reason, what } => Self::Refused {
                peer: peer.to_string(),
                reason_code: reason as u8,
                reason: what.to_owned(),
            },
            ClientEvent::Disconnected {
                cause,
                connected_secs,
                session_ended,
            } => Self::Disconnected {
                cause: cause.into(),
                connected_secs,
                session_ended,
            },
            ClientEvent::SessionEnded(end) => Self::SessionEnded { cause: end.into() },
            ClientEvent::Subscribed {
                filter,
                qos,
                in_part,
            } => Self::Subscribed {
                filter: filter.into(),
                qos: qos.as_u8(),
                in_part,
            },
            ClientEvent::SubscriptionRefused {
                filter,
                reason,
                why,
            } => Self::SubscriptionRefused {
                filter: filter.into(),
                reason_code: reason as u8,
                cause: why.into(),
            },
            ClientEvent::Unsubscribed { filter } => Self::Unsubscribed {
                filter: filter.into(),
            },
            ClientEvent::SubscriptionRevoked { filter } => Self::SubscriptionRevoked {
                filter: filter.into(),
            },
            ClientEvent::PublishRefused { topic, why } => Self::PublishRefused {
                topic: topic.into(),
                cause: why.into(),
            },
            ClientEvent::Dropped(reason) => Self::Dropped {
                reason: drop_reason_name(reason).to_owned(),
            },
            ClientEvent::Slowed { limit } => Self::Slowed {
                limit: limit.to_owned(),
            },
            ClientEvent::WillPublished { topic } => Self::WillPublished {
                topic: topic.into(),
            },
            ClientEvent::WillDropped { topic, why } => Self::WillDropped {
                topic: topic.into(),
                reason: why.to_owned(),
            },
        }
    }
}

impl From<thrum_broker::NewConnection> for NewConnection {
    fn from(connection: thrum_broker::NewConnection) -> Self {
        let expiry_secs = connection.expiry_secs;
        Self {
            peer: connection.peer.to_string(),
            listener: connection.listener.to_string(),
            protocol_version: connection.version.name().to_owned(),
            session_present: connection.session_present,
            keep_alive_secs: connection.keep_alive_secs,
            session_expiry_secs: Some(expiry_secs).filter(|secs| *secs != u32::MAX),
        }
    }
}

impl From<EndCause> for Cause {
    fn from(cause: EndCause) -> Self {
        match cause {
            EndCause::ByClient { with_will } => Self::ByClient { with_will },
            EndCause::Lost => Self::Lost,
            EndCause::KeepAlive {
                keep_alive_secs,
                silent_millis,
            } => Self::KeepAlive {
                keep_alive_secs,
                silent_millis,
                late_millis: silent_millis.saturating_sub(u64::from(keep_alive_secs) * 1500),
            },
            EndCause::TakenOver { by } => Self::TakenOver { by: by.to_string() },
            EndCause::ByBroker { reason, what } => Self::ByBroker {
                reason_code: reason as u8,
                reason: what.to_owned(),
            },
        }
    }
}

impl From<SessionEnd> for SessionEnding {
    fn from(end: SessionEnd) -> Self {
        match end {
            SessionEnd::Expired { expiry_secs } => Self::Expired {
                session_expiry_secs: expiry_secs,
            },
            SessionEnd::CleanStart => Self::CleanStart,
            SessionEnd::ByOperator => Self::ByOperator,
        }
    }
}

impl From<RefusalCause> for Refusal {
    fn from(cause: RefusalCause) -> Self {
        match cause {
            RefusalCause::Rule(rule) => Self::Rule { rule: rule.into() },
            RefusalCause::Limit(limit) => Self::Limit {
                limit: limit.to_owned(),
            },
            RefusalCause::Other(reason) => Self::Other {
                reason: reason.to_owned(),
            },
        }
    }
}
