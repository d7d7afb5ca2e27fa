//! Computes whether a session may exist and whether it must, to check "session present".

use super::super::history::{CLIENTS_MAX, ClientNumber, Ending, Event, Millis};
use super::{Allowances, SLACK, Violation};

#[derive(Debug, Default)]
pub(super) struct Sessions {
    allowances: Allowances,
    clients: [Session; CLIENTS_MAX],
}

#[derive(Clone, Copy, Debug)]
struct Attempt {
    since: Millis,
    clean_start: bool,
    expiry_secs: u32,
    confirmed: bool,
}

/// Earlier CONNECT packets that the node may handle after later ones.
#[derive(Clone, Copy, Debug)]
struct LateConnects {
    shortest_expiry_secs: u32,
    is_one_clean: bool,
}

#[derive(Debug, Default)]
struct Session {
    /// The connection of the client, from CONNECT on.
    current: Option<Attempt>,
    /// It certainly exists until then, unless a CONNECT starts clean.
    exists_until: Option<Millis>,
    /// It is certainly removed after then, unless it has a connection or the node has not noticed
    /// an end.
    gone_after: Millis,
    /// Ends of connections that the node may not have seen: the longest expiry of them.
    noticing_secs: Option<u32>,
    /// The same for ends noticed before a restart and not recorded on the disk.
    unwritten_secs: Option<u32>,
    /// CONNECT packets that may reach the node later than others that were sent after them.
    late_connects: Option<LateConnects>,
    /// All without an answer since the last CONNACK.
    unanswered: Option<LateConnects>,
    /// The session that was present may not be the one that the client remembers.
    is_doubtful: bool,
    /// Changes when earlier guarantees of the session no longer hold.
    epoch: u32,
    /// Attempts to connect that this session may have had.
    attempts: u32,
}

impl Sessions {
    pub(super) fn new(allowances: Allowances) -> Self {
        Self {
            allowances,
            ..Self::default()
        }
    }

    /// Guarantees to a session hold while its epoch stays the same.
    pub(super) fn epoch(&self, client: ClientNumber) -> u32 {
        self.clients[client].epoch
    }

    pub(super) fn is_connected(&self, client: ClientNumber) -> bool {
        let current = &self.clients[client].current;
        current.is_some_and(|attempt| attempt.confirmed)
    }

    /// Whether the session may be another one than the client had before: a CONNECT without CONNACK
    /// may have replaced it.
    pub(super) fn is_doubtful(&self, client: ClientNumber) -> bool {
        self.clients[client].is_doubtful
    }

    pub(super) fn certainly_exists(&self, client: ClientNumber, at: Millis) -> bool {
        let until = self.clients[client].exists_until;
        self.is_connected(client) || until.is_some_and(|until| until > at)
    }

    /// Whether the session may have had a connection before the present one.
    pub(super) fn may_be_resumed(&self, client: ClientNumber) -> bool {
        self.clients[client].attempts > 1
    }

    pub(super) fn observe(&mut self, at: Millis, event: &Event) -> Result<(), Violation> {
        match *event {
            Event::Connecting {
                client,
                clean_start,
                expiry_secs,
                ..
            } => {
                let session = &mut self.clients[client];
                session.epoch += u32::from(clean_start);
                session.attempts += 1;
                session.current = Some(Attempt {
                    since: at,
                    clean_start,
                    expiry_secs,
                    confirmed: false,
                });
            }
            Event::Connected {
                client,
                session_present,
            } => {
                let connected = self.clients[client].connected(at, session_present);
                connected.map_err(|what| format!("client {client}: {what}"))?;
            }
            Event::Refused { client, reason } if !self.allowances.disk_refuses => {
                return Err(format!("client {client} was refused: {reason:?}"));
            }
            Event::Disconnected { client, how } => self.clients[client].lost(at, how),
            Event::Settled => self
                .clients
                .iter_mut()
                .for_each(|session| session.settled(at)),
            Event::Restarted => self
                .clients
                .iter_mut()
                .for_each(|session| session.restarted(at)),
            _ => {}
        }
        Ok(())
    }
}

