//! The client that published a retained message, in the encoding of the store and the storage.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thrum_access::{Certificate, Identity};
use thrum_protocol::MountPoint;

/// Greatest length of the encoding in bytes. A client with a longer one is not stored: the claims
/// of a token may be longer than the messages.
const BYTES_MAX: usize = 4096;
/// Memory of a source in bytes beside its encoding, with the overhead of the allocator.
const OVERHEAD_BYTES: usize = 96;
/// First byte of the encoding, which changes with the layout.
const LAYOUT: u8 = 1;

/// Numbers of the fields. A field is encoded as its number, two bytes of length, and its bytes.
mod field {
    pub(super) const CLIENT_ID: u8 = 1;
    pub(super) const USERNAME: u8 = 2;
    pub(super) const ROLE: u8 = 3;
    pub(super) const GROUP: u8 = 4;
    pub(super) const ADDRESS: u8 = 5;
    pub(super) const LISTENER: u8 = 6;
    pub(super) const COMMON_NAME: u8 = 7;
    pub(super) const SUBJECT: u8 = 8;
    pub(super) const CLAIM: u8 = 9;
    /// The value of the preceding claim.
    pub(super) const CLAIM_VALUE: u8 = 10;
    pub(super) const BACKEND: u8 = 11;
    pub(super) const MOUNT: u8 = 12;
    /// A field without bytes.
    pub(super) const SUPERUSER: u8 = 13;
    /// A field without bytes.
    pub(super) const HAS_OWN_RULES: u8 = 14;
}

/// The client that published a retained message, shared by the messages of the client.
#[derive(Debug)]
pub struct RetainedSource {
    bytes: Arc<[u8]>,
    /// New subscribers do not receive the messages, as the client may no longer publish them.
    is_withheld: bool,
    /// Number of messages in the store with this source; its memory counts while there are any.
    messages: AtomicUsize,
}

/// The decoded description of a client that published a retained message.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceClient {
    /// The identity of the client when it published the message.
    pub identity: Identity,
    /// The mount point of the client, if any.
    pub mount: Option<MountPoint>,
    /// The admission of the client had rules of its own, which are not stored.
    pub has_own_rules: bool,
}

impl RetainedSource {
    /// Encodes a client; none if the encoding is too long.
    pub fn new(
        identity: &Identity,
        mount: Option<&MountPoint>,
        has_own_rules: bool,
    ) -> Option<Arc<Self>> {
        let bytes = encode(identity, mount, has_own_rules)?;
        Some(Self::stored(bytes.into()))
    }

    /// Creates a source from a stored encoding.
    pub fn stored(bytes: Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            is_withheld: false,
            messages: AtomicUsize::new(0),
        })
    }

    /// Creates a source of the same client, for messages that are withheld or not.
    pub fn with_withheld(&self, is_withheld: bool) -> Arc<Self> {
        Arc::new(Self {
            bytes: Arc::clone(&self.bytes),
            is_withheld,
            messages: AtomicUsize::new(0),
        })
    }

    /// The encoding, which is equal for equal clients.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// Decodes the client; none if a later version encoded it.
    pub fn client(&self) -> Option<SourceClient> {
        decode(&self.bytes)
    }

    /// Whether new subscribers do not receive the messages with this source.
    pub fn is_withheld(&self) -> bool {
        self.is_withheld
    }

    /// Counts one more message with this source, and returns the memory that this adds.
    pub(super) fn add_reference(&self) -> usize {
        let is_first = self.messages.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { self.memory_bytes() } else { 0 }
    }

    /// Counts one message less with this source, and returns the memory that this frees.
    pub(super) fn remove_reference(&self) -> usize {
        let is_last = self.messages.fetch_sub(1, Ordering::Relaxed) == 1;
        if is_last { self.memory_bytes() } else { 0 }
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + OVERHEAD_BYTES
    }
}

fn encode(identity: &Identity, mount: Option<&MountPoint>, has_own_rules: bool) -> Option<Vec<u8>> {
    let mut out = Encoded(vec![LAYOUT]);
    out.push(field::CLIENT_ID, identity.client_id.as_bytes());
    out.push_some(field::USERNAME, identity.username.as_deref());
    for role in &identity.roles {
        out.push(field::ROLE, role.as_bytes());
    }
    for group in &identity.groups {
        out.push(field::GROUP, group.as_bytes());
    }
    match identity.address {
        Some(IpAddr::V4(address)) => out.push(field::ADDRESS, &address.octets()),
        Some(IpAddr::V6(address)) => out.push(field::ADDRESS, &address.octets()),
        None => {}
    }
    out.push(field::LISTENER, identity.listener.as_bytes());
    if let Some(certificate) = identity.certificate.as_deref() {
        out.push(field::SUBJECT, certificate.subject.as_bytes());
        out.push_some(field::COMMON_NAME, certificate.common_name.as_deref());
    }
    for (claim, value) in &identity.claims {
        out.push(field::CLAIM, claim.as_bytes());
        out.push(field::CLAIM_VALUE, value.as_bytes());
    }
    out.push_some(field::BACKEND, identity.backend.as_deref());
    out.push_some(field::MOUNT, mount.map(MountPoint::as_str));
    out.push_some(field::SUPERUSER, identity.is_superuser.then_some(""));
    out.push_some(field::HAS_OWN_RULES, has_own_rules.then_some(""));
    (out.0.len() <= BYTES_MAX).then_some(out.0)
}

