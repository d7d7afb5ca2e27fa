//! Base32 (RFC 4648) without padding: the form of secrets that people copy and type.

const LETTERS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Bytes as letters and digits.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 8 / 5 + 1);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in bytes {
        bits = bits << 8 | u32::from(*byte);
        count += 8;
        while count >= 5 {
            count -= 5;
            text.push(letter(bits >> count));
        }
    }
    if count > 0 {
        text.push(letter(bits << (5 - count)));
    }
    text
}

/// Reads such a text in either case; none if it is another text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 5 / 8);
    let (mut bits, mut count) = (0_u32, 0);
    for one in text.bytes() {
        let upper = one.to_ascii_uppercase();
        let value = LETTERS.iter().position(|letter| *letter == upper)?;
        bits = bits << 5 | u32::try_from(value).ok()?;
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xFF).ok()?);
        }
    }
    // Else two texts would mean the same bytes.
    (encode(&bytes).len() == text.len() && bits & ((1 << count) - 1) == 0).then_some(bytes)
}

fn letter(bits: u32) -> char {
    char::from(LETTERS[(bits & 31) as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_4648_are_written_and_read() {
        for (bytes, text) in [
            ("", ""),
            ("f", "MY"),
            ("fo", "MZXQ"),
            ("foo", "MZXW6"),
            ("foob", "MZXW6YQ"),
            ("fooba", "MZXW6YTB"),
            ("foobar", "MZXW6YTBOI"),
        ] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
            assert_eq!(
                decode(&text.to_lowercase()).as_deref(),
                Some(bytes.as_bytes())
            );
        }
    }

    #[test]
    fn another_text_is_refused() {
        for text in ["M", "MZ", "MY=", "M1", "MZXW6YTBO", "\u{fc}", "MZXW6A"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
