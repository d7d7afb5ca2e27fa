//! Source addresses: single ones and ranges of IPv4 and IPv6.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Most source addresses of a scenario: ten million clients need 400, on machines with the usual
/// range of ports.
pub const SOURCE_ADDRESSES_MAX: u32 = 4_096;

/// Addresses that follow each other, written `10.0.0.7` or `127.0.0.2-127.0.0.33`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    /// At least 1, at most [`SOURCE_ADDRESSES_MAX`].
    count: u32,
}

/// Why a text is not a range of source addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither an address nor two.
    #[error(
        "'{0}' is not an address or a range: write one like 10.0.0.7, 127.0.0.2-127.0.0.33 or fd00::1-fd00::20"
    )]
    Malformed(String),
    /// From IPv4 to IPv6.
    #[error(
        "'{0}' begins with one family of addresses and ends with the other: give both ends alike"
    )]
    Mixed(String),
    /// The end is before the beginning.
    #[error("'{0}' ends before it begins: write the lower address first")]
    Backwards(String),
    /// Connections cannot come from there.
    #[error(
        "connections cannot come from '{0}': give addresses of the machine that generates the load"
    )]
    NoSource(String),
    /// More than a scenario may have.
    #[error("'{0}' has more than the {SOURCE_ADDRESSES_MAX} addresses that a scenario may have")]
    TooMany(String),
}

impl AddressRange {
    /// Its addresses, in order.
    pub fn addresses(self) -> impl Iterator<Item = IpAddr> {
        (0..self.count).map(move |offset| after(self.first, offset))
    }

    /// Their number.
    pub const fn count(self) -> u32 {
        self.count
    }

    fn last(self) -> IpAddr {
        after(self.first, self.count - 1)
    }

    /// Whether an address is in both.
    fn overlaps(self, other: Self) -> bool {
        self.first.is_ipv4() == other.first.is_ipv4()
            && self.first <= other.last()
            && other.first <= self.last()
    }
}

impl FromStr for AddressRange {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let address = |text: &str| text.trim().parse::<IpAddr>().ok();
        let ends = address(first).zip(address(last));
        let (first, last) = ends.ok_or_else(|| AddressError::Malformed(text.to_owned()))?;
        if first.is_ipv4() != last.is_ipv4() {
            return Err(AddressError::Mixed(text.to_owned()));
        }
        let distance = distance(first, last);
        let distance = distance.ok_or_else(|| AddressError::Backwards(text.to_owned()))?;
        let count = u32::try_from(distance)
            .ok()
            .and_then(|distance| distance.checked_add(1));
        let count = count.filter(|count| *count <= SOURCE_ADDRESSES_MAX);
        let count = count.ok_or_else(|| AddressError::TooMany(text.to_owned()))?;
        let range = Self { first, count };
        if range
            .addresses()
            .any(|address| address.is_unspecified() || address.is_multicast())
        {
            return Err(AddressError::NoSource(text.to_owned()));
        }
        Ok(range)
    }
}

impl fmt::Display for AddressRange {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => write!(formatter, "{}", self.first),
            _ => write!(formatter, "{}-{}", self.first, self.last()),
        }
    }
}

impl TryFrom<String> for AddressRange {
    type Error = AddressError;

    fn try_from(text: String) -> Result<Self, AddressError> {
        text.parse()
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        range.to_string()
    }
}

/// Reads a list of ranges: no address twice, and not too many in all.
///
/// # Errors
/// The error and its address, as text.
pub(super) fn ranges(texts: &[String]) -> Result<Vec<AddressRange>, String> {
    let mut ranges: Vec<AddressRange> = Vec::with_capacity(texts.len());
    let mut count = 0;
    for text in texts {
        let range: AddressRange = text
            .parse()
            .map_err(|error: AddressError| error.to_string())?;
        if let Some(other) = ranges.iter().find(|other| other.overlaps(range)) {
            return Err(format!(
                "{other} and {range} have addresses in common: name each once"
            ));
        }
        count += range.count();
        if count > SOURCE_ADDRESSES_MAX {
            return Err(format!(
                "more than {SOURCE_ADDRESSES_MAX} addresses: give fewer"
            ));
        }
        ranges.push(range);
    }
    Ok(ranges)
}

/// The distance from one address up to another of its family; none if that is before it.
fn distance(first: IpAddr, last: IpAddr) -> Option<u128> {
    number(last).checked_sub(number(first))
}

const fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits() as u128,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The address this many further on.
const fn after(address: IpAddr, offset: u32) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().wrapping_add(offset)))
        }
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits().wrapping_add(offset as u128),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(text: &str) -> Vec<String> {
        let range: AddressRange = text.parse().unwrap();
        range
            .addresses()
            .map(|address| address.to_string())
            .collect()
    }

    #[test]
    fn a_range_has_both_of_its_ends() {
        assert_eq!(listed("10.0.0.7"), ["10.0.0.7"]);
        assert_eq!(
            listed("10.0.0.254-10.0.1.1"),
            ["10.0.0.254", "10.0.0.255", "10.0.1.0", "10.0.1.1"]
        );
        assert_eq!(
            listed("fd00::fffe - fd00::1:0"),
            ["fd00::fffe", "fd00::ffff", "fd00::1:0"]
        );
    }

    #[test]
    fn a_range_is_written_as_it_was_read() {
        for text in ["127.0.0.2", "127.0.0.2-127.0.0.33", "fd00::1-fd00::20"] {
            let range: AddressRange = text.parse().unwrap();
            assert_eq!(range.to_string(), text);
            let json = serde_json::to_string(&range).unwrap();
            assert_eq!(serde_json::from_str::<AddressRange>(&json).unwrap(), range);
        }
        assert!(serde_json::from_str::<AddressRange>("\"10.0.0\"").is_err());
    }

    #[test]
    fn an_invalid_range_is_refused_with_an_example() {
        for (text, part) in [
            ("", "is not an address"),
            ("10.0.0", "127.0.0.2-127.0.0.33"),
            ("10.0.0.1-", "is not an address"),
            ("10.0.0.1-33", "is not an address"),
            ("10.0.0.1-fd00::1", "the other"),
            ("10.0.0.2-10.0.0.1", "lower address first"),
            ("10.0.0.0-10.1.0.0", "more than the 4096"),
            ("0.0.0.0", "connections cannot come"),
            ("::-::1", "connections cannot come"),
            ("224.0.0.1", "connections cannot come"),
        ] {
            let error = text.parse::<AddressRange>().unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_list_names_each_address_once() {
        let read = |texts: &[&str]| {
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            ranges(&texts)
        };
        assert_eq!(
            read(&["127.0.0.2-127.0.0.9", "127.0.0.10", "fd00::1"])
                .unwrap()
                .len(),
            3
        );
        let error = read(&["127.0.0.2-127.0.0.9", "127.0.0.9"]).unwrap_err();
        assert!(error.contains("in common"), "{error}");
        let error = read(&["10.0.0.0-10.0.15.255", "10.1.0.0"]).unwrap_err();
        assert!(error.contains("more than 4096"), "{error}");
    }
}
