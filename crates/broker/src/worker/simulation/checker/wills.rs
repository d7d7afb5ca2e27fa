//! Wills: published when they are due and not a moment before, once, and never after a normal goodbye.

use std::collections::BTreeMap;

use thrum_codec::QoS;

use super::super::history::{CLIENTS_MAX, ClientNumber, Ending, Event, MessageNumber, Millis};
use super::{Allowances, Complaint, SLACK};

#[derive(Debug, Default)]
pub(super) struct Wills {
    allowances: Allowances,
    wills: BTreeMap<MessageNumber, Will>,
    connections: [u32; CLIENTS_MAX],
    /// A CONNECT that was never answered may reach the node later than others that were sent after it.
    has_straggler: [bool; CLIENTS_MAX],
    is_confirmed: [bool; CLIENTS_MAX],
    restarts: u32,
}

#[derive(Clone, Copy, Debug)]
struct Will {
    client: ClientNumber,
    /// Counted for each client from 1.
    connection: u32,
    connecting_at: Millis,
    delay_secs: u32,
    expiry_secs: u32,
    /// Its connection is the last that the client has begun.
    is_current: bool,
    is_confirmed: bool,
    /// Its CONNECT was not answered, and may reach the node late.
    is_straggler: bool,
    /// So late that the next one overtakes it.
    is_overtaken: bool,
    fate: Fate,
    seen: u32,
}

/// What the watcher may see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing: for the node the connection is up.
    Waiting,
    /// The client said goodbye, which the node may not have read.
    Parting,
    /// The connection ended, which the node may not have seen; it comes so many milliseconds after that.
    Ended {
        from: Millis,
        wait: Millis,
        must: bool,
    },
    /// Between these two times.
    Due { from: Millis, latest: Millis },
    /// Another connection has begun, and until its CONNACK nobody knows who was first.
    Challenged { from: Millis, must: bool },
    /// It may come or not.
    Open { from: Millis },
    /// As before, but if it came, it came before everything was settled.
    Closing { from: Millis },
    /// Nothing any more.
    Over,
}

impl Wills {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            allowances,
            ..Self::default()
        }
    }

    pub(super) fn is_will(&self, number: MessageNumber) -> bool {
        self.wills.contains_key(&number)
    }

    pub(super) fn see(&mut self, at: Millis, event: &Event) -> Result<(), Complaint> {
        match *event {
            Event::Connecting {
                client,
                clean_start,
                expiry_secs,
                will,
            } => {
                self.of(client)
                    .for_each(|will| will.next_connects(at, clean_start));
                self.connections[client] += 1;
                self.is_confirmed[client] = false;
                if let Some(note) = will {
                    let will = Will {
                        client,
                        connection: self.connections[client],
                        connecting_at: at,
                        delay_secs: note.delay_secs,
                        expiry_secs,
                        is_current: true,
                        is_confirmed: false,
                        is_straggler: false,
                        is_overtaken: false,
                        fate: Fate::Waiting,
                        seen: 0,
                    };
                    self.wills.insert(note.number, will);
                }
            }
            Event::Connected { client, .. } => {
                self.is_confirmed[client] = true;
                self.of(client).for_each(Will::connected);
            }
            Event::Gone { client, how } => {
                let is_sure = !self.has_straggler[client];
                self.of(client)
                    .for_each(|will| will.connection_ends(at, how, is_sure));
                self.has_straggler[client] |= !self.is_confirmed[client];
            }
            Event::Buried { client, connection } => self
                .of(client)
                .filter(|will| will.connection == connection)
                .for_each(|will| will.buried(at)),
            Event::Received {
                number,
                retain: false,
                qos,
                dup,
                ..
            } => {
                if let Some(will) = self.wills.get_mut(&number) {
                    let may_be_taken_over = self.has_straggler[will.client];
                    // With QoS 1 the watcher may get it once more than it was published.
                    will.seen += u32::from(!dup || qos == QoS::ExactlyOnce || will.seen == 0);
                    let received = will.received(at, 1 + self.restarts, may_be_taken_over);
                    return received.map_err(|what| format!("will {number}: {what}"));
                }
            }
            Event::Settled => {
                self.has_straggler = [false; CLIENTS_MAX];
                for (number, will) in &mut self.wills {
                    let settled = will.settled(at);
                    if self.allowances.queues_overflow {
                        continue;
                    }
                    settled.map_err(|what| format!("will {number}: {what}"))?;
                }
            }
            Event::Restarted => {
                self.restarts += 1;
                self.wills.values_mut().for_each(|will| will.restarted(at));
            }
            _ => {}
        }
        Ok(())
    }

    fn of(&mut self, client: ClientNumber) -> impl Iterator<Item = &mut Will> {
        self.wills
            .values_mut()
            .filter(move |will| will.client == client)
    }
}

