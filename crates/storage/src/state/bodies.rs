//! Messages while the records are read, and their positions afterwards.
//!
//! Numbers are assigned consecutively, so a plain table maps a number to a position. It is filled
//! nearly in the order of the numbers, whereas a hash table would cause a cache miss per message.

use super::recovered::RecoveredMessage;
use crate::record::{Message, MessageId};

/// Highest number of table entries for each message; above it, positions are found by a search.
const SPREAD_MAX: u64 = 8;

/// A position without message.
const NOWHERE: u32 = u32::MAX;

/// Collects messages from their records.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    list: Vec<RecoveredMessage>,
}

/// Messages with lookup by number.
#[derive(Debug, Default)]
pub(super) struct Found {
    list: Vec<RecoveredMessage>,
    first: MessageId,
    /// Maps a number minus the first one to a position; empty if the numbers are too sparse and the
    /// list is sorted.
    table: Vec<u32>,
}

impl Bodies {
    /// Adds a message whose record occupies `record_len` bytes of the log.
    pub(super) fn add(&mut self, message: &Message<'_>, record_len: u64) {
        self.list.push(RecoveredMessage::new(message, record_len));
    }

    /// Finishes after all records. Of several copies of one record one is kept.
    pub(super) fn found(mut self) -> Found {
        let ids = || self.list.iter().map(|message| message.id);
        let first = ids().min().unwrap_or(0);
        let span = ids().max().unwrap_or(0) - first;
        let table = table(&self.list, first, span);
        if table.is_empty() {
            self.list.sort_by_key(|message| message.id);
            self.list.dedup_by_key(|message| message.id);
        }
        Found {
            list: self.list,
            first,
            table,
        }
    }
}

impl Found {
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Position of the message with that number.
    pub(super) fn place(&self, id: MessageId) -> Option<usize> {
        if self.table.is_empty() {
            return self.list.binary_search_by_key(&id, |one| one.id).ok();
        }
        let offset = usize::try_from(id.checked_sub(self.first)?).ok()?;
        let place = *self.table.get(offset)?;
        (place != NOWHERE).then_some(place as usize)
    }

    pub(super) fn into_list(self) -> Vec<RecoveredMessage> {
        self.list
    }
}

/// The table, or an empty one if it would be much larger than the list.
fn table(list: &[RecoveredMessage], first: MessageId, span: u64) -> Vec<u32> {
    let is_spread = span / SPREAD_MAX >= list.len() as u64;
    let (Ok(span), Ok(_), false) = (usize::try_from(span), u32::try_from(list.len()), is_spread)
    else {
        return Vec::new();
    };
    let mut table = vec![NOWHERE; span + 1];
    for (message, place) in list.iter().zip(0..) {
        let offset = usize::try_from(message.id - first).unwrap_or(usize::MAX);
        if let Some(entry) = table.get_mut(offset).filter(|entry| **entry == NOWHERE) {
            *entry = place;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use thrum_codec::QoS;

    use super::*;

    fn found(ids: &[MessageId]) -> Found {
        let mut bodies = Bodies::default();
        for &id in ids {
            let message = Message {
                id,
                publisher: 0,
                published_at: 0,
                expires_at: None,
                qos: QoS::AtMostOnce,
                retain: false,
                topic: "a",
                properties: b"",
                payload: b"",
            };
            bodies.add(&message, 1);
        }
        bodies.found()
    }

    #[track_caller]
    fn check(ids: &[MessageId]) {
        let found = found(ids);
        for &id in ids {
            let place = found.place(id).expect("it was added");
            assert_eq!(found.list[place].id, id);
        }
        for id in [0, 5, u64::MAX] {
            assert_eq!(found.place(id).is_some(), ids.contains(&id), "{id}");
        }
    }

    #[test]
    fn messages_are_found_by_their_number_for_any_order_of_records() {
        check(&[]);
        check(&[7]);
        check(&[1, 2, 3, 4]);
        check(&[2, 1, 9, 2, 4]);
        check(&[1 << 40, 1, 1 << 61, 1 << 40]);
    }

    #[test]
    fn numbers_far_apart_need_no_large_table() {
        assert!(found(&[1, 1 << 61]).table.is_empty());
    }
}
