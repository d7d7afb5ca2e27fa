//! A small broker that breaks its promises by a known law.

mod delayed_delivery;
mod router;
mod session;
mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use thrum_bench::clock;
use thrum_codec::{QoS, ReasonCode};
use thrum_load::mark::Mark;

use router::Router;

/// The broker's treatment of a message, by its sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Lose,
    /// Deliver it twice; to two members of a shared group.
    Double,
    /// Deliver it after the next one of the same publisher.
    Delay,
    /// Deliver it this much later than it arrived; other messages are not delayed.
    After(Duration),
    /// Deliver it otherwise than it was published.
    Alter(Change),
    /// Deliver it as it was published and then otherwise.
    DoubleAltered(Change),
    /// Neither deliver nor acknowledge it, and end the publisher's connection.
    Disconnect,
}

/// What a broker must not change of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It has this quality of service for a subscriber that was granted as much.
    Qos(QoS),
    /// Its payload ends here.
    Cut(usize),
    /// This byte of its payload is one higher.
    Byte(usize),
    /// Its topic has a level more.
    Topic,
    /// It has the retain flag.
    Retain,
}

/// The law: the fate of a message.
pub(crate) type Law = fn(Mark) -> Fate;

/// The broker stops handling anything for a while, counted from the first message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stall {
    pub(crate) from_ms: u64,
    pub(crate) for_ms: u64,
}

/// The complete behaviour of the broker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Laws {
    /// The answer to every client: refuses it if an error.
    pub(crate) connack: ReasonCode,
    /// The fate of each message.
    pub(crate) fate: Law,
    /// The highest quality of service that the broker grants.
    pub(crate) granted: QoS,
    /// The broker stops once.
    pub(crate) stall: Option<Stall>,
}

/// A running broker. Its threads end with the test's process.
pub(crate) struct FakeBroker {
    pub(crate) address: SocketAddr,
}

impl FakeBroker {
    /// A broker that never stops; refuses every client if `connack` is an error.
    pub(crate) fn start(connack: ReasonCode, law: Law) -> Self {
        Self::with(Laws {
            connack,
            fate: law,
            granted: QoS::ExactlyOnce,
            stall: None,
        })
    }

    /// Listens on a free port of the loopback.
    pub(crate) fn with(laws: Laws) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (delivery, orders) = delayed_delivery::orders();
        let router = Arc::new(Mutex::new(Router::new(laws, delivery)));
        let for_delivery = Arc::clone(&router);
        std::thread::spawn(move || delayed_delivery::run(&orders, &for_delivery));
        std::thread::spawn(move || {
            for (connection, stream) in (0..).zip(listener.incoming().flatten()) {
                let router = Arc::clone(&router);
                std::thread::spawn(move || session::serve(connection, &stream, &router));
            }
        });
        Self { address }
    }
}

impl Stall {
    /// The rest of the stall, given the time of the first message.
    fn left(self, first_ns: u64, now_ns: u64) -> Option<Duration> {
        let start_ns = first_ns + self.from_ms * 1_000_000;
        let end_ns = start_ns + self.for_ms * 1_000_000;
        let is_stalled = start_ns <= now_ns && now_ns < end_ns;
        is_stalled.then(|| Duration::from_nanos(end_ns - now_ns))
    }
}

/// Waits while the broker is stalled.
fn wait_out_stall(router: &Mutex<Router>) {
    loop {
        let left = router.lock().unwrap().stall_left(clock::monotonic_ns());
        let Some(left) = left else { return };
        clock::rest(left);
    }
}
