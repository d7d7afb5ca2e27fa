//! The beginning of what has not arrived yet.

/// Bytes that wait for the rest of their packet. Most connections have none most of the time, so that none take one pointer.
#[derive(Debug, Default)]
#[expect(
    clippy::box_collection,
    reason = "a rare buffer behind a thin pointer keeps every connection small"
)]
pub(crate) struct Partial(Option<Box<Vec<u8>>>);

impl Partial {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Takes them out.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.take().map_or_else(Vec::new, |bytes| *bytes)
    }

    /// Puts bytes in their place.
    pub(crate) fn put(&mut self, bytes: Vec<u8>) {
        self.0 = (!bytes.is_empty()).then(|| Box::new(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_put_in_is_taken_out_once() {
        let mut partial = Partial::default();
        partial.put(vec![1, 2]);
        assert!(!partial.is_empty());
        assert_eq!(partial.take(), [1, 2]);
        assert!(partial.is_empty() && partial.take().is_empty());
        partial.put(Vec::new());
        assert!(partial.is_empty());
    }
}
