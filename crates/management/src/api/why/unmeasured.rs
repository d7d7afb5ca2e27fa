//! What a measurement says nothing about: it is neither a cause nor excluded.

use thrum_figures::{count, figure};

use super::LatencyState;
use super::latency::LatencyCause;
use super::measured::Measured;
use super::words::counted;

/// Why a cause was not measured; none if it was.
pub(super) fn reason(cause: LatencyCause, measured: &Measured) -> Option<&'static str> {
    let untimed = || (!measured.is_timed()).then_some("not measured: no delivery was timed");
    match cause {
        LatencyCause::SlowReaders
        | LatencyCause::FullWindows
        | LatencyCause::NetworkLoss
        | LatencyCause::RateLimits
        | LatencyCause::FullQueues
        | LatencyCause::Overload => {
            (measured.clients == 0).then_some("not measured: no client was connected")
        }
        LatencyCause::Mailboxes if measured.work.workers == 1 => None,
        LatencyCause::Routing | LatencyCause::Mailboxes | LatencyCause::Authorization => untimed(),
        LatencyCause::Cpu => {
            let work = &measured.work;
            let is_known = work.worker_running.is_some() || work.cpu_busy.is_some();
            (!is_known).then_some("not measured: the system does not tell the time of its CPUs")
        }
        LatencyCause::Disk | LatencyCause::Handshakes => None,
    }
}

/// What the measurement has found, if there is no cause.
pub(super) fn state(measured: &Measured) -> LatencyState {
    if measured.is_timed() || measured.sent > 0 {
        LatencyState::NotSlow
    } else {
        LatencyState::NotMeasured
    }
}

/// That nothing was measured, and why.
pub(super) fn nothing(measured: &Measured) -> String {
    if measured.sessions > 0 && measured.clients == 0 && measured.away > 0 {
        let who = counted(measured.sessions, "client is", "clients are");
        let waiting = counted(measured.away, "message waits", "messages wait");
        return format!(
            "nothing was measured: no message was delivered, as the {who} away; {waiting} in {}",
            if measured.sessions == 1 {
                "its queue"
            } else {
                "their queues"
            }
        )
        .replace("the 1 client", "the client");
    }
    if measured.sessions == 0 && measured.unanswered {
        return "nothing was measured: the workers did not answer".to_owned();
    }
    "nothing was measured: no message was delivered".to_owned()
}

/// That messages were delivered, none waits, and none of them was timed.
pub(super) fn untimed(measured: &Measured) -> String {
    let delivered = counted(
        measured.sent,
        "message was delivered",
        "messages were delivered",
    );
    match measured.times {
        None => {
            format!("{delivered} and none waits; no message is timed (node.stamp_messages = 0)")
        }
        Some(times) => format!(
            "{delivered} and none waits; none of them was timed, as one of {} is",
            figure(times.every)
        ),
    }
}

/// How many messages are dropped in a second, before what is said of those that are not; empty if
/// none is.
pub(super) fn dropped(measured: &Measured) -> String {
    match measured.dropped {
        0 => String::new(),
        dropped if measured.millis > 0.0 => {
            let rate = figure(measured.per_second(dropped));
            let are = if rate == "1" {
                "message a second is"
            } else {
                "messages a second are"
            };
            format!("{rate} {are} dropped; ")
        }
        dropped => format!("{} were dropped; ", count(dropped)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::measured::MessageTimes;
    use super::*;

    #[test]
    fn what_no_delivery_was_timed_for_is_not_excluded() {
        let nothing = Measured::default();
        let unmeasured = |measured: &Measured| -> Vec<&str> {
            let all = LatencyCause::ALL.into_iter();
            all.filter(|cause| reason(*cause, measured).is_some())
                .map(LatencyCause::name)
                .collect()
        };
        let all: Vec<&str> = LatencyCause::ALL.map(LatencyCause::name).into();
        let known = ["disk", "handshakes"];
        let expected: Vec<&str> = all
            .into_iter()
            .filter(|name| !known.contains(name))
            .collect();
        assert_eq!(unmeasured(&nothing), expected);
        let mut measured = Measured {
            clients: 3,
            part: 1.0,
            times: Some(MessageTimes {
                deliveries: 1,
                ..MessageTimes::default()
            }),
            ..Measured::default()
        };
        measured.work.cpu_busy = Some(0.1);
        assert_eq!(unmeasured(&measured), [] as [&str; 0]);
        // The messages that were timed are those of other clients.
        measured.part = 0.0;
        let expected = ["routing", "mailboxes", "authorization"];
        assert_eq!(unmeasured(&measured), expected);
        measured.work.workers = 1;
        assert_eq!(unmeasured(&measured), ["routing", "authorization"]);
    }

    #[test]
    fn that_nothing_was_measured_is_said_with_the_reason() {
        let mut measured = Measured {
            sessions: 1,
            away: 1000,
            ..Measured::default()
        };
        assert_eq!(
            nothing(&measured),
            "nothing was measured: no message was delivered, as the client is away; \
             1 000 messages wait in its queue"
        );
        measured.clients = 1;
        assert_eq!(
            nothing(&measured),
            "nothing was measured: no message was delivered"
        );
        assert_eq!(state(&measured), LatencyState::NotMeasured);
        measured.sent = 7;
        assert_eq!(state(&measured), LatencyState::NotSlow);
        assert!(untimed(&measured).starts_with("7 messages were delivered and none waits"));
    }

    #[test]
    fn drops_are_said_by_second() {
        let said = |dropped| {
            self::dropped(&Measured {
                dropped,
                millis: 10_000.0,
                ..Measured::default()
            })
        };
        assert_eq!(said(4550), "455 messages a second are dropped; ");
        assert_eq!(said(10), "1 message a second is dropped; ");
        assert_eq!(said(0), "");
    }
}
