//! One will: the state of its connection, and the times at which it may be published.

use super::super::history::{ClientNumber, Ending, Millis, SentWill};
use super::{SLACK, Violation};

#[derive(Clone, Copy, Debug)]
pub(super) struct Will {
    client: ClientNumber,
    /// Counted for each client from 1.
    connection: u32,
    connecting_at: Millis,
    delay_secs: u32,
    expiry_secs: u32,
    /// Its connection is the last that the client has begun.
    is_current: bool,
    answer: Answer,
    expectation: Expectation,
    /// How often the watcher has observed it.
    seen: u32,
}

/// The result of its CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Awaited,
    /// CONNACK arrived.
    Came,
    /// The connection ended before; the CONNECT may still reach the node.
    Late,
    /// As before, and the next one has begun, which may overtake it.
    Overtaken,
    /// The connection ended before; the CONNECT no longer is on its way.
    None,
}

/// When the watcher may observe the will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expectation {
    /// Never yet: for the node the connection is up.
    Waiting,
    /// The client sent DISCONNECT, which the node may not have read.
    Disconnecting,
    /// The connection ended, which the node may not have noticed; the will is due `wait`
    /// milliseconds after that.
    Ended {
        from: Millis,
        wait: Millis,
        must: bool,
    },
    /// Between these two times.
    Due { from: Millis, latest: Millis },
    /// Another connection has begun, and until its CONNACK the order is unknown.
    TakeoverPending { from: Millis, must: bool },
    /// It may be published or not.
    Open { from: Millis },
    /// As before, but only until everything was settled.
    Closing { from: Millis },
    /// Never again.
    Over,
}

impl Will {
    /// Creates the will of a client's connection, by client and connection number.
    pub(super) fn new(
        (client, connection): (ClientNumber, u32),
        note: SentWill,
        expiry_secs: u32,
        at: Millis,
    ) -> Self {
        Self {
            client,
            connection,
            connecting_at: at,
            delay_secs: note.delay_secs,
            expiry_secs,
            is_current: true,
            answer: Answer::Awaited,
            expectation: Expectation::Waiting,
            seen: 0,
        }
    }

    /// Whether it belongs to that connection of that client.
    pub(super) fn is_of(&self, client: ClientNumber, connection: u32) -> bool {
        self.client == client && self.connection == connection
    }

    pub(super) fn client(&self) -> ClientNumber {
        self.client
    }

    /// Milliseconds from the end of the connection, for a session of that expiry.
    fn wait(&self, expiry_secs: u32) -> Millis {
        Millis::from(self.delay_secs.min(expiry_secs)) * 1000
    }

    /// Whether it is published at once after any end of the connection.
    fn is_immediate(&self) -> bool {
        self.wait(self.expiry_secs) == 0
    }

    pub(super) fn next_connects(&mut self, at: Millis, clean_start: bool) {
        self.is_current = false;
        if self.answer == Answer::Late {
            self.answer = Answer::Overtaken;
        }
        let at_once = clean_start || self.is_immediate();
        // The new connection may take over and end before its CONNACK: then the delay of the will
        // begins.
        let wait = if at_once {
            0
        } else {
            self.wait(self.expiry_secs)
        };
        let earlier = |from: Millis| from.min(at + wait);
        self.expectation = match self.expectation {
            Expectation::Waiting => Expectation::TakeoverPending {
                from: earlier(Millis::MAX),
                must: at_once && self.answer == Answer::Came,
            },
            Expectation::Disconnecting => Expectation::Open {
                from: earlier(Millis::MAX),
            },
            // It is published with the takeover, if not before.
            Expectation::Ended { from, wait, must } if self.is_immediate() => Expectation::Ended {
                from: from.min(at),
                wait,
                must,
            },
            Expectation::Due { from, latest } if self.is_immediate() => Expectation::Due {
                from: from.min(at),
                latest,
            },
            Expectation::Ended { from, must, .. } => Expectation::TakeoverPending {
                from: earlier(from),
                must: clean_start && must,
            },
            Expectation::Due { from, .. } => Expectation::TakeoverPending {
                from: earlier(from),
                must: clean_start,
            },
            Expectation::TakeoverPending { from, .. } | Expectation::Open { from } => {
                Expectation::Open {
                    from: earlier(from),
                }
            }
            Expectation::Closing { .. } | Expectation::Over => self.expectation,
        };
    }

    pub(super) fn connected(&mut self) {
        if self.is_current {
            self.answer = Answer::Came;
            return;
        }
        self.expectation = match self.expectation {
            Expectation::TakeoverPending { from, must: true } => Expectation::Ended {
                from,
                wait: 0,
                must: true,
            },
            Expectation::TakeoverPending { from, .. } | Expectation::Open { from }
                if self.answer == Answer::Overtaken =>
            {
                Expectation::Open { from }
            }
            Expectation::TakeoverPending { from, must: false } | Expectation::Open { from } => {
                Expectation::Closing { from }
            }
            expectation => expectation,
        };
    }

