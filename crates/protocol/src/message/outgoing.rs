//! One publication sent to many receivers: encoded once per form, and owned once if a receiver must
//! keep it.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::num::NonZeroU16;

use thrum_codec::packet::Publish;
use thrum_codec::properties::{PublishProperties, SubscriptionIdentifiers};
use thrum_codec::{
    EncodeError, PacketId, PublishFrame, QoS, Version, encode_publish, encode_publish_head,
};

use super::{Message, Publication};
use crate::output::Output;
use crate::time::Time;

/// Memory that a frame cache keeps between publications; a larger buffer is freed.
const RETAINED_BYTES_MAX: usize = 256 * 1024;

/// Bit of any form in [`FrameCache::asked`]; all values of [`Form::cache_index`] are smaller.
const ANY_FORM: u16 = 1 << 15;

/// Bit of any form with a shortened topic.
const CUT_FORM: u16 = 1 << 14;

/// Added to the index of a form with a shortened topic.
const CUT: u8 = 1 << 7;

/// A publication sent to many sessions. Frames are encoded once per (version, `QoS`, retain); the
/// owned message is made once, when the first session has to keep it or the second one gets a large
/// payload.
#[derive(Debug)]
pub struct Outgoing<'a> {
    publication: Publication<'a>,
    /// The message that it was made from; borrowed, because every worker that has the message
    /// writes its reference count.
    given: Option<&'a Arc<Message>>,
    made: Option<Arc<Message>>,
    frames: &'a mut FrameCache,
}

/// Encoded forms of the current publication; the caller keeps the cache and reuses its memory.
#[derive(Debug, Default)]
pub struct FrameCache {
    bytes: Vec<u8>,
    made: Vec<CachedFrame>,
    /// One bit per form that was requested at least once.
    asked: u16,
}

/// A frame, or its part before the payload if that is large.
#[derive(Clone, Copy, Debug)]
struct CachedFrame {
    index: u8,
    /// Number of omitted bytes of the topic; used only with [`CUT`].
    cut: usize,
    start: usize,
    end: usize,
    frame: PublishFrame,
}

/// The properties in which the copies of a publication differ.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Form<'a> {
    pub(crate) version: Version,
    pub(crate) qos: QoS,
    pub(crate) retain: bool,
    pub(crate) dup: bool,
    pub(crate) packet_id: Option<PacketId>,
    pub(crate) identifiers: &'a [u32],
    /// Alias to send, and whether the receiver already knows its topic.
    pub(crate) alias: Option<(NonZeroU16, bool)>,
    /// Largest packet that the receiver accepts.
    pub(crate) bytes_max: u32,
    /// Time of sending.
    pub(crate) now: Time,
}

impl<'a> Outgoing<'a> {
    /// Creates it from a publication, with an empty frame cache.
    pub fn new(publication: Publication<'a>, frames: &'a mut FrameCache) -> Self {
        frames.reset();
        Self {
            publication,
            given: None,
            made: None,
            frames,
        }
    }

    /// Creates it from an owned message.
    pub fn from_message(message: &'a Arc<Message>, frames: &'a mut FrameCache) -> Self {
        frames.reset();
        Self {
            publication: message.publication(),
            given: Some(message),
            made: None,
            frames,
        }
    }

