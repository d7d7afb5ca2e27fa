//! Moves bytes between one QUIC stream and one socket, and passes the end of each on to the other.
//!
//! | event | effect |
//! |----------------------------------|-----------------------------------------------------------|
//! | the peer finishes its stream     | the socket's reader sees the end, and may still write     |
//! | the peer resets its stream       | the socket is closed, and so is the connection            |
//! | the peer stops our stream | the same, after its last bytes or [`GRACE`] |
//! | the connection is closed or lost | received bytes are written to the socket, then it closes |
//! | the socket's owner stops writing | the stream is finished; all is acknowledged, then closed  |
//! | the socket's owner closes it     | the same, and the peer is told to send no more            |
//!
//! An idle connection owns no buffer: bytes pass through one buffer per thread, and only bytes that
//! the other side does not take at once are kept, up to [`SCRATCH_BYTES`] in each direction. While
//! bytes are kept nothing more is read, so that the kernel's socket buffer or QUIC's window fills
//! and stops the sender.

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

/// How long the peer then has to close, so that the bytes it received last are not discarded with
/// the connection.
const GRACE: Duration = Duration::from_secs(1);

/// How often an end that cannot send checks whether the socket's owner has closed it.
const STALL: Duration = Duration::from_secs(2);

/// The connection ends because MQTT has ended.
pub(crate) const CODE_DONE: VarInt = VarInt::from_u32(0);

/// There is one stream, this is not it.
const CODE_EXTRA_STREAM: VarInt = VarInt::from_u32(1);

thread_local! {
    /// Buffer through which bytes of all connections of a thread pass.
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// How a bridge ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Everything was sent and received.
    Done,
    /// The connection was closed or lost.
    Lost(ConnectionError),
    /// The peer reset its stream or stopped ours, with this code.
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

/// Refuses every further stream that the peer opens, until the connection ends. A peer that would
/// rather use several continues with the first; with a lower limit of streams it would wait for
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
    /// What the bridge waits for besides bytes; none while bytes flow.
    timer: Option<(Waiting, Pin<Box<Sleep>>)>,
}

/// The purpose of a timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// QUIC accepts no more, and had accepted this number of bytes.
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
        // Bytes before the end must reach the socket, and also the last bytes of a peer that has
        // only stopped our stream.
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

    /// QUIC had accepted this number of bytes some time ago: if it has still not accepted more, the
    /// socket's owner may have closed it.
    fn look_for_owner(&mut self, sent: u64) {
        if self.outbound.stalled() == Some(sent) && is_abandoned(&self.socket) {
            self.outbound.abandon();
        }
    }

    /// Sets the timer for the present wait; it is not touched while the wait stays the same.
    fn set_timer(&mut self) {
        let wants_no_more = matches!(self.over, Some(Ending::GivenUp(_)));
        let (waiting, time) = if wants_no_more || self.outbound.is_acknowledged() {
            (Waiting::Parting, GRACE)
        } else if self.outbound.is_finishing() {
            (Waiting::Lingering, LINGER)
        } else if let Some(sent) = self.outbound.stalled() {
            (Waiting::Stalled(sent), STALL)
        } else {
            // The timer of a wait that is over is left alone: it ends by itself.
            return;
        };
        let is_set = match (&self.timer, waiting) {
            // An occasional check suffices: not every stop of the flow needs a timer of its own.
            (Some((Waiting::Stalled(_), _)), Waiting::Stalled(_)) => true,
            (Some((current, _)), _) => *current == waiting,
            (None, _) => false,
        };
        if !is_set {
            self.timer = Some((waiting, Box::pin(sleep(time))));
        }
    }
}

/// Whether the socket's owner has closed it, instead of only having stopped writing.
fn is_abandoned(socket: &UnixStream) -> bool {
    let mut fds = [PollFd::new(socket, PollFlags::empty())];
    let now = Timespec::default();
    poll(&mut fds, Some(&now)).is_ok() && fds[0].revents().contains(PollFlags::HUP)
}
