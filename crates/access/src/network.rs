//! Networks: an address and how many of its first bits count, `10.0.0.0/8`.

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::str::FromStr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// Bits of an IPv6 address that identify one site: a client that has one such address has all 2^64
/// of them.
const SITE_BITS: u8 = 64;

/// Addresses that begin with the same bits.
///
/// An IPv4 address in IPv6 form (`::ffff:10.0.0.1`, as on a listener of both kinds) counts as IPv4,
/// which [`IpNet`] does not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Network(
    /// Bits that do not count are zero; never an IPv4 address in the form of an IPv6 one.
    IpNet,
);

impl Network {
    /// The network of that many bits that the address is in. None if the address has fewer bits.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let canonical = address.to_canonical();
        let is_mapped = address.is_ipv6() && canonical.is_ipv4();
        let prefix = if is_mapped {
            prefix.checked_sub(96)?
        } else {
            prefix
        };
        let network = IpNet::new(canonical, prefix).ok()?;
        Some(Self(network.trunc()))
    }

    /// The address alone.
    pub fn of_address(address: IpAddr) -> Self {
        Self(address.to_canonical().into())
    }

    /// The unit in which clients are counted by address: one IPv4 address, or an IPv6 network of 64
    /// bits.
    pub fn of_client(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(Ipv4Net::from(address).into()),
            IpAddr::V6(address) => {
                let site = Ipv6Net::new_assert(address, SITE_BITS);
                Self(site.trunc().into())
            }
        }
    }

    /// Whether the address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Its first address.
    pub fn address(&self) -> IpAddr {
        self.0.addr()
    }

    /// How many bits count.
    pub fn prefix(&self) -> u8 {
        self.0.prefix_len()
    }

    /// Whether it is of this machine.
    pub fn is_loopback(&self) -> bool {
        let address = self.address();
        // Cut to 64 bits, ::1 is all zeros.
        let is_cut = address == IpAddr::V6(Ipv6Addr::UNSPECIFIED) && self.prefix() == SITE_BITS;
        is_cut || address.is_loopback()
    }
}

/// A network of one address is written without its length.
impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.prefix() == self.0.max_prefix_len() {
            return self.address().fmt(formatter);
        }
        self.0.fmt(formatter)
    }
}

/// Why a text is not a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected an address such as 192.0.2.7 or 2001:db8::1, or a network such as 192.0.2.0/24")]
pub struct NotANetwork;

/// An address without a length is a network of one address. Bits behind the length may be set.
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

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

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
    fn a_network_holds_the_addresses_with_its_first_bits() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.0"),
            ("192.168.1.7", "192.168.1.7", "192.168.1.6"),
            ("0.0.0.0/0", "203.0.113.9", "::1"),
            ("::/0", "2001:db8::1", "203.0.113.9"),
            ("fd00::/8", "fdff::1", "fe00::1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::ffff:11.1.2.3"),
            ("::ffff:10.0.0.0/104", "10.1.2.3", "11.1.2.3"),
            ("::1", "::1", "::2"),
        ] {
            check(network, inside, true);
            check(network, outside, false);
        }
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
            ("fd00::/8", Some("fd00::/8")),
            (" 10.0.0.0 / 8 ", Some("10.0.0.0/8")),
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
        #![proptest_config(ProptestConfig {
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn a_network_contains_the_addresses_that_begin_with_its_bits(
            bits: u128,
            other: u128,
            prefix in 0_u32..=128,
        ) {
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
