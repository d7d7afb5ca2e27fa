//! Places for connections: few for each network, so that one sender cannot take all of them.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections at a time. One with its buffers takes up to some 200 KiB.
const CONNECTIONS_MAX: u32 = 1024;
/// Clients of MQTT over TLS at a time, whose bytes are carried here: each takes two files and some
/// 64 KiB. Limits by address are those of the listener, which counts them as its clients.
const RELAYS_MAX: u32 = 8192;
/// Connections of a network at a time, but for this machine and trusted proxies: a browser opens
/// six, with a stream for each of its tabs.
const OF_NETWORK_MAX: u32 = 64;

/// The places that are left.
#[derive(Debug)]
pub(super) struct Places {
    free: Arc<Semaphore>,
    /// Guards the number of each network's connections: for a moment at the beginning and the end
    /// of each.
    taken: Arc<Mutex<HashMap<IpAddr, u32>>>,
    refused: AtomicU64,
    relays: Arc<Semaphore>,
}

/// A place of a client of MQTT, until it is dropped.
#[derive(Debug)]
pub(super) struct RelayPlace(#[expect(dead_code, reason = "it is held")] OwnedSemaphorePermit);

/// A place of one connection, until it is dropped.
#[derive(Debug)]
pub(super) struct Place {
    network: Option<IpAddr>,
    taken: Arc<Mutex<HashMap<IpAddr, u32>>>,
    _permit: OwnedSemaphorePermit,
    relays: Arc<Semaphore>,
}

impl Place {
    /// A place for a client of MQTT instead of this one; none if there are too many.
    pub(super) fn of_relay(&self) -> Option<RelayPlace> {
        let permit = Arc::clone(&self.relays).try_acquire_owned();
        permit.ok().map(RelayPlace)
    }
}

impl Places {
    pub(super) fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(CONNECTIONS_MAX as usize)),
            taken: Arc::default(),
            refused: AtomicU64::new(0),
            relays: Arc::new(Semaphore::new(RELAYS_MAX as usize)),
        }
    }

    /// A place for a connection from an address; none if there are too many connections.
    pub(super) fn take(&self, address: IpAddr, is_trusted: bool) -> Option<Place> {
        let place = self.try_take(address, is_trusted);
        if place.is_none() {
            let refused = self.refused.fetch_add(1, Ordering::Relaxed) + 1;
            // A flood of them must not fill the log.
            if refused.is_power_of_two() {
                tracing::warn!(
                    %address,
                    refused,
                    "connection to the HTTP port closed: {CONNECTIONS_MAX} are open, or {OF_NETWORK_MAX} of its network"
                );
            }
        }
        place
    }

    fn try_take(&self, address: IpAddr, is_trusted: bool) -> Option<Place> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        let is_limited = !is_trusted && !address.is_loopback();
        let network = is_limited.then(|| network_of(address));
        if let Some(network) = network {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let of_network = taken.entry(network).or_default();
            if *of_network >= OF_NETWORK_MAX {
                return None;
            }
            *of_network += 1;
        }
        Some(Place {
            network,
            taken: Arc::clone(&self.taken),
            _permit: permit,
            relays: Arc::clone(&self.relays),
        })
    }

    /// Waits until all connections have ended.
    pub(super) async fn all_free(&self) {
        // The semaphores are never closed.
        drop(self.free.acquire_many(CONNECTIONS_MAX).await);
        drop(self.relays.acquire_many(RELAYS_MAX).await);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(network) = self.network else {
            return;
        };
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_network) = taken.get_mut(&network) {
            *of_network -= 1;
            if *of_network == 0 {
                taken.remove(&network);
            }
        }
    }
}

/// An IPv4 address is a network of its own; of IPv6 a subscriber has at least the lower 64 bits.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(places: &Places, address: &str, is_trusted: bool) -> Vec<Place> {
        let address: IpAddr = address.parse().unwrap();
        let take = || places.try_take(address, is_trusted);
        std::iter::from_fn(take).collect()
    }

    #[test]
    fn one_network_cannot_take_all_places_but_this_machine_and_proxies_can() {
        let places = Places::new();
        let strangers = taken(&places, "192.0.2.1", false);
        assert_eq!(strangers.len(), 64);
        assert_eq!(taken(&places, "::ffff:192.0.2.1", false).len(), 0);
        assert_eq!(taken(&places, "192.0.2.2", false).len(), 64);
        assert_eq!(taken(&places, "127.0.0.1", false).len(), 1024 - 64);
        assert_eq!(taken(&places, "192.0.2.1", true).len(), 1024 - 64);
        drop(strangers);
        assert_eq!(taken(&places, "192.0.2.1", false).len(), 64);
        assert!(places.taken.lock().unwrap().is_empty());
    }

    #[test]
    fn a_client_of_mqtt_takes_a_place_of_its_own_kind_instead_of_the_first_one() {
        let places = Places::new();
        let mut relays = Vec::new();
        for _ in 0..RELAYS_MAX {
            let place = places.take("192.0.2.1".parse().unwrap(), false).unwrap();
            relays.push(place.of_relay().unwrap());
        }
        let place = places.take("192.0.2.1".parse().unwrap(), false).unwrap();
        assert!(place.of_relay().is_none());
        relays.pop();
        assert!(place.of_relay().is_some());
    }

    #[test]
    fn the_addresses_of_an_ipv6_network_share_its_places() {
        let places = Places::new();
        let first = taken(&places, "2001:db8::1", false);
        assert_eq!(first.len(), 64);
        assert_eq!(taken(&places, "2001:db8::2:0:0:9", false).len(), 0);
        assert_eq!(taken(&places, "2001:db8:0:1::1", false).len(), 64);
    }
}
