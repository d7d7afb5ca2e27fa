//! A list of bans: plain data with fast look-ups.

use std::fmt;
use std::net::IpAddr;

use hashbrown::{Equivalent, HashMap};
use thrum_access::Network;

/// The subject of a ban.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Subject {
    /// The client with this identifier.
    ClientId(Box<str>),
    /// Every client of this user.
    Username(Box<str>),
    /// Every client from this address or network.
    Network(Network),
    /// The client of this user with this identifier; not a client of another user.
    ClientOfUser {
        /// Its identifier.
        client_id: Box<str>,
        /// Its user.
        username: Box<str>,
    },
    /// The client without user name that has this identifier and connects from this network.
    ClientFrom {
        /// Its identifier.
        client_id: Box<str>,
        /// The network of its address.
        network: Network,
    },
}

/// As [`Subject`], borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubjectRef<'a> {
    /// The client with this identifier.
    ClientId(&'a str),
    /// Every client of this user.
    Username(&'a str),
    /// Every client from this address or network.
    Network(Network),
    /// The client of this user with this identifier.
    ClientOfUser {
        /// Its identifier.
        client_id: &'a str,
        /// Its user.
        username: &'a str,
    },
    /// The client without user name that has this identifier and connects from this network.
    ClientFrom {
        /// Its identifier.
        client_id: &'a str,
        /// The network of its address.
        network: Network,
    },
}

impl Subject {
    /// The subject, borrowed.
    pub fn as_ref(&self) -> SubjectRef<'_> {
        match self {
            Self::ClientId(id) => SubjectRef::ClientId(id),
            Self::Username(name) => SubjectRef::Username(name),
            Self::Network(network) => SubjectRef::Network(*network),
            Self::ClientOfUser {
                client_id,
                username,
            } => SubjectRef::ClientOfUser {
                client_id,
                username,
            },
            Self::ClientFrom { client_id, network } => SubjectRef::ClientFrom {
                client_id,
                network: *network,
            },
        }
    }
}

impl SubjectRef<'_> {
    /// An owned copy.
    pub fn to_owned(self) -> Subject {
        match self {
            Self::ClientId(id) => Subject::ClientId(id.into()),
            Self::Username(name) => Subject::Username(name.into()),
            Self::Network(network) => Subject::Network(network),
            Self::ClientOfUser {
                client_id,
                username,
            } => Subject::ClientOfUser {
                client_id: client_id.into(),
                username: username.into(),
            },
            Self::ClientFrom { client_id, network } => Subject::ClientFrom {
                client_id: client_id.into(),
                network,
            },
        }
    }
}

impl Equivalent<Subject> for SubjectRef<'_> {
    fn equivalent(&self, key: &Subject) -> bool {
        *self == key.as_ref()
    }
}

/// The form of the log: `client "meter-7"`, `user "jo"`, `address 192.0.2.0/24`.
impl fmt::Display for Subject {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ClientId(id) => write!(formatter, "client {id:?}"),
            Self::Username(name) => write!(formatter, "user {name:?}"),
            Self::Network(network) => write!(formatter, "address {network}"),
            Self::ClientOfUser {
                client_id,
                username,
            } => write!(formatter, "client {client_id:?} of user {username:?}"),
            Self::ClientFrom { client_id, network } => {
                write!(formatter, "client {client_id:?} from {network}")
            }
        }
    }
}

/// A ban.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// Its subject.
    pub subject: Subject,
    /// The reason as a text; may be empty. The client does not see it.
    pub reason: Box<str>,
    /// Its author; may be empty.
    pub by: Box<str>,
    /// The time of the ban, in seconds of the Unix epoch.
    pub since: u64,
    /// The end of the ban, in seconds of the Unix epoch; `None` if it never ends.
    pub until: Option<u64>,
    /// Connected clients that it names are disconnected; otherwise it only keeps out those that
    /// connect later.
    pub disconnects: bool,
}

