//! The client's two messages, read.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::keys::{HASH_BYTES, prepared};
use super::server::Refused;

/// Most bytes of a message.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Most bytes of a nonce.
const NONCE_BYTES_MAX: usize = 1024;

/// `n,,n=user,r=nonce`
#[derive(Debug)]
pub(super) struct First<'a> {
    /// The flag for channel binding and the identity to act as, with both commas.
    pub(super) header: &'a str,
    /// The message without the header.
    pub(super) bare: &'a str,
    pub(super) username: String,
    pub(super) nonce: &'a str,
}

/// `c=biws,r=nonce,p=proof`
#[derive(Debug)]
pub(super) struct Last<'a> {
    /// The message without the proof.
    pub(super) without_proof: &'a str,
    /// The header again.
    pub(super) header: Vec<u8>,
    pub(super) nonce: &'a str,
    pub(super) proof: [u8; HASH_BYTES],
}

pub(super) fn first(data: &[u8]) -> Result<First<'_>, Refused> {
    let text = text(data)?;
    let mut parts = text.splitn(3, ',');
    let (Some(flag), Some(acts_as), Some(bare)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(Refused::Malformed("expected n,,n=user,r=nonce"));
    };
    match flag {
        "n" | "y" => {}
        _ if flag.starts_with("p=") => return Err(Refused::Malformed("channel binding")),
        _ => return Err(Refused::Malformed("flag for channel binding")),
    }
    let mut attributes = bare.split(',');
    let username = attribute(attributes.next(), "n=")?;
    let nonce = attribute(attributes.next(), "r=")?;
    let username = name(username)?;
    if !acts_as.is_empty() && name(attribute(Some(acts_as), "a=")?)? != username {
        return Err(Refused::Malformed("a client acts as itself only"));
    }
    if nonce.is_empty() || nonce.len() > NONCE_BYTES_MAX || !nonce.bytes().all(is_printable) {
        return Err(Refused::Malformed("nonce"));
    }
    // The rest after the nonce is for extensions: m= would have stood before the name.
    let header = &text[..text.len() - bare.len()];
    Ok(First {
        header,
        bare,
        username,
        nonce,
    })
}

pub(super) fn last(data: &[u8]) -> Result<Last<'_>, Refused> {
    let text = text(data)?;
    let Some((without_proof, proof)) = text.rsplit_once(",p=") else {
        return Err(Refused::Malformed("expected c=biws,r=nonce,p=proof"));
    };
    let mut attributes = without_proof.split(',');
    let header = attribute(attributes.next(), "c=")?;
    let nonce = attribute(attributes.next(), "r=")?;
    let bytes = |text: &str| {
        let decoded = STANDARD.decode(text);
        decoded.map_err(|_| Refused::Malformed("not Base64"))
    };
    let proof = bytes(proof)?.try_into();
    Ok(Last {
        without_proof,
        header: bytes(header)?,
        nonce,
        proof: proof.map_err(|_| Refused::Malformed("a proof has 32 bytes"))?,
    })
}

fn text(data: &[u8]) -> Result<&str, Refused> {
    if data.len() > MESSAGE_BYTES_MAX {
        return Err(Refused::Malformed("a message has up to 4,096 bytes"));
    }
    str::from_utf8(data).map_err(|_| Refused::Malformed("not text in UTF-8"))
}

fn attribute<'a>(part: Option<&'a str>, name: &str) -> Result<&'a str, Refused> {
    let value = part.and_then(|part| part.strip_prefix(name));
    value.ok_or(Refused::Malformed("an attribute is missing"))
}

/// An unescaped name: `=2C` is a comma and `=3D` an equals sign; then prepared as passwords are.
fn name(written: &str) -> Result<String, Refused> {
    let malformed = Refused::Malformed("user name");
    let mut plain = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, after)) = rest.split_once('=') {
        plain.push_str(before);
        let (sign, after) = match after.get(..2) {
            Some("2C") => (',', &after[2..]),
            Some("3D") => ('=', &after[2..]),
            _ => return Err(malformed),
        };
        plain.push(sign);
        rest = after;
    }
    plain.push_str(rest);
    let prepared = prepared(&plain).filter(|name| !name.is_empty());
    prepared.ok_or(malformed)
}

/// Printable ASCII without comma.
const fn is_printable(byte: u8) -> bool {
    matches!(byte, 0x21..=0x2B | 0x2D..=0x7E)
}
