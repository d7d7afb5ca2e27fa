//! What messages and connections cost a worker in memory: steady traffic allocates nothing, an idle
//! client little.

mod client;
#[expect(
    unsafe_code,
    reason = "a global allocator cannot be had without; this one counts, for tests only"
)]
mod counting;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use client::{Client, start};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use thrum_codec::{Packet, QoS, Version};

const VERSIONS: [Version; 2] = [Version::V311, Version::V5];

/// Messages of one write: more would be a burst, whose memory is given back.
const BURST: u16 = 20;
/// Bursts of one round: a thousand messages.
const BURSTS: usize = 50;
/// Rounds that may be needed until buffers have grown to their size and every burst was once free
/// of housekeeping.
const ROUNDS_MAX: u32 = 20;

/// The counters are one for the whole process, so one test at a time runs a broker.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One publisher and those that its messages go to.
struct Traffic {
    topic: &'static str,
    qos: QoS,
    publisher: Client,
    receivers: Vec<Client>,
    /// Messages of a burst that one receiver gets.
    share: u16,
}

impl Traffic {
    /// One burst of messages, up to the last acknowledgement.
    fn burst(&mut self) {
        self.publisher.publish(self.topic, self.qos, BURST);
        for receiver in &mut self.receivers {
            receiver.take(self.qos, self.share);
        }
        self.publisher.finish(self.qos, BURST);
    }

    /// Allocations of a round: for each of its bursts the fewest that it took in any round, out of
    /// as many rounds as it takes to get down to what is expected. What messages allocate is there
    /// in every round; what the housekeeping of every second allocates, and the growth of buffers,
    /// is not.
    fn allocations(mut self, expected: u64) -> u64 {
        let mut fewest = [u64::MAX; BURSTS];
        for _ in 0..ROUNDS_MAX {
            for burst in &mut fewest {
                let before = counting::allocations();
                self.burst();
                *burst = (*burst).min(counting::allocations() - before);
            }
            for client in self.receivers.iter_mut().chain([&mut self.publisher]) {
                client.settle();
            }
            if fewest.iter().sum::<u64>() <= expected {
                break;
            }
        }
        fewest.iter().sum()
    }
}

/// Allocations of a round with so many subscribers of the filter.
fn allocations(version: Version, qos: QoS, subscribers: u16, filter: &str, expected: u64) -> u64 {
    let load = Load {
        version,
        qos,
        stamp_messages: 0,
    };
    allocations_of(load, subscribers, filter, expected)
}

/// Messages of one kind.
#[derive(Clone, Copy)]
struct Load {
    version: Version,
    qos: QoS,
    /// One of so many is stamped.
    stamp_messages: u32,
}

fn allocations_of(load: Load, subscribers: u16, filter: &str, expected: u64) -> u64 {
    let Load {
        version,
        qos,
        stamp_messages,
    } = load;
    let before = counting::allocations();
    let (broker, address) = start(|config| config.node.stamp_messages = stamp_messages);
    let mut receivers = Vec::new();
    for number in 0..subscribers {
        let mut receiver = Client::connect(address, version, &format!("receiver-{number}"));
        receiver.subscribe(filter, qos);
        receivers.push(receiver);
    }
    let publisher = Client::connect(address, version, "publisher");
    assert!(
        counting::allocations() > before,
        "what the workers allocate is not seen"
    );
    let is_shared = filter.starts_with("$share/");
    let traffic = Traffic {
        topic: "site/7/device/1234",
        qos,
        publisher,
        share: if is_shared {
            BURST / subscribers
        } else {
            BURST
        },
        receivers,
    };
    let count = traffic.allocations(expected);
    broker.stop();
    count
}

#[test]
fn messages_from_one_client_to_another_allocate_nothing() {
    let _alone = alone();
    for version in VERSIONS {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let count = allocations(version, qos, 1, "site/7/device/1234", 0);
            assert_eq!(count, 0, "{version:?} {qos:?}");
        }
    }
}

#[test]
fn stamped_messages_allocate_nothing() {
    let _alone = alone();
    for version in VERSIONS {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            for subscribers in [0, 1, 50] {
                let load = Load {
                    version,
                    qos,
                    stamp_messages: 1,
                };
                let count = allocations_of(load, subscribers, "site/7/device/1234", 0);
                assert_eq!(count, 0, "{version:?} {qos:?}, {subscribers} subscribers");
            }
        }
    }
}

#[test]
fn messages_to_fifty_subscribers_allocate_nothing() {
    let _alone = alone();
    for version in VERSIONS {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce] {
            let count = allocations(version, qos, 50, "site/+/device/#", 0);
            assert_eq!(count, 0, "{version:?} {qos:?}");
        }
    }
}

