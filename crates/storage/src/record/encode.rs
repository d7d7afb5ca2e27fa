//! Encodes changes: a tag, fixed fields in little-endian order, then texts with their lengths; the
//! last text has no length.

use thrum_codec::packet::{RetainHandling, SubscriptionOptions};
use thrum_codec::{QoS, Version};

use super::{
    Change, ClockNote, Inflight, Message, Owner, Queued, Retained, Session, Subscription, Will,
};

/// First byte of a record. A changed layout gets a new tag.
pub(super) mod tag {
    pub(in crate::record) const SESSION: u8 = 1;
    pub(in crate::record) const SESSION_REMOVED: u8 = 2;
    pub(in crate::record) const SUBSCRIPTION: u8 = 3;
    pub(in crate::record) const SUBSCRIPTION_REMOVED: u8 = 4;
    pub(in crate::record) const MESSAGE: u8 = 5;
    pub(in crate::record) const QUEUED: u8 = 6;
    pub(in crate::record) const INFLIGHT: u8 = 7;
    pub(in crate::record) const DELIVERY_REMOVED: u8 = 8;
    pub(in crate::record) const RECEIVED: u8 = 9;
    pub(in crate::record) const RECEIVED_REMOVED: u8 = 10;
    pub(in crate::record) const WILL: u8 = 11;
    pub(in crate::record) const WILL_REMOVED: u8 = 12;
    pub(in crate::record) const RETAINED: u8 = 13;
    pub(in crate::record) const RETAINED_REMOVED: u8 = 14;
    /// A session with an owner.
    pub(in crate::record) const OWNED_SESSION: u8 = 15;
    /// A subscription with retained messages that are still to be sent.
    pub(in crate::record) const OWED_SUBSCRIPTION: u8 = 20;
    pub(in crate::record) const CLOCK: u8 = 24;
    pub(in crate::record) const RECLAIMED: u8 = 25;
    /// A retained message with its source.
    pub(in crate::record) const SOURCED_RETAINED: u8 = 26;
}

/// Bits of the flag bytes; the two lowest are the quality of service, if there is one.
pub(super) mod flag {
    pub(in crate::record) const QOS: u8 = 0b11;
    pub(in crate::record) const RETAIN: u8 = 1 << 2;
    /// A time or a duration is present.
    pub(in crate::record) const EXPIRES: u8 = 1 << 3;
    pub(in crate::record) const NO_LOCAL: u8 = 1 << 2;
    pub(in crate::record) const RETAIN_AS_PUBLISHED: u8 = 1 << 3;
    /// Two bits, starting at this one.
    pub(in crate::record) const RETAIN_HANDLING_SHIFT: u8 = 4;
}

/// Appends the encoded change.
pub(super) fn encode(change: &Change<'_>, out: &mut Vec<u8>) {
    match change {
        Change::Session(session) => encode_session(session, out),
        Change::SessionRemoved { session } => {
            out.push(tag::SESSION_REMOVED);
            out.extend_from_slice(&session.to_le_bytes());
        }
        Change::Subscription(subscription) => encode_subscription(subscription, out),
        Change::SubscriptionRemoved { session, filter } => {
            out.push(tag::SUBSCRIPTION_REMOVED);
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(filter.as_bytes());
        }
        Change::Message(message) => encode_message(message, out),
        Change::Queued(queued) => encode_queued(queued, out),
        Change::Inflight(inflight) => encode_inflight(*inflight, out),
        Change::DeliveryRemoved { session, seq } => {
            out.push(tag::DELIVERY_REMOVED);
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(&seq.to_le_bytes());
        }
        Change::Received { session, packet_id } => {
            out.push(tag::RECEIVED);
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(&packet_id.as_u16().to_le_bytes());
        }
        Change::ReceivedRemoved { session, packet_id } => {
            out.push(tag::RECEIVED_REMOVED);
            out.extend_from_slice(&session.to_le_bytes());
            out.extend_from_slice(&packet_id.as_u16().to_le_bytes());
        }
        Change::Will(will) => encode_will(will, out),
        Change::WillRemoved { session } => {
            out.push(tag::WILL_REMOVED);
            out.extend_from_slice(&session.to_le_bytes());
        }
        Change::Retained(retained) => encode_retained(retained, out),
        Change::RetainedRemoved { change, topic } => {
            out.push(tag::RETAINED_REMOVED);
            out.extend_from_slice(&change.to_le_bytes());
            out.extend_from_slice(topic.as_bytes());
        }
        Change::Clock(note) => encode_clock(*note, out),
        Change::Reclaimed { segment } => {
            out.push(tag::RECLAIMED);
            out.extend_from_slice(&segment.to_le_bytes());
        }
    }
}

fn encode_clock(note: ClockNote, out: &mut Vec<u8>) {
    out.push(tag::CLOCK);
    for time in [note.at, note.wall, note.latest_at, note.latest_wall] {
        out.extend_from_slice(&time.to_le_bytes());
    }
}

