//! One will: what happened to its connection, and when it may be seen.

use super::super::history::{ClientNumber, Ending, Millis, WillNote};
use super::{Complaint, SLACK};

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
    fate: Fate,
    /// How often it was published, as far as the watcher can tell.
    seen: u32,
}

/// The result of its CONNECT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Awaited,
    /// CONNACK came.
    Came,
    /// The connection ended before; the CONNECT may still reach the node.
    Late,
    /// As before, and the next one has begun, which may overtake it.
    Overtaken,
    /// The connection ended before, and if the CONNECT was to reach the node, it has.
    None,
}

/// The wills that the watcher may see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing: for the node the connection is up.
    Waiting,
    /// The client said goodbye, which the node may not have read.
    Parting,
    /// The connection ended, which the node may not have seen; it comes so many milliseconds after
    /// that.
    Ended {
        from: Millis,
        wait: Millis,
        must: bool,
    },
    /// Between these two times.
    Due { from: Millis, latest: Millis },
    /// Another connection has begun, and until its CONNACK the order is unknown.
    Challenged { from: Millis, must: bool },
    /// It may come or not.
    Open { from: Millis },
    /// As before, but if it came, it came before everything was settled.
    Closing { from: Millis },
    /// Nothing any more.
    Over,
}

impl Will {
    /// A connection with it begins, the client's how manieth.
    pub(super) fn new(
        (client, connection): (ClientNumber, u32),
        note: WillNote,
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
            fate: Fate::Waiting,
            seen: 0,
        }
    }

    /// Of that connection of that client.
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

    /// Whatever ends the connection, it is published at once.
    fn is_immediate(&self) -> bool {
        self.wait(self.expiry_secs) == 0
    }

    pub(super) fn next_connects(&mut self, at: Millis, clean_start: bool) {
        self.is_current = false;
        if self.answer == Answer::Late {
            self.answer = Answer::Overtaken;
        }
        let at_once = clean_start || self.is_immediate();
        // It may take the connection over and end before it is let in: then the time of the will
        // begins.
        let wait = if at_once {
            0
        } else {
            self.wait(self.expiry_secs)
        };
        let earlier = |from: Millis| from.min(at + wait);
        self.fate = match self.fate {
            Fate::Waiting => Fate::Challenged {
                from: earlier(Millis::MAX),
                must: at_once && self.answer == Answer::Came,
            },
            Fate::Parting => Fate::Open {
                from: earlier(Millis::MAX),
            },
            // It comes with the takeover, if not before.
            Fate::Ended { from, wait, must } if self.is_immediate() => Fate::Ended {
                from: from.min(at),
                wait,
                must,
            },
            Fate::Due { from, latest } if self.is_immediate() => Fate::Due {
                from: from.min(at),
                latest,
            },
            Fate::Ended { from, must, .. } => Fate::Challenged {
                from: earlier(from),
                must: clean_start && must,
            },
            Fate::Due { from, .. } => Fate::Challenged {
                from: earlier(from),
                must: clean_start,
            },
            Fate::Challenged { from, .. } | Fate::Open { from } => Fate::Open {
                from: earlier(from),
            },
            Fate::Closing { .. } | Fate::Over => self.fate,
        };
    }

    pub(super) fn connected(&mut self) {
        if self.is_current {
            self.answer = Answer::Came;
            return;
        }
        self.fate = match self.fate {
            Fate::Challenged { from, must: true } => Fate::Ended {
                from,
                wait: 0,
                must: true,
            },
            Fate::Challenged { from, .. } | Fate::Open { from }
                if self.answer == Answer::Overtaken =>
            {
                Fate::Open { from }
            }
            Fate::Challenged { from, must: false } | Fate::Open { from } => Fate::Closing { from },
            fate => fate,
        };
    }

    pub(super) fn connection_ends(&mut self, at: Millis, how: Ending, is_sure: bool) {
        if !self.is_current {
            if let Fate::Challenged { from, .. } = self.fate {
                self.fate = Fate::Open { from };
            }
            return;
        }
        if self.fate != Fate::Waiting {
            return;
        }
        let asked = self.expiry_secs;
        let (shortest, longest) = match how {
            Ending::Goodbye {
                expiry_secs: Some(other),
                ..
            } if asked > 0 => (asked.min(other), asked.max(other)),
            _ => (asked, asked),
        };
        let (shortest, longest) = (self.wait(shortest), self.wait(longest));
        let is_certain = is_sure && self.answer == Answer::Came;
        let ended = |from| Fate::Ended {
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
        self.fate = match how {
            Ending::Goodbye {
                with_will: false, ..
            } => Fate::Parting,
            Ending::Cut | Ending::Goodbye { .. } => ended(at),
            Ending::ByNode => ended(self.connecting_at),
            Ending::Silent(None) => Fate::Waiting,
            Ending::Silent(Some((from, latest))) if is_certain => Fate::Due {
                from: from + shortest,
                latest: latest + longest + SLACK,
            },
            Ending::Silent(Some((from, _))) if is_sure => Fate::Open {
                from: from + shortest,
            },
            Ending::Silent(Some(_)) => Fate::Open {
                from: self.connecting_at,
            },
        };
    }

    /// The goodbye may come too late: the node ended the connection for what was sent before.
    pub(super) fn may_be_dismissed(&mut self, at: Millis) {
        let due = at + self.wait(self.expiry_secs);
        self.fate = match self.fate {
            Fate::Parting => Fate::Open { from: at },
            // One that has gone silent may be dismissed before its time is over.
            Fate::Due { from, latest } => Fate::Due {
                from: from.min(due),
                latest,
            },
            Fate::Waiting if self.is_current => Fate::Open { from: due },
            fate => fate,
        };
    }

    /// The silent connection was closed: if it is this will's, its time begins, if it has not
    /// begun.
    pub(super) fn buried(&mut self, at: Millis) {
        if self.is_current && self.fate == Fate::Waiting {
            self.connection_ends(at, Ending::Cut, true);
            return;
        }
        let due = at + self.wait(self.expiry_secs);
        self.fate = match self.fate {
            Fate::Challenged { from, .. } | Fate::Open { from } => Fate::Open {
                from: from.min(due),
            },
            Fate::Due { from, latest } => Fate::Due {
                from: from.min(due),
                latest,
            },
            fate => fate,
        };
    }

    pub(super) fn settled(&mut self, at: Millis) -> Result<(), Complaint> {
        if self.answer == Answer::Late {
            self.answer = Answer::None;
        }
        self.fate = match self.fate {
            Fate::Ended {
                from,
                wait,
                must: true,
            } => Fate::Due {
                from,
                latest: at + wait + if wait > 0 { SLACK } else { 0 },
            },
            Fate::Ended {
                from, must: false, ..
            } => Fate::Open { from },
            Fate::Parting | Fate::Closing { .. } => Fate::Over,
            fate => fate,
        };
        match self.fate {
            Fate::Due { latest, .. } if latest <= at && self.seen == 0 => Err(format!(
                "it was due at {latest} at the latest and has not come; {self:?}"
            )),
            _ => Ok(()),
        }
    }

    /// It came, as a repetition that says so or as new.
    pub(super) fn received(
        &mut self,
        at: Millis,
        is_new: bool,
        times_max: u32,
        may_be_over: bool,
    ) -> Result<(), Complaint> {
        self.seen += u32::from(is_new || self.seen == 0);
        if self.seen > times_max {
            return Err("it came twice".to_owned());
        }
        let from = match self.fate {
            // Also before the goodbye was read.
            Fate::Waiting | Fate::Parting if may_be_over => return Ok(()),
            Fate::Waiting => return Err("it came, but the connection is up".to_owned()),
            Fate::Over => return Err("it came, but must not any more".to_owned()),
            Fate::Parting => return Err("it came after a normal goodbye".to_owned()),
            Fate::Ended { from, .. }
            | Fate::Due { from, .. }
            | Fate::Challenged { from, .. }
            | Fate::Open { from }
            | Fate::Closing { from } => from,
        };
        if at < from {
            return Err(format!("it came too early, it is due at {from}; {self:?}"));
        }
        Ok(())
    }

    /// Who was connected is away since now; what was not yet on the disk may be undone. The wills
    /// of sessions that end with their connection are on a disk that never refuses.
    pub(super) fn restarted(&mut self, at: Millis, disk_refuses: bool) {
        let wait = self.wait(self.expiry_secs);
        let is_durable = self.expiry_secs > 0 || !disk_refuses;
        self.fate = match self.fate {
            Fate::Ended { from, must, .. } => Fate::Ended {
                from,
                wait,
                must: must && is_durable,
            },
            Fate::Due { from, .. } => Fate::Ended {
                from,
                wait,
                must: is_durable,
            },
            // What cancelled it may be undone: it was there when the node died.
            Fate::Parting => Fate::Open { from: at + wait },
            Fate::Closing { from } | Fate::Open { from } | Fate::Challenged { from, .. } => {
                Fate::Open {
                    from: from.min(at + wait),
                }
            }
            fate => fate,
        };
    }
}
