//! Stages of messages: one of N PUBLISH packets is stamped when its bytes are read, when it is
//! examined, when the rules have decided, when its receivers are known, when it stands in the
//! output or queue of a receiver, when the disk has what its output depends on, when its last byte
//! is written, and when the receiver acknowledges it.
//!
//! A worker follows a stamped message to one of its own receivers, each with the same probability;
//! its durations count once for each delivery on the worker, so that their mean is that of all
//! deliveries. Messages that are not stamped cost a counter for each PUBLISH and a comparison for
//! each read and write.

mod figures;
mod latencies;
mod table;
mod watch;

use std::num::NonZeroU64;
use std::time::Duration;

use thrum_codec::QoS;

pub use self::figures::{MESSAGE_STAGES, MessageStage, NodeStages, STAGE_PARTS, StageFigures};
pub use self::latencies::{STAGE_NS_MAX, StageSeries};
#[cfg(any(test, feature = "testing"))]
pub use self::table::contradiction;
use self::table::give_up_all;
pub use self::table::{FOLLOWED_MAX, MovedBytes, sweep_is_due, written};
pub(crate) use self::table::{acknowledged, held, left_queue, plan_sweep, released};
pub use self::watch::Stamp;
pub(crate) use self::watch::{Stamped, Unwatched, Watch};

use self::figures::Fate;
use self::table::{Followed, Kind, Place, follow};
use crate::core::Core;
use crate::ids::Slot;
use crate::spans::Spans;

/// Never reached: no message is stamped.
const NEVER: u64 = u64::MAX;
/// Bytes per PUBLISH that are assumed, so that no stamped one is missed: the smallest has five.
const PUBLISH_BYTES_MIN: u64 = 4;
/// The earliest time that is not "unknown".
const NANOS_MIN: NonZeroU64 = NonZeroU64::MIN;

/// The stamped messages of one worker.
#[derive(Debug)]
pub struct Stages {
    /// PUBLISH packets up to the next stamped one.
    until_next: u64,
    /// One of this many is stamped; 0 turns stamping off.
    every: u32,
    /// When the bytes were read that are handled now; 0 if that is unknown.
    read_ns: u64,
    /// When a service was asked about the first packet of these bytes; 0 if it was not.
    asked_ns: u64,
    /// When the next PUBLISH to stamp was examined, if the rules apply to its client.
    handled_ns: u64,
    /// When they had decided about it.
    authorized_ns: u64,
    /// When the worker woke up.
    woken: Duration,
    /// When the stamped PUBLISH was read that is to be answered next; 0 if there is none.
    answer_ns: u64,
    followed: Vec<Followed>,
    /// Stamped or traced messages are followed; it may last a little longer than they do.
    are_followed: bool,
    /// The deliveries of traced messages, which are followed in the same way.
    pub(crate) spans: Spans,
    /// A timer is set for the next search for those that cannot arrive any longer.
    is_sweep_planned: bool,
}

impl Default for Stages {
    fn default() -> Self {
        Self {
            until_next: NEVER,
            every: 0,
            read_ns: 0,
            asked_ns: 0,
            handled_ns: 0,
            authorized_ns: 0,
            woken: Duration::ZERO,
            answer_ns: 0,
            followed: Vec::new(),
            are_followed: false,
            spans: Spans::default(),
            is_sweep_planned: false,
        }
    }
}

impl Stages {
    /// Counts a PUBLISH; true if it is to be stamped.
    #[inline]
    pub(crate) const fn is_due(&mut self) -> bool {
        self.until_next = self.until_next.wrapping_sub(1);
        self.until_next == 0
    }

    /// Whether the next PUBLISH is to be stamped.
    #[inline]
    pub const fn is_next(&self) -> bool {
        self.until_next == 1
    }

    /// Whether messages are stamped.
    #[inline]
    pub const fn is_on(&self) -> bool {
        self.every > 0
    }

    /// Whether that many bytes of MQTT may contain the PUBLISH to be stamped. The clock is read for
    /// such bytes only.
    #[inline]
    pub const fn are_near(&self, bytes: usize) -> bool {
        self.until_next <= bytes as u64 / PUBLISH_BYTES_MIN + 1
    }

    /// Records when the bytes were read that are handled next.
    pub fn note_read(&mut self, at: Duration) {
        self.read_ns = nanos(at);
    }

    /// When the bytes were read that are handled now; 0 if that is unknown.
    pub(crate) const fn read_ns(&self) -> u64 {
        self.read_ns
    }

    /// Records when the worker woke up.
    #[inline]
    pub const fn note_wake_up(&mut self, at: Duration) {
        self.woken = at;
    }

    /// Ends the time of the bytes that were handled.
    #[inline]
    pub const fn end_input(&mut self) {
        if self.read_ns > 0 {
            self.read_ns = 0;
            self.asked_ns = 0;
            self.handled_ns = 0;
        }
    }

    /// Whether the answer to a stamped PUBLISH was written just now.
    #[inline]
    pub(crate) const fn is_answer_followed(&self) -> bool {
        self.answer_ns > 0
    }

    /// Whether a timer of the search for messages that cannot arrive is set.
    #[cfg(any(test, feature = "testing"))]
    pub const fn plans_sweep(&self) -> bool {
        self.is_sweep_planned
    }

    /// Whether stamped or traced messages may be followed.
    #[inline]
    pub(crate) const fn are_followed(&self) -> bool {
        self.are_followed
    }

