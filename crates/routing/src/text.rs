//! An immutable string; short ones are stored inline, without an allocation of their own.

use alloc::boxed::Box;

/// Fills the three words that a boxed string and its tag occupy anyway.
const SHORT_BYTES: usize = 22;

/// An immutable string.
#[derive(Debug)]
pub(crate) enum Text {
    Short {
        length: u8,
        bytes: [u8; SHORT_BYTES],
    },
    Long(Box<str>),
}

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        let mut bytes = [0; SHORT_BYTES];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(place), Ok(length)) => {
                place.copy_from_slice(text.as_bytes());
                Self::Short { length, bytes }
            }
            _ => Self::Long(text.into()),
        }
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Short { length, bytes } => &bytes[..usize::from(*length)],
            Self::Long(text) => text.as_bytes(),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Short { .. } => {
                core::str::from_utf8(self.as_bytes()).expect("the bytes were copied from a str")
            }
            Self::Long(text) => text,
        }
    }

    /// Allocated bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            Self::Short { .. } => 0,
            Self::Long(text) => text.len(),
        }
    }
}