fn encode_session(session: &Session<'_>, out: &mut Vec<u8>) {
    let user = match session.owner {
        Owner::Unknown => None,
        Owner::Anonymous => Some(""),
        Owner::User(name) => Some(name),
    };
    out.push(match user {
        None => tag::SESSION,
        Some(_) => tag::OWNED_SESSION,
    });
    out.extend_from_slice(&session.id.to_le_bytes());
    out.push(level(session.version));
    out.extend_from_slice(&session.expiry_secs.to_le_bytes());
    // The last millisecond of time represents "never".
    out.extend_from_slice(&session.away_since.unwrap_or(u64::MAX).to_le_bytes());
    out.extend_from_slice(&session.packet_id_hint.to_le_bytes());
    if let Some(user) = user {
        out.push(u8::from(session.owner != Owner::Anonymous));
        out.extend_from_slice(&length(user.len()).to_le_bytes());
        out.extend_from_slice(user.as_bytes());
    }
    out.extend_from_slice(session.client_id.as_bytes());
}

fn encode_subscription(subscription: &Subscription<'_>, out: &mut Vec<u8>) {
    out.push(match subscription.owed {
        None => tag::SUBSCRIPTION,
        Some(_) => tag::OWED_SUBSCRIPTION,
    });
    out.extend_from_slice(&subscription.session.to_le_bytes());
    out.push(options(subscription.options));
    out.extend_from_slice(&subscription.identifier.to_le_bytes());
    if let Some(owed) = subscription.owed {
        out.extend_from_slice(&length(owed.len()).to_le_bytes());
        out.extend_from_slice(owed);
    }
    out.extend_from_slice(subscription.filter.as_bytes());
}

fn encode_message(message: &Message<'_>, out: &mut Vec<u8>) {
    out.push(tag::MESSAGE);
    out.extend_from_slice(&message.id.to_le_bytes());
    out.extend_from_slice(&message.publisher.to_le_bytes());
    out.extend_from_slice(&message.published_at.to_le_bytes());
    out.push(flags(
        message.qos,
        message.retain,
        message.expires_at.is_some(),
    ));
    if let Some(expires_at) = message.expires_at {
        out.extend_from_slice(&expires_at.to_le_bytes());
    }
    content(message.topic, message.properties, message.payload, out);
}

fn encode_queued(queued: &Queued<'_>, out: &mut Vec<u8>) {
    out.push(tag::QUEUED);
    out.extend_from_slice(&queued.session.to_le_bytes());
    out.extend_from_slice(&queued.seq.to_le_bytes());
    out.extend_from_slice(&queued.message.to_le_bytes());
    out.push(flags(queued.qos, queued.retain, false));
    out.extend_from_slice(&length(queued.identifiers.iter().count()).to_le_bytes());
    for identifier in queued.identifiers.iter() {
        out.extend_from_slice(&identifier.to_le_bytes());
    }
    out.extend_from_slice(queued.group.as_bytes());
}

fn encode_inflight(inflight: Inflight, out: &mut Vec<u8>) {
    out.push(tag::INFLIGHT);
    out.extend_from_slice(&inflight.session.to_le_bytes());
    out.extend_from_slice(&inflight.seq.to_le_bytes());
    out.extend_from_slice(&inflight.packet_id.as_u16().to_le_bytes());
    out.push(inflight.awaiting as u8);
}

fn encode_will(will: &Will<'_>, out: &mut Vec<u8>) {
    out.push(tag::WILL);
    out.extend_from_slice(&will.session.to_le_bytes());
    out.extend_from_slice(&will.delay_secs.to_le_bytes());
    out.push(flags(
        will.qos,
        will.retain,
        will.message_expiry_secs.is_some(),
    ));
    if let Some(seconds) = will.message_expiry_secs {
        out.extend_from_slice(&seconds.to_le_bytes());
    }
    content(will.topic, will.properties, will.payload, out);
}

fn encode_retained(retained: &Retained<'_>, out: &mut Vec<u8>) {
    out.push(match retained.source {
        None => tag::RETAINED,
        Some(_) => tag::SOURCED_RETAINED,
    });
    out.extend_from_slice(&retained.change.to_le_bytes());
    out.extend_from_slice(&retained.message.to_le_bytes());
    if let Some(source) = retained.source {
        out.extend_from_slice(&length(source.len()).to_le_bytes());
        out.extend_from_slice(source);
    }
    out.extend_from_slice(retained.topic.as_bytes());
}

fn content(topic: &str, properties: &[u8], payload: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&length(topic.len()).to_le_bytes());
    out.extend_from_slice(&length(properties.len()).to_le_bytes());
    out.extend_from_slice(topic.as_bytes());
    out.extend_from_slice(properties);
    out.extend_from_slice(payload);
}

fn flags(qos: QoS, retain: bool, expires: bool) -> u8 {
    qos as u8 | (u8::from(retain) * flag::RETAIN) | (u8::from(expires) * flag::EXPIRES)
}

fn options(options: SubscriptionOptions) -> u8 {
    let handling = match options.retain_handling {
        RetainHandling::Send => 0,
        RetainHandling::SendIfNew => 1,
        RetainHandling::Never => 2,
    };
    options.qos as u8
        | (u8::from(options.no_local) * flag::NO_LOCAL)
        | (u8::from(options.retain_as_published) * flag::RETAIN_AS_PUBLISHED)
        | (handling << flag::RETAIN_HANDLING_SHIFT)
}

/// The protocol level in CONNECT.
fn level(version: Version) -> u8 {
    match version {
        Version::V31 => 3,
        Version::V311 => 4,
        Version::V5 => 5,
    }
}

/// Every part of an MQTT packet is below 2²⁸ bytes.
fn length(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
