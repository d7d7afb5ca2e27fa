//! Recognizes the protocol of a peer that uses an unexpected one.

use crate::endpoint::Scheme;

/// Bytes that [`protocol_of`] needs.
pub(crate) const OPENING_BYTES: usize = 5;

/// The protocol as text, for the operator who looks for the reason of a refusal.
pub(crate) fn protocol_of(opening: &[u8]) -> &'static str {
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

/// The protocol of a server whose first bytes are not an MQTT packet, and the remedy; none if they
/// may be one.
pub fn not_mqtt(opening: &[u8], scheme: Scheme) -> Option<&'static str> {
    let inside_tls = scheme.is_tls();
    match opening {
        // An alert or a handshake message; a broker begins with CONNACK or AUTH.
        [0x15 | 0x16, ..] if !inside_tls => {
            Some("the server speaks TLS on this port: use mqtts://, or wss:// if it is a WebSocket")
        }
        [b'H', b'T', b'T', b'P', ..] if inside_tls => {
            Some("the server speaks HTTP on this port: use wss:// and the path of its WebSocket")
        }
        [b'H', b'T', b'T', b'P', ..] => {
            Some("the server speaks HTTP on this port: use ws:// and the path of its WebSocket")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_another_protocol_is_recognized_by_its_first_bytes() {
        let alert = b"\x15\x03\x01\x00\x02\x02\x46";
        assert!(not_mqtt(alert, Scheme::Mqtt).is_some_and(|why| why.contains("mqtts://")));
        let answer = b"HTTP/1.1 400 Bad Request\r\n";
        assert!(not_mqtt(answer, Scheme::Mqtt).is_some_and(|why| why.contains("use ws://")));
        assert!(not_mqtt(answer, Scheme::Mqtts).is_some_and(|why| why.contains("use wss://")));
        for packet in [&b"\x20\x02\x00\x00"[..], b"\xF0\x02\x18\x00"] {
            assert_eq!(not_mqtt(packet, Scheme::Mqtt), None);
        }
    }

    #[test]
    fn protocols_are_recognized_by_their_first_bytes() {
        assert_eq!(protocol_of(b"\x10\x80\x02\0\x04"), "plain MQTT");
        assert_eq!(protocol_of(b"\x16\x03\x01\x02\x00"), "TLS");
        assert_eq!(protocol_of(b"PROXY TCP4"), "the PROXY protocol");
        assert_eq!(protocol_of(b"\r\n\r\n\0\r\nQUIT\n"), "the PROXY protocol");
        assert_eq!(protocol_of(b"OPTIONS *"), "plain HTTP");
        assert_eq!(protocol_of(b"SSH-2.0"), "another protocol");
        assert_eq!(protocol_of(b""), "another protocol");
    }
}
