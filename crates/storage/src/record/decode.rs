//! Decodes changes. Every byte is checked: bytes that cannot be decoded are treated as damaged.

use thrum_codec::packet::{RetainHandling, SubscriptionOptions};
use thrum_codec::{PacketId, QoS, Version};

use super::encode::{flag, tag};
use super::{
    Awaiting, Change, ClockNote, Identifiers, Inflight, MESSAGE_ID_MAX, Message, Owner, Queued,
    Retained, Session, Subscription, Will,
};

/// The bytes are not a valid change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a record of this format")]
pub struct Malformed;

/// Decodes a change.
pub(crate) fn decode(bytes: &[u8]) -> Result<Change<'_>, Malformed> {
    let mut fields = Fields(bytes);
    let change = match fields.byte()? {
        tag::SESSION => session(&mut fields, |_| Ok(Owner::Unknown))?,
        tag::OWNED_SESSION => session(&mut fields, owner)?,
        tag::SESSION_REMOVED => Change::SessionRemoved {
            session: fields.u64()?,
        },
        tag::SUBSCRIPTION => subscription(&mut fields, false)?,
        tag::OWED_SUBSCRIPTION => subscription(&mut fields, true)?,
        tag::SUBSCRIPTION_REMOVED => Change::SubscriptionRemoved {
            session: fields.u64()?,
            filter: fields.rest_text()?,
        },
        tag::MESSAGE => message(&mut fields)?,
        tag::QUEUED => queued(&mut fields)?,
        tag::INFLIGHT => inflight(&mut fields)?,
        tag::DELIVERY_REMOVED => Change::DeliveryRemoved {
            session: fields.u64()?,
            seq: fields.u64()?,
        },
        tag::RECEIVED => Change::Received {
            session: fields.u64()?,
            packet_id: fields.packet_id()?,
        },
        tag::RECEIVED_REMOVED => Change::ReceivedRemoved {
            session: fields.u64()?,
            packet_id: fields.packet_id()?,
        },
        tag::WILL => will(&mut fields)?,
        tag::WILL_REMOVED => Change::WillRemoved {
            session: fields.u64()?,
        },
        tag::RETAINED => retained(&mut fields, false)?,
        tag::SOURCED_RETAINED => retained(&mut fields, true)?,
        tag::RETAINED_REMOVED => Change::RetainedRemoved {
            change: fields.u64()?,
            topic: fields.rest_text()?,
        },
        tag::CLOCK => Change::Clock(ClockNote {
            at: fields.u64()?,
            wall: fields.u64()?,
            latest_at: fields.u64()?,
            latest_wall: fields.u64()?,
        }),
        tag::RECLAIMED => Change::Reclaimed {
            segment: fields.u64()?,
        },
        _ => return Err(Malformed),
    };
    if fields.0.is_empty() {
        Ok(change)
    } else {
        Err(Malformed)
    }
}

fn session<'a>(
    fields: &mut Fields<'a>,
    owner: impl FnOnce(&mut Fields<'a>) -> Result<Owner<&'a str>, Malformed>,
) -> Result<Change<'a>, Malformed> {
    Ok(Change::Session(Session {
        id: fields.u64()?,
        version: match fields.byte()? {
            3 => Version::V31,
            4 => Version::V311,
            5 => Version::V5,
            _ => return Err(Malformed),
        },
        expiry_secs: fields.u32()?,
        away_since: Some(fields.u64()?).filter(|&at| at != u64::MAX),
        packet_id_hint: fields.u16()?,
        owner: owner(fields)?,
        client_id: fields.rest_text()?,
    }))
}

fn owner<'a>(fields: &mut Fields<'a>) -> Result<Owner<&'a str>, Malformed> {
    let kind = fields.byte()?;
    let len = fields.u32()? as usize;
    match (kind, text(fields.take(len)?)?) {
        (0, "") => Ok(Owner::Anonymous),
        (1, user) => Ok(Owner::User(user)),
        _ => Err(Malformed),
    }
}

fn subscription<'a>(fields: &mut Fields<'a>, is_owed: bool) -> Result<Change<'a>, Malformed> {
    let session = fields.u64()?;
    let bits = fields.byte()?;
    let options = SubscriptionOptions {
        qos: qos(bits)?,
        no_local: bits & flag::NO_LOCAL != 0,
        retain_as_published: bits & flag::RETAIN_AS_PUBLISHED != 0,
        retain_handling: match bits >> flag::RETAIN_HANDLING_SHIFT {
            0 => RetainHandling::Send,
            1 => RetainHandling::SendIfNew,
            2 => RetainHandling::Never,
            _ => return Err(Malformed),
        },
    };
    Ok(Change::Subscription(Subscription {
        session,
        options,
        identifier: fields.u32()?,
        owed: is_owed.then(|| bytes(fields)).transpose()?,
        filter: fields.rest_text()?,
    }))
}

