//! The client that a retained message came from, in the form in which the store and the disk keep
//! it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use thrum_access::{Certificate, Identity};
use thrum_protocol::MountPoint;

/// Of a client of which more would have to be kept nothing is: the claims of a token may be longer
/// than the messages.
const BYTES_MAX: usize = 4096;
/// Memory of a source besides its bytes, and what the allocator adds.
const OVERHEAD_BYTES: usize = 96;
/// First byte. A layout that changes gets a new one.
const LAYOUT: u8 = 1;

/// What a field is: its number, two bytes of length, and its bytes.
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
    /// Of the claim before it.
    pub(super) const CLAIM_VALUE: u8 = 10;
    pub(super) const BACKEND: u8 = 11;
    pub(super) const MOUNT: u8 = 12;
    /// Without bytes.
    pub(super) const SUPERUSER: u8 = 13;
    /// Without bytes.
    pub(super) const HAS_OWN_RULES: u8 = 14;
}

/// The client that a retained message came from, shared by its messages.
#[derive(Debug)]
pub struct RetainedSource {
    bytes: Arc<[u8]>,
    /// Its messages are not given to new subscribers: the rules do not allow them any more.
    is_withheld: bool,
    /// Messages of the store that name it; its memory counts while there are any.
    messages: AtomicUsize,
}

/// What is known of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SourceClient {
    pub identity: Identity,
    pub mount: Option<MountPoint>,
    /// It came in with rules of its own, which are not kept.
    pub has_own_rules: bool,
}

impl RetainedSource {
    /// None if there is too much to keep.
    pub fn new(
        identity: &Identity,
        mount: Option<&MountPoint>,
        has_own_rules: bool,
    ) -> Option<Arc<Self>> {
        let bytes = encode(identity, mount, has_own_rules)?;
        Some(Self::stored(bytes.into()))
    }

    /// As it was written down.
    pub fn stored(bytes: Arc<[u8]>) -> Arc<Self> {
        Arc::new(Self {
            bytes,
            is_withheld: false,
            messages: AtomicUsize::new(0),
        })
    }

    /// The same client, of messages that are withheld, or of such that are not.
    pub fn marked(&self, is_withheld: bool) -> Arc<Self> {
        Arc::new(Self {
            bytes: Arc::clone(&self.bytes),
            is_withheld,
            messages: AtomicUsize::new(0),
        })
    }

    /// The form in which it is written down; equal for equal clients.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }

    /// What is known of the client; none if a later version wrote it.
    pub fn client(&self) -> Option<SourceClient> {
        decode(&self.bytes)
    }

    pub fn is_withheld(&self) -> bool {
        self.is_withheld
    }

    /// One more message names it; the memory that this takes.
    pub(super) fn gain(&self) -> usize {
        let is_first = self.messages.fetch_add(1, Ordering::Relaxed) == 0;
        if is_first { self.memory_bytes() } else { 0 }
    }

    /// One message less names it; the memory that this gives back.
    pub(super) fn lose(&self) -> usize {
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
    /// A field that is too long makes the whole too long.
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
            // Of a later version: without it the rest might say something else.
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
    fn what_rules_and_backends_use_of_a_client_comes_back() {
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
    fn a_client_of_which_there_is_too_much_to_keep_is_no_source() {
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
