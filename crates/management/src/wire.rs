//! Messages of protobuf, written and read field by field.
//!
//! The messages of Prometheus and of OpenTelemetry that we send have a few fields each. A library
//! for protobuf would bring a dozen crates, generated code, and the same list of numbers.

/// Bytes of a message.
#[derive(Debug, Default)]
pub(crate) struct Message(pub(crate) Vec<u8>);

/// The type of a field on the wire.
#[derive(Clone, Copy, Debug)]
enum Wire {
    Varint = 0,
    Eight = 1,
    Bytes = 2,
}

impl Message {
    pub(crate) fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }

    fn key(&mut self, field: u64, wire: Wire) {
        self.varint((field << 3) | wire as u64);
    }

    pub(crate) fn number(&mut self, field: u64, number: u64) {
        self.key(field, Wire::Varint);
        self.varint(number);
    }

    /// A number with a sign, in which small ones of both signs are short.
    pub(crate) fn signed(&mut self, field: u64, number: i64) {
        self.number(field, zigzag(number));
    }

    pub(crate) fn double(&mut self, field: u64, number: f64) {
        self.key(field, Wire::Eight);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    /// A number of always eight bytes.
    pub(crate) fn fixed(&mut self, field: u64, number: u64) {
        self.key(field, Wire::Eight);
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub(crate) fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.key(field, Wire::Bytes);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    pub(crate) fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    pub(crate) fn message(&mut self, field: u64, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }
}

pub(crate) const fn zigzag(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Eight or four bytes, which nothing that we read has.
    Fixed,
}

/// The fields of a message that somebody else has written, with their numbers; they end where the
/// message is damaged.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for place in 0..10 {
            let (first, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(first & 0x7F).checked_shl(7 * place)?;
            if first & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn taken(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    /// The first field of that number, if its value is of bytes.
    pub(crate) fn bytes_of(mut self, number: u64) -> Option<&'a [u8]> {
        self.find_map(|field| match field {
            (found, Field::Bytes(bytes)) if found == number => Some(bytes),
            _ => None,
        })
    }

    /// The first field of that number, if its value is a number.
    pub(crate) fn number_of(mut self, number: u64) -> Option<u64> {
        self.find_map(|field| match field {
            (found, Field::Number(value)) if found == number => Some(value),
            _ => None,
        })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = (u64, Field<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.varint()?;
        let field = match key & 7 {
            0 => Field::Number(self.varint()?),
            1 => self.taken(8).map(|_| Field::Fixed)?,
            2 => {
                let len = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(self.taken(len)?)
            }
            5 => self.taken(4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        Some((key >> 3, field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_both_signs_are_short() {
        let all = [0, -1, 1, -2, i64::MAX, i64::MIN].map(zigzag);
        assert_eq!(all, [0, 1, 2, 3, u64::MAX - 1, u64::MAX]);
    }

    #[test]
    fn what_is_written_is_read() {
        let mut message = Message::default();
        message.number(1, 300);
        message.double(2, 0.5);
        message.fixed(3, 7);
        message.message(400, |inner| inner.text(1, "é"));
        message.number(5, u64::MAX);
        let fields = Fields(&message.0);
        assert_eq!(fields.clone().count(), 5);
        assert_eq!(fields.clone().number_of(1), Some(300));
        assert_eq!(fields.clone().number_of(5), Some(u64::MAX));
        let inner = fields.clone().bytes_of(400).map(Fields);
        let text = inner.and_then(|inner| inner.bytes_of(1));
        assert_eq!(text, Some("é".as_bytes()));
        assert_eq!(fields.number_of(2), None);
    }

    #[test]
    fn damaged_messages_end_where_they_are_damaged() {
        let mut message = Message::default();
        message.number(1, 300);
        message.text(2, "a text");
        for len in 0..message.0.len() {
            assert!(Fields(&message.0[..len]).count() < 2, "{len}");
        }
        for damaged in [&[0xFF; 20][..], &[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], &[7]] {
            assert_eq!(Fields(damaged).next(), None, "{damaged:?}");
        }
    }
}
