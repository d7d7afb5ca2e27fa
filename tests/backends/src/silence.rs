//! A server that takes connections and never says a word.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_codec::ReasonCode;

use crate::client::{Door, Told, Visitor};
use crate::process::loopback;

/// Listens as long as it lives; whoever connects is kept waiting.
#[derive(Debug)]
pub struct Silence {
    port: u16,
}

impl Silence {
    /// Starts to listen.
    ///
    /// # Panics
    /// There is no free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind(loopback(0)).expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        // Guards the connections, which stay open until the test process ends.
        let kept = Arc::new(Mutex::new(Vec::new()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                kept.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(stream);
            }
        });
        Self { port }
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }
}

/// Clients of a silent server are refused in time; one more than there is room for is refused at
/// once.
///
/// # Panics
/// One of these does not hold.
pub fn is_bounded(door: &Door, in_flight: usize) {
    let visitors: Vec<_> = (0..in_flight * 3)
        .map(|number| Visitor::new(&format!("user-{number}"), "secret"))
        .collect();
    let reasons: Vec<_> = std::thread::scope(|scope| {
        let knocks: Vec<_> = visitors
            .iter()
            .map(|visitor| scope.spawn(|| door.knock(visitor)))
            .collect();
        knocks
            .into_iter()
            .map(|knock| match knock.join().expect("a client") {
                Told::Out(reason) => reason,
                Told::In(_) => panic!("a client of a silent server is let in"),
            })
            .collect()
    });
    let busy = reasons
        .iter()
        .filter(|reason| **reason == ReasonCode::ServerBusy);
    let busy = busy.count();
    let unavailable = reasons
        .iter()
        .filter(|reason| **reason == ReasonCode::ServerUnavailable)
        .count();
    assert_eq!(busy + unavailable, reasons.len(), "{reasons:?}");
    assert!(busy > 0, "nobody is refused for want of room");
    assert!(unavailable > 0, "nobody is refused for want of an answer");
}