impl Will {
    /// Milliseconds from the end of the connection, for a session of that expiry.
    fn wait(&self, expiry_secs: u32) -> Millis {
        Millis::from(self.delay_secs.min(expiry_secs)) * 1000
    }

    /// Whatever ends the connection, it is published at once.
    fn is_immediate(&self) -> bool {
        self.wait(self.expiry_secs) == 0
    }

    fn next_connects(&mut self, at: Millis, clean_start: bool) {
        self.is_current = false;
        self.is_overtaken |= self.is_straggler;
        let at_once = clean_start || self.is_immediate();
        let earlier = |from: Millis| if at_once { from.min(at) } else { from };
        self.fate = match self.fate {
            Fate::Waiting => Fate::Challenged {
                from: earlier(Millis::MAX),
                must: at_once && self.is_confirmed,
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

    fn connected(&mut self) {
        if self.is_current {
            self.is_confirmed = true;
            return;
        }
        self.fate = match self.fate {
            Fate::Challenged { from, must: true } => Fate::Ended {
                from,
                wait: 0,
                must: true,
            },
            Fate::Challenged { from, .. } | Fate::Open { from } if self.is_overtaken => {
                Fate::Open { from }
            }
            Fate::Challenged { from, must: false } | Fate::Open { from } => Fate::Closing { from },
            fate => fate,
        };
    }

    fn connection_ends(&mut self, at: Millis, how: Ending, is_sure: bool) {
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
        let ended = |from| Fate::Ended {
            // A late CONNECT may start clean.
            from: if is_sure {
                from + shortest
            } else {
                self.connecting_at
            },
            wait: longest,
            must: self.is_confirmed && is_sure,
        };
        self.is_straggler = !self.is_confirmed;
        self.fate = match how {
            Ending::Goodbye {
                with_will: false, ..
            } => Fate::Parting,
            Ending::Cut | Ending::Goodbye { .. } => ended(at),
            Ending::ByNode => ended(self.connecting_at),
            Ending::Silent(None) => Fate::Waiting,
            Ending::Silent(Some((from, latest))) if self.is_confirmed && is_sure => Fate::Due {
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

    /// The silent connection was closed: if it is this will's, its time begins, if it has not begun.
    fn buried(&mut self, at: Millis) {
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

    fn settled(&mut self, at: Millis) -> Result<(), Complaint> {
        self.is_straggler = false;
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

    fn received(
        &mut self,
        at: Millis,
        times_max: u32,
        may_be_taken_over: bool,
    ) -> Result<(), Complaint> {
        if self.seen > times_max {
            return Err("it came twice".to_owned());
        }
        let from = match self.fate {
            Fate::Waiting if may_be_taken_over => return Ok(()),
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

    /// Who was connected is away since now; what was not yet on the disk may be undone.
    fn restarted(&mut self, at: Millis) {
        let wait = self.wait(self.expiry_secs);
        let is_durable = self.expiry_secs > 0;
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