struct Encoded(Vec<u8>);

impl Encoded {
    /// Appends a field; a field that is too long makes the encoding too long.
    fn push(&mut self, field: u8, bytes: &[u8]) {
        let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
        self.0.push(field);
        self.0.extend_from_slice(&len.to_le_bytes());
        self.0.extend_from_slice(bytes);
    }

    fn push_some(&mut self, field: u8, text: Option<&str>) {
        if let Some(text) = text {
            self.push(field, text.as_bytes());
        }
    }
}

fn decode(bytes: &[u8]) -> Option<SourceClient> {
    let (&LAYOUT, mut rest) = bytes.split_first()? else {
        return None;
    };
    let mut client = SourceClient::default();
    while let Some((&[field, low, high], after)) = rest.split_first_chunk() {
        let len = usize::from(u16::from_le_bytes([low, high]));
        let (value, after) = after.split_at_checked(len)?;
        client.take(field, value)?;
        rest = after;
    }
    rest.is_empty().then_some(client)
}

impl SourceClient {
    fn take(&mut self, field: u8, value: &[u8]) -> Option<()> {
        let identity = &mut self.identity;
        if field == field::ADDRESS {
            identity.address = Some(address(value)?);
            return Some(());
        }
        let text = std::str::from_utf8(value).ok()?;
        match field {
            field::CLIENT_ID => identity.client_id = text.into(),
            field::USERNAME => identity.username = Some(text.into()),
            field::ROLE => identity.roles.push(text.into()),
            field::GROUP => identity.groups.push(text.into()),
            field::LISTENER => identity.listener = text.into(),
            field::SUBJECT => {
                identity.certificate = Some(Arc::new(Certificate {
                    subject: text.into(),
                    ..Certificate::default()
                }));
            }
            field::COMMON_NAME => {
                let certificate = identity.certificate.as_mut().and_then(Arc::get_mut);
                certificate?.common_name = Some(text.into());
            }
            field::CLAIM => identity.claims.push((text.into(), "".into())),
            field::CLAIM_VALUE => identity.claims.last_mut()?.1 = text.into(),
            field::BACKEND => identity.backend = Some(text.into()),
            field::MOUNT => self.mount = Some(MountPoint::parse(text).ok()?),
            field::SUPERUSER => identity.is_superuser = true,
            field::HAS_OWN_RULES => self.has_own_rules = true,
            // A field of a later version: the other fields could have another meaning without it.
            _ => return None,
        }
        Some(())
    }
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    let v4 = || <[u8; 4]>::try_from(octets).map(Ipv4Addr::from);
    let v6 = || <[u8; 16]>::try_from(octets).map(Ipv6Addr::from);
    let address = v4().map(IpAddr::from);
    address.or_else(|_| v6().map(IpAddr::from)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity {
            client_id: "pump-1".into(),
            username: Some("fl\u{fc}".into()),
            roles: vec!["ops".into(), "night".into()],
            groups: vec!["east".into()],
            address: Some(Ipv4Addr::new(192, 0, 2, 1).into()),
            listener: "mqtts".into(),
            certificate: Some(Arc::new(Certificate {
                common_name: Some("pump".into()),
                subject: "CN=pump".into(),
                ..Certificate::default()
            })),
            claims: vec![("tenant".into(), "a".into()), ("empty".into(), "".into())],
            is_superuser: true,
            backend: Some("users".into()),
        }
    }

    #[test]
    fn properties_for_rules_and_backends_survive_the_encoding() {
        let mount = MountPoint::parse("a/").unwrap();
        let of_v6 = Identity {
            address: Some(Ipv6Addr::LOCALHOST.into()),
            certificate: None,
            is_superuser: false,
            ..identity()
        };
        for (identity, mount, has_own_rules) in [
            (identity(), Some(mount), true),
            (of_v6, None, false),
            (Identity::default(), None, false),
        ] {
            let source = RetainedSource::new(&identity, mount.as_ref(), has_own_rules).unwrap();
            let expected = SourceClient {
                identity,
                mount,
                has_own_rules,
            };
            assert_eq!(source.client(), Some(expected));
        }
    }

    #[test]
    fn a_client_with_a_long_description_is_no_source() {
        for len in [BYTES_MAX, 70_000] {
            let claims = vec![("long".into(), "x".repeat(len).into())];
            let identity = Identity {
                claims,
                ..identity()
            };
            assert!(RetainedSource::new(&identity, None, false).is_none());
        }
    }

    #[test]
    fn bytes_of_another_layout_say_nothing() {
        let whole = RetainedSource::new(&identity(), None, true).unwrap();
        let whole = whole.bytes();
        let other = [&[LAYOUT + 1], &whole[1..]].concat();
        let later = [&whole[..], &[200, 0, 0]].concat();
        let cut = whole[..whole.len() - 1].to_vec();
        let wrong = [&whole[..], &[field::ADDRESS, 1, 0, 9]].concat();
        for bytes in [other, later, cut, wrong, Vec::new()] {
            let source = RetainedSource::stored(bytes.into());
            assert_eq!(source.client(), None);
        }
    }
}
