//! Distinguished names as RFC 4514 writes them.

use x509_parser::der_parser::asn1_rs::{Any, Tag, ToDer};
use x509_parser::prelude::{AttributeTypeAndValue, X509Name};

use super::hex;

/// Types of attributes and their names: those of RFC 4514 section 3, and of RFC 4519 and RFC 2985
/// those that device certificates use.
const TYPES: [(&str, &str); 17] = [
    ("2.5.4.3", "CN"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.6", "C"),
    ("2.5.4.9", "STREET"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("2.5.4.4", "SN"),
    ("2.5.4.42", "GN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.46", "dnQualifier"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

const COMMON_NAME: &str = "2.5.4.3";

/// The name with its last part first: `CN=device-1,O=Example`.
pub(super) fn rfc4514(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().collect();
    let written = parts.into_iter().rev().map(|part| {
        let attributes: Vec<String> = part.iter().map(attribute).collect();
        attributes.join("+")
    });
    written.collect::<Vec<_>>().join(",")
}

/// The first common name in the order of the certificate; none if it is not text.
pub(super) fn common_name(name: &X509Name<'_>) -> Option<String> {
    let mut attributes = name.iter_attributes();
    let found = attributes.find(|attribute| attribute.attr_type().to_id_string() == COMMON_NAME)?;
    text(found.attr_value()).filter(|name| !name.is_empty())
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let id = attribute.attr_type().to_id_string();
    let known = TYPES.iter().find(|(known, _)| *known == id);
    match (known, text(attribute.attr_value())) {
        (Some((_, name)), Some(value)) => format!("{name}={}", escaped(&value)),
        // Section 2.4: an attribute without a name, or that is not text, is written as its
        // encoding.
        (known, _) => {
            let name = known.map_or(id.as_str(), |(_, name)| name);
            let der = attribute.attr_value().to_der_vec().unwrap_or_default();
            format!("{name}=#{}", hex(&der))
        }
    }
}

/// The text of a value, whichever kind of string it is.
fn text(value: &Any<'_>) -> Option<String> {
    let bytes = value.data;
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            str::from_utf8(bytes).ok().map(str::to_owned)
        }
        // In practice it is ISO 8859-1.
        Tag::T61String => Some(bytes.iter().copied().map(char::from).collect()),
        Tag::BmpString => {
            let (units, rest) = bytes.as_chunks::<2>();
            let units: Vec<u16> = units.iter().copied().map(u16::from_be_bytes).collect();
            String::from_utf16(&units).ok().filter(|_| rest.is_empty())
        }
        Tag::UniversalString => {
            let (units, rest) = bytes.as_chunks::<4>();
            let chars = units.iter().copied().map(u32::from_be_bytes);
            chars
                .map(char::from_u32)
                .collect::<Option<String>>()
                .filter(|_| rest.is_empty())
        }
        _ => None,
    }
}

/// Section 2.4; control characters are written by their bytes, which every reader must understand.
fn escaped(value: &str) -> String {
    let mut written = String::with_capacity(value.len());
    let last = value.chars().count().saturating_sub(1);
    for (position, character) in value.chars().enumerate() {
        match character {
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' => {
                written.push('\\');
                written.push(character);
            }
            '#' if position == 0 => written.push_str("\\#"),
            ' ' if position == 0 || position == last => written.push_str("\\ "),
            _ if character.is_control() => {
                let mut bytes = [0; 4];
                for byte in character.encode_utf8(&mut bytes).as_bytes() {
                    written.push('\\');
                    written.push_str(&hex(&[*byte]));
                }
            }
            _ => written.push(character),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_with_a_meaning_are_escaped() {
        assert_eq!(escaped("device-1"), "device-1");
        assert_eq!(escaped("Müller, Söhne + Co"), "Müller\\, Söhne \\+ Co");
        assert_eq!(escaped("#1"), "\\#1");
        assert_eq!(escaped(" a b "), "\\ a b\\ ");
        assert_eq!(escaped(" "), "\\ ");
        assert_eq!(escaped("a\nb\0"), "a\\0ab\\00");
        assert_eq!(escaped("\u{85}"), "\\c2\\85");
        assert_eq!(escaped("<\"\\>;="), "\\<\\\"\\\\\\>\\;=");
    }
}
