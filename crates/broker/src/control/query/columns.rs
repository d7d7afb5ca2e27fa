//! The columns that a listing of sessions is sorted by.

use thrum_engine::client::Client;
use thrum_protocol::Time;

use super::filter::{Figure, Subject};
use super::rank::{RankRef, TextRef, text_units};
use super::row::address_of;

/// Bytes of the name of a listener that are compared; listeners with the same beginning count as
/// one.
const NAME_BYTES: usize = 64;

/// The order of sessions; those with the same value are sorted by client identifier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SortKey {
    /// Client identifier.
    #[default]
    ClientId,
    /// User; sessions without one follow.
    User,
    /// Address of the connection, or of the last one, IPv4 before IPv6; sessions without a known
    /// one follow.
    Address,
    /// Name of the listener; disconnected clients follow.
    Listener,
    /// Protocol version.
    Version,
    /// Begin of the connection; disconnected clients follow all others.
    ConnectedSince,
    /// End of the connection; connected clients follow all others.
    AwaySince,
    /// A figure; sessions without it are below all others.
    Figure(Figure),
    /// No order. A whole listing visits each session once; with an order each page does.
    Unsorted,
}

impl SortKey {
    /// A number that no other key has, for cursors.
    pub(super) const fn number(self) -> u8 {
        const FIGURES: u8 = 0x40;
        match self {
            Self::ClientId => 0,
            Self::User => 1,
            Self::Address => 2,
            Self::Listener => 3,
            Self::Version => 4,
            Self::ConnectedSince => 5,
            Self::AwaySince => 6,
            Self::Unsorted => 7,
            Self::Figure(figure) => FIGURES | figure as u8,
        }
    }

    /// Whether sessions are compared by a text.
    const fn is_text(self) -> bool {
        matches!(self, Self::User | Self::Address | Self::Listener)
    }
}

/// The value of a session in the column that a listing is sorted by.
pub(super) struct ColumnValue {
    sort: SortKey,
    /// Compared first.
    number: u64,
    /// A text that its worker composes.
    composed: [u8; NAME_BYTES],
    composed_len: usize,
}

impl ColumnValue {
    /// The value of a session.
    pub(super) fn of(sort: SortKey, subject: &mut Subject<'_>) -> Self {
        let mut value = Self {
            sort,
            number: 0,
            composed: [0; NAME_BYTES],
            composed_len: 0,
        };
        let client = subject.client;
        match sort {
            SortKey::ClientId | SortKey::Unsorted => {}
            SortKey::User => value.number = u64::from(client.owner().user().is_none()),
            SortKey::Address => value.compose_address(subject),
            SortKey::Listener => value.compose_listener(subject),
            SortKey::Version => value.number = client.session.link().version() as u64,
            SortKey::ConnectedSince => {
                let began = client.session.link().traffic().began();
                value.number = at(began, client.connection.is_some());
            }
            SortKey::AwaySince => {
                let ended = client.session.lifetime().last_activity();
                value.number = at(ended, client.connection.is_none());
            }
            SortKey::Figure(figure) => value.number = figure.order(client),
        }
        value
    }

    /// The rank of the session in the listing.
    pub(super) fn rank<'a>(&'a self, client: &'a Client) -> RankRef<'a> {
        let client_id = TextRef::new(client.session.client_id());
        let text = match self.sort {
            SortKey::User => TextRef::new(client.owner().user().unwrap_or("")),
            _ => TextRef::of_bytes(&self.composed[..self.composed_len]),
        };
        let (name, second) = if self.sort.is_text() {
            (text, client_id)
        } else {
            (client_id, TextRef::new(""))
        };
        RankRef {
            value: self.number,
            name,
            second,
        }
    }

    /// Units of [`Self::rank`].
    pub(super) fn units(&self, client: &Client) -> u64 {
        let user = match self.sort {
            SortKey::User => text_units(client.owner().user().unwrap_or("")),
            _ => 0,
        };
        user + text_units(client.session.client_id())
    }

    fn compose(&mut self, bytes: &[u8]) {
        let len = bytes.len().min(NAME_BYTES);
        self.composed[..len].copy_from_slice(&bytes[..len]);
        self.composed_len = len;
    }

    fn compose_listener(&mut self, subject: &mut Subject<'_>) {
        match subject.listener() {
            Some(listener) => self.compose(listener.as_bytes()),
            None => self.number = 1,
        }
    }

    fn compose_address(&mut self, subject: &Subject<'_>) {
        match address_of(subject.edge, subject.client) {
            Some(std::net::IpAddr::V4(address)) => self.compose(&address.octets()),
            Some(std::net::IpAddr::V6(address)) => {
                self.number = 1;
                self.compose(&address.octets());
            }
            None => self.number = 2,
        }
    }
}

/// A time, or the last of all times if it is not that of the session's state.
const fn at(time: Time, is_known: bool) -> u64 {
    if is_known { time.as_millis() } else { u64::MAX }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_key_has_a_number_of_its_own() {
        let figures = Figure::ALL.map(SortKey::Figure);
        let others = [
            SortKey::ClientId,
            SortKey::User,
            SortKey::Address,
            SortKey::Listener,
            SortKey::Version,
            SortKey::ConnectedSince,
            SortKey::AwaySince,
            SortKey::Unsorted,
        ];
        let numbers = figures.into_iter().chain(others).map(SortKey::number);
        assert_eq!(numbers.collect::<BTreeSet<_>>().len(), 12 + 8);
    }
}
