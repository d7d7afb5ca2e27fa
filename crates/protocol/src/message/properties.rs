//! The properties of an owned message as bytes: a set of present fields, the fields, then the user
//! properties.
//!
//! User properties have their wire format, because [`UserProperties::Wire`] can read it in place.

use alloc::vec::Vec;

use thrum_codec::properties::{PublishProperties, UserProperties};

const FORMAT_INDICATED: u8 = 1;
const FORMAT_IS_TEXT: u8 = 1 << 1;
const CONTENT_TYPE: u8 = 1 << 2;
const RESPONSE_TOPIC: u8 = 1 << 3;
const CORRELATION_DATA: u8 = 1 << 4;
/// The node has added the last user property, and a receiver that has no room for it gets the
/// message without.
const LAST_IS_ADDED: u8 = 1 << 5;

/// Identifier of a user property on the wire.
const USER_PROPERTY: u8 = 0x26;

/// Number of bytes that [`write`] appends; 0 without properties.
pub(super) fn block_len(properties: &PublishProperties<'_>) -> usize {
    let user_len: usize = pairs(properties)
        .map(|(name, value)| user_property_len(name, value))
        .sum();
    let fields_len: usize = fields(properties).map(|(_, field)| 2 + field.len()).sum();
    match (presence(properties), user_len) {
        (0, 0) => 0,
        _ => 1 + fields_len + user_len,
    }
}

pub(super) fn write(properties: &PublishProperties<'_>, out: &mut Vec<u8>) {
    let presence = presence(properties);
    if presence == 0 && properties.user.is_empty() {
        return;
    }
    out.push(presence);
    for (_, field) in fields(properties) {
        write_field(field, out);
    }
    for (name, value) in pairs(properties) {
        out.push(USER_PROPERTY);
        write_field(name.as_bytes(), out);
        write_field(value.as_bytes(), out);
    }
}

pub(super) fn read(block: &[u8]) -> PublishProperties<'_> {
    let Some((&presence, mut rest)) = block.split_first() else {
        return PublishProperties::default();
    };
    let mut field = |flag| (presence & flag != 0).then(|| read_field(&mut rest));
    let content_type = field(CONTENT_TYPE).and_then(as_text);
    let response_topic = field(RESPONSE_TOPIC).and_then(as_text);
    let correlation_data = field(CORRELATION_DATA);
    PublishProperties {
        payload_format_indicator: (presence & FORMAT_INDICATED != 0)
            .then_some(presence & FORMAT_IS_TEXT != 0),
        content_type,
        response_topic,
        correlation_data,
        user: UserProperties::Wire(rest),
        ..PublishProperties::default()
    }
}

/// Marks the last user property of a block as one that the node has added.
pub(super) fn mark_last_as_added(block: &mut [u8]) {
    if let Some(presence) = block.first_mut() {
        *presence |= LAST_IS_ADDED;
    }
}

/// The user properties of a block without the one that the node has added; none if it has added
/// none.
pub(super) fn without_added(block: &[u8]) -> Option<UserProperties<'_>> {
    let is_added = block
        .first()
        .is_some_and(|presence| presence & LAST_IS_ADDED != 0);
    let UserProperties::Wire(all) = read(block).user else {
        return None;
    };
    let (name, value) = UserProperties::Wire(all).iter().last()?;
    let rest = all.len().checked_sub(user_property_len(name, value))?;
    is_added.then(|| UserProperties::Wire(&all[..rest]))
}

/// Bytes of a user property.
fn user_property_len(name: &str, value: &str) -> usize {
    5 + name.len() + value.len()
}

fn presence(properties: &PublishProperties<'_>) -> u8 {
    let format = match properties.payload_format_indicator {
        None => 0,
        Some(false) => FORMAT_INDICATED,
        Some(true) => FORMAT_INDICATED | FORMAT_IS_TEXT,
    };
    fields(properties).fold(format, |presence, (flag, _)| presence | flag)
}

/// Fields in the order they are written. A field longer than the wire format allows cannot have
/// been received and is omitted.
fn fields<'a>(properties: &PublishProperties<'a>) -> impl Iterator<Item = (u8, &'a [u8])> {
    [
        (CONTENT_TYPE, properties.content_type.map(str::as_bytes)),
        (RESPONSE_TOPIC, properties.response_topic.map(str::as_bytes)),
        (CORRELATION_DATA, properties.correlation_data),
    ]
    .into_iter()
    .filter_map(|(flag, field)| Some((flag, field?)))
    .filter(|(_, field)| u16::try_from(field.len()).is_ok())
}

fn pairs<'a>(properties: &PublishProperties<'a>) -> impl Iterator<Item = (&'a str, &'a str)> {
    let fits = |text: &str| u16::try_from(text.len()).is_ok();
    properties
        .user
        .iter()
        .filter(move |(name, value)| fits(name) && fits(value))
}

fn write_field(field: &[u8], out: &mut Vec<u8>) {
    let len = u16::try_from(field.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(field);
}

fn read_field<'a>(rest: &mut &'a [u8]) -> &'a [u8] {
    let Some((len, behind)) = rest.split_first_chunk() else {
        return &[];
    };
    let Some((field, behind)) = behind.split_at_checked(usize::from(u16::from_be_bytes(*len)))
    else {
        return &[];
    };
    *rest = behind;
    field
}

fn as_text(field: &[u8]) -> Option<&str> {
    core::str::from_utf8(field).ok()
}
