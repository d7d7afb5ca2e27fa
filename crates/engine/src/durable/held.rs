//! Output of one connection that depends on changes that are not durable yet.

use std::collections::VecDeque;

use thrum_protocol::Output;

/// The output of a connection that may be written, followed by the output that waits, by turn.
#[derive(Debug, Default)]
pub struct HeldOutput {
    /// Output that may be written and that the socket has not accepted yet.
    pub ready: Output,
    /// Turn and output, oldest first.
    waiting: VecDeque<(u64, Output)>,
    waiting_bytes: usize,
}

impl HeldOutput {
    /// Holds the output of a turn.
    pub fn hold(&mut self, turn: u64, out: Output) {
        self.waiting_bytes += out.len();
        match self.waiting.back_mut() {
            Some((last, held)) if *last == turn => held.append(out),
            _ => self.waiting.push_back((turn, out)),
        }
    }

    /// Adds output that depends on no change, behind all output that waits.
    pub fn queue_behind(&mut self, out: Output) {
        match self.waiting.back() {
            Some((last, _)) => self.hold(*last, out),
            None => self.ready.append(out),
        }
    }

    /// Releases the output of all turns up to this one; true if there was any.
    pub fn release(&mut self, turn: u64) -> bool {
        let before = self.waiting.len();
        while self.waiting.front().is_some_and(|(held, _)| *held <= turn) {
            if let Some((_, out)) = self.waiting.pop_front() {
                self.waiting_bytes -= out.len();
                self.ready.append(out);
            }
        }
        self.waiting.len() < before
    }

    /// Whether no output waits.
    pub fn is_free(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Length in bytes, including the output that may be written.
    pub fn bytes_len(&self) -> usize {
        self.ready.len() + self.waiting_bytes
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::{ReasonCode, Version};
    use thrum_protocol::Violation;
    use thrum_protocol::server::refuse;

    use super::*;

    /// Creates an output of that many packets of four bytes each.
    fn output(packets: usize) -> Output {
        let mut out = Output::new();
        let violation = Violation::new(ReasonCode::NotAuthorized, "");
        for _ in 0..packets {
            refuse(Version::V311, &violation, &mut out);
        }
        out
    }

    #[test]
    fn output_is_released_by_turns_and_in_order() {
        let mut held = HeldOutput::default();
        held.hold(1, output(1));
        held.hold(3, output(2));
        held.queue_behind(output(4));
        assert_eq!(held.bytes_len(), 28);
        assert!(held.release(2));
        assert!(!held.is_free());
        assert_eq!((held.ready.len(), held.bytes_len()), (4, 28));
        assert!(!held.release(2));
        assert!(held.release(3));
        assert!(held.is_free());
        assert_eq!((held.ready.len(), held.bytes_len()), (28, 28));
        held.hold(4, output(1));
        held.hold(4, output(1));
        held.hold(5, output(1));
        held.queue_behind(output(1));
        assert!(held.release(4));
        assert_eq!((held.ready.len(), held.bytes_len()), (36, 44));
        assert!(held.release(5));
        assert_eq!((held.ready.len(), held.bytes_len()), (44, 44));
    }
}
