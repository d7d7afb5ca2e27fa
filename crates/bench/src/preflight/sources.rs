//! Source addresses: each allows as many connections to a broker as there are ports.

use std::io;
use std::net::{IpAddr, Ipv4Addr};

use thrum_figures::as_index;
use thrum_figures::count;
use thrum_load::scenario::AddressRange;

use crate::kernel_text;
use crate::source;

/// Ports of one source address that are used: the rest is left to other programs and to ports that
/// are not free again yet.
const PORTS_USED_PERCENT: u32 = 90;

/// Ports of one source address that the kernel finds at once. It assigns those of one parity first,
/// and searches all of them for each connection once they are used up: 14,116 connections to one
/// address, then a pause of 100 ms that the generator would report as the broker's time to connect.
const PORTS_AT_ONCE_PERCENT: u32 = 45;

/// Source addresses 127.0.0.1 to 127.0.0.254.
const LOOPBACK_SOURCES_MAX: u32 = 254;

/// Why the clients cannot have the source addresses that they need.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// More clients than ports.
    #[error(
        "{} clients need more ports than the {} of one source address ({low} to {high}): give {needed} source addresses of this machine (source_addresses), widen net.ipv4.ip_local_port_range, use fewer clients, or a target in 127.0.0.0/8",
        count(u64::from(*clients)),
        count(PortRange::new(*low, *high).ports().into()),
    )]
    Ports {
        /// Requested clients.
        clients: u32,
        /// Addresses that would do.
        needed: u32,
        /// First port for clients.
        low: u16,
        /// Last port for clients.
        high: u16,
    },
    /// Fewer addresses than the clients need.
    #[error(
        "{} clients need {needed} source addresses and have {given}: each has {} ports ({low} to {high}) and {PORTS_USED_PERCENT} % of them are used; give more source_addresses, widen net.ipv4.ip_local_port_range, or use at most {} clients",
        count(u64::from(*clients)),
        count(PortRange::new(*low, *high).ports().into()),
        count(u64::from(*given) * u64::from(PortRange::new(*low, *high).usable())),
    )]
    TooFew {
        /// Requested clients.
        clients: u32,
        /// Addresses that would do.
        needed: u32,
        /// Available addresses.
        given: u32,
        /// First port for clients.
        low: u16,
        /// Last port for clients.
        high: u16,
    },
    /// IPv4 for a broker with IPv6, or the other way round.
    #[error("none of the source addresses can reach the target {target}: give some of its family ({family})", family = if target.is_ipv4() { "IPv4" } else { "IPv6" })]
    OtherFamily {
        /// The broker.
        target: IpAddr,
    },
    /// No address of this machine.
    #[error(
        "the source address {address} cannot be used: {cause}; give addresses that this machine has (`ip address`), or add it to an interface"
    )]
    Unusable {
        /// The address.
        address: IpAddr,
        /// The kernel's error.
        cause: String,
    },
    /// An agent without a matching address.
    #[error(
        "this machine has none of the {0} source addresses of the scenario: add some of them to an interface (`ip address`), or name those that it has in source_addresses too"
    )]
    NoneHere(usize),
}

/// All source addresses of a scenario, which this machine must have.
///
/// # Errors
/// It lacks one.
pub fn all_sources(ranges: &[AddressRange]) -> Result<Vec<IpAddr>, SourceError> {
    let addresses = ranges.iter().flat_map(|range| range.addresses());
    let checked = addresses.map(|address| match try_source(address) {
        Ok(()) => Ok(address),
        Err(error) => Err(SourceError::Unusable {
            address,
            cause: error.to_string(),
        }),
    });
    checked.collect()
}

/// Those of a scenario's source addresses that this machine has: the list is for all machines of
/// the run.
///
/// # Errors
/// It has none of them, or one cannot be tried.
pub(crate) fn own_sources(ranges: &[AddressRange]) -> Result<Vec<IpAddr>, SourceError> {
    let addresses: Vec<IpAddr> = ranges.iter().flat_map(|range| range.addresses()).collect();
    let mut own = Vec::new();
    for &address in &addresses {
        match try_source(address) {
            Ok(()) => own.push(address),
            Err(error) if is_elsewhere(&error) => {}
            Err(error) => {
                return Err(SourceError::Unusable {
                    address,
                    cause: error.to_string(),
                });
            }
        }
    }
    if own.is_empty() && !addresses.is_empty() {
        return Err(SourceError::NoneHere(addresses.len()));
    }
    Ok(own)
}

