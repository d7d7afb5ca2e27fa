//! Networks: an address and how many of its first bits count, `10.0.0.0/8`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bits of an IPv6 address that one site has to itself: who has one such address has all 2^64 of
/// them.
const SITE_BITS: u8 = 64;

/// Addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network {
    /// Bits that do not count are zero; never an IPv4 address in the form of an IPv6 one.
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// The network of that many bits that the address is in; an IPv4 address in the form of an IPv6
    /// one counts as IPv4. None if the address has fewer bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let canonical = address.to_canonical();
        let mapped = address.is_ipv6() && canonical.is_ipv4();
        let prefix = if mapped {
            prefix.checked_sub(96)?
        } else {
            prefix
        };
        (prefix <= bits(canonical)).then(|| Self::cut(canonical, prefix))
    }

    /// The address alone.
    pub fn of_address(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::cut(address, bits(address))
    }

    /// What counts as one address where clients are counted by address: one IPv4 address, or an
    /// IPv6 network of 64 bits.
    pub fn of_client(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::cut(address, bits(address).min(SITE_BITS))
    }

    fn cut(address: IpAddr, prefix: u8) -> Self {
        let address = match address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
                Ipv4Addr::from_bits(address.to_bits() & mask).into()
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Ipv6Addr::from_bits(address.to_bits() & mask).into()
            }
        };
        Self { address, prefix }
    }

    /// Whether the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.address.is_ipv4() && Self::cut(address, self.prefix) == *self
    }

    /// Its first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    pub const fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether it is of this machine.
    pub fn is_loopback(&self) -> bool {
        // Cut to 64 bits, ::1 is all zeros.
        let is_cut = self.address == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && self.prefix == SITE_BITS;
        is_cut || self.address.is_loopback()
    }
}

/// Bits of an address.
const fn bits(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix == bits(self.address) {
            return self.address.fmt(formatter);
        }
        write!(formatter, "{}/{}", self.address, self.prefix)
    }
}

/// Why a text is no network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address such as 192.0.2.7 or 2001:db8::1, or a network such as 192.0.2.0/24")]
pub struct NotANetwork;

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let parse = |text: &str| text.trim().parse::<IpAddr>().map_err(|_| NotANetwork);
        let Some((address, prefix)) = text.split_once('/') else {
            return parse(text).map(Self::of_address);
        };
        let prefix = prefix.trim().parse().map_err(|_| NotANetwork)?;
        Self::new(parse(address)?, prefix).ok_or(NotANetwork)
    }
}

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(network: &str, address: &str, expected: bool) {
        let network: Network = network.parse().unwrap();
        assert_eq!(network.contains(address.parse().unwrap()), expected);
    }

    #[test]
    fn a_network_contains_the_addresses_that_share_its_prefix() {
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.0/8", "::ffff:10.0.0.1", true);
        check("0.0.0.0/0", "192.0.2.1", true);
        check("0.0.0.0/0", "::1", false);
        check("192.0.2.7", "192.0.2.7", true);
        check("192.0.2.7", "192.0.2.6", false);
        check("2001:db8::/32", "2001:db8:1::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("::/0", "2001:db9::1", true);
    }

    #[test]
    fn networks_are_read_and_written() {
        for (text, written) in [
            ("192.0.2.7", Some("192.0.2.7")),
            ("192.0.2.7/24", Some("192.0.2.0/24")),
            ("192.0.2.7/32", Some("192.0.2.7")),
            ("0.0.0.0/0", Some("0.0.0.0/0")),
            ("2001:db8::1/64", Some("2001:db8::/64")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("::/0", Some("::/0")),
            ("::ffff:192.0.2.7", Some("192.0.2.7")),
            ("::ffff:192.0.2.7/120", Some("192.0.2.0/24")),
            ("::ffff:192.0.2.7/24", None),
            ("192.0.2.7/33", None),
            ("2001:db8::/129", None),
            ("192.0.2.7/-1", None),
            ("192.0.2/24", None),
            ("10.0.0.0/", None),
            ("a/8", None),
            ("host", None),
            ("", None),
        ] {
            let read = text
                .parse::<Network>()
                .ok()
                .map(|network| network.to_string());
            assert_eq!(read.as_deref(), written, "{text}");
        }
    }

    #[test]
    fn clients_are_counted_by_address_or_by_site() {
        let of_client = |text: &str| Network::of_client(text.parse().unwrap()).to_string();
        assert_eq!(of_client("192.0.2.7"), "192.0.2.7");
        assert_eq!(of_client("::ffff:192.0.2.7"), "192.0.2.7");
        assert_eq!(of_client("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
    }

    #[test]
    fn loopback_is_seen_after_the_cut() {
        for (text, expected) in [
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.7", false),
            ("::2:0:0:0:0", false),
        ] {
            let cut = Network::of_client(text.parse().unwrap());
            assert_eq!(cut.is_loopback(), expected, "{text}");
        }
    }

    #[test]
    fn an_address_is_not_in_a_network_of_the_other_family() {
        let everything: Network = "0.0.0.0/0".parse().unwrap();
        assert!(everything.contains("::ffff:192.0.2.7".parse().unwrap()));
        assert!(!everything.contains("2001:db8::1".parse().unwrap()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_network_contains_what_begins_with_its_bits(bits: u128, other: u128, prefix in 0_u32..=128) {
            let (one, two) = (Ipv6Addr::from_bits(bits), Ipv6Addr::from_bits(other));
            // Those of IPv4 are counted differently.
            prop_assume!(one.to_ipv4_mapped().is_none() && two.to_ipv4_mapped().is_none());
            let network = Network::new(one.into(), u8::try_from(prefix).unwrap()).unwrap();
            prop_assert!(network.contains(one.into()));
            prop_assert_eq!(network.contains(two.into()), (bits ^ other).leading_zeros() >= prefix);
            prop_assert_eq!(network.to_string().parse(), Ok(network));
        }
    }
}
