//! Destinations of encoded fields.

use alloc::vec::Vec;

use crate::error::EncodeError;
use crate::wire::VARIABLE_MAX;

/// Receives the fields of a packet in order.
pub(super) trait Sink {
    /// Appends bytes unchanged.
    fn bytes(&mut self, bytes: &[u8]);

    /// Records that the packet cannot be written; only the counter can receive this call.
    fn fail(&mut self, error: EncodeError);

    #[inline]
    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    #[inline]
    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    #[inline]
    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// A variable byte integer in its shortest form.
    #[inline]
    fn variable(&mut self, value: u32) {
        // [MQTT-1.5.5-1]
        match value {
            0..=0x7F => self.bytes(&[group(value, 0)]),
            0x80..=0x3FFF => self.bytes(&[more(value, 0), group(value, 1)]),
            0x4000..=0x1F_FFFF => self.bytes(&[more(value, 0), more(value, 1), group(value, 2)]),
            0x20_0000..=VARIABLE_MAX => {
                self.bytes(&[
                    more(value, 0),
                    more(value, 1),
                    more(value, 2),
                    group(value, 3),
                ]);
            }
            _ => self.fail(EncodeError::OutOfRange),
        }
    }

    /// Binary data with its two-byte length.
    #[inline]
    fn binary(&mut self, bytes: &[u8]) {
        match u16::try_from(bytes.len()) {
            Ok(len) => {
                self.u16(len);
                self.bytes(bytes);
            }
            // [MQTT-4.7.3-3] [MQTT3-4.7.3-3]
            Err(_) => self.fail(EncodeError::FieldTooLong),
        }
    }

    /// A UTF-8 string with its two-byte length.
    #[inline]
    fn string(&mut self, text: &str) {
        self.binary(text.as_bytes());
    }
}

/// Writes a property block after its length, which is 0 without properties.
pub(super) fn block(out: &mut dyn Sink, write: &dyn Fn(&mut dyn Sink)) {
    let mut counter = Counter::default();
    write(&mut counter);
    match counter.finish() {
        Ok(len) => {
            // [MQTT-2.2.2-1]
            out.variable(len);
            write(out);
        }
        Err(error) => out.fail(error),
    }
}

/// Counts the bytes and keeps the first error.
#[derive(Default)]
pub(super) struct Counter {
    len: usize,
    error: Option<EncodeError>,
}

impl Counter {
    /// The total length, which fits into a variable byte integer.
    pub(super) fn finish(self) -> Result<u32, EncodeError> {
        match (self.error, u32::try_from(self.len)) {
            (Some(error), _) => Err(error),
            (None, Ok(len @ 0..=VARIABLE_MAX)) => Ok(len),
            (None, _) => Err(EncodeError::PacketTooLong),
        }
    }
}

impl Sink for Counter {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.len = self.len.saturating_add(bytes.len());
    }

    #[inline]
    fn fail(&mut self, error: EncodeError) {
        self.error = self.error.or(Some(error));
    }
}

impl Sink for Vec<u8> {
    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn fail(&mut self, error: EncodeError) {
        debug_assert!(false, "the counter did not report an error: {error}");
    }
}

/// The last seven bits of a variable byte integer.
#[inline]
const fn group(value: u32, position: u32) -> u8 {
    let [.., low] = (value >> (7 * position)).to_be_bytes();
    low & 0x7F
}

/// Seven bits of a variable byte integer, with the continuation bit set.
#[inline]
const fn more(value: u32, position: u32) -> u8 {
    group(value, position) | 0x80
}
