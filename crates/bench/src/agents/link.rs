//! The control channel: one MQTT 5.0 connection in a thread of its own.
//!
//! The thread stamps letters as they come in and answers questions about the clock itself, so that
//! neither waits for what the rest of the process is busy with.

use std::net::TcpStream as StdStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::{Poll, Token, Waker};
use thrum_codec::QoS;
use thrum_protocol::client::{Client, ClientOptions, WillOptions};
use thrum_transport::{Connector, ConnectorError, Endpoint, EndpointError, TlsOptions};

use super::line::Line;
use crate::clock;
use crate::units::SECOND_NS;

/// Letters that wait for the rest of the process; while there are more, nothing is read.
const LETTERS_WAITING_MAX: usize = 1_024;

/// Letters that wait for the connection: seconds of what an agent with all its threads says.
const POSTS_WAITING_MAX: usize = 4_096;

/// How long the control broker may take to accept the TCP connection.
const REACH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long it may take from there to the SUBACK.
const OPEN_TIMEOUT: Duration = Duration::from_secs(5);

/// Ends a connection that nothing comes over; heartbeats make it shorter than that in a run.
const KEEP_ALIVE_SECONDS: u16 = 10;

/// Tokens of the event loop.
pub(super) const SOCKET: Token = Token(0);
pub(super) const WAKER: Token = Token(1);

/// Why the control channel cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The address makes no sense.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// TLS or WebSocket cannot be set up.
    #[error(transparent)]
    Connector(#[from] ConnectorError),
    /// Nobody is there.
    #[error("cannot reach the control broker {endpoint}: {cause}")]
    Unreachable {
        /// Where.
        endpoint: String,
        /// What the kernel said.
        cause: String,
    },
    /// The connection is over.
    #[error("the connection to the control broker is lost: {0}")]
    Lost(String),
    /// More letters wait for the connection than are kept.
    #[error("the control broker does not take letters as fast as they are made")]
    Congested,
}

/// How to open a link.
pub(super) struct Setup<'a> {
    pub(super) endpoint: &'a Endpoint,
    pub(super) client_id: &'a str,
    /// Topic and payload of the will.
    pub(super) will: Option<(String, Vec<u8>)>,
    /// What to listen to.
    pub(super) filters: Vec<String>,
    /// Topic and payload of a sign of life.
    pub(super) pulse: Option<Post>,
}

/// A letter to send.
#[derive(Clone, Debug)]
pub(super) struct Post {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    pub(super) qos: QoS,
}

/// A letter that came in.
#[derive(Clone, Debug)]
pub(super) struct Letter {
    pub(super) topic: String,
    pub(super) payload: Vec<u8>,
    /// When it came, of this machine's clock.
    pub(super) at_ns: u64,
}

/// An open connection to the control broker. Dropping it sends what waits and says goodbye.
pub(super) struct Link {
    posts: Option<SyncSender<Post>>,
    letters: Receiver<Letter>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    /// Guards why the connection is over; written once by the thread, read after that.
    failure: Arc<Mutex<Option<String>>>,
}

impl Link {
    /// Connects and subscribes.
    ///
    /// # Errors
    /// The broker cannot be reached or refuses something.
    pub(super) fn open(setup: Setup<'_>) -> Result<Self, LinkError> {
        let unreachable = |cause: String| LinkError::Unreachable {
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
        let (posts, posts_out) = sync_channel(POSTS_WAITING_MAX);
        let (letters_in, letters) = sync_channel(LETTERS_WAITING_MAX);
        let (opened, is_open) = sync_channel(1);
        let client_id = setup.client_id.to_owned();
        let options = client_options(setup.endpoint, setup.will);
        let (filters, pulse) = (setup.filters, setup.pulse);
        let failure = Arc::new(Mutex::new(None));
        let of_thread = Arc::clone(&failure);
        let builder = thread::Builder::new().name("bench-control".to_owned());
        let thread = builder.spawn(move || {
            let line = Line::new(
                poll,
                stream,
                connector.layers(),
                Client::new(Arc::new(options), &client_id),
            );
            let line = line.map(|line| line.with(filters, pulse, opened));
            let ended = line.and_then(|mut line| line.run(&posts_out, &letters_in));
            let why = ended.err().unwrap_or_else(|| "closed".to_owned());
            *of_thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        });
        let link = Self {
            posts: Some(posts),
            letters,
            waker,
            thread: Some(thread.map_err(|error| unreachable(error.to_string()))?),
            failure,
        };
        match is_open.recv_timeout(OPEN_TIMEOUT) {
            Ok(()) => Ok(link),
            Err(RecvTimeoutError::Timeout) => Err(unreachable("no answer in time".to_owned())),
            Err(RecvTimeoutError::Disconnected) => Err(unreachable(link.why())),
        }
    }

    /// Sends a letter.
    ///
    /// # Errors
    /// The connection is over, or takes no more.
    pub(super) fn send(&self, post: Post) -> Result<(), LinkError> {
        let Some(posts) = &self.posts else {
            return Err(LinkError::Lost(self.why()));
        };
        match posts.try_send(post) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(LinkError::Congested),
            Err(TrySendError::Disconnected(_)) => return Err(LinkError::Lost(self.why())),
        }
        // A thread that is gone shows with the next letter.
        self.waker.wake().ok();
        Ok(())
    }

    /// The next letter, if one comes in time.
    ///
    /// # Errors
    /// The connection is over.
    pub(super) fn receive(&self, timeout: Duration) -> Result<Option<Letter>, LinkError> {
        match self.letters.recv_timeout(timeout) {
            Ok(letter) => Ok(Some(letter)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(LinkError::Lost(self.why())),
        }
    }

    fn why(&self) -> String {
        // The thread says why just after it lets go of the channels.
        let until_ns = clock::monotonic_ns() + SECOND_NS;
        loop {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(why) = failure.as_ref() {
                return why.clone();
            }
            drop(failure);
            if clock::monotonic_ns() > until_ns {
                return "no answer".to_owned();
            }
            clock::rest(Duration::from_millis(1));
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.posts = None;
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
