//! Networks: an address and how many of its bits count.

use core::fmt;
use core::net::IpAddr;
use core::str::FromStr;

use super::error::{Problem, excerpt};

/// A network, or a single address.
///
/// An IPv4 address that is written or seen as IPv6 (`::ffff:10.0.0.1`, as on a listener of both
/// kinds) is taken as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    pub(super) family: Family,
    pub(super) prefix: u8,
    /// Left-aligned; what is behind the prefix is 0.
    pub(super) bits: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Family {
    V4,
    V6,
}

impl Family {
    fn bits(self) -> u8 {
        match self {
            Self::V4 => 32,
            Self::V6 => 128,
        }
    }
}

impl Network {
    /// A network; none if the prefix is longer than the address, or bits behind it are set.
    pub fn new(address: IpAddr, prefix: u8) -> Option<Self> {
        let mapped = address.is_ipv6() && address.to_canonical().is_ipv4() && prefix >= 96;
        let (address, prefix) = if mapped {
            (address.to_canonical(), prefix - 96)
        } else {
            (address, prefix)
        };
        let (family, bits) = aligned(address);
        let fits = prefix <= family.bits() && bits == masked(bits, prefix);
        fits.then_some(Self {
            family,
            prefix,
            bits,
        })
    }

    /// Whether the address is one of it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let (family, bits) = aligned(address.to_canonical());
        family == self.family && masked(bits, self.prefix) == self.bits
    }

    /// The network of this length that an address is in.
    pub(super) fn around(address: IpAddr, family: Family, prefix: u8) -> Option<Self> {
        let (found, bits) = aligned(address.to_canonical());
        (found == family).then(|| Self {
            family,
            prefix,
            bits: masked(bits, prefix),
        })
    }

    fn address(&self) -> IpAddr {
        match self.family {
            Family::V4 => {
                let bytes = self.bits.to_be_bytes();
                IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
            }
            Family::V6 => IpAddr::from(self.bits.to_be_bytes()),
        }
    }
}

fn aligned(address: IpAddr) -> (Family, u128) {
    match address {
        IpAddr::V4(address) => (Family::V4, u128::from(address.to_bits()) << 96),
        IpAddr::V6(address) => (Family::V6, address.to_bits()),
    }
}

fn masked(bits: u128, prefix: u8) -> u128 {
    let behind = u128::MAX.checked_shr(prefix.into()).unwrap_or(0);
    bits & !behind
}

impl FromStr for Network {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let parsed = || {
            let address: IpAddr = address.parse().ok()?;
            let prefix = match prefix {
                Some(prefix) => prefix.parse().ok()?,
                None if address.is_ipv4() => 32,
                None => 128,
            };
            Self::new(address, prefix)
        };
        parsed().ok_or_else(|| Problem::Network {
            found: excerpt(text),
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.address())?;
        if self.prefix < self.family.bits() {
            write!(formatter, "/{}", self.prefix)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

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
            let network: Network = network.parse().expect(network);
            assert!(
                network.contains(inside.parse().expect(inside)),
                "{network} {inside}"
            );
            assert!(
                !network.contains(outside.parse().expect(outside)),
                "{network} {outside}"
            );
        }
    }

    #[test]
    fn a_network_is_printed_as_it_is_read() {
        for text in [
            "10.0.0.0/8",
            "192.168.1.7",
            "::1",
            "fd00::/8",
            "0.0.0.0/0",
            "::/0",
        ] {
            assert_eq!(
                text.parse::<Network>().expect("a network").to_string(),
                text
            );
        }
    }

    #[test]
    fn a_network_with_bits_behind_its_prefix_is_refused() {
        for text in [
            "10.0.0.1/8",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/",
            "10.0.0",
            "host",
            "/8",
            "",
            "fd00::1/8",
            "10.0.0.0/-1",
            "10.0.0.0/256",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
