//! Events of clients in words.

use thrum_broker::{
    ClientEvent, DropReason, EndCause, NewConnection, RefusalCause, SessionEnd, TimelineEvent,
};

/// An event in words, without its time.
pub(super) fn words(event: &TimelineEvent) -> String {
    let within = match event.last.saturating_sub(event.at) {
        0 => String::new(),
        millis => format!(" within {}", span(millis)),
    };
    let text = match &event.event {
        ClientEvent::Dropped(reason) => {
            let messages = messages(event.count);
            format!("{messages} dropped{within}: {}", dropped(*reason))
        }
        other if event.count == 1 => happened(other),
        other => format!("{}, {} times{within}", happened(other), event.count),
    };
    match event.others {
        0 => text,
        1 => format!("{text}; and one more subscription or refusal"),
        others => format!("{text}; and {others} more subscriptions or refusals"),
    }
}

/// One event in words.
fn happened(event: &ClientEvent) -> String {
    match event {
        ClientEvent::Connected(connection) => connected(connection),
        ClientEvent::Refused { peer, reason, what } => {
            format!(
                "CONNECT from {peer} refused: {what} (0x{:02x})",
                *reason as u8
            )
        }
        ClientEvent::Disconnected {
            cause,
            connected_secs,
            session_ended,
        } => {
            let after = span(u64::from(*connected_secs) * 1000);
            let end = if *session_ended {
                "; the session ended with the connection"
            } else {
                ""
            };
            format!("disconnected after {after}: {}{end}", ended(*cause))
        }
        ClientEvent::SessionEnded(SessionEnd::Expired { expiry_secs }) => {
            let time = span(u64::from(*expiry_secs) * 1000);
            format!("session expired: the client was away for {time}, its session expiry")
        }
        ClientEvent::SessionEnded(SessionEnd::CleanStart) => {
            "session ended: the client connected with a clean start".to_owned()
        }
        ClientEvent::SessionEnded(SessionEnd::ByOperator) => {
            "session ended by an operator; the audit log has who it was".to_owned()
        }
        ClientEvent::Subscribed {
            filter,
            qos,
            in_part,
        } => {
            let part = if *in_part {
                ", of which the rules allow a part"
            } else {
                ""
            };
            format!("subscribed to {filter} with QoS {}{part}", qos.as_u8())
        }
        ClientEvent::SubscriptionRefused {
            filter,
            reason,
            why,
        } => {
            let code = *reason as u8;
            format!(
                "subscription to {filter} refused (0x{code:02x}): {}",
                refused(why)
            )
        }
        ClientEvent::Unsubscribed { filter } => format!("unsubscribed from {filter}"),
        ClientEvent::SubscriptionRevoked { filter } => {
            format!("subscription to {filter} revoked: the rules have changed")
        }
        ClientEvent::PublishRefused { topic, why } => {
            format!("publish to {topic} refused: {}", refused(why))
        }
        ClientEvent::Dropped(reason) => format!("messages dropped: {}", dropped(*reason)),
        ClientEvent::Slowed { limit } => format!("not read for a time: {limit} was used up"),
        ClientEvent::WillPublished { topic } => format!("will published to {topic}"),
        ClientEvent::WillDropped { topic, why } => format!("will to {topic} not published: {why}"),
    }
}

fn connected(connection: &NewConnection) -> String {
    let NewConnection {
        peer,
        listener,
        version,
        session_present,
        keep_alive_secs,
        expiry_secs,
    } = connection;
    let version = version.name();
    let session = if *session_present {
        "its session goes on"
    } else {
        "a new session"
    };
    let keep_alive = match keep_alive_secs {
        0 => "no keep alive".to_owned(),
        seconds => format!("keep alive {seconds} s"),
    };
    let expiry = match expiry_secs {
        0 => "it ends with the connection".to_owned(),
        &u32::MAX => "it does not expire".to_owned(),
        seconds => format!("it expires after {}", span(u64::from(*seconds) * 1000)),
    };
    format!(
        "connected from {peer} at listener {listener} with MQTT {version}, {keep_alive}; \
         {session}, {expiry}"
    )
}

fn ended(cause: EndCause) -> String {
    match cause {
        EndCause::ByClient { with_will: false } => "the client sent DISCONNECT".to_owned(),
        EndCause::ByClient { with_will: true } => {
            "the client sent DISCONNECT and asked for its will".to_owned()
        }
        EndCause::Lost => "the connection was lost, without DISCONNECT".to_owned(),
        EndCause::KeepAlive {
            keep_alive_secs,
            silent_millis,
        } => {
            let most = u64::from(keep_alive_secs) * 1500;
            format!(
                "keep alive missed: nothing received for {} (keep alive {keep_alive_secs} s, so \
                 at most {})",
                seconds(silent_millis),
                seconds(most)
            )
        }
        EndCause::TakenOver { by } => {
            format!("taken over by a connection with the same client identifier from {by}")
        }
        EndCause::ByBroker { reason, what } => {
            format!(
                "the broker closed the connection: {what} (0x{:02x})",
                reason as u8
            )
        }
    }
}

