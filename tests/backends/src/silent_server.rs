//! A server that accepts connections and sends nothing.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};

use thrum_codec::ReasonCode;

use crate::client::{Authenticator, LoginAttempt, LoginResult};
use crate::process::loopback;

/// A listening server that never answers.
#[derive(Debug)]
pub struct SilentServer {
    port: u16,
}

impl SilentServer {
    /// Starts listening.
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

/// Asserts that logins at a silent server are refused in time, and at once when `in_flight` logins
/// are waiting.
///
/// # Panics
/// One of these does not hold.
pub fn logins_are_bounded(authenticator: &Authenticator, in_flight: usize) {
    let attempts: Vec<_> = (0..in_flight * 3)
        .map(|number| LoginAttempt::new(&format!("user-{number}"), "secret"))
        .collect();
    let reasons: Vec<_> = std::thread::scope(|scope| {
        let logins: Vec<_> = attempts
            .iter()
            .map(|attempt| scope.spawn(|| authenticator.log_in(attempt)))
            .collect();
        logins
            .into_iter()
            .map(|login| match login.join().expect("a client") {
                LoginResult::Denied(reason) => reason,
                LoginResult::Admitted(_) => panic!("a client of a silent server is admitted"),
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
    assert!(busy > 0, "no client is refused for lack of room");
    assert!(
        unavailable > 0,
        "no client is refused for lack of an answer"
    );
}
