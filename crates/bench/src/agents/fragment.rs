//! Splits messages of any size into fragments that every broker accepts.
//!
//! A fragment is a line `MESSAGE NUMBER/TOTAL` and a part of the message. Only a few fragments of a
//! message are in flight at a time, so a broker with short queues loses none of them.

use std::collections::VecDeque;

/// Bytes of a message in one fragment: below the packet limit of every broker and cloud service.
pub(super) const FRAGMENT_BYTES_MAX: usize = 64 * 1024;

/// Unconfirmed fragments that one sender may have in flight.
pub(super) const FRAGMENTS_UNCONFIRMED_MAX: u32 = 8;

/// The biggest message: the report of a few million pairs of publisher and subscriber.
pub(super) const MESSAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Messages of one sender that may wait behind another.
const MESSAGES_WAITING_MAX: usize = 10_000;

/// Why a message cannot be sent or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FragmentError {
    /// Over [`MESSAGE_BYTES_MAX`].
    #[error(
        "a message of {0} bytes is more than the {MESSAGE_BYTES_MAX} allowed: use fewer clients per agent"
    )]
    TooLarge(usize),
    /// Over [`MESSAGES_WAITING_MAX`].
    #[error("the other side does not take messages as fast as they are made")]
    Congested,
    /// The bytes are not a fragment.
    #[error(
        "a fragment without a valid header arrived: is something else publishing to these topics?"
    )]
    Malformed,
    /// A fragment is missing.
    #[error(
        "fragment {expected} of a message is missing, {came} arrived: the control broker lost it, raise its queue limits"
    )]
    Missing {
        /// Number of the expected fragment.
        expected: u32,
        /// Number of the received fragment.
        came: u32,
    },
}

/// Cuts messages into fragments.
#[derive(Debug, Default)]
pub(super) struct Fragmenter {
    last_id: u32,
    /// The first message is being sent.
    waiting: VecDeque<PendingMessage>,
}

/// A message that is being sent.
#[derive(Debug)]
struct PendingMessage {
    id: u32,
    message: Vec<u8>,
    total: u32,
    sent: u32,
    confirmed: u32,
}

/// Joins fragments to messages.
#[derive(Debug, Default)]
pub(super) struct Reassembler {
    partial: Option<Partial>,
}

/// A message with missing fragments.
#[derive(Debug)]
struct Partial {
    id: u32,
    next: u32,
    total: u32,
    message: Vec<u8>,
}

/// Result of a fragment.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Reassembled {
    /// The message that it completed.
    pub(super) message: Option<Vec<u8>>,
    /// The acknowledgement: the number of the message and how many of its fragments have arrived.
    pub(super) confirm: Option<(u32, u32)>,
}

impl Fragmenter {
    /// Queues a message.
    ///
    /// # Errors
    /// It is too big, or too many are waiting.
    pub(super) fn add(&mut self, message: Vec<u8>) -> Result<(), FragmentError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(FragmentError::TooLarge(message.len()));
        }
        if self.waiting.len() >= MESSAGES_WAITING_MAX {
            return Err(FragmentError::Congested);
        }
        self.last_id = self.last_id.wrapping_add(1);
        let fragments = message.len().div_ceil(FRAGMENT_BYTES_MAX).max(1);
        self.waiting.push_back(PendingMessage {
            id: self.last_id,
            total: u32::try_from(fragments).unwrap_or(u32::MAX),
            message,
            sent: 0,
            confirmed: 0,
        });
        Ok(())
    }

    /// The peer has received this many fragments of a message.
    pub(super) fn confirm(&mut self, id: u32, fragments: u32) {
        let of_first = self.waiting.front_mut().filter(|pending| pending.id == id);
        if let Some(pending) = of_first {
            pending.confirmed = pending.confirmed.max(fragments);
        }
        self.drop_delivered();
    }

    /// The next fragment that may be sent.
    pub(super) fn next_fragment(&mut self) -> Option<Vec<u8>> {
        let pending = self.waiting.front_mut()?;
        let is_open = pending.sent < pending.total
            && pending.sent - pending.confirmed.min(pending.sent) < FRAGMENTS_UNCONFIRMED_MAX;
        if !is_open {
            return None;
        }
        let fragment = pending.fragment(pending.sent);
        pending.sent += 1;
        self.drop_delivered();
        Some(fragment)
    }

    /// A message of one fragment needs no confirmation.
    fn drop_delivered(&mut self) {
        let is_done = self.waiting.front().is_some_and(|pending| {
            pending.sent == pending.total
                && (pending.total == 1 || pending.confirmed >= pending.total)
        });
        if is_done {
            self.waiting.pop_front();
        }
    }
}

impl PendingMessage {
    fn fragment(&self, number: u32) -> Vec<u8> {
        let start = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .saturating_mul(FRAGMENT_BYTES_MAX);
        let end = start
            .saturating_add(FRAGMENT_BYTES_MAX)
            .min(self.message.len());
        let mut fragment = format!("{} {}/{}\n", self.id, number + 1, self.total).into_bytes();
        fragment.extend_from_slice(self.message.get(start..end).unwrap_or_default());
        fragment
    }
}

/// A small message as one fragment, which may overtake others.
pub(super) fn single_fragment(message: &[u8]) -> Vec<u8> {
    let mut fragment = b"0 1/1\n".to_vec();
    fragment.extend_from_slice(message);
    fragment
}