#[test]
fn messages_without_subscriber_allocate_nothing() {
    let _alone = alone();
    for version in VERSIONS {
        for qos in [QoS::AtMostOnce, QoS::AtLeastOnce, QoS::ExactlyOnce] {
            let count = allocations(version, qos, 0, "", 0);
            assert_eq!(count, 0, "{version:?} {qos:?}");
        }
    }
}

#[test]
fn messages_to_a_shared_group_allocate_only_the_copy_that_another_member_may_need() {
    let _alone = alone();
    // If the member leaves before its PUBACK, the message goes to another: its text is kept, and a
    // counter with it.
    let kept = 2 * u64::from(BURST) * BURSTS as u64;
    for version in VERSIONS {
        for (qos, expected) in [(QoS::AtMostOnce, 0), (QoS::AtLeastOnce, kept)] {
            let count = allocations(version, qos, 4, "$share/group/site/#", expected);
            assert_eq!(count, expected, "{version:?} {qos:?}");
        }
    }
}

/// Clients whose memory is measured.
const CLIENTS: i64 = 1_000;
/// Bytes of a client that only stays connected.
const IDLE_BYTES_MAX: i64 = 450;
/// Bytes of a client with one subscription of its own.
const SUBSCRIBED_BYTES_MAX: i64 = 560;
/// Bytes of the timeline of a client that has connected.
const TIMELINE_BYTES_MAX: i64 = 260;
/// The same with one subscription.
const SUBSCRIBED_TIMELINE_BYTES_MAX: i64 = 400;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);
const SYS_INTERVAL: Duration = Duration::from_millis(100);

/// Bytes of a client.
#[derive(Clone, Copy, Debug)]
struct ClientMemory {
    idle: i64,
    /// With one subscription.
    subscribed: i64,
}

#[test]
fn an_idle_client_and_one_with_a_subscription_cost_little_memory() {
    let _alone = alone();
    allow_open_files(8 * u64::try_from(CLIENTS).expect("positive"));
    let ClientMemory { idle, subscribed } = memory_of_clients(0);
    println!("idle: {idle} B, with one subscription: {subscribed} B");
    assert!(idle <= IDLE_BYTES_MAX, "idle: {idle} B");
    assert!(
        subscribed <= SUBSCRIBED_BYTES_MAX,
        "with a subscription: {subscribed} B"
    );
    // Timelines have a limit of their own.
    let told = memory_of_clients(8 << 20);
    let events = [told.idle - idle, told.subscribed - subscribed];
    println!(
        "timelines: {} B, with one subscription: {} B",
        events[0], events[1]
    );
    assert!(
        events[0] > 0 && events[0] <= TIMELINE_BYTES_MAX,
        "{events:?}"
    );
    assert!(events[1] <= SUBSCRIBED_TIMELINE_BYTES_MAX, "{events:?}");
}

fn memory_of_clients(timeline_bytes: u32) -> ClientMemory {
    let (broker, address) = start(|config| {
        config.node.timeline_bytes = timeline_bytes;
        config.sys.interval = SYS_INTERVAL;
        config.limits.connect_timeout = CONNECT_TIMEOUT;
    });
    let mut watcher = Client::connect(address, Version::V5, "watcher");
    watcher.subscribe("$SYS/broker/publish/bytes/sent", QoS::AtMostOnce);
    wait_for_timers(&mut watcher);
    let before = counting::live_bytes();
    let mut clients: Vec<_> = (0..CLIENTS)
        .map(|number| Client::connect(address, Version::V311, &format!("device-{number:04}")))
        .collect();
    wait_for_timers(&mut watcher);
    let idle = (counting::live_bytes() - before) / CLIENTS;
    for (number, client) in clients.iter_mut().enumerate() {
        client.subscribe(&format!("site/7/device/{number:04}"), QoS::AtLeastOnce);
        client.settle();
    }
    wait_for_timers(&mut watcher);
    let subscribed = (counting::live_bytes() - before) / CLIENTS;
    broker.stop();
    ClientMemory { idle, subscribed }
}

/// Waits until the broker's own clock has passed what it allows for a CONNECT: until then a timer
/// of each new connection is in memory. The watched figure changes with every message about it, so
/// one comes in every interval.
fn wait_for_timers(watcher: &mut Client) {
    watcher.settle();
    for _ in 0..CONNECT_TIMEOUT.as_millis() / SYS_INTERVAL.as_millis() + 3 {
        watcher.receive(|packet| assert!(matches!(packet, Packet::Publish(_)), "{packet:?}"));
    }
}

/// Both ends of every connection are in this process.
fn allow_open_files(count: u64) {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < count) {
        let current = Some(limit.maximum.map_or(count, |maximum| maximum.min(count)));
        setrlimit(Resource::Nofile, Rlimit { current, ..limit }).expect("up to the maximum");
    }
}
