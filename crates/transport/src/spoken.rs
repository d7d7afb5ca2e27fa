//! What a client speaks that was expected to speak something else.

/// Bytes that [`spoken`] wants to see.
pub(crate) const OPENING_BYTES: usize = 5;

/// In words, for a person who wonders why a client does not get through.
pub(crate) fn spoken(opening: &[u8]) -> &'static str {
    const METHODS: [&[u8]; 8] = [
        b"GET ", b"POST", b"PUT ", b"HEAD", b"OPTIO", b"DELET", b"CONNE", b"PATCH",
    ];
    match opening {
        // CONNECT with a remaining length of any size.
        [0x10, ..] => "plain MQTT",
        [0x16, 3, ..] => "TLS",
        [b'P', b'R', b'O', b'X', b'Y', ..] | [b'\r', b'\n', b'\r', b'\n', 0, ..] => {
            "the PROXY protocol"
        }
        _ if METHODS.iter().any(|method| opening.starts_with(method)) => "plain HTTP",
        _ => "another protocol",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocols_are_told_by_their_first_bytes() {
        assert_eq!(spoken(b"\x10\x80\x02\0\x04"), "plain MQTT");
        assert_eq!(spoken(b"\x16\x03\x01\x02\x00"), "TLS");
        assert_eq!(spoken(b"PROXY TCP4"), "the PROXY protocol");
        assert_eq!(spoken(b"\r\n\r\n\0\r\nQUIT\n"), "the PROXY protocol");
        assert_eq!(spoken(b"OPTIONS *"), "plain HTTP");
        assert_eq!(spoken(b"SSH-2.0"), "another protocol");
        assert_eq!(spoken(b""), "another protocol");
    }
}
