//! Integers, strings and variable byte integers on the wire.

use crate::error::DecodeError;

/// The largest value of a variable byte integer, and so of the remaining length.
pub const VARIABLE_MAX: u32 = 268_435_455;

/// The longest string or binary field in bytes.
pub const FIELD_BYTES_MAX: usize = 65_535;

const TRUNCATED: DecodeError = DecodeError::Malformed("field longer than the packet");

/// Reads fields from the front of a slice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes that have not been read yet.
    #[inline]
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Refuses trailing bytes after the last field.
    #[inline]
    pub(crate) const fn finish(self) -> Result<(), DecodeError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Malformed("bytes after the last field"))
        }
    }

    #[inline]
    pub(crate) fn u8(&mut self) -> Result<u8, DecodeError> {
        let (&byte, rest) = self.rest.split_first().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(byte)
    }

    #[inline]
    pub(crate) fn u16(&mut self) -> Result<u16, DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    #[inline]
    pub(crate) fn u32(&mut self) -> Result<u32, DecodeError> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(u32::from_be_bytes(*bytes))
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (bytes, rest) = self.rest.split_at_checked(count).ok_or(TRUNCATED)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// A variable byte integer in its shortest form.
    #[inline]
    pub(crate) fn variable(&mut self) -> Result<u32, DecodeError> {
        match read_variable(self.rest)? {
            Some(variable) => {
                // [MQTT-1.5.5-1]
                if variable.bytes != variable_len(variable.value) {
                    return Err(DecodeError::Malformed(
                        "variable byte integer not in its shortest form",
                    ));
                }
                self.bytes(variable.bytes)?;
                Ok(variable.value)
            }
            None => Err(TRUNCATED),
        }
    }

    /// Binary data with its two-byte length.
    #[inline]
    pub(crate) fn binary(&mut self) -> Result<&'a [u8], DecodeError> {
        let count = self.u16()?;
        self.bytes(usize::from(count))
    }

    /// A UTF-8 string with its two-byte length.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.binary()?;
        let text = utf8(bytes)?;
        // [MQTT-1.5.4-2] [MQTT3-1.5.3-2]
        if bytes.contains(&0) {
            return Err(DecodeError::Malformed("string with U+0000"));
        }
        Ok(text)
    }

    /// A UTF-8 string pair; both strings are checked like a single string.
    #[inline]
    pub(crate) fn pair(&mut self) -> Result<(&'a str, &'a str), DecodeError> {
        // [MQTT-1.5.7-1]
        Ok((self.string()?, self.string()?))
    }
}

/// Checks for well-formed UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF.
///
/// A byte order mark is kept like any other character. // [MQTT-1.5.4-3] [MQTT3-1.5.3-3]
#[inline]
pub(crate) fn utf8(bytes: &[u8]) -> Result<&str, DecodeError> {
    // [MQTT-1.5.4-1] [MQTT3-1.5.3-1]
    core::str::from_utf8(bytes).map_err(|_| DecodeError::Malformed("string is not UTF-8"))
}

/// A variable byte integer as received, in its shortest form or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Variable {
    pub(crate) value: u32,
    pub(crate) bytes: usize,
}

/// Reads a variable byte integer; `None` if it is incomplete.
#[inline]
pub(crate) fn read_variable(bytes: &[u8]) -> Result<Option<Variable>, DecodeError> {
    let mut value = 0;
    for (position, &byte) in bytes.iter().take(4).enumerate() {
        value |= u32::from(byte & 0x7F) << (7 * position);
        if byte & 0x80 == 0 {
            return Ok(Some(Variable {
                value,
                bytes: position + 1,
            }));
        }
    }
    if bytes.len() < 4 {
        Ok(None)
    } else {
        Err(DecodeError::Malformed(
            "variable byte integer over four bytes",
        ))
    }
}

/// Length in bytes of the shortest form of a variable byte integer.
#[inline]
pub(crate) const fn variable_len(value: u32) -> usize {
    match value {
        0..=0x7F => 1,
        0x80..=0x3FFF => 2,
        0x4000..=0x1F_FFFF => 3,
        _ => 4,
    }
}