    /// The publication.
    pub fn publication(&self) -> &Publication<'a> {
        &self.publication
    }

    /// The owned message, made at the first call.
    pub fn message(&mut self) -> &Arc<Message> {
        match self.given {
            Some(message) => message,
            None => self
                .made
                .get_or_insert_with(|| Arc::new(Message::new(&self.publication))),
        }
    }

    /// Appends this receiver's copy, if the receiver accepts its size, and returns its length.
    ///
    /// # Errors
    /// [`EncodeError::PacketTooLong`] if the copy is too long for the receiver, otherwise as
    /// [`encode_publish`]; nothing is appended on error.
    pub(crate) fn append(
        &mut self,
        form: &Form<'_>,
        out: &mut Output,
    ) -> Result<usize, EncodeError> {
        if self.publication.is_large() {
            return self.append_large(form, out);
        }
        let index = form.cache_index();
        // The copy of the first receiver bypasses the cache, because there is often no second one.
        match index.filter(|index| !self.frames.is_first(1 << index)) {
            None => form.append(&self.publication, out.own()),
            Some(index) => self.append_cached(index, form, out.own()),
        }
    }

    /// Appends a copy with a shared payload. The first receiver gets its own, because there is
    /// often no second one.
    #[inline(never)]
    fn append_large(&mut self, form: &Form<'_>, out: &mut Output) -> Result<usize, EncodeError> {
        let is_owned = self.given.is_some() || self.made.is_some();
        if self.frames.is_first(ANY_FORM) && !is_owned {
            return form.append(&self.publication, out.own());
        }
        let len = match form.cache_index() {
            None => form.append_head(&self.publication, out.own())?,
            Some(index) => self.append_cached(index, form, out.own())?,
        };
        out.share(self.message());
        Ok(len)
    }

    /// Appends a cached frame with the receiver's own packet identifier, and returns the length of
    /// the whole frame.
    #[expect(
        clippy::inline_always,
        reason = "every delivery of a fan-out runs this; a call adds a tenth to its instructions"
    )]
    #[inline(always)]
    fn append_cached(
        &mut self,
        index: u8,
        form: &Form<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let frames = &mut *self.frames;
        let place = match frames.place(index) {
            Some(place) => place,
            None => frames.make(index, 0, form, &self.publication)?,
        };
        frames.copy(place, form, out)
    }

    /// As [`Outgoing::append_behind`] when the copy is too long for the receiver: without the user
    /// property that the node has added.
    ///
    /// # Errors
    /// As [`Outgoing::append`]; also if the node has added none.
    #[cold]
    pub(crate) fn append_without_added(
        &self,
        cut: usize,
        form: &Form<'_>,
        out: &mut Output,
    ) -> Result<usize, EncodeError> {
        // Only an owned message has such a property.
        let message = self.given.ok_or(EncodeError::PacketTooLong)?;
        let publication = Publication {
            topic: self.publication.topic.get(cut..).unwrap_or_default(),
            ..self.publication
        };
        form.append_without_added(message, &publication, out)
    }

    /// As [`Outgoing::append`], without the first `cut` bytes of the topic.
    pub(crate) fn append_behind(
        &mut self,
        cut: usize,
        form: &Form<'_>,
        out: &mut Output,
    ) -> Result<usize, EncodeError> {
        let publication = Publication {
            topic: self.publication.topic.get(cut..).unwrap_or_default(),
            ..self.publication
        };
        if publication.is_large() {
            let is_owned = self.given.is_some() || self.made.is_some();
            if self.frames.is_first(ANY_FORM) && !is_owned {
                return form.append(&publication, out.own());
            }
            return form.append_owned(self.message(), &publication, out);
        }
        let frames = &mut *self.frames;
        match form.cache_index().map(|index| index | CUT) {
            Some(index) if !frames.is_first(CUT_FORM) => {
                let place = match frames.place_behind(index, cut) {
                    Some(place) => place,
                    None => frames.make(index, cut, form, &publication)?,
                };
                frames.copy(place, form, out.own())
            }
            _ => form.append(&publication, out.own()),
        }
    }
}

impl FrameCache {
    fn reset(&mut self) {
        self.made.clear();
        self.asked = 0;
        if self.bytes.capacity() > RETAINED_BYTES_MAX {
            self.bytes = Vec::new();
        } else {
            self.bytes.clear();
        }
    }

    /// Records that a form was requested; returns whether this is the first time.
    #[inline]
    fn is_first(&mut self, form: u16) -> bool {
        let before = self.asked;
        self.asked |= form;
        before & form == 0
    }

    fn place(&self, index: u8) -> Option<usize> {
        self.made.iter().position(|made| made.index == index)
    }

    /// As [`Self::place`], for a form with a shortened topic.
    fn place_behind(&self, index: u8, cut: usize) -> Option<usize> {
        self.made
            .iter()
            .position(|made| made.index == index && made.cut == cut)
    }

