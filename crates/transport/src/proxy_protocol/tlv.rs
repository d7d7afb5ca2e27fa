//! Extensions of version 2: type, length, value.

use super::{ProxiedTls, ProxyError};

const TYPE_CRC32C: u8 = 0x03;
const TYPE_SSL: u8 = 0x20;
/// Subtypes of that of TLS.
const SUBTYPE_COMMON_NAME: u8 = 0x22;

/// The client connected to the proxy over TLS.
const CLIENT_SSL: u8 = 0x01;
/// It has presented a certificate on this connection, or on the one whose session it has resumed.
const CLIENT_CERTIFICATE: u8 = 0x02 | 0x04;

/// The contents of a header's extensions.
#[derive(Debug, Default)]
pub(super) struct Extensions {
    pub(super) tls: Option<ProxiedTls>,
}

/// One extension, and the rest behind it.
struct Extension<'h> {
    kind: u8,
    value: &'h [u8],
    behind: &'h [u8],
}

/// Reads the extensions of a whole header, which begin at `start`.
pub(super) fn extensions(header: &[u8], start: usize) -> Result<Extensions, ProxyError> {
    let mut found = Extensions::default();
    let mut rest = header.get(start..).unwrap_or_default();
    while let Some(extension) = split(rest)? {
        match extension.kind {
            TYPE_CRC32C => check(header, &extension)?,
            TYPE_SSL => found.tls = tls(extension.value)?,
            // A broker needs none of the others, and unknown ones are to be skipped.
            _ => {}
        }
        rest = extension.behind;
    }
    Ok(found)
}

/// The first extension; none if there are no bytes.
fn split(bytes: &[u8]) -> Result<Option<Extension<'_>>, ProxyError> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let cut = ProxyError::Malformed("an extension is cut off");
    let ([kind, high, low], rest) = bytes.split_first_chunk().ok_or_else(|| cut.clone())?;
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let (value, behind) = rest.split_at_checked(length).ok_or(cut)?;
    Ok(Some(Extension {
        kind: *kind,
        value,
        behind,
    }))
}

/// The checksum is that of the header with zeros in its own place.
fn check(header: &[u8], extension: &Extension<'_>) -> Result<(), ProxyError> {
    let (value, after) = (extension.value, extension.behind);
    let value_start = header.len() - after.len() - value.len();
    let before = header.get(..value_start).unwrap_or_default();
    let expected = value
        .try_into()
        .map(u32::from_be_bytes)
        .map_err(|_| ProxyError::Malformed("a checksum has four bytes"))?;
    let sum = crc32c::crc32c_append(crc32c::crc32c(before), &[0; 4]);
    if crc32c::crc32c_append(sum, after) != expected {
        return Err(ProxyError::Checksum);
    }
    Ok(())
}

fn tls(value: &[u8]) -> Result<Option<ProxiedTls>, ProxyError> {
    let Some(([client, verify @ ..], mut rest)) = value.split_first_chunk::<5>() else {
        return Err(ProxyError::Malformed("the extension of TLS is cut off"));
    };
    if client & CLIENT_SSL == 0 {
        return Ok(None);
    }
    // Zero for a verified certificate, and also if none was presented.
    let is_verified = *verify == [0; 4] && client & CLIENT_CERTIFICATE != 0;
    let mut common_name = None;
    while let Some(extension) = split(rest)? {
        if extension.kind == SUBTYPE_COMMON_NAME && is_verified {
            let name = str::from_utf8(extension.value)
                .ok()
                .filter(|name| !name.contains('\0'));
            let name = name.ok_or(ProxyError::Malformed("a common name that is not text"))?;
            common_name = Some(name).filter(|name| !name.is_empty()).map(Into::into);
        }
        rest = extension.behind;
    }
    Ok(Some(ProxiedTls { common_name }))
}
