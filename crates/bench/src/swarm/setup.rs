//! The setup of a thread: the way to the brokers, and the settings of each group of clients.

use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use thrum_codec::QoS;
use thrum_load::plan::{Machines, Plan};
use thrum_load::scenario::Reconnect;
use thrum_quic::{DialError, Dialing, QuicDialer};
use thrum_transport::{Connector, Scheme};

/// The inputs of a thread besides the plan.
#[derive(Clone)]
pub(crate) struct ThreadSetup {
    /// Number of this thread among all.
    pub(crate) thread: u32,
    /// Its number on this machine.
    pub(crate) gauge: usize,
    /// All threads, by machine.
    pub(crate) machines: Machines,
    /// The brokers, then the proxy of each group with a `network`.
    pub(crate) targets: Arc<[TargetSetup]>,
    /// Which of them each group connects to.
    pub(crate) target_of_group: Arc<[usize]>,
    /// The coordinator's clock minus this machine's.
    pub(crate) clock_offset_ns: i64,
}

impl ThreadSetup {
    /// The threads of QUIC, by the kernel's numbers.
    pub(super) fn carriers(&self) -> impl Iterator<Item = u32> {
        let quic = self
            .targets
            .iter()
            .filter_map(|target| target.quic.as_ref());
        quic.flat_map(|quic| quic.dialer.thread_ids())
    }

    /// How the clients of a group reach their broker.
    pub(super) fn scheme_of(&self, group: &GroupSettings) -> Scheme {
        self.targets[group.target].connector.scheme()
    }

    /// A time of the coordinator's clock on this machine's.
    pub(super) const fn local_ns(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.clock_offset_ns.saturating_neg())
    }
}

/// Address and transport of a broker.
#[derive(Clone)]
pub(crate) struct TargetSetup {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// The layers between MQTT and the socket.
    pub(crate) connector: Arc<Connector>,
    /// The dialer of the connections, for QUIC.
    pub(crate) quic: Option<Arc<QuicSetup>>,
    /// Source addresses to take turns with; empty leaves it to the kernel.
    pub(crate) sources: Arc<[IpAddr]>,
}

/// Address and dialer of a broker over QUIC.
pub(crate) struct QuicSetup {
    pub(crate) dialer: QuicDialer,
    /// Name that its certificate must match.
    pub(crate) server_name: String,
}

impl QuicSetup {
    /// Begins a connection.
    pub(super) fn dial(&self, address: SocketAddr) -> Result<(UnixStream, Dialing), DialError> {
        self.dialer.dial(&[address], &self.server_name)
    }
}

/// The settings of a group of clients that every message needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct GroupSettings {
    pub(super) target: usize,
    pub(super) responds: bool,
    pub(super) answer_qos: QoS,
    pub(super) read_rate: Option<u64>,
    pub(super) reconnect: Option<Reconnect>,
    pub(super) window: Option<u16>,
    /// Its network cuts connections.
    pub(super) breaks: bool,
}

/// Reads per second of a slow reader, so that it is slow evenly.
const SLOW_READS_PER_SECOND: u64 = 10;

/// The least that a slow reader reads at once.
const SLOW_READ_BYTES_MIN: usize = 64;

impl GroupSettings {
    /// Bytes that a client may read at once.
    pub(super) fn read_limit(&self) -> usize {
        let in_a_turn = self
            .read_rate
            .map(|rate| usize::try_from(rate / SLOW_READS_PER_SECOND).unwrap_or(usize::MAX));
        in_a_turn.map_or(usize::MAX, |bytes| bytes.max(SLOW_READ_BYTES_MIN))
    }
}

pub(super) fn group_settings(plan: &Plan, setup: &ThreadSetup) -> Vec<GroupSettings> {
    let groups = plan
        .scenario
        .groups
        .iter()
        .zip(setup.target_of_group.iter());
    groups
        .map(|(group, target)| GroupSettings {
            target: *target,
            responds: group
                .subscribe
                .as_ref()
                .is_some_and(|subscribe| subscribe.respond),
            answer_qos: group
                .subscribe
                .as_ref()
                .map_or(QoS::AtMostOnce, |subscribe| subscribe.qos),
            read_rate: group.client.read_rate,
            reconnect: group.client.reconnect,
            breaks: group
                .client
                .network
                .is_some_and(|network| network.cut_after.is_some()),
            window: group.publish.as_ref().and_then(|publish| publish.window),
        })
        .collect()
}
