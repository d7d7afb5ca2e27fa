//! Secret bytes.

use alloc::boxed::Box;
use core::fmt;

use zeroize::Zeroizing;

/// A password or a token: overwritten when dropped, never printed.
#[derive(Clone, Default)]
pub struct Secret(Zeroizing<Box<[u8]>>);

impl Secret {
    /// Takes a copy; the caller's bytes are not overwritten.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.into()))
    }

    /// The bytes. Compare them in constant time only.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }

    /// The bytes as text, if they are UTF-8.
    pub fn expose_str(&self) -> Option<&str> {
        core::str::from_utf8(&self.0).ok()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(***)")
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use super::*;

    #[test]
    fn a_secret_is_never_printed() {
        let text = format!(
            "{:?} {:#?}",
            Secret::from("hunter2"),
            Secret::new(b"hunter2")
        );
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn a_secret_is_readable_as_bytes_and_as_text_if_the_bytes_are_utf8() {
        assert_eq!(Secret::from("hunter2").expose(), b"hunter2");
        assert_eq!(Secret::from("hunter2").expose_str(), Some("hunter2"));
        assert_eq!(Secret::new(b"\xFF").expose_str(), None);
        assert_eq!(Secret::default().expose_str(), Some(""));
    }
}