    /// Appends the frame at that position with the receiver's own packet identifier, and returns
    /// the length of the whole frame.
    #[expect(
        clippy::inline_always,
        reason = "every delivery of a fan-out runs this; a call adds a tenth to its instructions"
    )]
    #[inline(always)]
    fn copy(&self, place: usize, form: &Form<'_>, out: &mut Vec<u8>) -> Result<usize, EncodeError> {
        let cached = &self.made[place];
        form.check_len(cached.frame.len)?;
        let start = out.len();
        out.extend_from_slice(&self.bytes[cached.start..cached.end]);
        if let (Some(at), Some(id)) = (cached.frame.packet_id_at, form.packet_id)
            && let Some(place) = out.get_mut(start + at..start + at + 2)
        {
            place.copy_from_slice(&id.as_u16().to_be_bytes());
        }
        Ok(cached.frame.len)
    }

    /// Encodes a form and returns its position; each copy gets its own packet identifier.
    #[inline(never)]
    fn make(
        &mut self,
        index: u8,
        cut: usize,
        form: &Form<'_>,
        publication: &Publication<'_>,
    ) -> Result<usize, EncodeError> {
        let start = self.bytes.len();
        let packet = form.packet(publication);
        let frame = if publication.is_large() {
            encode_publish_head(&packet, form.version, &mut self.bytes)?
        } else {
            encode_publish(&packet, form.version, &mut self.bytes)?
        };
        self.made.push(CachedFrame {
            index,
            cut,
            start,
            end: self.bytes.len(),
            frame,
        });
        Ok(self.made.len() - 1)
    }
}

impl<'a> Form<'a> {
    /// Index of the frame that all receivers with this form share; `None` if the copy is specific
    /// to this receiver.
    fn cache_index(&self) -> Option<u8> {
        let own_properties = !self.identifiers.is_empty() || self.alias.is_some();
        let class = match self.version {
            Version::V31 | Version::V311 => 0,
            Version::V5 if own_properties => return None,
            Version::V5 => 6,
        };
        (!self.dup).then(|| class + 2 * self.qos.as_u8() + u8::from(self.retain))
    }

    /// Appends the copy without using the cache; as [`Outgoing::append`].
    fn append(
        &self,
        publication: &Publication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        let frame = encode_publish(&self.packet(publication), self.version, out)?;
        self.check_len(frame.len)
            .inspect_err(|_| out.truncate(start))?;
        Ok(frame.len)
    }

    /// Appends the part before the payload, which the caller appends; returns the length of both.
    fn append_head(
        &self,
        publication: &Publication<'_>,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        let frame = encode_publish_head(&self.packet(publication), self.version, out)?;
        self.check_len(frame.len)
            .inspect_err(|_| out.truncate(start))?;
        Ok(frame.len)
    }

    /// Appends the copy of an owned message; as [`Outgoing::append`].
    pub(crate) fn append_owned(
        &self,
        message: &Arc<Message>,
        publication: &Publication<'_>,
        out: &mut Output,
    ) -> Result<usize, EncodeError> {
        if !publication.is_large() {
            return self.append(publication, out.own());
        }
        let len = self.append_head(publication, out.own())?;
        out.share(message);
        Ok(len)
    }

    /// As [`Self::append_owned`], without the user property that the node has added.
    #[cold]
    pub(crate) fn append_without_added(
        &self,
        message: &Arc<Message>,
        publication: &Publication<'_>,
        out: &mut Output,
    ) -> Result<usize, EncodeError> {
        let user = message.user_properties_without_added();
        let properties = PublishProperties {
            user: user.ok_or(EncodeError::PacketTooLong)?,
            ..publication.properties
        };
        let publication = Publication {
            properties,
            ..*publication
        };
        self.append_owned(message, &publication, out)
    }

