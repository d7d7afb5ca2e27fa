//! Messages of any size in letters that every broker takes.
//!
//! A letter is a line `PARCEL NUMBER/TOTAL` and a piece of the message. Of a message with several
//! letters only a few are on their way at a time: a broker that queues little for slow readers
//! loses none of them.

use std::collections::VecDeque;

/// Bytes of a message in one letter: below the packet limit of every broker and cloud service.
pub(super) const PIECE_BYTES_MAX: usize = 64 * 1024;

/// Letters of one sender that may be on their way unconfirmed.
pub(super) const LETTERS_UNCONFIRMED_MAX: u32 = 8;

/// The biggest message: the report of a few million pairs of publisher and subscriber.
pub(super) const MESSAGE_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Messages of one sender that may wait for the letters of one before them.
const MESSAGES_WAITING_MAX: usize = 10_000;

/// Why a message cannot be sent or read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParcelError {
    /// Over [`MESSAGE_BYTES_MAX`].
    #[error(
        "a message of {0} bytes is more than the {MESSAGE_BYTES_MAX} allowed: use fewer clients per agent"
    )]
    TooLarge(usize),
    /// Over [`MESSAGES_WAITING_MAX`].
    #[error("the other side does not take messages as fast as they are made")]
    Congested,
    /// Not of this kind.
    #[error("a letter without a sound head came in: is something else publishing to these topics?")]
    Malformed,
    /// A letter is missing.
    #[error(
        "letter {expected} of a message is missing, {came} came: the control broker lost it, raise its queue limits"
    )]
    Missing {
        /// The one to come next.
        expected: u32,
        /// The one that came.
        came: u32,
    },
}

/// Cuts messages into letters.
#[derive(Debug, Default)]
pub(super) struct Packer {
    parcels: u32,
    /// The first one is on its way.
    waiting: VecDeque<Parcel>,
}

/// A message under way.
#[derive(Debug)]
struct Parcel {
    id: u32,
    message: Vec<u8>,
    total: u32,
    sent: u32,
    confirmed: u32,
}

/// Puts letters together.
#[derive(Debug, Default)]
pub(super) struct Unpacker {
    open: Option<Open>,
}

/// A message of which not every letter has come.
#[derive(Debug)]
struct Open {
    id: u32,
    next: u32,
    total: u32,
    message: Vec<u8>,
}

/// What a letter brought.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Unpacked {
    /// The message that it completed.
    pub(super) message: Option<Vec<u8>>,
    /// What to confirm to the sender: parcel and letters of it that have come.
    pub(super) confirm: Option<(u32, u32)>,
}

impl Packer {
    /// Takes a message to send after those before it.
    ///
    /// # Errors
    /// It is too big, or too many are waiting.
    pub(super) fn add(&mut self, message: Vec<u8>) -> Result<(), ParcelError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(ParcelError::TooLarge(message.len()));
        }
        if self.waiting.len() >= MESSAGES_WAITING_MAX {
            return Err(ParcelError::Congested);
        }
        self.parcels = self.parcels.wrapping_add(1);
        let pieces = message.len().div_ceil(PIECE_BYTES_MAX).max(1);
        self.waiting.push_back(Parcel {
            id: self.parcels,
            total: u32::try_from(pieces).unwrap_or(u32::MAX),
            message,
            sent: 0,
            confirmed: 0,
        });
        Ok(())
    }

    /// The other side has got so many letters of a parcel.
    pub(super) fn confirm(&mut self, id: u32, letters: u32) {
        let of_first = self.waiting.front_mut().filter(|parcel| parcel.id == id);
        if let Some(parcel) = of_first {
            parcel.confirmed = parcel.confirmed.max(letters);
        }
        self.drop_delivered();
    }

    /// The next letter that may go out.
    pub(super) fn next_letter(&mut self) -> Option<Vec<u8>> {
        let parcel = self.waiting.front_mut()?;
        let is_open = parcel.sent < parcel.total
            && parcel.sent - parcel.confirmed.min(parcel.sent) < LETTERS_UNCONFIRMED_MAX;
        if !is_open {
            return None;
        }
        let letter = parcel.letter(parcel.sent);
        parcel.sent += 1;
        self.drop_delivered();
        Some(letter)
    }

    /// A message of one letter needs no confirmation.
    fn drop_delivered(&mut self) {
        let is_done = self.waiting.front().is_some_and(|parcel| {
            parcel.sent == parcel.total && (parcel.total == 1 || parcel.confirmed >= parcel.total)
        });
        if is_done {
            self.waiting.pop_front();
        }
    }
}

impl Parcel {
    fn letter(&self, number: u32) -> Vec<u8> {
        let start = usize::try_from(number)
            .unwrap_or(usize::MAX)
            .saturating_mul(PIECE_BYTES_MAX);
        let end = start
            .saturating_add(PIECE_BYTES_MAX)
            .min(self.message.len());
        let mut letter = format!("{} {}/{}\n", self.id, number + 1, self.total).into_bytes();
        letter.extend_from_slice(self.message.get(start..end).unwrap_or_default());
        letter
    }
}

/// The letter of a message that is small and may overtake others.
pub(super) fn express(message: &[u8]) -> Vec<u8> {
    let mut letter = b"0 1/1\n".to_vec();
    letter.extend_from_slice(message);
    letter
}