impl Reassembler {
    /// Takes the next fragment of a sender.
    ///
    /// # Errors
    /// The bytes are not a fragment, or an earlier fragment is missing.
    pub(super) fn take(&mut self, fragment: &[u8]) -> Result<Reassembled, FragmentError> {
        let header = fragment
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or(FragmentError::Malformed)?;
        let (header, part) = (&fragment[..header], &fragment[header + 1..]);
        let (id, number, total) = read_header(header).ok_or(FragmentError::Malformed)?;
        if total == 1 {
            return Ok(Reassembled {
                message: Some(part.to_vec()),
                confirm: None,
            });
        }
        let mut partial = match self.partial.take() {
            Some(partial) if partial.id == id => partial,
            Some(partial) => {
                return Err(FragmentError::Missing {
                    expected: partial.next,
                    came: number,
                });
            }
            None => Partial {
                id,
                next: 1,
                total,
                message: Vec::new(),
            },
        };
        if number != partial.next || total != partial.total {
            return Err(FragmentError::Missing {
                expected: partial.next,
                came: number,
            });
        }
        if partial.message.len() + part.len() > MESSAGE_BYTES_MAX {
            return Err(FragmentError::TooLarge(partial.message.len() + part.len()));
        }
        partial.message.extend_from_slice(part);
        partial.next += 1;
        let confirm = Some((id, number));
        if number < total {
            self.partial = Some(partial);
            return Ok(Reassembled {
                message: None,
                confirm,
            });
        }
        Ok(Reassembled {
            message: Some(partial.message),
            confirm,
        })
    }
}

fn read_header(header: &[u8]) -> Option<(u32, u32, u32)> {
    let header = std::str::from_utf8(header).ok()?;
    let (id, rest) = header.split_once(' ')?;
    let (number, total) = rest.split_once('/')?;
    let (number, total) = (number.parse().ok()?, total.parse().ok()?);
    (1..=total)
        .contains(&number)
        .then_some((id.parse().ok()?, number, total))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(bytes: usize) -> Vec<u8> {
        (0..=250).cycle().take(bytes).collect()
    }

    /// All fragments of messages, each confirmed at once.
    fn fragments(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut fragmenter = Fragmenter::default();
        for message in messages {
            fragmenter.add(message.clone()).unwrap();
        }
        let (mut fragments, mut reassembler) = (Vec::new(), Reassembler::default());
        while let Some(fragment) = fragmenter.next_fragment() {
            if let Some((id, number)) = reassembler.take(&fragment).unwrap().confirm {
                fragmenter.confirm(id, number);
            }
            fragments.push(fragment);
        }
        assert!(fragmenter.waiting.is_empty());
        fragments
    }

    #[test]
    fn messages_of_any_size_arrive_in_order() {
        let sizes = [
            0,
            1,
            FRAGMENT_BYTES_MAX,
            FRAGMENT_BYTES_MAX + 1,
            1_000_000,
            7,
        ];
        let sent: Vec<_> = sizes.into_iter().map(message).collect();
        let fragments = fragments(&sent);
        assert_eq!(fragments.len(), 1 + 1 + 1 + 2 + 16 + 1);
        let mut reassembler = Reassembler::default();
        let come: Vec<_> = fragments
            .iter()
            .filter_map(|fragment| reassembler.take(fragment).unwrap().message)
            .collect();
        assert_eq!(come, sent);
    }

    #[test]
    fn a_missing_fragment_is_noticed() {
        for lost in 0..3 {
            let mut fragments = fragments(&[
                message(3 * FRAGMENT_BYTES_MAX),
                message(2 * FRAGMENT_BYTES_MAX),
            ]);
            fragments.remove(lost);
            let mut reassembler = Reassembler::default();
            let failed = fragments
                .iter()
                .find_map(|fragment| reassembler.take(fragment).err())
                .unwrap();
            let expected = u32::try_from(lost).unwrap() + 1;
            assert!(
                matches!(failed, FragmentError::Missing { expected: next, .. } if next == expected),
                "{failed}"
            );
        }
    }

    #[test]
    fn only_a_few_fragments_are_on_their_way_unconfirmed() {
        let mut fragmenter = Fragmenter::default();
        fragmenter.add(message(20 * FRAGMENT_BYTES_MAX)).unwrap();
        fragmenter.add(message(1)).unwrap();
        let sent = std::iter::from_fn(|| fragmenter.next_fragment()).count();
        assert_eq!(sent, 8);
        fragmenter.confirm(1, 3);
        assert_eq!(std::iter::from_fn(|| fragmenter.next_fragment()).count(), 3);
        fragmenter.confirm(1, 11);
        assert_eq!(std::iter::from_fn(|| fragmenter.next_fragment()).count(), 8);
        fragmenter.confirm(1, 19);
        assert_eq!(std::iter::from_fn(|| fragmenter.next_fragment()).count(), 1);
        fragmenter.confirm(1, 20);
        assert_eq!(std::iter::from_fn(|| fragmenter.next_fragment()).count(), 1);
        assert!(fragmenter.waiting.is_empty());
    }

    #[test]
    fn a_small_message_may_come_between_the_fragments_of_a_big_one() {
        let fragments = fragments(&[message(2 * FRAGMENT_BYTES_MAX)]);
        let mut reassembler = Reassembler::default();
        assert_eq!(reassembler.take(&fragments[0]).unwrap().message, None);
        let between = reassembler.take(&single_fragment(b"alive")).unwrap();
        assert_eq!(between.message.unwrap(), b"alive");
        let whole = reassembler.take(&fragments[1]).unwrap();
        assert_eq!(whole.message.unwrap().len(), 2 * FRAGMENT_BYTES_MAX);
    }

    #[test]
    fn fragments_of_something_else_are_refused() {
        for fragment in ["", "hello", "1 2/1\n", "1 0/1\n", "x 1/1\n", "1 1\n"] {
            let taken = Reassembler::default().take(fragment.as_bytes());
            assert_eq!(taken, Err(FragmentError::Malformed), "{fragment:?}");
        }
    }
}
