//! A client's connections, one after the other, and what each means for its session.

use std::collections::BTreeMap;

use super::Checker;
use super::presence::Presence;
use super::session_record::SessionRecord;
use super::wills::Wills;
use crate::event::{ClientIndex, Connect, Disconnect, Millis};

/// Knowledge about one client.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Connections that got a CONNACK.
    connections: u32,
    link: Link,
    /// Event of the last CONNECT.
    asked: u64,
    /// When DISCONNECT was sent on the connection.
    disconnecting_at: Option<Millis>,
    /// How each connection ended.
    pub(super) ends: BTreeMap<u32, End>,
    pub(super) presence: Presence,
    pub(super) session: SessionRecord,
    pub(super) wills: Wills,
}

/// The network connection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Link {
    #[default]
    Down,
    /// CONNECT is sent; perhaps while an earlier connection is open.
    Opening {
        connect: Connect,
        is_takeover: bool,
    },
    Up(Connect),
    /// DISCONNECT is sent.
    Closing(Connect),
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The broker was killed.
    Crash,
    /// The client closed it without DISCONNECT.
    Vanished,
    /// The client connected again.
    Taken,
    /// DISCONNECT, and the broker closed.
    Disconnected,
}

/// Which connection of a client, and which start of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) connection: u32,
    pub(super) run: u32,
}

impl Client {
    pub(super) fn place(&self, run: u32) -> Place {
        Place {
            connection: self.connections,
            run,
        }
    }

    /// Its CONNECT has no CONNACK yet.
    pub(super) fn is_opening(&self) -> bool {
        matches!(self.link, Link::Opening { .. })
    }

    fn ended(&mut self, end: End) {
        self.ends.insert(self.connections, end);
        self.session.connection_ended();
    }
}

impl Checker {
    pub(super) fn connecting(&mut self, client: ClientIndex, connect: &Connect) {
        if let Some(will) = &connect.will {
            let event = self.clock.event;
            self.messages.add(client, will.number, &will.publish, event);
            self.retained.publishing(will.number, &will.publish);
        }
        self.will_asked(client, connect);
        let client = &mut self.clients[client];
        let is_takeover = matches!(client.link, Link::Up(_));
        client.asked = self.clock.event;
        client.presence.connecting(connect);
        client.link = Link::Opening {
            connect: connect.clone(),
            is_takeover,
        };
    }

    pub(super) fn connected(&mut self, index: ClientIndex, present: bool) {
        let at = self.clock.at;
        let client = &mut self.clients[index];
        let link = std::mem::take(&mut client.link);
        let Link::Opening {
            connect,
            is_takeover,
        } = link
        else {
            return self.blame(Some(index), None, "CONNACK without CONNECT".to_owned());
        };
        if is_takeover {
            client.ended(End::Taken);
        }
        client.connections += 1;
        let asked = (connect.expiry_secs > 0).then_some(client.asked);
        client.link = Link::Up(connect.clone());
        let was_certain = client.presence.is_certain();
        if let Err(text) = client.presence.connected(&connect, present, at) {
            self.blame(Some(index), None, text);
        }
        self.blame_if_faulty(index, asked);
        self.counts.resumed += u64::from(present);
        if !present {
            self.disown(index);
            let client = &mut self.clients[index];
            client.session = SessionRecord::new(client.connections);
        } else if !was_certain {
            self.disown(index);
        }
        self.will_after_connect(index, &connect, is_takeover);
    }

    pub(super) fn disconnecting(&mut self, index: ClientIndex, disconnect: Disconnect) {
        let client = &mut self.clients[index];
        client.disconnecting_at = Some(self.clock.at);
        if let Link::Up(connect) = std::mem::take(&mut client.link) {
            client.link = Link::Closing(connect);
        }
        if disconnect.ends_session {
            client.presence.ending();
            self.disown(index);
        }
        self.will_at_disconnect(index, disconnect);
    }

    pub(super) fn disconnected(&mut self, client: ClientIndex) {
        self.clients[client].presence.ended_in_order();
        self.connection_ended(client, End::Disconnected);
    }

    pub(super) fn connection_ended(&mut self, index: ClientIndex, end: End) {
        let client = &mut self.clients[index];
        // The broker counts from the moment it reads DISCONNECT, before the client sees the end.
        let at = client.disconnecting_at.take().unwrap_or(self.clock.at);
        let link = std::mem::take(&mut client.link);
        let (expiry_secs, is_acknowledged) = match &link {
            Link::Down => return,
            Link::Opening {
                connect,
                is_takeover,
            } => (connect.expiry_secs, *is_takeover),
            Link::Up(connect) | Link::Closing(connect) => (connect.expiry_secs, true),
        };
        client.presence.connection_ended(end, at);
        if is_acknowledged {
            client.ended(end);
        }
        if let Link::Opening { connect, .. } = &link {
            self.will_unanswered(index, connect);
        }
        let client = &self.clients[index];
        let is_opening = matches!(link, Link::Opening { .. });
        if !client.presence.is_certain() {
            self.disown(index);
        }
        self.will_at_end(index, at, expiry_secs, is_opening);
    }

    /// The session may be gone: its groups may have lost the messages in flight to it.
    fn disown(&mut self, client: ClientIndex) {
        for group in self.clients[client].session.disown() {
            self.groups.member_leaves(&group, self.clock.event);
        }
    }
}