/// Bytes after a length field.
fn bytes<'a>(fields: &mut Fields<'a>) -> Result<&'a [u8], Malformed> {
    let len = fields.u32()? as usize;
    fields.take(len)
}

fn message<'a>(fields: &mut Fields<'a>) -> Result<Change<'a>, Malformed> {
    let id = fields.message_id()?;
    let publisher = fields.u64()?;
    let published_at = fields.u64()?;
    let (qos, retain, expires) = flags(fields.byte()?)?;
    let expires_at = expires.then(|| fields.u64()).transpose()?;
    let (topic, properties, payload) = content(fields)?;
    Ok(Change::Message(Message {
        id,
        publisher,
        published_at,
        expires_at,
        qos,
        retain,
        topic,
        properties,
        payload,
    }))
}

fn queued<'a>(fields: &mut Fields<'a>) -> Result<Change<'a>, Malformed> {
    let session = fields.u64()?;
    let seq = fields.u64()?;
    let message = fields.message_id()?;
    let (qos, retain, false) = flags(fields.byte()?)? else {
        return Err(Malformed);
    };
    let identifiers = (fields.u32()? as usize).checked_mul(4).ok_or(Malformed)?;
    Ok(Change::Queued(Queued {
        session,
        seq,
        message,
        qos,
        retain,
        identifiers: Identifiers::Stored(fields.take(identifiers)?),
        group: fields.rest_text()?,
    }))
}

fn inflight<'a>(fields: &mut Fields<'a>) -> Result<Change<'a>, Malformed> {
    Ok(Change::Inflight(Inflight {
        session: fields.u64()?,
        seq: fields.u64()?,
        packet_id: fields.packet_id()?,
        awaiting: match fields.byte()? {
            1 => Awaiting::PubAck,
            2 => Awaiting::PubRec,
            3 => Awaiting::PubComp,
            _ => return Err(Malformed),
        },
    }))
}

fn will<'a>(fields: &mut Fields<'a>) -> Result<Change<'a>, Malformed> {
    let session = fields.u64()?;
    let delay_secs = fields.u32()?;
    let (qos, retain, expires) = flags(fields.byte()?)?;
    let message_expiry_secs = expires.then(|| fields.u32()).transpose()?;
    let (topic, properties, payload) = content(fields)?;
    Ok(Change::Will(Will {
        session,
        delay_secs,
        message_expiry_secs,
        qos,
        retain,
        topic,
        properties,
        payload,
    }))
}

fn retained<'a>(fields: &mut Fields<'a>, has_source: bool) -> Result<Change<'a>, Malformed> {
    Ok(Change::Retained(Retained {
        change: fields.u64()?,
        message: fields.message_id()?,
        source: has_source.then(|| bytes(fields)).transpose()?,
        topic: fields.rest_text()?,
    }))
}

/// Topic, properties and payload.
type Content<'a> = (&'a str, &'a [u8], &'a [u8]);

fn content<'a>(fields: &mut Fields<'a>) -> Result<Content<'a>, Malformed> {
    let topic_len = fields.u32()? as usize;
    let properties_len = fields.u32()? as usize;
    let topic = text(fields.take(topic_len)?)?;
    let properties = fields.take(properties_len)?;
    Ok((topic, properties, fields.rest()))
}

fn flags(bits: u8) -> Result<(QoS, bool, bool), Malformed> {
    if bits & !(flag::QOS | flag::RETAIN | flag::EXPIRES) != 0 {
        return Err(Malformed);
    }
    Ok((
        qos(bits)?,
        bits & flag::RETAIN != 0,
        bits & flag::EXPIRES != 0,
    ))
}

fn qos(bits: u8) -> Result<QoS, Malformed> {
    match bits & flag::QOS {
        0 => Ok(QoS::AtMostOnce),
        1 => Ok(QoS::AtLeastOnce),
        2 => Ok(QoS::ExactlyOnce),
        _ => Err(Malformed),
    }
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    core::str::from_utf8(bytes).map_err(|_| Malformed)
}

/// The bytes that have not been read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (field, rest) = self.0.split_at_checked(len).ok_or(Malformed)?;
        self.0 = rest;
        Ok(field)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*field)
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Result<u16, Malformed> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    fn packet_id(&mut self) -> Result<PacketId, Malformed> {
        PacketId::new(self.u16()?).ok_or(Malformed)
    }

    fn message_id(&mut self) -> Result<u64, Malformed> {
        let id = self.u64()?;
        if (1..=MESSAGE_ID_MAX).contains(&id) {
            Ok(id)
        } else {
            Err(Malformed)
        }
    }

    fn rest(&mut self) -> &'a [u8] {
        core::mem::take(&mut self.0)
    }

    fn rest_text(&mut self) -> Result<&'a str, Malformed> {
        text(self.rest())
    }
}
