//! Moves bytes between one QUIC stream and one socket, and the ends of the one to the other.
//!
//! | it happens                       | then                                                      |
//! |----------------------------------|-----------------------------------------------------------|
//! | the peer finishes its stream     | the socket's reader sees the end, and may still write     |
//! | the peer resets its stream       | the socket is closed, and so is the connection            |
//! | the peer wants no more           | the same, after its last words or [`GRACE`]               |
//! | the connection is closed or lost | what had come is written to the socket, then it is closed |
//! | the socket's owner stops writing | the stream is finished; all is acknowledged, then closed  |
//! | the socket's owner closes it     | the same, and the peer is told to send no more            |
//!
//! An idle connection owns no buffer: bytes pass through one buffer per thread, and only what the
//! other side does not take at once is kept, up to [`SCRATCH_BYTES`] in each direction. While
//! something is kept nothing more is read, so that the kernel's socket buffer or QUIC's window
//! fills and stops the sender.

mod inbound;
mod outbound;

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use quinn::{Connection, ConnectionError, RecvStream, SendStream, VarInt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::UnixStream;
use tokio::time::{Sleep, sleep};

use inbound::Inbound;
use outbound::Outbound;

/// Bytes moved by one system call at most: a broker's whole write, and large enough for QUIC to
/// fill its batches.
const SCRATCH_BYTES: usize = 64 * 1024;

/// Reads of one direction before the other tasks of the thread have their turn.
const READS_PER_TURN: u32 = 8;

/// How long the last bytes may take to be acknowledged after the socket's owner has stopped
/// writing.
const LINGER: Duration = Duration::from_secs(5);

/// How long the peer then has to close, so that what it received last is not thrown away with the
/// connection.
const GRACE: Duration = Duration::from_secs(1);

/// How often an end that cannot send looks whether the socket's owner is still there.
const STALL: Duration = Duration::from_secs(2);

/// The connection ends because MQTT has ended.
pub(crate) const CODE_DONE: VarInt = VarInt::from_u32(0);

/// There is one stream, this is not it.
const CODE_EXTRA_STREAM: VarInt = VarInt::from_u32(1);

thread_local! {
    /// Where bytes of all connections of a thread pass through.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// How a bridge ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was sent and received.
    Done,
    /// The connection was closed or lost.
    Lost(ConnectionError),
    /// The peer reset its stream or wanted no more of ours, with this code.
    GivenUp(VarInt),
    /// The peer did not acknowledge the last bytes in time.
    Unacknowledged,
}

/// Moves bytes until both ends are done with the connection, closes it and returns the socket,
/// whose owner sees the end once it is dropped; `refused` is told of every extra stream.
pub(crate) async fn run(
    connection: &Connection,
    send: SendStream,
    receive: RecvStream,
    socket: UnixStream,
    refused: impl Fn(),
) -> (Ending, UnixStream) {
    let mut bridge = Bridge {
        inbound: Inbound::new(receive),
        outbound: Outbound::new(send),
        socket,
        over: None,
        timer: None,
    };
    let mut others = pin!(refuse_streams(connection, refused));
    let mut closed = None;
    let ending = poll_fn(|context| {
        if closed.is_none()
            && let Poll::Ready(error) = others.as_mut().poll(context)
        {
            closed = Some(error);
        }
        bridge.poll(context, closed.as_ref())
    })
    .await;
    connection.close(CODE_DONE, b"");
    (ending, bridge.socket)
}

/// Gives back every further stream that the peer opens, until the connection ends. A peer that
/// would rather use several goes on with the first; with a lower limit of streams it would wait for
/// more for ever.
async fn refuse_streams(connection: &Connection, refused: impl Fn()) -> ConnectionError {
    loop {
        match connection.accept_bi().await {
            Ok((mut send, mut receive)) => {
                // Streams that are closed already need no closing.
                send.reset(CODE_EXTRA_STREAM).ok();
                receive.stop(CODE_EXTRA_STREAM).ok();
                refused();
            }
            Err(error) => return error,
        }
    }
}

/// One connection's two directions.
struct Bridge {
    inbound: Inbound,
    outbound: Outbound,
    socket: UnixStream,
    /// Nothing more can be sent, because of this.
    over: Option<Ending>,
    /// What the bridge waits for besides bytes; none as long as it flows.
    timer: Option<(Waiting, Pin<Box<Sleep>>)>,
}

/// What a timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// QUIC takes no more, and had taken so many bytes.
    Stalled(u64),
    /// The last bytes are to be acknowledged.
    Lingering,
    /// The peer is to close.
    Parting,
}

impl Bridge {
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        closed: Option<&ConnectionError>,
    ) -> Poll<Ending> {
        if let Poll::Ready(ending) = self.inbound.poll(context, &mut self.socket) {
            return Poll::Ready(ending);
        }
        if self.over.is_none()
            && let Poll::Ready(ending) = self.outbound.poll(context, &mut self.socket)
        {
            self.over = Some(ending);
        }
        if let Some(error) = closed
            && self.inbound.is_ended()
        {
            return Poll::Ready(Ending::Lost(error.clone()));
        }
        // What came before the end is to reach the socket, and of a peer that only wants no more
        // its last words.
        let is_over = match &self.over {
            Some(Ending::GivenUp(_)) => self.inbound.is_ended(),
            Some(_) => self.inbound.has_nothing(),
            None => false,
        };
        if let Some(ending) = self.over.take_if(|_| is_over) {
            return Poll::Ready(ending);
        }
        if self.outbound.is_acknowledged() && self.inbound.is_ended() {
            return Poll::Ready(Ending::Done);
        }
        self.poll_timer(context)
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<Ending> {
        loop {
            self.set_timer();
            let Some((waiting, sleep)) = &mut self.timer else {
                return Poll::Pending;
            };
            if sleep.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            match *waiting {
                Waiting::Lingering => return Poll::Ready(Ending::Unacknowledged),
                Waiting::Parting => return Poll::Ready(self.over.take().unwrap_or(Ending::Done)),
                Waiting::Stalled(sent) => {
                    self.timer = None;
                    self.look_for_owner(sent);
                }
            }
        }
    }

    /// QUIC had taken so many bytes, some time ago: if it still has not taken more, is anybody
    /// there that sent them?
    fn look_for_owner(&mut self, sent: u64) {
        if self.outbound.stalled() == Some(sent) && is_abandoned(&self.socket) {
            self.outbound.abandon();
        }
    }

    /// Sees to the timer for what is waited for now; it is not touched while that stays the same.
    fn set_timer(&mut self) {
        let wants_no_more = matches!(self.over, Some(Ending::GivenUp(_)));
        let (waiting, time) = if wants_no_more || self.outbound.is_acknowledged() {
            (Waiting::Parting, GRACE)
        } else if self.outbound.is_finishing() {
            (Waiting::Lingering, LINGER)
        } else if let Some(sent) = self.outbound.stalled() {
            (Waiting::Stalled(sent), STALL)
        } else {
            // The timer of a stop that is over is left alone: it ends by itself.
            return;
        };
        let is_set = match (&self.timer, waiting) {
            // A look now and then will do: not every stop of the flow needs a timer of its own.
            (Some((Waiting::Stalled(_), _)), Waiting::Stalled(_)) => true,
            (Some((current, _)), _) => *current == waiting,
            (None, _) => false,
        };
        if !is_set {
            self.timer = Some((waiting, Box::pin(sleep(time))));
        }
    }
}

/// Whether the socket's owner has closed it, and not only stopped writing.
fn is_abandoned(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
