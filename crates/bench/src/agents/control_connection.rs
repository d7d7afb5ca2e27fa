//! The control channel: one MQTT 5.0 connection in a thread of its own.
//!
//! The thread itself stamps incoming messages and answers clock requests, so that neither waits for
//! the rest of the process.

use std::net::TcpStream as StdStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Poll, Token, Waker};
use thrum_codec::QoS;
use thrum_figures::SECOND_NS;
use thrum_protocol::client::{Client, ClientOptions, WillOptions};
use thrum_transport::{Connector, ConnectorError, Endpoint, EndpointError, TlsOptions};

use super::control_socket::ControlSocket;
use crate::clock;

/// Messages that wait for the rest of the process; with more, the thread stops reading.
const INCOMING_WAITING_MAX: usize = 1_024;

/// Messages that wait for the connection: some seconds of an agent with all its threads.
const OUTGOING_WAITING_MAX: usize = 4_096;

/// Longest wait for the control broker to accept the TCP connection.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// Longest time from there to the SUBACK.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Keep alive; heartbeats are more frequent in a run.
const KEEP_ALIVE_SECONDS: u16 = 10;

/// Tokens of the event loop.
pub(super) const SOCKET: Token = Token(0);
pub(super) const WAKER: Token = Token(1);

/// Why the control channel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// The address is invalid.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// TLS or WebSocket cannot be set up.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// The broker does not answer.
    #[error("cannot reach the control broker {endpoint}: {cause}")]
    Unreachable {
        /// Its address.
        endpoint: String,
        /// The kernel's error.
        cause: String,
    },
    /// The broker does not admit this client.
    #[error(
        "the control broker {endpoint} refuses the user name or the secret: give the secret that the coordinator prints"
    )]
    Refused {
        /// Its address.
        endpoint: String,
    },
    /// The connection ended.
    #[error("the connection to the control broker is lost: {0}")]
    Lost(String),
    /// Too many messages wait for the connection.
    #[error("the control broker does not take messages as fast as they are made")]
    Congested,
}

/// How to open a connection.
pub(super) struct ControlSetup<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) client_id: &'a str,
    /// Topic and payload of the will.
    pub(super) will: Option<(String, Vec<u8>)>,
    /// Topic filters to subscribe to.
    pub(super) filters: Vec<String>,
    /// Heartbeat to send every second.
    pub(super) pulse: Option<Outgoing>,
}

/// A message to send.
#[derive(Clone, Debug)]
pub(super) struct Outgoing {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) qos: QoS,
}

/// A received message.
#[derive(Clone, Debug)]
pub(super) struct Incoming {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    /// Time of arrival on this machine's clock.
    pub(super) at_ns: u64,
}

/// Why a connection ended.
#[derive(Clone, Debug)]
struct Failure {
    why: String,
    /// The broker does not admit this client.
    is_refusal: bool,
}

/// An open connection to the control broker. Drop sends the waiting messages and disconnects.
pub(super) struct ControlConnection {
    outgoing: Option<SyncSender<Outgoing>>,
    incoming: Receiver<Incoming>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    /// Guards why the connection ended; the thread writes it once, then it is read.
    failure: Arc<Mutex<Option<Failure>>>,
}

