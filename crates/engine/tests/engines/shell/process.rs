//! The process around the engines: its settings, its memory and its clock, and its disk.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use thrum_codec::QoS;
use thrum_engine::access::Shared;
use thrum_engine::host::Host;
use thrum_engine::node::Capacity;
use thrum_engine::node::session_counts::SessionLimits;
use thrum_engine::retained::RetainedLimits;
use thrum_engine::settings::{EngineSettings, SubscriptionLimits};
use thrum_engine::sinks::QueueLimits;
use thrum_protection::BanBook;
use thrum_protocol::{Limits, Time};
use thrum_routing::shared::Strategy;
use thrum_storage::disk::sim::{SimDisk, SimStorage};
use thrum_storage::{Committer, Options, QUEUE_BYTES_MAX, Recovered, Stepper, Store, Submitter};

/// Small, so that a test fills several segments.
const SEGMENT_BYTES: u64 = 16 * 1024;
const SEGMENTS_MAX: u64 = 64;

/// A process whose memory a test sets. Its clock advances by a step with each read.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub(crate) resident_bytes: AtomicU64,
    pub(crate) micros: AtomicU64,
    pub(crate) micros_of_look: AtomicU64,
    /// Time since the begin of the turn.
    pub(crate) millis_of_turn: AtomicU64,
}

impl Host for Process {
    fn elapsed(&self) -> Duration {
        let step = self.micros_of_look.load(Ordering::Relaxed);
        Duration::from_micros(self.micros.fetch_add(step, Ordering::Relaxed))
    }

    fn no_earlier_than_now(&self, turn: Time) -> Time {
        let millis = self.millis_of_turn.load(Ordering::Relaxed);
        turn.plus(Duration::from_millis(millis))
    }

    fn resident_bytes(&self) -> Option<u64> {
        Some(self.resident_bytes.load(Ordering::Relaxed))
    }
}

/// A configured sink.
#[derive(Clone, Debug)]
pub(crate) struct SinkPlan {
    pub(crate) name: &'static str,
    pub(crate) filter: &'static str,
    pub(crate) limits: QueueLimits,
}

/// The configuration of a node, which also applies after a crash.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) workers: usize,
    pub(crate) disk: Option<SimStorage>,
    pub(crate) segments_max: u64,
    pub(crate) settings: EngineSettings,
    pub(crate) strategy: Strategy,
    pub(crate) mailbox: Capacity,
    pub(crate) bans: Arc<BanBook>,
    pub(crate) process: Arc<Process>,
    pub(crate) sinks: Vec<SinkPlan>,
    /// Mount points by client identifier.
    pub(crate) mounts: BTreeMap<&'static str, &'static str>,
}

impl Plan {
    pub(crate) fn new(workers: usize, disk: Option<SimStorage>) -> Self {
        Self {
            workers,
            disk,
            segments_max: SEGMENTS_MAX,
            settings: settings(),
            strategy: Strategy::RoundRobin,
            mailbox: Capacity {
                messages: 1_000,
                bytes: 1 << 20,
            },
            bans: Arc::default(),
            process: Arc::default(),
            sinks: Vec::new(),
            mounts: BTreeMap::new(),
        }
    }

    /// The limits of one session.
    pub(crate) fn limits(&mut self) -> &mut Limits {
        Arc::make_mut(&mut self.settings.session)
    }

    pub(super) fn open(&self) -> Option<(Store<SimDisk>, Recovered)> {
        let disk = self.disk.as_ref()?.open().expect("it is not locked");
        let options = Options {
            segment_bytes: SEGMENT_BYTES,
            disk_bytes_max: SEGMENT_BYTES * self.segments_max,
            ..Options::default()
        };
        let (store, recovered, report) = Store::open(disk, options).expect("it opens");
        assert!(!report.is_damaged(), "{report:?}");
        Some((store, recovered))
    }
}

fn settings() -> EngineSettings {
    EngineSettings {
        stamp_every: 0,
        spans: None,
        timeline_bytes: 1 << 20,
        session: Arc::default(),
        queue_hold: Duration::ZERO,
        access: Arc::new(Shared::default()),
        sessions: SessionLimits {
            node: u64::MAX,
            user: 0,
            address: 0,
        },
        subscriptions: SubscriptionLimits {
            shared_max: 100,
            bytes_max: u32::MAX,
            packet_filters_max: 100,
            message_identifiers: 64,
        },
        output_bytes: 1 << 20,
        memory_bytes: 0,
        retained: RetainedLimits {
            message_count: 1_000,
            bytes: 1 << 20,
            payload_bytes: 1 << 20,
        },
        keeps_all_wills: false,
        published_qos_min: QoS::AtMostOnce,
    }
}

pub(super) fn stepped(
    store: Store<SimDisk>,
    workers: usize,
) -> (Committer, Stepper<SimDisk>, Vec<Submitter>) {
    let wakes = (0..workers).map(|_| Box::new(|| ()) as _).collect();
    Committer::stepped(store, wakes, QUEUE_BYTES_MAX)
}
