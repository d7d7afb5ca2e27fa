//! The wire format, piece by piece, so that each piece can be wrong.

/// Pieces in a row.
pub fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Two bytes, big endian.
pub fn two(value: u16) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Four bytes, big endian.
pub fn four(value: u32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

/// Length and bytes: binary data, or a string that need not be valid.
///
/// # Panics
/// More than 65,535 bytes.
pub fn binary(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("the wire format ends at 65,535 bytes");
    join(&[&length.to_be_bytes(), bytes])
}

/// A UTF-8 string.
pub fn text(string: &str) -> Vec<u8> {
    binary(string.as_bytes())
}

/// A variable byte integer; more than four bytes when the value asks for it.
pub fn variable(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(value & 0x7F).expect("seven bits fit");
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// The length of something as a variable byte integer.
pub fn length_of(bytes: &[u8]) -> Vec<u8> {
    variable(u64::try_from(bytes.len()).expect("lengths fit"))
}

/// First byte, right remaining length, body.
pub fn frame(first: u8, body: &[u8]) -> Vec<u8> {
    join(&[&[first], &length_of(body), body])
}

/// Property length and properties.
pub fn block(properties: &[u8]) -> Vec<u8> {
    join(&[&length_of(properties), properties])
}

/// A user property.
pub fn user_property(key: &str, value: &str) -> Vec<u8> {
    join(&[&[0x26], &text(key), &text(value)])
}

/// Hexadecimal with spaces, cut in the middle when long.
pub fn hex(bytes: &[u8]) -> String {
    const SHOWN: usize = 96;
    let digits = |part: &[u8]| {
        part.iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    if bytes.len() <= SHOWN {
        return digits(bytes);
    }
    let (head, tail) = (bytes.get(..SHOWN / 2), bytes.get(bytes.len() - SHOWN / 2..));
    format!(
        "{} … {} ({} bytes)",
        digits(head.unwrap_or_default()),
        digits(tail.unwrap_or_default()),
        bytes.len()
    )
}
