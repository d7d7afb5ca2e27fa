//! Output of one connection that rests on changes which are not safe yet.

use std::collections::VecDeque;

use thrum_protocol::Output;

/// What waits, by turn; and in front of it what may be written and the socket has not taken.
#[derive(Debug, Default)]
pub struct HeldOutput {
    pub ready: Output,
    /// Turn and output, oldest first.
    waiting: VecDeque<(u64, Output)>,
    waiting_bytes: usize,
}

impl HeldOutput {
    /// Holds what a turn produced.
    pub fn hold(&mut self, turn: u64, out: Output) {
        self.waiting_bytes += out.len();
        match self.waiting.back_mut() {
            Some((last, held)) if *last == turn => held.append(out),
            _ => self.waiting.push_back((turn, out)),
        }
    }

    /// Output that rests on nothing, but must not overtake what waits.
    pub fn queue_behind(&mut self, out: Output) {
        match self.waiting.back() {
            Some((last, _)) => self.hold(*last, out),
            None => self.ready.append(out),
        }
    }

    /// What turns up to this one produced is safe; true if something waited for that.
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

    /// Nothing waits any more.
    pub fn is_free(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Bytes, those that may be written included.
    pub fn len(&self) -> usize {
        self.ready.len() + self.waiting_bytes
    }
}

#[cfg(test)]
mod tests {
    use thrum_codec::{ReasonCode, Version};
    use thrum_protocol::Violation;
    use thrum_protocol::server::refuse;

    use super::*;

    /// An output of so many packets of four bytes each.
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
        assert_eq!(held.len(), 28);
        assert!(held.release(2));
        assert!(!held.is_free());
        assert_eq!((held.ready.len(), held.len()), (4, 28));
        assert!(!held.release(2));
        assert!(held.release(3));
        assert!(held.is_free());
        assert_eq!((held.ready.len(), held.len()), (28, 28));
    }
}