    fn packet<'p>(&self, publication: &Publication<'p>) -> Publish<'p>
    where
        'a: 'p,
    {
        let known = matches!(self.alias, Some((_, true)));
        Publish {
            dup: self.dup,
            qos: self.qos,
            retain: self.retain,
            topic: if known { "" } else { publication.topic },
            packet_id: self.packet_id,
            properties: PublishProperties {
                // [MQTT-3.3.2-6]
                message_expiry: publication.expires_at.map(|at| at.secs_from(self.now)),
                topic_alias: self.alias.map(|(alias, _)| alias),
                // [MQTT-3.3.4-3] [MQTT-3.3.4-4] [MQTT-3.3.4-5]
                subscription_identifiers: SubscriptionIdentifiers::Listed(self.identifiers),
                // [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-18]
                // [MQTT-3.3.2-20]
                ..publication.properties
            },
            payload: publication.payload,
        }
    }

    #[inline]
    fn check_len(&self, len: usize) -> Result<(), EncodeError> {
        match u32::try_from(len) {
            Ok(len) if len <= self.bytes_max => Ok(()),
            _ => Err(EncodeError::PacketTooLong),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publication(payload: &[u8]) -> Publication<'_> {
        Publication::new("mount/a", payload, QoS::AtLeastOnce)
    }

    fn form(packet_id: u16) -> Form<'static> {
        Form {
            version: Version::V5,
            qos: QoS::AtLeastOnce,
            retain: false,
            dup: false,
            packet_id: PacketId::new(packet_id),
            identifiers: &[],
            alias: None,
            bytes_max: u32::MAX,
            now: Time::default(),
        }
    }

    /// The copies of a publication for receivers with these packet identifiers and lengths of the
    /// omitted prefix, and the number of cached frames.
    fn sent(payload: &[u8], receivers: &[(u16, usize)]) -> (Vec<Vec<u8>>, usize) {
        let mut frames = FrameCache::default();
        let mut outgoing = Outgoing::new(publication(payload), &mut frames);
        let mut outputs = Vec::new();
        for &(packet_id, cut) in receivers {
            let mut out = Output::new();
            let form = form(packet_id);
            let len = match cut {
                0 => outgoing.append(&form, &mut out),
                cut => outgoing.append_behind(cut, &form, &mut out),
            };
            assert_eq!(len, Ok(out.len()));
            outputs.push(out.to_vec());
        }
        (outputs, frames.made.len())
    }

    fn frame(payload: &[u8], packet_id: u16, cut: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut own = publication(payload);
        own.topic = &own.topic[cut..];
        let packet = form(packet_id).packet(&own);
        encode_publish(&packet, Version::V5, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn frames_are_cached_from_the_second_receiver_of_a_form() {
        for payload in [&b"payload"[..], &[7; 4000]] {
            let receivers = [(1, 0), (2, 0), (0x0304, 0)];
            let (outputs, cached) = sent(payload, &receivers);
            let expected = receivers.map(|(packet_id, cut)| frame(payload, packet_id, cut));
            assert_eq!(outputs, expected);
            assert_eq!(cached, 1);
            assert_eq!(sent(payload, &receivers[..1]).1, 0);
        }
    }

    #[test]
    fn frames_with_a_part_of_the_topic_are_cached_for_each_part() {
        let receivers = [(1, 6), (2, 6), (3, 3), (4, 3), (5, 6), (6, 0), (7, 0)];
        let (outputs, cached) = sent(b"payload", &receivers);
        let expected = receivers.map(|(packet_id, cut)| frame(b"payload", packet_id, cut));
        assert_eq!(outputs, expected);
        assert_eq!(
            cached, 3,
            "a form of each length, and one with all of the topic"
        );
        assert_eq!(sent(b"payload", &receivers[..1]).1, 0);
        let payload = [7; 4000];
        let (outputs, _) = sent(&payload, &receivers);
        assert_eq!(
            outputs,
            receivers.map(|(packet_id, cut)| frame(&payload, packet_id, cut))
        );
    }

    #[test]
    fn a_copy_that_is_too_long_for_its_receiver_leaves_nothing_behind() {
        for payload in [&b"payload"[..], &[7; 4000]] {
            let len = u32::try_from(frame(payload, 1, 0).len()).unwrap();
            let mut frames = FrameCache::default();
            let mut outgoing = Outgoing::new(publication(payload), &mut frames);
            for _ in 0..3 {
                let mut out = Output::new();
                let fitting = Form {
                    bytes_max: len,
                    ..form(1)
                };
                assert_eq!(outgoing.append(&fitting, &mut out), Ok(len as usize));
                let too_small = Form {
                    bytes_max: len - 1,
                    ..form(1)
                };
                let refused = outgoing.append(&too_small, &mut out);
                assert_eq!(refused, Err(EncodeError::PacketTooLong));
                assert_eq!(out.len(), len as usize);
            }
        }
    }
}
