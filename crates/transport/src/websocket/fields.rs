//! Header fields of the opening handshake, for both ends.

use aws_lc_rs::digest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Header fields of a head; more than any peer sends, including the proxies before it.
pub(super) const FIELDS_MAX: usize = 64;

/// The text that is appended to a key before it is hashed, RFC 6455 section 1.3.
const KEY_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The value of `Sec-WebSocket-Accept` for a key, section 4.2.2.
pub(super) fn accept_of(key: &str) -> String {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(key.as_bytes());
    context.update(KEY_SUFFIX);
    STANDARD.encode(context.finish())
}

/// The values of a header field; one that is not UTF-8 is none.
pub(super) fn values<'a>(
    fields: &'a [httparse::Header<'_>],
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .filter_map(|field| str::from_utf8(field.value).ok())
        .map(str::trim)
}

/// The elements of a header field with a list, in their order.
pub(super) fn elements<'a>(
    fields: &'a [httparse::Header<'_>],
    name: &'a str,
) -> impl Iterator<Item = &'a str> {
    values(fields, name)
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

/// Whether a header field with a list has this element.
pub(super) fn has_token(fields: &[httparse::Header<'_>], name: &str, token: &str) -> bool {
    elements(fields, name).any(|element| element.eq_ignore_ascii_case(token))
}
