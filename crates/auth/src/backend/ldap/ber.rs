//! The part of BER (X.690) that LDAP uses: tags of one byte, definite lengths. No input of a server
//! makes it panic.

/// Universal tags.
pub(super) const BOOLEAN: u8 = 0x01;
pub(super) const INTEGER: u8 = 0x02;
pub(super) const OCTETS: u8 = 0x04;
pub(super) const ENUMERATED: u8 = 0x0a;
pub(super) const SEQUENCE: u8 = 0x30;
pub(super) const SET: u8 = 0x31;

/// Bytes of a length in its long form; no real server sends more.
const LENGTH_BYTES_MAX: usize = 4;

/// Appends an element.
pub(super) fn push(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    out.push(tag);
    if let Ok(length @ ..0x80) = u8::try_from(content.len()) {
        out.push(length);
    } else {
        let length = content.len().to_be_bytes();
        let zeros = length.iter().take_while(|byte| **byte == 0).count();
        let length = &length[zeros..];
        out.push(0x80 | u8::try_from(length.len()).unwrap_or_default());
        out.extend_from_slice(length);
    }
    out.extend_from_slice(content);
}

/// Appends an element whose content is made of elements.
pub(super) fn push_all(out: &mut Vec<u8>, tag: u8, content: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    content(&mut inner);
    push(out, tag, &inner);
}

/// Appends a number that is not negative.
pub(super) fn push_number(out: &mut Vec<u8>, tag: u8, number: u32) {
    let bytes = number.to_be_bytes();
    let zeros = bytes[..3].iter().take_while(|byte| **byte == 0).count();
    let mut content = Vec::with_capacity(5);
    if bytes[zeros] >= 0x80 {
        content.push(0);
    }
    content.extend_from_slice(&bytes[zeros..]);
    push(out, tag, &content);
}

/// Reads elements one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(content: &'a [u8]) -> Self {
        Self { rest: content }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Tag and content of the next element.
    pub(super) fn next(&mut self) -> Option<(u8, &'a [u8])> {
        let (&tag, _) = self.rest.split_first()?;
        let header = header(self.rest).ok()??;
        let content = self.rest.get(header.length..)?.get(..header.content)?;
        self.rest = &self.rest[header.length + header.content..];
        Some((tag, content))
    }

    /// Content of the next element, if it has this tag.
    pub(super) fn next_as(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.next()
            .filter(|(found, _)| *found == tag)
            .map(|(_, content)| content)
    }

    /// The next element as a number that is not negative.
    pub(super) fn next_number(&mut self, tag: u8) -> Option<u32> {
        let content = self.next_as(tag)?;
        if content.is_empty() || content.len() > 5 || content[0] >= 0x80 {
            return None;
        }
        let number = content
            .iter()
            .fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
        u32::try_from(number).ok()
    }
}

/// How long an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Bytes of tag and length.
    pub(super) length: usize,
    /// Bytes of the content.
    pub(super) content: usize,
}

/// A forbidden length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadLength;

/// Reads the header at the beginning; none if more bytes are needed.
pub(super) fn header(bytes: &[u8]) -> Result<Option<Header>, BadLength> {
    let Some(&first) = bytes.get(1) else {
        return Ok(None);
    };
    if first < 0x80 {
        return Ok(Some(Header {
            length: 2,
            content: usize::from(first),
        }));
    }
    let count = usize::from(first & 0x7f);
    if count == 0 || count > LENGTH_BYTES_MAX {
        return Err(BadLength);
    }
    let Some(length) = bytes.get(2..2 + count) else {
        return Ok(None);
    };
    let content = length
        .iter()
        .fold(0, |content, byte| content << 8 | usize::from(*byte));
    Ok(Some(Header {
        length: 2 + count,
        content,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lengths_and_numbers_have_their_shortest_form() {
        let mut out = Vec::new();
        push(&mut out, OCTETS, &[7; 0x80]);
        assert_eq!(out[..3], [OCTETS, 0x81, 0x80]);
        for (number, expected) in [
            (0, vec![2, 1, 0]),
            (127, vec![2, 1, 127]),
            (128, vec![2, 2, 0, 128]),
            (65_536, vec![2, 3, 1, 0, 0]),
            (u32::MAX, vec![2, 5, 0, 255, 255, 255, 255]),
        ] {
            let mut out = Vec::new();
            push_number(&mut out, INTEGER, number);
            assert_eq!(out, expected);
            assert_eq!(Reader::new(&out).next_number(INTEGER), Some(number));
        }
    }

    proptest! {
        #[test]
        fn written_elements_are_read(
            contents in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..5),
        ) {
            let mut out = Vec::new();
            push_all(&mut out, SEQUENCE, |out| {
                for content in &contents {
                    push(out, OCTETS, content);
                }
            });
            let mut reader = Reader::new(&out);
            let mut inner = Reader::new(reader.next_as(SEQUENCE).expect("a sequence"));
            for content in &contents {
                prop_assert_eq!(inner.next_as(OCTETS), Some(&content[..]));
            }
            prop_assert!(inner.is_empty() && reader.is_empty());
        }

        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = Reader::new(&bytes);
            while reader.next().is_some() {}
            let _ = Reader::new(&bytes).next_number(INTEGER);
        }
    }
}
