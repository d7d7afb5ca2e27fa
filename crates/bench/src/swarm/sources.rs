//! Source addresses in turn, so that each has as many connections as the others.

use std::net::IpAddr;

use super::setup::ThreadSetup;

/// Index of the next address, for each broker.
#[derive(Debug)]
pub(super) struct Sources(Vec<usize>);

impl Sources {
    /// Threads begin with different addresses, so that threads with few clients use different ones.
    pub(super) fn new(setup: &ThreadSetup) -> Self {
        let first = usize::try_from(setup.thread).unwrap_or(0);
        Self(vec![first; setup.targets.len()])
    }

    /// The next address for a connection to a broker; none leaves it to the kernel.
    pub(super) fn next(&mut self, target: usize, addresses: &[IpAddr]) -> Option<IpAddr> {
        let turn = self.0.get_mut(target)?;
        let address = addresses.get(*turn % addresses.len().max(1)).copied();
        *turn = turn.wrapping_add(1);
        address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_turn_whatever_the_other_broker_gets() {
        let addresses: Vec<IpAddr> = (1..=3)
            .map(|last| IpAddr::from([127, 0, 0, last]))
            .collect();
        let mut sources = Sources(vec![2; 2]);
        let mut taken = Vec::new();
        for _ in 0..6 {
            taken.extend(sources.next(0, &addresses));
            assert_eq!(sources.next(1, &[]), None);
        }
        let [first, second, third] = addresses.as_slice() else {
            panic!("three addresses")
        };
        assert_eq!(
            taken,
            [third, first, second, third, first, second].map(|address| *address)
        );
    }
}