    pub(super) fn connection_ends(&mut self, at: Millis, how: Ending, is_sure: bool) {
        if !self.is_current {
            if let Expectation::TakeoverPending { from, .. } = self.expectation {
                self.expectation = Expectation::Open { from };
            }
            return;
        }
        if self.expectation != Expectation::Waiting {
            return;
        }
        let asked = self.expiry_secs;
        let (shortest, longest) = match how {
            Ending::Disconnect {
                expiry_secs: Some(other),
                ..
            } if asked > 0 => (asked.min(other), asked.max(other)),
            _ => (asked, asked),
        };
        let (shortest, longest) = (self.wait(shortest), self.wait(longest));
        let is_certain = is_sure && self.answer == Answer::Came;
        let ended = |from| Expectation::Ended {
            // A late CONNECT may start clean.
            from: if is_sure {
                from + shortest
            } else {
                self.connecting_at
            },
            wait: longest,
            must: is_certain,
        };
        if self.answer == Answer::Awaited {
            self.answer = Answer::Late;
        }
        self.expectation = match how {
            Ending::Disconnect {
                with_will: false, ..
            } => Expectation::Disconnecting,
            Ending::Cut | Ending::Disconnect { .. } => ended(at),
            Ending::ByBroker => ended(self.connecting_at),
            Ending::Silent(None) => Expectation::Waiting,
            Ending::Silent(Some((from, latest))) if is_certain => Expectation::Due {
                from: from + shortest,
                latest: latest + longest + SLACK,
            },
            Ending::Silent(Some((from, _))) if is_sure => Expectation::Open {
                from: from + shortest,
            },
            Ending::Silent(Some(_)) => Expectation::Open {
                from: self.connecting_at,
            },
        };
    }

    /// The DISCONNECT may arrive too late, if the node ended the connection because of an earlier
    /// packet.
    pub(super) fn may_be_disconnected_by_node(&mut self, at: Millis) {
        let due = at + self.wait(self.expiry_secs);
        self.expectation = match self.expectation {
            Expectation::Disconnecting => Expectation::Open { from: at },
            // The node may end a silent connection before its keep alive is over.
            Expectation::Due { from, latest } => Expectation::Due {
                from: from.min(due),
                latest,
            },
            Expectation::Waiting if self.is_current => Expectation::Open { from: due },
            expectation => expectation,
        };
    }

    /// The silent connection was closed: if the will belongs to it, its delay begins now at the
    /// latest.
    pub(super) fn silence_detected(&mut self, at: Millis) {
        if self.is_current && self.expectation == Expectation::Waiting {
            self.connection_ends(at, Ending::Cut, true);
            return;
        }
        let due = at + self.wait(self.expiry_secs);
        self.expectation = match self.expectation {
            Expectation::TakeoverPending { from, .. } | Expectation::Open { from } => {
                Expectation::Open {
                    from: from.min(due),
                }
            }
            Expectation::Due { from, latest } => Expectation::Due {
                from: from.min(due),
                latest,
            },
            expectation => expectation,
        };
    }

    pub(super) fn settled(&mut self, at: Millis) -> Result<(), Violation> {
        if self.answer == Answer::Late {
            self.answer = Answer::None;
        }
        self.expectation = match self.expectation {
            Expectation::Ended {
                from,
                wait,
                must: true,
            } => Expectation::Due {
                from,
                latest: at + wait + if wait > 0 { SLACK } else { 0 },
            },
            Expectation::Ended {
                from, must: false, ..
            } => Expectation::Open { from },
            Expectation::Disconnecting | Expectation::Closing { .. } => Expectation::Over,
            expectation => expectation,
        };
        match self.expectation {
            Expectation::Due { latest, .. } if latest <= at && self.seen == 0 => Err(format!(
                "it was due at {latest} at the latest and has not arrived; {self:?}"
            )),
            _ => Ok(()),
        }
    }

    /// Records that it arrived, as a repetition with DUP or as new.
    pub(super) fn received(
        &mut self,
        at: Millis,
        is_new: bool,
        times_max: u32,
        may_be_over: bool,
    ) -> Result<(), Violation> {
        self.seen += u32::from(is_new || self.seen == 0);
        if self.seen > times_max {
            return Err("it arrived twice".to_owned());
        }
        let from = match self.expectation {
            // It may also be published before the DISCONNECT is read.
            Expectation::Waiting | Expectation::Disconnecting if may_be_over => return Ok(()),
            Expectation::Waiting => return Err("it arrived, but the connection is up".to_owned()),
            Expectation::Over => return Err("it arrived after its time".to_owned()),
            Expectation::Disconnecting => {
                return Err("it arrived after a normal DISCONNECT".to_owned());
            }
            Expectation::Ended { from, .. }
            | Expectation::Due { from, .. }
            | Expectation::TakeoverPending { from, .. }
            | Expectation::Open { from }
            | Expectation::Closing { from } => from,
        };
        if at < from {
            return Err(format!(
                "it arrived too early, it is due at {from}; {self:?}"
            ));
        }
        Ok(())
    }

    /// Clients are disconnected from now on, and changes that were not on the disk may be undone.
    /// The wills of sessions that end with their connection are stored if the disk never refuses.
    pub(super) fn restarted(&mut self, at: Millis, disk_refuses: bool) {
        let wait = self.wait(self.expiry_secs);
        let is_durable = self.expiry_secs > 0 || !disk_refuses;
        self.expectation = match self.expectation {
            Expectation::Ended { from, must, .. } => Expectation::Ended {
                from,
                wait,
                must: must && is_durable,
            },
            Expectation::Due { from, .. } => Expectation::Ended {
                from,
                wait,
                must: is_durable,
            },
            // The DISCONNECT that cancelled it may be lost with the node.
            Expectation::Disconnecting => Expectation::Open { from: at + wait },
            Expectation::Closing { from }
            | Expectation::Open { from }
            | Expectation::TakeoverPending { from, .. } => Expectation::Open {
                from: from.min(at + wait),
            },
            expectation => expectation,
        };
    }
}