impl Ban {
    /// Whether it is in force at a time in seconds of the Unix epoch.
    pub fn is_in_force(&self, now: u64) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Bans, at most one for each subject.
#[derive(Clone, Debug, Default)]
pub struct BanList {
    bans: HashMap<Subject, Ban>,
    /// The prefix lengths in use; a look-up tries each length once.
    lengths_v4: Vec<PrefixLength>,
    lengths_v6: Vec<PrefixLength>,
}

/// Bans of networks of one length.
#[derive(Clone, Copy, Debug)]
struct PrefixLength {
    bits: u8,
    bans: usize,
}

impl FromIterator<Ban> for BanList {
    fn from_iter<T: IntoIterator<Item = Ban>>(bans: T) -> Self {
        let mut list = Self::default();
        for ban in bans {
            list.insert(ban);
        }
        list
    }
}

impl BanList {
    /// Number of bans, including those that have ended.
    pub fn len(&self) -> usize {
        self.bans.len()
    }

    /// Whether there is no ban.
    pub fn is_empty(&self) -> bool {
        self.bans.is_empty()
    }

    /// Adds a ban; returns the replaced one of the same subject.
    pub fn insert(&mut self, ban: Ban) -> Option<Ban> {
        let subject = ban.subject.clone();
        let replaced = self.bans.insert(subject.clone(), ban);
        if replaced.is_none()
            && let Subject::Network(network) = subject
        {
            let (lengths, bits) = (self.lengths(network), network.prefix());
            match lengths.iter_mut().find(|length| length.bits == bits) {
                Some(length) => length.bans += 1,
                None => lengths.push(PrefixLength { bits, bans: 1 }),
            }
        }
        replaced
    }

    /// Removes the ban of exactly this subject.
    pub fn remove(&mut self, subject: &Subject) -> Option<Ban> {
        let removed = self.bans.remove(subject);
        if removed.is_some()
            && let Subject::Network(network) = subject
        {
            let lengths = self.lengths(*network);
            for length in lengths.iter_mut() {
                length.bans -= usize::from(length.bits == network.prefix());
            }
            lengths.retain(|length| length.bans > 0);
        }
        removed
    }

    /// Removes the bans that have ended; returns their number.
    pub fn remove_ended(&mut self, now: u64) -> usize {
        let ended = self.bans.values().filter(|ban| !ban.is_in_force(now));
        let ended: Vec<Subject> = ended.map(|ban| ban.subject.clone()).collect();
        for subject in &ended {
            self.remove(subject);
        }
        ended.len()
    }

    /// The ban of exactly this subject, if it is in force. For addresses see
    /// [`BanList::find_address`].
    pub fn find(&self, subject: SubjectRef<'_>, now: u64) -> Option<&Ban> {
        self.bans.get(&subject).filter(|ban| ban.is_in_force(now))
    }

    /// A ban in force of a network that contains the address: one look-up for each prefix length in
    /// use.
    pub fn find_address(&self, address: IpAddr, now: u64) -> Option<&Ban> {
        self.of_address(address, now).next()
    }

    /// Every ban in force of a network that contains the address; the cost is that of
    /// [`BanList::find_address`].
    pub fn of_address(&self, address: IpAddr, now: u64) -> impl Iterator<Item = &Ban> {
        let address = address.to_canonical();
        let lengths = match address {
            IpAddr::V4(_) => &self.lengths_v4,
            IpAddr::V6(_) => &self.lengths_v6,
        };
        lengths.iter().filter_map(move |length| {
            let network = Network::new(address, length.bits)?;
            self.find(SubjectRef::Network(network), now)
        })
    }

    /// All bans, ordered by kind and name.
    pub fn sorted(&self) -> Vec<&Ban> {
        let mut bans: Vec<&Ban> = self.bans.values().collect();
        bans.sort_unstable_by(|one, other| one.subject.cmp(&other.subject));
        bans
    }

    /// Subjects with a ban in force here that disconnects, and none in `before`.
    pub(crate) fn new_subjects(&self, before: &Self, now: u64) -> Vec<Subject> {
        let disconnects = |ban: &&Ban| ban.disconnects && ban.is_in_force(now);
        let new = self.bans.values().filter(disconnects).filter(|ban| {
            let earlier = before.find(ban.subject.as_ref(), now);
            !earlier.is_some_and(|earlier| earlier.disconnects)
        });
        new.map(|ban| ban.subject.clone()).collect()
    }