/// The source addresses that the clients of a broker take turns with, of those given or, without
/// any, of the loopback; empty if the kernel's choice will do.
///
/// # Errors
/// The clients need more ports than there are, or no given address is of the broker's family.
pub fn source_addresses(
    target: IpAddr,
    clients: u32,
    given: &[IpAddr],
) -> Result<Vec<IpAddr>, SourceError> {
    let text = kernel_text::read("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let range = PortRange::read(&text).unwrap_or(PortRange::new(32_768, 60_999));
    if given.is_empty() {
        return spread(target, clients, range);
    }
    choose(target, clients, given, range)
}

/// Whether an address is not this machine's, or of a family that it does not have.
fn is_elsewhere(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.raw_os_error() == Some(rustix::io::Errno::AFNOSUPPORT.raw_os_error())
}

fn try_source(address: IpAddr) -> io::Result<()> {
    source::bind(&source::socket(address)?, address)
}

/// The given addresses of the broker's family, if they are enough.
fn choose(
    target: IpAddr,
    clients: u32,
    given: &[IpAddr],
    range: PortRange,
) -> Result<Vec<IpAddr>, SourceError> {
    let of_family = given
        .iter()
        .filter(|address| address.is_ipv4() == target.is_ipv4());
    let of_family: Vec<IpAddr> = of_family.copied().collect();
    if of_family.is_empty() {
        return Err(SourceError::OtherFamily { target });
    }
    let needed = clients.div_ceil(range.usable());
    if of_family.len() < as_index(needed) {
        return Err(SourceError::TooFew {
            clients,
            needed,
            given: u32::try_from(of_family.len()).unwrap_or(u32::MAX),
            low: range.low,
            high: range.high,
        });
    }
    Ok(of_family)
}

/// Addresses of the loopback, if the kernel's choice will not do.
fn spread(target: IpAddr, clients: u32, range: PortRange) -> Result<Vec<IpAddr>, SourceError> {
    let is_v4_loopback = matches!(target, IpAddr::V4(address) if address.is_loopback());
    let needed = clients.div_ceil(range.usable());
    if needed > 1 && (!is_v4_loopback || needed > LOOPBACK_SOURCES_MAX) {
        return Err(SourceError::Ports {
            clients,
            needed,
            low: range.low,
            high: range.high,
        });
    }
    let at_ease = clients.div_ceil((range.ports() * PORTS_AT_ONCE_PERCENT / 100).max(1));
    if !is_v4_loopback || at_ease <= 1 {
        return Ok(Vec::new());
    }
    let addresses = (1..u8::MAX).take(as_index(at_ease.min(LOOPBACK_SOURCES_MAX)));
    Ok(addresses
        .map(|last| IpAddr::V4(Ipv4Addr::new(127, 0, 0, last)))
        .collect())
}

/// Ports that the kernel gives to clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortRange {
    low: u16,
    high: u16,
}

impl PortRange {
    const fn new(low: u16, high: u16) -> Self {
        Self { low, high }
    }

    /// Two numbers, as the kernel writes them.
    fn read(text: &str) -> Option<Self> {
        let mut bounds = text.split_ascii_whitespace().map(str::parse);
        Some(Self {
            low: bounds.next()?.ok()?,
            high: bounds.next()?.ok()?,
        })
    }

    fn ports(self) -> u32 {
        u32::from(self.high.saturating_sub(self.low)) + 1
    }

