//! Times of reads and writes: what is certainly not the generator's part of a latency.

/// A read from a socket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read {
    /// When the thread read.
    pub(super) at_ns: u64,
    /// What it read has not arrived before.
    pub(super) unread_since_ns: u64,
}

impl Read {
    /// How long what was read may have waited in the socket.
    pub(super) const fn waited_ns(self) -> u64 {
        self.at_ns.saturating_sub(self.unread_since_ns)
    }
}

/// A message on its way into the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    /// Number of the publisher in the plan.
    pub(super) publisher: u32,
    pub(super) sequence: u32,
    /// The send time in its mark.
    pub(super) sent_ns: u64,
    /// Since when it waited for the thread alone: its send time, or when the broker may have made
    /// room for it.
    pub(super) ready_ns: u64,
    /// The broker did not take it when it was due.
    pub(super) was_held_back: bool,
}

/// A write of messages to the kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Write {
    /// When the thread called the kernel.
    pub(super) called_ns: u64,
    /// When the kernel had taken them. On one machine it carries them to the broker's socket
    /// meanwhile.
    pub(super) returned_ns: u64,
}

/// A write that takes longer than this was interrupted: the thread lost its core, and nobody knows
/// whether that was before the kernel took the messages.
const WRITE_NS_MAX: u64 = 250_000;

impl Write {
    /// How long the generator may have had what it wrote, which was ready at a time.
    pub(super) const fn handed_over_ns(self, ready_ns: u64) -> u64 {
        let took_ns = self.returned_ns.saturating_sub(self.called_ns);
        if took_ns > WRITE_NS_MAX {
            self.returned_ns.saturating_sub(ready_ns)
        } else {
            self.called_ns.saturating_sub(ready_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interrupted_write_is_wholly_the_generators() {
        let write = |takes_ns| Write {
            called_ns: 5_000,
            returned_ns: 5_000 + takes_ns,
        };
        assert_eq!(write(WRITE_NS_MAX).handed_over_ns(1_000), 4_000);
        assert_eq!(write(WRITE_NS_MAX + 1).handed_over_ns(1_000), 254_001);
    }
}