fn refused(why: &RefusalCause) -> String {
    match why {
        RefusalCause::Rule(rule) => format!("the rules deny it: {rule}"),
        RefusalCause::Limit(limit) => format!("the limit {limit} is reached"),
        RefusalCause::Other(what) => (*what).to_owned(),
    }
}

pub(in crate::api) const fn dropped(reason: DropReason) -> &'static str {
    match reason {
        DropReason::QueueFull => "the queue is full (limits.client.queue)",
        DropReason::QueueDropped => {
            "the oldest of a full queue, for newer ones (limits.client.queue_policy)"
        }
        DropReason::QueueAge => "in the queue for too long (limits.client.queue_age)",
        DropReason::Offline => "QoS 0 while the client was away",
        DropReason::SlowConsumer => {
            "QoS 0 while the client does not take its output (limits.output_bytes)"
        }
        DropReason::TooLarge => "larger than the maximum packet size of the client",
        DropReason::Expired => "expired before they could be delivered",
        DropReason::OutsideMount => "outside of the client's mount point",
        DropReason::NotAllowed => "the rules do not allow the client to receive them",
        DropReason::MemoryShort => "the broker is short of memory (limits.memory)",
    }
}

fn messages(count: u64) -> String {
    if count == 1 {
        "1 message".to_owned()
    } else {
        format!("{count} messages")
    }
}

/// Milliseconds in seconds, with a decimal where there is one.
fn seconds(millis: u64) -> String {
    if millis.is_multiple_of(1000) {
        format!("{} s", millis / 1000)
    } else {
        format!("{}.{} s", millis / 1000, millis % 1000 / 100)
    }
}

/// A time in the largest unit that leaves at least two of it.
pub(in crate::api) fn span(millis: u64) -> String {
    let secs = millis / 1000;
    match secs {
        0 => format!("{millis} ms"),
        1..120 => format!("{secs} s"),
        120..7200 => format!("{} min", secs / 60),
        7200..172_800 => format!("{} h", secs / 3600),
        _ => format!("{} days", secs / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use thrum_broker::Peer;
    use thrum_codec::{QoS, ReasonCode, Version};

    use super::*;

    const PEER: Peer = Peer::Address {
        ip: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)),
        port: 5123,
    };

    fn text(event: ClientEvent) -> String {
        words(&TimelineEvent {
            at: 0,
            last: 0,
            count: 1,
            others: 0,
            event,
        })
    }

    #[test]
    fn an_event_is_told_with_its_cause_and_figures() {
        let end = |cause| {
            text(ClientEvent::Disconnected {
                cause,
                connected_secs: 10_800,
                session_ended: false,
            })
        };
        assert_eq!(
            end(EndCause::KeepAlive {
                keep_alive_secs: 60,
                silent_millis: 91_250,
            }),
            "disconnected after 3 h: keep alive missed: nothing received for 91.2 s (keep alive \
             60 s, so at most 90 s)"
        );
        assert_eq!(
            end(EndCause::TakenOver { by: PEER }),
            "disconnected after 3 h: taken over by a connection with the same client identifier \
             from 10.0.0.9:5123"
        );
        let denied = ClientEvent::PublishRefused {
            topic: "a/b".into(),
            why: RefusalCause::Rule("deny all pub a/# (rules.acl line 12)".into()),
        };
        assert_eq!(
            text(denied),
            "publish to a/b refused: the rules deny it: deny all pub a/# (rules.acl line 12)"
        );
        let connected = ClientEvent::Connected(NewConnection {
            peer: PEER,
            listener: "mqtt".into(),
            version: Version::V5,
            session_present: false,
            keep_alive_secs: 60,
            expiry_secs: 3600,
        });
        assert_eq!(
            text(connected),
            "connected from 10.0.0.9:5123 at listener mqtt with MQTT 5.0, keep alive 60 s; a new \
             session, it expires after 60 min"
        );
        assert_eq!(
            text(ClientEvent::SessionEnded(SessionEnd::ByOperator)),
            "session ended by an operator; the audit log has who it was"
        );
        let subscribed = ClientEvent::Subscribed {
            filter: "a/#".into(),
            qos: QoS::AtLeastOnce,
            in_part: true,
        };
        assert_eq!(
            text(subscribed),
            "subscribed to a/# with QoS 1, of which the rules allow a part"
        );
    }

    #[test]
    fn repetitions_are_told_with_their_number_and_time() {
        let repeated = |event| {
            words(&TimelineEvent {
                at: 1000,
                last: 52_000,
                count: 412,
                others: 0,
                event,
            })
        };
        assert_eq!(
            repeated(ClientEvent::Dropped(DropReason::QueueFull)),
            "412 messages dropped within 51 s: the queue is full (limits.client.queue)"
        );
        let refused = ClientEvent::Refused {
            peer: PEER,
            reason: ReasonCode::Banned,
            what: "the client is banned",
        };
        assert_eq!(
            repeated(refused),
            "CONNECT from 10.0.0.9:5123 refused: the client is banned (0x8a), 412 times within 51 s"
        );
    }
}