impl Unpacker {
    /// Takes the next letter of a sender.
    ///
    /// # Errors
    /// It is no letter, or one before it is missing.
    pub(super) fn take(&mut self, letter: &[u8]) -> Result<Unpacked, ParcelError> {
        let head = letter
            .iter()
            .position(|byte| *byte == b'\n')
            .ok_or(ParcelError::Malformed)?;
        let (head, piece) = (&letter[..head], &letter[head + 1..]);
        let (id, number, total) = read_head(head).ok_or(ParcelError::Malformed)?;
        if total == 1 {
            return Ok(Unpacked {
                message: Some(piece.to_vec()),
                confirm: None,
            });
        }
        let mut open = match self.open.take() {
            Some(open) if open.id == id => open,
            Some(open) => {
                return Err(ParcelError::Missing {
                    expected: open.next,
                    came: number,
                });
            }
            None => Open {
                id,
                next: 1,
                total,
                message: Vec::new(),
            },
        };
        if number != open.next || total != open.total {
            return Err(ParcelError::Missing {
                expected: open.next,
                came: number,
            });
        }
        if open.message.len() + piece.len() > MESSAGE_BYTES_MAX {
            return Err(ParcelError::TooLarge(open.message.len() + piece.len()));
        }
        open.message.extend_from_slice(piece);
        open.next += 1;
        let confirm = Some((id, number));
        if number < total {
            self.open = Some(open);
            return Ok(Unpacked {
                message: None,
                confirm,
            });
        }
        Ok(Unpacked {
            message: Some(open.message),
            confirm,
        })
    }
}

fn read_head(head: &[u8]) -> Option<(u32, u32, u32)> {
    let head = std::str::from_utf8(head).ok()?;
    let (id, rest) = head.split_once(' ')?;
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

    /// All letters of messages, each confirmed at once.
    fn letters(messages: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut packer = Packer::default();
        for message in messages {
            packer.add(message.clone()).unwrap();
        }
        let (mut letters, mut unpacker) = (Vec::new(), Unpacker::default());
        while let Some(letter) = packer.next_letter() {
            if let Some((id, number)) = unpacker.take(&letter).unwrap().confirm {
                packer.confirm(id, number);
            }
            letters.push(letter);
        }
        assert!(packer.waiting.is_empty());
        letters
    }

    #[test]
    fn messages_of_any_size_arrive_in_order() {
        let sizes = [0, 1, PIECE_BYTES_MAX, PIECE_BYTES_MAX + 1, 1_000_000, 7];
        let sent: Vec<_> = sizes.into_iter().map(message).collect();
        let letters = letters(&sent);
        assert_eq!(letters.len(), 1 + 1 + 1 + 2 + 16 + 1);
        let mut unpacker = Unpacker::default();
        let come: Vec<_> = letters
            .iter()
            .filter_map(|letter| unpacker.take(letter).unwrap().message)
            .collect();
        assert_eq!(come, sent);
    }

    #[test]
    fn a_missing_letter_is_noticed() {
        for lost in 0..3 {
            let mut letters =
                letters(&[message(3 * PIECE_BYTES_MAX), message(2 * PIECE_BYTES_MAX)]);
            letters.remove(lost);
            let mut unpacker = Unpacker::default();
            let failed = letters
                .iter()
                .find_map(|letter| unpacker.take(letter).err())
                .unwrap();
            let expected = u32::try_from(lost).unwrap() + 1;
            assert!(
                matches!(failed, ParcelError::Missing { expected: next, .. } if next == expected),
                "{failed}"
            );
        }
    }

    #[test]
    fn only_a_few_letters_are_on_their_way_unconfirmed() {
        let mut packer = Packer::default();
        packer.add(message(20 * PIECE_BYTES_MAX)).unwrap();
        packer.add(message(1)).unwrap();
        let sent = std::iter::from_fn(|| packer.next_letter()).count();
        assert_eq!(sent, 8);
        packer.confirm(1, 3);
        assert_eq!(std::iter::from_fn(|| packer.next_letter()).count(), 3);
        packer.confirm(1, 11);
        assert_eq!(std::iter::from_fn(|| packer.next_letter()).count(), 8);
        packer.confirm(1, 19);
        assert_eq!(std::iter::from_fn(|| packer.next_letter()).count(), 1);
        packer.confirm(1, 20);
        assert_eq!(std::iter::from_fn(|| packer.next_letter()).count(), 1);
        assert!(packer.waiting.is_empty());
    }

    #[test]
    fn a_small_message_may_come_between_the_letters_of_a_big_one() {
        let letters = letters(&[message(2 * PIECE_BYTES_MAX)]);
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.take(&letters[0]).unwrap().message, None);
        let between = unpacker.take(&express(b"alive")).unwrap();
        assert_eq!(between.message.unwrap(), b"alive");
        let whole = unpacker.take(&letters[1]).unwrap();
        assert_eq!(whole.message.unwrap().len(), 2 * PIECE_BYTES_MAX);
    }

    #[test]
    fn letters_of_something_else_are_refused() {
        for letter in ["", "hello", "1 2/1\n", "1 0/1\n", "x 1/1\n", "1 1\n"] {
            let taken = Unpacker::default().take(letter.as_bytes());
            assert_eq!(taken, Err(ParcelError::Malformed), "{letter:?}");
        }
    }
}