    /// Messages are followed, or no longer.
    pub(crate) const fn note_followed(&mut self) {
        self.are_followed = !(self.followed.is_empty() && self.spans.is_empty());
    }
}

/// Stamps one of that many messages of this worker from now on; 0 turns it off. What is followed
/// is given up.
pub fn stamp_every(core: &mut Core, every: u32) {
    if core.stages.every == every {
        return;
    }
    give_up_all(core);
    let is_on = every > 0;
    core.node.stages.switch(core.id, is_on);
    core.stages = Stages {
        every,
        woken: core.stages.woken,
        is_sweep_planned: core.stages.is_sweep_planned,
        followed: Vec::with_capacity(if is_on { FOLLOWED_MAX } else { 0 }),
        spans: std::mem::take(&mut core.stages.spans),
        ..Stages::default()
    };
    core.stages.note_followed();
    if is_on {
        schedule(core);
    }
}

/// When the bytes were read that are left for later, whole packets among them; 0 while stamping is
/// off.
#[inline]
pub fn time_of_left_bytes(core: &Core) -> u64 {
    match core.stages {
        Stages { every: 0, .. } => 0,
        Stages { read_ns: 0, .. } => now_ns(core),
        Stages { read_ns, .. } => read_ns,
    }
}

/// When a service is asked about the first packet of bytes that are left for later; 0 while
/// stamping is off.
pub fn time_of_question(core: &Core) -> u64 {
    if core.stages.is_on() { now_ns(core) } else { 0 }
}

/// Restores these times when the bytes are handled.
#[inline]
pub const fn resume_time_of_left_bytes(core: &mut Core, read_ns: u64, asked_ns: u64) {
    core.stages.read_ns = read_ns;
    core.stages.asked_ns = asked_ns;
}

/// The next PUBLISH to stamp is examined, and the rules apply to its client.
#[cold]
pub fn examined(core: &mut Core) {
    let asked_ns = std::mem::take(&mut core.stages.asked_ns);
    core.stages.handled_ns = if asked_ns > 0 { asked_ns } else { now_ns(core) };
}

/// The rules have decided about that PUBLISH.
#[cold]
pub fn authorized(core: &mut Core) {
    core.stages.authorized_ns = now_ns(core);
}

/// Watches a PUBLISH that is not stamped, because it is traced.
#[cold]
pub(crate) fn unstamped(core: &Core) -> Stamped {
    Stamped::new(Stamp {
        is_stamped: false,
        ..first_times(core)
    })
}

/// Stamps the PUBLISH at hand.
#[cold]
pub(crate) fn begin(core: &mut Core, published: QoS) -> Stamped {
    let Stages { read_ns, woken, .. } = core.stages;
    // None for what was read in an earlier turn, whose wake-up is not known any longer.
    let waited = read_ns.checked_sub(nanos(woken)).filter(|_| read_ns > 0);
    if let Some(figures) = core.node.stages.of(core.id) {
        figures.count(Fate::Stamped, 1);
        if let Some(ns) = waited {
            figures.enter(MessageStage::Waited, ns, 1);
        }
    }
    schedule(core);
    let stamped = Stamped::new(first_times(core));
    if published != QoS::AtMostOnce {
        core.stages.answer_ns = stamped.read_ns();
    }
    stamped
}

/// The times of the PUBLISH at hand up to the decision of the rules. Where they do not apply to the
/// client, the decision takes no time.
fn first_times(core: &Core) -> Stamp {
    let now_ns = now_ns(core);
    let Stages {
        read_ns,
        handled_ns,
        authorized_ns,
        ..
    } = core.stages;
    let read_ns = if read_ns > 0 { read_ns } else { now_ns };
    // Times of an earlier packet are older than the read.
    let is_examined = read_ns <= handled_ns && handled_ns <= authorized_ns;
    let (handled_ns, authorized_ns) = if is_examined {
        (handled_ns, authorized_ns)
    } else {
        (now_ns, now_ns)
    };
    Stamp {
        read_ns: NonZeroU64::new(read_ns).unwrap_or(NANOS_MIN),
        handled_ns,
        authorized_ns,
        routed_ns: 0,
        is_stamped: true,
        trace: None,
    }
}

/// Follows the answer to the publisher of a stamped message, which stands at the end of its output.
#[cold]
pub(crate) fn follow_answer(core: &mut Core, slot: Slot) {
    let read_ns = std::mem::take(&mut core.stages.answer_ns);
    let Some(key) = core.sessions[slot].connection else {
        return;
    };
    let behind = core.outputs[key].waiting();
    if behind == 0 {
        return;
    }
    let answer = Followed {
        connection: core.outputs.id(key),
        deliveries: 1,
        read_ns,
        kind: Kind::Answer,
        place: Place::Output {
            behind,
            packet_id: None,
        },
        output_ns: 0,
        held_ns: 0,
        ready_ns: 0,
        since: core.turn.now,
    };
    follow(core, answer);
}

/// Chooses the next PUBLISH: every N-th on average, with random steps, as publishers that take
/// turns would otherwise have all stamps on one of them.
fn schedule(core: &mut Core) {
    let every = u64::from(core.stages.every);
    core.stages.until_next = 1 + core.random() % (2 * every - 1);
}

/// The time since the start of the node.
pub(crate) fn now_ns(core: &Core) -> u64 {
    nanos(core.host.elapsed())
}

#[inline]
fn nanos(elapsed: Duration) -> u64 {
    u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
}