    /// Ports of one source address that clients get.
    fn usable(self) -> u32 {
        (self.ports() * PORTS_USED_PERCENT / 100).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const RANGE: PortRange = PortRange::new(32_768, 60_999);
    const WIDE: PortRange = PortRange::new(1_024, 65_535);

    fn addresses(text: &str) -> Vec<IpAddr> {
        text.parse::<AddressRange>().unwrap().addresses().collect()
    }

    #[test]
    fn few_clients_leave_the_source_to_the_kernel() {
        assert_eq!(spread(LOOPBACK, 10_000, RANGE), Ok(Vec::new()));
    }

    #[test]
    fn many_clients_on_loopback_get_several_sources() {
        let sources = spread(LOOPBACK, 100_000, RANGE).unwrap();
        assert_eq!(sources.len(), 8);
        assert_eq!(sources[7], IpAddr::V4(Ipv4Addr::new(127, 0, 0, 8)));
    }

    #[test]
    fn half_of_an_addresss_ports_are_enough_for_one_source_elsewhere_and_not_on_loopback() {
        assert_eq!(spread(LOOPBACK, 12_704, RANGE), Ok(Vec::new()));
        assert_eq!(spread(LOOPBACK, 12_705, RANGE).unwrap().len(), 2);
        let elsewhere = "10.0.0.5".parse().unwrap();
        assert_eq!(spread(elsewhere, 25_000, RANGE), Ok(Vec::new()));
        assert_eq!(spread(LOOPBACK, 6_000_000, RANGE).unwrap().len(), 254);
    }

    #[test]
    fn many_clients_elsewhere_are_refused_with_the_remedy() {
        let error = spread("10.0.0.5".parse().unwrap(), 100_000, RANGE).unwrap_err();
        assert_eq!(
            error.to_string(),
            "100 000 clients need more ports than the 28 232 of one source address (32768 to 60999): give 4 source \
             addresses of this machine (source_addresses), widen net.ipv4.ip_local_port_range, use fewer clients, or \
             a target in 127.0.0.0/8"
        );
        assert!(spread("::1".parse().unwrap(), 100_000, RANGE).is_err());
        assert!(spread(LOOPBACK, 100_000_000, RANGE).is_err());
    }

    #[test]
    fn a_million_clients_need_eighteen_addresses_with_all_ports_but_the_lowest() {
        let target = "10.0.0.5".parse().unwrap();
        let error = choose(target, 1_000_000, &addresses("10.0.1.1-10.0.1.17"), WIDE).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1 000 000 clients need 18 source addresses and have 17: each has 64 512 ports (1024 to 65535) and 90 % of \
             them are used; give more source_addresses, widen net.ipv4.ip_local_port_range, or use at most 987 020 \
             clients"
        );
        let enough = addresses("10.0.1.1-10.0.1.18");
        assert_eq!(choose(target, 1_000_000, &enough, WIDE), Ok(enough));
    }

    #[test]
    fn all_given_addresses_of_the_targets_family_are_used() {
        let mut given = addresses("127.0.0.2-127.0.0.5");
        given.extend(addresses("::1"));
        assert_eq!(choose(LOOPBACK, 10, &given, RANGE).unwrap().len(), 4);
        let v6 = "::1".parse().unwrap();
        assert_eq!(choose(v6, 10, &given, RANGE), Ok(vec![v6]));
        let error = choose(v6, 10, &given[..4], RANGE).unwrap_err();
        assert!(
            error.to_string().ends_with("of its family (IPv6)"),
            "{error}"
        );
    }

    #[test]
    fn one_machine_must_have_all_addresses_and_an_agent_some() {
        let here: AddressRange = "127.0.0.2-127.0.0.4".parse().unwrap();
        let elsewhere: AddressRange = "192.0.2.1".parse().unwrap();
        assert_eq!(all_sources(&[here]).unwrap().len(), 3);
        let error = all_sources(&[here, elsewhere]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("the source address 192.0.2.1 cannot be used: "),
            "{error}"
        );
        assert_eq!(own_sources(&[here, elsewhere]).unwrap().len(), 3);
        assert_eq!(own_sources(&[elsewhere]), Err(SourceError::NoneHere(1)));
        assert_eq!(own_sources(&[]), Ok(Vec::new()));
    }

    #[test]
    fn the_kernels_range_of_ports_is_read() {
        assert_eq!(PortRange::read("32768\t60999\n"), Some(RANGE));
        assert_eq!(PortRange::read("x"), None);
    }
}
