//! A wake-up at an exact time: the millisecond of `epoll_wait` is too coarse to pace messages.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use mio::unix::SourceFd;
use mio::{Interest, Poll, Token};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use thrum_figures::SECOND_NS;

/// One timer of one event loop. It is armed again after each wake-up and never read: arming clears
/// it.
#[derive(Debug)]
pub(crate) struct Alarm {
    timer: OwnedFd,
    armed_ns: u64,
}

impl Alarm {
    pub(crate) fn new(poll: &Poll, token: Token) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        poll.registry()
            .register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self { timer, armed_ns: 0 })
    }

    /// Wakes the loop at a time of the monotonic clock, at once if it has passed.
    pub(crate) fn arm(&mut self, at_ns: u64) -> io::Result<()> {
        if at_ns == self.armed_ns {
            return Ok(());
        }
        let value = Itimerspec {
            it_interval: timespec(0),
            // Zero would disarm it.
            it_value: timespec(at_ns.max(1)),
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &value)?;
        self.armed_ns = at_ns;
        Ok(())
    }

    /// The alarm has gone off: the next [`Alarm::arm`] sets it in any case.
    pub(crate) const fn rang(&mut self) {
        self.armed_ns = 0;
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / SECOND_NS).unwrap_or(i64::MAX),
        // Below 10^9, which every type for it holds.
        tv_nsec: (ns % SECOND_NS).try_into().unwrap_or(0),
    }
}
