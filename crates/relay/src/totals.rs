//! Counters of a relay.

use std::fmt;

/// Counts of all threads from the start to the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Connections accepted.
    pub connections: u64,
    /// Connections that could not be accepted.
    pub refused: u64,
    /// Connections closed because of a malformed packet, or because of unread output.
    pub broken: u64,
    /// PUBLISH packets received.
    pub messages_in: u64,
    /// PUBLISH packets put out, one for each receiver.
    pub messages_out: u64,
    /// Copies that were dropped, because their receiver had too much pending output.
    pub dropped: u64,
    /// PUBACK, PUBREC and PUBCOMP received from subscribers.
    pub acknowledged: u64,
    /// System calls that read from a connection.
    pub reads: u64,
    /// System calls that wrote to a connection.
    pub writes: u64,
    /// Returns from the wait for events.
    pub wake_ups: u64,
}

impl Totals {
    pub(super) const fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.refused += other.refused;
        self.broken += other.broken;
        self.messages_in += other.messages_in;
        self.messages_out += other.messages_out;
        self.dropped += other.dropped;
        self.acknowledged += other.acknowledged;
        self.reads += other.reads;
        self.writes += other.writes;
        self.wake_ups += other.wake_ups;
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "connections {}, refused {}, broken {}, messages in {}, out {}, dropped {}, acknowledged {}, \
             reads {}, writes {}, wake-ups {}",
            self.connections,
            self.refused,
            self.broken,
            self.messages_in,
            self.messages_out,
            self.dropped,
            self.acknowledged,
            self.reads,
            self.writes,
            self.wake_ups
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_of_threads_add_up_and_fit_on_a_line() {
        let mut totals = Totals {
            connections: 2,
            reads: 5,
            ..Totals::default()
        };
        totals.add(&Totals {
            connections: 3,
            messages_out: 7,
            ..Totals::default()
        });
        assert_eq!(
            totals.to_string(),
            "connections 5, refused 0, broken 0, messages in 0, out 7, dropped 0, acknowledged 0, \
             reads 5, writes 0, wake-ups 0"
        );
    }
}