    fn lengths(&mut self, network: Network) -> &mut Vec<PrefixLength> {
        if network.address().is_ipv4() {
            &mut self.lengths_v4
        } else {
            &mut self.lengths_v6
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use proptest::collection::vec;
    use proptest::option::of;
    use proptest::prelude::*;

    use super::*;

    fn ban(subject: Subject, until: Option<u64>) -> Ban {
        Ban {
            subject,
            reason: "".into(),
            by: "".into(),
            since: 0,
            until,
            disconnects: true,
        }
    }

    fn network(text: &str) -> Subject {
        Subject::Network(text.parse().unwrap())
    }

    #[test]
    fn names_of_different_kinds_are_different() {
        let mut list = BanList::default();
        list.insert(ban(Subject::ClientId("a".into()), None));
        assert!(list.find(SubjectRef::ClientId("a"), 5).is_some());
        assert!(list.find(SubjectRef::Username("a"), 5).is_none());
        assert!(list.find(SubjectRef::ClientId("A"), 5).is_none());
    }

    #[test]
    fn a_ban_ends_at_its_time() {
        let mut list = BanList::default();
        list.insert(ban(Subject::ClientId("a".into()), Some(10)));
        assert!(list.find(SubjectRef::ClientId("a"), 9).is_some());
        assert!(list.find(SubjectRef::ClientId("a"), 10).is_none());
        assert_eq!(
            (list.remove_ended(9), list.remove_ended(10), list.len()),
            (0, 1, 0)
        );
    }

    #[test]
    fn an_ended_ban_of_a_host_does_not_hide_that_of_its_network() {
        let mut list = BanList::default();
        list.insert(ban(network("192.0.2.7"), Some(10)));
        list.insert(ban(network("192.0.0.0/16"), None));
        let found = |address: &str| list.find_address(address.parse().unwrap(), 20);
        assert_eq!(found("192.0.2.7").unwrap().subject, network("192.0.0.0/16"));
        assert!(found("::ffff:192.0.2.7").is_some());
        assert!(found("192.1.2.7").is_none());
    }

    #[test]
    fn new_bans_are_returned() {
        let (mut before, mut after) = (BanList::default(), BanList::default());
        let subject = |name: &str| Subject::ClientId(name.into());
        before.insert(ban(subject("stays"), None));
        before.insert(ban(subject("comes back"), Some(5)));
        after.insert(ban(subject("stays"), Some(100)));
        after.insert(ban(subject("comes back"), None));
        after.insert(ban(subject("has ended"), Some(9)));
        assert_eq!(after.new_subjects(&before, 10), [subject("comes back")]);
    }

    #[test]
    fn a_ban_that_disconnects_nobody_is_new_when_it_does() {
        let quiet = Ban {
            disconnects: false,
            ..ban(Subject::ClientId("a".into()), None)
        };
        let (before, quiet) = (BanList::default(), BanList::from_iter([quiet]));
        let loud = BanList::from_iter([ban(Subject::ClientId("a".into()), None)]);
        assert_eq!(quiet.new_subjects(&before, 10), []);
        assert_eq!(
            loud.new_subjects(&quiet, 10),
            [Subject::ClientId("a".into())]
        );
        assert_eq!(quiet.new_subjects(&loud, 10), []);
        assert!(quiet.find(SubjectRef::ClientId("a"), 10).is_some());
    }

    #[test]
    fn a_hundred_thousand_bans_are_fine() {
        let mut list = BanList::default();
        for number in 0..100_000_u32 {
            list.insert(ban(Subject::ClientId(number.to_string().into()), None));
            let address = Ipv4Addr::from_bits(number << 8).into();
            list.insert(ban(Subject::Network(Network::of_address(address)), None));
        }
        assert_eq!(list.len(), 200_000);
        assert!(list.find(SubjectRef::ClientId("77777"), 0).is_some());
        assert!(list.find_address("0.1.0.0".parse().unwrap(), 0).is_some());
        assert!(list.find_address("0.1.0.1".parse().unwrap(), 0).is_none());
        assert_eq!(list.lengths_v4.len(), 1);
    }

    /// Addresses that have much in common.
    fn addresses() -> impl Strategy<Value = IpAddr> {
        prop_oneof![
            (0_u32..4, 0_u32..4)
                .prop_map(|(high, low)| Ipv4Addr::from_bits(high << 30 | low).into()),
            (0_u128..4, 0_u128..4)
                .prop_map(|(high, low)| Ipv6Addr::from_bits(high << 126 | low).into()),
            (0_u128..4).prop_map(|low| Ipv6Addr::from_bits(0xFFFF_0000_0000 | low).into()),
        ]
    }

    fn subjects() -> impl Strategy<Value = Subject> {
        let network = (addresses(), 0_u8..=128);
        prop_oneof![
            "[ab]".prop_map(|id| Subject::ClientId(id.into())),
            "[ab]".prop_map(|name| Subject::Username(name.into())),
            network.prop_filter_map("too long", |(address, prefix)| {
                Network::new(address, prefix).map(Subject::Network)
            }),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_look_up_agrees_with_a_scan_of_all_bans(
            steps in vec((any::<bool>(), subjects(), of(0_u64..4)), 0..60),
            questions in vec((addresses(), "[ab]", 0_u64..4), 1..10),
        ) {
            let (mut list, mut all) = (BanList::default(), Vec::<Ban>::new());
            for (is_added, subject, until) in steps {
                let place = all.iter().position(|ban| ban.subject == subject);
                let old = place.map(|place| all.remove(place));
                if is_added {
                    all.push(ban(subject.clone(), until));
                    prop_assert_eq!(list.insert(ban(subject, until)), old);
                } else {
                    prop_assert_eq!(list.remove(&subject), old);
                }
            }
            prop_assert_eq!(list.len(), all.len());
            for (address, name, now) in questions {
                let walk = |fits: &dyn Fn(&Subject) -> bool| {
                    all.iter().any(|ban| ban.is_in_force(now) && fits(&ban.subject))
                };
                let is_in = |subject: &Subject| match subject {
                    Subject::Network(network) => network.contains(address),
                    _ => false,
                };
                let by_address = walk(&is_in);
                let found = list.find_address(address, now);
                prop_assert_eq!(found.is_some(), by_address, "{}", address);
                for subject in [SubjectRef::ClientId(&name), SubjectRef::Username(&name)] {
                    let by_name = walk(&|found| found.as_ref() == subject);
                    prop_assert_eq!(list.find(subject, now).is_some(), by_name);
                }
            }
        }
    }

    #[test]
    fn a_prefix_length_is_listed_while_a_ban_has_that_length() {
        let mut list = BanList::default();
        let lengths = |list: &BanList| {
            let bits = |lengths: &[PrefixLength]| {
                lengths.iter().map(|length| length.bits).collect::<Vec<_>>()
            };
            (bits(&list.lengths_v4), bits(&list.lengths_v6))
        };
        for subject in ["192.0.2.0/24", "192.0.3.0/24", "192.0.0.0/16", "fd00::/8"] {
            list.insert(ban(network(subject), None));
        }
        list.insert(ban(network("192.0.2.0/24"), Some(7)));
        assert_eq!(lengths(&list), (vec![24, 16], vec![8]));
        assert!(list.remove(&network("192.0.2.0/24")).is_some());
        assert_eq!(lengths(&list), (vec![24, 16], vec![8]));
        assert!(list.remove(&network("192.0.3.0/24")).is_some());
        assert!(list.remove(&network("192.0.3.0/24")).is_none());
        assert_eq!(lengths(&list), (vec![16], vec![8]));
        assert!(list.remove(&network("fd00::/8")).is_some());
        assert_eq!(lengths(&list), (vec![16], vec![]));
    }
}
