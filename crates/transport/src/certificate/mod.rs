//! Contents of X.509 certificates.

mod name;

use aws_lc_rs::digest;
use rustls::pki_types::{CertificateDer, UnixTime};
use thrum_access::Certificate;
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};
use x509_parser::time::ASN1Time;

use name::{common_name, rfc4514};

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Most characters of a subject in a log line.
const SUBJECT_CHARS_MAX: usize = 200;

/// A client certificate as rules, placeholders and logs see it; none if it cannot be read or
/// contains a name that no honest authority signs.
pub fn describe(der: &CertificateDer<'_>) -> Option<Certificate> {
    let parsed = parse(der)?;
    let mut certificate = Certificate {
        common_name: common_name(parsed.subject()).map(Into::into),
        subject: rfc4514(parsed.subject()).into(),
        serial: serial(&parsed).into(),
        fingerprint: fingerprint(der)?,
        ..Certificate::default()
    };
    for name in alternative_names(&parsed)? {
        match name {
            GeneralName::DNSName(name) => certificate.dns_names.push((*name).into()),
            GeneralName::RFC822Name(name) => certificate.emails.push((*name).into()),
            GeneralName::URI(name) => certificate.uris.push((*name).into()),
            _ => {}
        }
    }
    let names = certificate
        .common_name
        .iter()
        .chain(&certificate.dns_names)
        .chain(&certificate.emails)
        .chain(&certificate.uris);
    // A NUL cuts a name short for readers in C: different programs would see different names.
    let is_honest = names.into_iter().all(|name| !name.contains('\0'));
    is_honest.then_some(certificate)
}

/// The subject for a log, of an unverified certificate.
pub(crate) fn subject_of(der: &CertificateDer<'_>) -> Box<str> {
    let Some(parsed) = parse(der) else {
        return "of an unreadable subject".into();
    };
    let subject = rfc4514(parsed.subject());
    if subject.is_empty() {
        return "without a subject".into();
    }
    let mut words: String = subject.chars().take(SUBJECT_CHARS_MAX).collect();
    if words.len() < subject.len() {
        words.push('…');
    }
    format!("'{words}'").into()
}

/// Host names of a certificate, in lower case, wildcards among them.
pub(crate) fn host_names(der: &CertificateDer<'_>) -> Vec<String> {
    let Some(parsed) = parse(der) else {
        return Vec::new();
    };
    let names = alternative_names(&parsed).unwrap_or_default().iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
            _ => None,
        })
        .collect()
}

/// The time of a certificate, in seconds of the Unix epoch; 0 for a time before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validity {
    /// It begins to be valid.
    pub since: u64,
    /// It is no longer valid.
    pub until: u64,
    /// The same as text: `2027-01-31 12:00 UTC`.
    pub until_date: String,
}

/// Whose certificate it is, who signed it, and for which hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateIdentity {
    /// Subject, as RFC 4514 writes it.
    pub subject: String,
    /// Issuer, in the same form; that of a self-signed certificate is its subject.
    pub issuer: String,
    /// Host names in lower case, wildcards among them.
    pub names: Vec<String>,
    /// Serial number in lower-case hexadecimal.
    pub serial: String,
}

/// The identity of a certificate; empty if it cannot be read.
pub(crate) fn identity(der: &CertificateDer<'_>) -> CertificateIdentity {
    let Some(parsed) = parse(der) else {
        return CertificateIdentity::default();
    };
    CertificateIdentity {
        subject: rfc4514(parsed.subject()),
        issuer: rfc4514(parsed.issuer()),
        names: host_names(der),
        serial: serial(&parsed),
    }
}

/// When a certificate is valid; none if it cannot be read.
pub(crate) fn validity(der: &CertificateDer<'_>) -> Option<Validity> {
    let parsed = parse(der)?;
    let (begin, end) = (parsed.validity().not_before, parsed.validity().not_after);
    Some(Validity {
        since: u64::try_from(begin.timestamp()).unwrap_or(0),
        until: u64::try_from(end.timestamp()).unwrap_or(0),
        until_date: date(end),
    })
}

/// Why a certificate is not valid now, if so: a text with the time.
pub(crate) fn out_of_date(der: &CertificateDer<'_>, now: UnixTime) -> Option<String> {
    let parsed = parse(der)?;
    let (begin, end) = (parsed.validity().not_before, parsed.validity().not_after);
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now > end.timestamp() {
        Some(format!("it has expired on {}", date(end)))
    } else if now < begin.timestamp() {
        Some(format!("it is not valid before {}", date(begin)))
    } else {
        None
    }
}

/// A time as text.
pub(crate) fn date_of(time: UnixTime) -> String {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    // Beyond the year 9999 it cannot be formatted.
    ASN1Time::from_timestamp(seconds).map_or_else(|_| "an unknown day".to_owned(), date)
}

/// The bytes are a revocation list in DER.
pub(crate) fn is_revocation_list(der: &[u8]) -> bool {
    x509_parser::parse_x509_crl(der).is_ok_and(|(rest, _)| rest.is_empty())
}

/// When the next revocation list was due, if that time has passed.
pub(crate) fn list_overdue(der: &[u8], now: UnixTime) -> Option<String> {
    let (_, list) = x509_parser::parse_x509_crl(der).ok()?;
    let due = list.next_update()?;
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    (now > due.timestamp()).then(|| date(due))
}

fn parse<'d>(der: &'d CertificateDer<'_>) -> Option<X509Certificate<'d>> {
    let (rest, parsed) = X509Certificate::from_der(der).ok()?;
    rest.is_empty().then_some(parsed)
}

/// None if they cannot be read; a certificate may have none.
fn alternative_names<'c>(parsed: &'c X509Certificate<'_>) -> Option<&'c [GeneralName<'c>]> {
    let found = parsed.subject_alternative_name().ok()?;
    Some(found.map_or(&[], |names| names.value.general_names.as_slice()))
}

/// In lower-case hexadecimal, without the zero that keeps a DER integer positive.
fn serial(parsed: &X509Certificate<'_>) -> String {
    let bytes = parsed.raw_serial();
    let bytes = match bytes {
        [0, rest @ ..] if !rest.is_empty() => rest,
        bytes => bytes,
    };
    hex(bytes)
}

fn fingerprint(der: &CertificateDer<'_>) -> Option<[u8; 32]> {
    digest::digest(&digest::SHA256, der)
        .as_ref()
        .try_into()
        .ok()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        text.extend([byte >> 4, byte & 0x0F].map(|digit| char::from(DIGITS[usize::from(digit)])));
        text
    })
}

fn date(time: ASN1Time) -> String {
    let time = time.to_datetime();
    format!(
        "{} {:02}:{:02} UTC",
        time.date(),
        time.hour(),
        time.minute()
    )
}