impl Session {
    fn connected(&mut self, at: Millis, session_present: bool) -> Result<(), Violation> {
        let Some(attempt) = &mut self.current else {
            return Err("CONNACK without CONNECT".to_owned());
        };
        attempt.confirmed = true;
        let attempt = *attempt;
        if session_present && attempt.clean_start {
            return Err("session present after a clean start".to_owned());
        }
        if session_present && self.noticing_secs.is_none() && self.gone_after < attempt.since {
            return Err("session present, but there can be none".to_owned());
        }
        let must_exist = self.exists_until.is_some_and(|until| until > at);
        let may_be_replaced = self.late_connects.is_some_and(LateConnects::end_sessions);
        if !session_present && !attempt.clean_start && must_exist && !may_be_replaced {
            return Err("no session present, but there must be one".to_owned());
        }
        let unanswered = self.unanswered.take();
        let may_be_another = unanswered.is_some_and(|all| all.end_sessions() || !must_exist);
        self.is_doubtful = session_present && (may_be_another || self.is_doubtful);
        self.epoch += u32::from(!session_present || may_be_another);
        if !session_present {
            self.attempts = 1;
        }
        self.exists_until = lasting_since(attempt.since, attempt.expiry_secs);
        self.gone_after = Millis::MAX;
        self.noticing_secs = None;
        self.unwritten_secs = None;
        Ok(())
    }

    fn lost(&mut self, at: Millis, how: Ending) {
        let Some(attempt) = self.current.take() else {
            return;
        };
        let asked = attempt.expiry_secs;
        let (shortest, longest) = match how {
            Ending::Disconnect {
                expiry_secs: Some(other),
                ..
            } if asked > 0 => (asked.min(other), asked.max(other)),
            _ => (asked, asked),
        };
        let earliest = match how {
            Ending::ByBroker => attempt.since,
            Ending::Cut | Ending::Silent(_) | Ending::Disconnect { .. } => at,
        };
        let lasting = lasting_since(earliest, shortest);
        if attempt.confirmed
            && let Some(late_connects) = self.late_connects
        {
            // One of them may have taken over.
            let other = lasting_since(earliest, late_connects.shortest_expiry_secs);
            self.exists_until = lasting.zip(other).map(|(one, other)| one.min(other));
            self.epoch += u32::from(shortest == 0 || late_connects.end_sessions());
        } else if attempt.confirmed {
            self.exists_until = lasting;
            self.gone_after = 0;
            self.epoch += u32::from(shortest == 0);
            if longest == 0 {
                return;
            }
        } else {
            for all in [&mut self.late_connects, &mut self.unanswered] {
                let all = all.get_or_insert(LateConnects {
                    shortest_expiry_secs: asked,
                    is_one_clean: false,
                });
                all.is_one_clean |= attempt.clean_start;
                all.shortest_expiry_secs = all.shortest_expiry_secs.min(asked);
            }
            // Perhaps the node never saw the CONNECT.
            let both = self.exists_until.zip(lasting);
            self.exists_until = both.map(|(before, after)| before.min(after));
        }
        match how {
            Ending::Silent(None) => self.gone_after = Millis::MAX,
            Ending::Silent(Some((_, latest))) => {
                self.gone_after = self.gone_after.max(end_of(latest, longest));
            }
            Ending::Cut | Ending::Disconnect { .. } | Ending::ByBroker => {
                self.noticing_secs = self.noticing_secs.max(Some(longest));
            }
        }
    }

    fn settled(&mut self, at: Millis) {
        self.late_connects = None;
        if let Some(expiry_secs) = self.noticing_secs.take()
            && expiry_secs > 0
        {
            self.gone_after = self.gone_after.max(end_of(at, expiry_secs));
        }
    }

    /// An end that is not recorded on the disk counts from now, and again after each restart.
    fn restarted(&mut self, at: Millis) {
        if self
            .late_connects
            .is_some_and(|late_connects| late_connects.is_one_clean)
        {
            self.exists_until = None;
        }
        self.unwritten_secs = self.unwritten_secs.max(self.noticing_secs);
        self.settled(at);
        if let Some(expiry_secs) = self.unwritten_secs.filter(|secs| *secs > 0) {
            self.gone_after = self.gone_after.max(end_of(at, expiry_secs));
        }
    }
}

impl LateConnects {
    /// Whether they may end a session.
    fn end_sessions(self) -> bool {
        self.is_one_clean || self.shortest_expiry_secs == 0
    }
}

/// The earliest end of a session that is disconnected since `from` or later.
fn lasting_since(from: Millis, expiry_secs: u32) -> Option<Millis> {
    match expiry_secs {
        0 => None,
        u32::MAX => Some(Millis::MAX),
        secs => Some(from + Millis::from(secs) * 1000),
    }
}

/// The latest end of a session that is disconnected since `from` or earlier.
fn end_of(from: Millis, expiry_secs: u32) -> Millis {
    lasting_since(from, expiry_secs).map_or(from, |until| until.saturating_add(SLACK))
}
