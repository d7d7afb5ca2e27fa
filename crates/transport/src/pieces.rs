//! Payload in several pieces.

/// Pieces of payload that are consumed from the front.
pub(crate) struct Pieces<'p, I> {
    /// The rest of the current piece.
    front: &'p [u8],
    /// The next piece, if there is one.
    next: Option<&'p [u8]>,
    others: I,
}

impl<'p, I: Iterator<Item = &'p [u8]>> Pieces<'p, I> {
    pub(crate) fn new(mut pieces: I) -> Self {
        Self {
            front: pieces.next().unwrap_or_default(),
            next: pieces.next(),
            others: pieces,
        }
    }

    /// Nothing is left.
    pub(crate) fn is_empty(&mut self) -> bool {
        self.skip_empty();
        self.front.is_empty()
    }

    /// The next bytes of one piece: the requested number, or all that are left if they are fewer.
    pub(crate) fn next_run(&mut self, bytes_max: usize) -> Option<&'p [u8]> {
        self.skip_empty();
        if self.front.is_empty() || (self.front.len() < bytes_max && self.next.is_some()) {
            return None;
        }
        Some(self.take(bytes_max))
    }

    /// Appends the next bytes, up to the requested number; returns how many.
    pub(crate) fn fill(&mut self, bytes_max: usize, out: &mut Vec<u8>) -> usize {
        let mut filled = 0;
        while filled < bytes_max && !self.is_empty() {
            let run = self.take(bytes_max - filled);
            out.extend_from_slice(run);
            filled += run.len();
        }
        filled
    }

    fn take(&mut self, bytes_max: usize) -> &'p [u8] {
        let (run, rest) = self.front.split_at(bytes_max.min(self.front.len()));
        self.front = rest;
        run
    }

    fn skip_empty(&mut self) {
        while self.front.is_empty()
            && let Some(next) = self.next.take()
        {
            self.front = next;
            self.next = self.others.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: [&[u8]; 5] = [b"", b"ab", b"", b"cdefg", b"h"];

    #[test]
    fn bytes_keep_their_order_in_portions_of_any_size() {
        for portion in 1..10 {
            let mut pieces = Pieces::new(PIECES.into_iter());
            let mut out = Vec::new();
            while !pieces.is_empty() {
                let before = out.len();
                let filled = pieces.fill(portion, &mut out);
                assert_eq!(filled, out.len() - before);
                assert_eq!(filled, portion.min(8 - before));
            }
            assert_eq!(out, b"abcdefgh");
        }
    }

    #[test]
    fn contiguous_bytes_are_not_copied() {
        let mut pieces = Pieces::new(PIECES.into_iter());
        assert_eq!(pieces.next_run(3), None);
        assert_eq!(pieces.fill(2, &mut Vec::new()), 2);
        assert_eq!(pieces.next_run(4), Some(b"cdef".as_slice()));
        assert_eq!(pieces.next_run(4), None);
        assert_eq!(pieces.fill(1, &mut Vec::new()), 1);
        assert_eq!(pieces.next_run(4), Some(b"h".as_slice()));
        assert_eq!(pieces.next_run(4), None);
        assert!(pieces.is_empty());
    }

    #[test]
    fn nothing_is_nothing() {
        assert!(Pieces::new([].into_iter()).is_empty());
        assert_eq!(Pieces::new([].into_iter()).fill(9, &mut Vec::new()), 0);
    }
}