impl ControlConnection {
    /// Connects and subscribes.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses something.
    pub(super) fn open(setup: ControlSetup<'_>) -> Result<Self, ControlError> {
        let unreachable = |cause: String| ControlError::Unreachable {
            endpoint: setup.endpoint.to_string(),
            cause,
        };
        if setup.endpoint.scheme.is_quic() {
            let cause = "the control channel does not go over QUIC, name a TCP port of it (mqtt://, mqtts://)";
            return Err(unreachable(cause.to_owned()));
        }
        let connector = Connector::new(setup.endpoint, &TlsOptions::default())?;
        let address = setup.endpoint.resolve()?;
        let stream = StdStream::connect_timeout(&address, REACH_TIMEOUT)
            .and_then(|stream| {
                stream.set_nodelay(true)?;
                stream.set_nonblocking(true)?;
                Ok(stream)
            })
            .map_err(|error| unreachable(error.to_string()))?;
        let poll = Poll::new().map_err(|error| unreachable(error.to_string()))?;
        let waker = Waker::new(poll.registry(), WAKER);
        let waker = Arc::new(waker.map_err(|error| unreachable(error.to_string()))?);
        let (outgoing, outgoing_receiver) = sync_channel(OUTGOING_WAITING_MAX);
        let (incoming_sender, incoming) = sync_channel(INCOMING_WAITING_MAX);
        let (opened, is_open) = sync_channel(1);
        let client_id = setup.client_id.to_owned();
        let options = client_options(setup.endpoint, setup.will);
        let (filters, pulse) = (setup.filters, setup.pulse);
        let failure = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&failure);
        let builder = thread::Builder::new().name("bench-control".to_owned());
        let thread = builder.spawn(move || {
            let socket = ControlSocket::new(
                poll,
                stream,
                connector.layers(),
                Client::new(Arc::new(options), &client_id),
            );
            let socket = socket.map(|socket| socket.with(filters, pulse, opened));
            let mut is_refusal = false;
            let ended = socket.and_then(|mut socket| {
                let ended = socket.run(&outgoing_receiver, &incoming_sender);
                is_refusal = socket.is_refused();
                ended
            });
            let why = ended.err().unwrap_or_else(|| "closed".to_owned());
            let failure = Failure { why, is_refusal };
            *of_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
        });
        let connection = Self {
            outgoing: Some(outgoing),
            incoming,
            waker,
            thread: Some(thread.map_err(|error| unreachable(error.to_string()))?),
            failure,
        };
        match is_open.recv_timeout(OPEN_TIMEOUT) {
            Ok(()) => Ok(connection),
            Err(RecvTimeoutError::Timeout) => Err(unreachable("no answer in time".to_owned())),
            Err(RecvTimeoutError::Disconnected) => {
                let failure = connection.failure();
                Err(if failure.is_refusal {
                    let endpoint = setup.endpoint.to_string();
                    ControlError::Refused { endpoint }
                } else {
                    unreachable(failure.why)
                })
            }
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The connection ended, or too many messages wait.
    pub(super) fn send(&self, message: Outgoing) -> Result<(), ControlError> {
        let Some(outgoing) = &self.outgoing else {
            return Err(ControlError::Lost(self.why()));
        };
        match outgoing.try_send(message) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ControlError::Congested),
            Err(TrySendError::Disconnected(_)) => return Err(ControlError::Lost(self.why())),
        }
        // The next send reports a thread that has ended.
        self.waker.wake().ok();
        Ok(())
    }

    /// The next message, if one arrives in time.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn receive(&self, timeout: Duration) -> Result<Option<Incoming>, ControlError> {
        match self.incoming.recv_timeout(timeout) {
            Ok(message) => Ok(Some(message)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(ControlError::Lost(self.why())),
        }
    }

    fn why(&self) -> String {
        self.failure().why
    }

    fn failure(&self) -> Failure {
        // The thread writes the reason just after it drops the channels.
        let until_ns = clock::monotonic_ns() + SECOND_NS;
        loop {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(failure) = failure.as_ref() {
                return failure.clone();
            }
            drop(failure);
            if clock::monotonic_ns() > until_ns {
                return Failure {
                    why: "no answer".to_owned(),
                    is_refusal: false,
                };
            }
            clock::rest(Duration::from_millis(1));
        }
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        self.outgoing = None;
        self.waker.wake().ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn client_options(endpoint: &Endpoint, will: Option<(String, Vec<u8>)>) -> ClientOptions {
    ClientOptions {
        keep_alive: KEEP_ALIVE_SECONDS,
        username: endpoint.username.clone(),
        password: endpoint
            .password
            .as_ref()
            .map(|password| password.clone().into_bytes()),
        will: will.map(|(topic, payload)| WillOptions {
            topic,
            payload,
            qos: QoS::AtLeastOnce,
            ..WillOptions::default()
        }),
        ..ClientOptions::default()
    }
}
