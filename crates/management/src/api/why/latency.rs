//! The causes of latency, ranked by the time that messages spend for each of them.
//!
//! The unit is the time of all messages together. The stages of stamped messages have it for those
//! that were written, times the share that is stamped. What does not move is not among them: there
//! it is the number of messages that wait, times the time of the measurement. Where both are known
//! the larger one counts.

use thrum_broker::WaitPlace;
use thrum_figures::{fraction, latency, percent, ratio, whole};

use super::measured::{Delay, Measured, MessageTimes};
use super::{LatencyCauses, LatencyState, NotCause, WhyCause};
use super::{evidence, unmeasured, words};

/// A cause has at least this part of the time.
const SHARE_MIN: f64 = 0.05;
/// … and messages take this long on average, in milliseconds: faster is not slow;
const MEAN_MILLIS_MIN: f64 = 1.0;
/// of which it has this much at least.
const PART_MILLIS_MIN: f64 = 0.1;
/// … or some client waits this long because of it, in milliseconds.
const CLIENT_MILLIS_MIN: f64 = 100.0;
/// … or this number of connections wait for it at each moment, as a mean.
const PAUSED_MIN: f64 = 0.5;
/// Receivers of a message from which on its fan-out has a part of the time of writing.
const FAN_OUT_MIN: f64 = 10.0;
/// A worker that runs this part of the time has no room left.
pub(super) const BUSY: f64 = 0.9;
/// A worker that waits for a CPU for this part of the time shares it with too many.
pub(super) const STARVED: f64 = 0.25;
/// A client that has this part of its segments sent again has a network that loses them.
pub(super) const LOSSY: f64 = 0.01;

/// What messages wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum LatencyCause {
    SlowReaders,
    FullWindows,
    NetworkLoss,
    Disk,
    Routing,
    Mailboxes,
    Authorization,
    RateLimits,
    FullQueues,
    Overload,
    Handshakes,
    Cpu,
}

impl LatencyCause {
    pub(super) const ALL: [Self; 12] = [
        Self::SlowReaders,
        Self::FullWindows,
        Self::NetworkLoss,
        Self::Disk,
        Self::Routing,
        Self::Mailboxes,
        Self::Authorization,
        Self::RateLimits,
        Self::FullQueues,
        Self::Overload,
        Self::Handshakes,
        Self::Cpu,
    ];

    /// Its name, which does not change.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::SlowReaders => "slow_readers",
            Self::FullWindows => "full_windows",
            Self::NetworkLoss => "network_loss",
            Self::Disk => "disk",
            Self::Routing => "routing",
            Self::Mailboxes => "mailboxes",
            Self::Authorization => "authorization",
            Self::RateLimits => "rate_limits",
            Self::FullQueues => "full_queues",
            Self::Overload => "overload",
            Self::Handshakes => "handshakes",
            Self::Cpu => "cpu",
        }
    }

    /// Where it makes connections wait; none if it makes none wait.
    const fn pauses_at(self) -> Option<WaitPlace> {
        match self {
            Self::Disk => Some(WaitPlace::Disk),
            Self::Mailboxes => Some(WaitPlace::Mailbox),
            Self::Authorization => Some(WaitPlace::Backend),
            Self::RateLimits => Some(WaitPlace::Rate),
            Self::FullQueues => Some(WaitPlace::Room),
            Self::Overload => Some(WaitPlace::Overload),
            _ => None,
        }
    }
}

/// The time of all messages for each cause, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Weights([f64; LatencyCause::ALL.len()]);

impl Weights {
    pub(super) fn of(measured: &Measured) -> Self {
        let mut weights = Self::default();
        let times = measured.times.unwrap_or_default();
        let scale = times.every * measured.part;
        let waits = |place| measured.at(place).messages * measured.millis;
        let mut set = |cause: LatencyCause, stage: f64, place: Option<WaitPlace>| {
            let waiting = place.map_or(0.0, waits);
            weights.0[cause as usize] = (stage * scale).max(waiting);
        };
        let disk = times.sync + times.answer_sync;
        set(LatencyCause::Disk, disk, Some(WaitPlace::Disk));
        set(LatencyCause::Routing, times.route + times.fan_out, None);
        set(
            LatencyCause::Mailboxes,
            times.mail,
            Some(WaitPlace::Mailbox),
        );
        let backend = Some(WaitPlace::Backend);
        set(LatencyCause::Authorization, times.authorize, backend);
        set(LatencyCause::RateLimits, 0.0, Some(WaitPlace::Rate));
        set(LatencyCause::FullQueues, 0.0, Some(WaitPlace::Room));
        set(LatencyCause::Overload, 0.0, Some(WaitPlace::Overload));
        weights.split_receivers(measured, &times);
        weights
    }

    /// The time that messages wait for receivers and for the workers.
    fn split_receivers(&mut self, measured: &Measured, times: &MessageTimes) {
        let scale = times.every * measured.part;
        let window = measured.at(WaitPlace::Window).messages;
        let socket = measured.at(WaitPlace::Socket).messages;
        let of_sockets = if window + socket > 0.0 {
            socket / (window + socket)
        } else {
            0.0
        };
        let is_late = measured.work.slowing > 0
            || measured.work.worker_running.is_some_and(|part| part > BUSY);
        // Where no socket is full, a late worker makes writes wait.
        let slow_write = if is_late && socket == 0.0 {
            0.0
        } else {
            times.slow_write
        };
        let answers = measured.at(WaitPlace::Answers).messages;
        let readers = ((slow_write + times.queue * of_sockets) * scale)
            .max((socket + answers) * measured.millis);
        let windows = (times.queue * (1.0 - of_sockets) * scale).max(window * measured.millis);
        let lost = lossy_part(measured);
        self.0[LatencyCause::NetworkLoss as usize] = (readers + windows) * lost;
        self.0[LatencyCause::SlowReaders as usize] = readers * (1.0 - lost);
        self.0[LatencyCause::FullWindows as usize] = windows * (1.0 - lost);
        let write = (times.write - slow_write).max(0.0);
        // Of a large fan-out most of a turn's output is that of the same message.
        let fan_out = write * fan_out_part(measured);
        self.0[LatencyCause::Routing as usize] += fan_out * scale;
        // Before a message is read its worker has to get a CPU.
        let cpu = measured.work.cpu_wait_millis * fraction(measured.received.max(measured.sent));
        let worker = (times.waited + times.read + write - fan_out) * scale + cpu;
        let are_many = measured.handshakes.full_workers > 0;
        let cause = if are_many || measured.count("limits/handshakes") > 0 {
            LatencyCause::Handshakes
        } else {
            LatencyCause::Cpu
        };
        self.0[cause as usize] = worker;
    }

    pub(super) const fn get(&self, cause: LatencyCause) -> f64 {
        self.0[cause as usize]
    }

    fn total(&self) -> f64 {
        self.0.iter().sum()
    }
}

/// The part of a turn's output that the receivers of one message have, if they are many.
fn fan_out_part(measured: &Measured) -> f64 {
    let sent = measured.count("publish/messages/sent");
    let receivers = ratio(sent, measured.count("publish/messages/received"));
    if receivers < FAN_OUT_MIN {
        return 0.0;
    }
    1.0 - 1.0 / receivers
}

/// The part of the messages that wait for receivers whose network loses segments.
fn lossy_part(measured: &Measured) -> f64 {
    let all = measured.worst.iter();
    let all = all.filter(|one| matches!(one.place, WaitPlace::Window | WaitPlace::Socket));
    let (mut lost, mut sum) = (0, 0);
    for client in all {
        sum += client.messages;
        lost += if client.resent >= LOSSY {
            client.messages
        } else {
            0
        };
    }
    ratio(lost, sum)
}

/// Ranks the causes, and tells what is none.
pub(super) fn causes(measured: &Measured) -> LatencyCauses {
    let weights = Weights::of(measured);
    let total = weights.total();
    let times = measured.times;
    let moved = moved(measured, &times.unwrap_or_default());
    let messages = (moved + measured.waiting()).max(1.0);
    let mut ranked = LatencyCause::ALL;
    ranked.sort_by(|one, other| weights.get(*other).total_cmp(&weights.get(*one)));
    let (mut causes, mut not_causes, mut not_measured) = (Vec::new(), Vec::new(), Vec::new());
    for cause in ranked {
        let weight = weights.get(cause);
        let share = if total > 0.0 { weight / total } else { 0.0 };
        let is_long = total / messages >= MEAN_MILLIS_MIN && weight / messages >= PART_MILLIS_MIN;
        let is_part = share >= SHARE_MIN && (is_long || is_felt(cause, measured));
        if is_part || stops_others(cause, measured) {
            causes.push(WhyCause {
                name: cause.name().to_owned(),
                share,
                sentence: words::because(cause, share, measured),
                evidence: evidence::evidence(cause, weight / messages, measured),
                remedy: words::remedy(cause, measured),
                commands: Vec::new(),
                requests: Vec::new(),
            });
            continue;
        }
        let unmeasured = unmeasured::reason(cause, measured).filter(|_| weight == 0.0);
        let list = if unmeasured.is_some() {
            &mut not_measured
        } else {
            &mut not_causes
        };
        let sentence = unmeasured.map(ToOwned::to_owned);
        list.push(NotCause {
            name: cause.name().to_owned(),
            share,
            sentence: sentence.unwrap_or_else(|| words::fact(cause, measured)),
            evidence: evidence::evidence(cause, weight / messages, measured),
        });
    }
    let state = if causes.is_empty() {
        unmeasured::state(measured)
    } else {
        LatencyState::Slow
    };
    let times = times.filter(|_| measured.is_timed()).unwrap_or_default();
    let mean_millis = total / messages;
    LatencyCauses {
        state,
        dropped_per_second: measured.per_second(measured.dropped),
        verdict: verdict(&causes, measured, &Moved { moved, mean_millis }),
        messages: whole(moved),
        measured_deliveries: times.deliveries,
        mean_ms: mean_millis,
        p50_ms: fraction(times.p50_ns) / 1e6,
        p99_ms: fraction(times.p99_ns) / 1e6,
        causes,
        not_causes,
        not_measured,
    }
}

/// The messages that were delivered. The time is divided by them and by those that wait: of the
/// latter it is not known how long they will.
fn moved(measured: &Measured, times: &MessageTimes) -> f64 {
    let stamped = fraction(times.deliveries) * times.every * measured.part;
    let counted = fraction(measured.sent.max(measured.received));
    stamped.max(counted)
}

/// Whether somebody is kept from what is not yet a message of the broker, whatever part of the time
/// of messages the cause has: a publisher that is held publishes nothing, and a client that is not
/// accepted neither.
fn stops_others(cause: LatencyCause, measured: &Measured) -> bool {
    match cause {
        LatencyCause::FullQueues => measured.at(WaitPlace::Room).clients >= PAUSED_MIN,
        LatencyCause::Handshakes => measured.handshakes.full_workers > 0,
        _ => false,
    }
}

/// Whether some clients, or a worker, wait long because of it, though most messages do not.
fn is_felt(cause: LatencyCause, measured: &Measured) -> bool {
    let pauses = cause.pauses_at();
    if pauses.is_some_and(|place| measured.at(place).clients >= PAUSED_MIN) {
        return true;
    }
    let places: &[WaitPlace] = match cause {
        LatencyCause::SlowReaders => &[WaitPlace::Socket, WaitPlace::Answers],
        LatencyCause::FullWindows => &[WaitPlace::Window],
        LatencyCause::NetworkLoss => &[WaitPlace::Window, WaitPlace::Socket],
        LatencyCause::Cpu => {
            let work = &measured.work;
            return work.worker_running.is_some_and(|part| part > BUSY)
                || work.worker_ready.is_some_and(|part| part > STARVED);
        }
        _ => return false,
    };
    measured.worst.iter().any(|client| {
        let delay = client.delay.millis().unwrap_or(0.0);
        let oldest = fraction(client.oldest_secs.unwrap_or(0)) * 1000.0;
        let is_stuck = client.delay == Delay::AllTheTime;
        let is_late = delay.max(oldest) >= CLIENT_MILLIS_MIN;
        places.contains(&client.place) && (is_stuck || is_late)
    })
}

/// How many messages were delivered, and the mean time of these and of those that wait.
struct Moved {
    moved: f64,
    mean_millis: f64,
}

fn verdict(causes: &[WhyCause], measured: &Measured, of: &Moved) -> String {
    let dropped = unmeasured::dropped(measured);
    let messages = format!("{dropped}{}", verdict_of_messages(causes, measured, of));
    if measured.handshakes.full_workers == 0 {
        return messages;
    }
    let newcomers = words::newcomers(measured);
    format!("new connections wait: {newcomers}; of messages: {messages}")
}

fn verdict_of_messages(causes: &[WhyCause], measured: &Measured, of: &Moved) -> String {
    let mean = latency(whole(of.mean_millis * 1e6));
    let times = measured.times.unwrap_or_default();
    let Some(first) = causes.iter().find(|cause| cause.share > 0.0) else {
        return match unmeasured::state(measured) {
            LatencyState::NotMeasured => unmeasured::nothing(measured),
            _ if !measured.is_timed() => unmeasured::untimed(measured),
            _ if measured.dropped > 0 => format!(
                "those that are delivered take {mean} on average, and 99 % are in the broker for at most {}",
                latency(times.p99_ns)
            ),
            _ => format!(
                "nothing is slow: a message takes {mean} on average, and 99 % are in the broker for at most {}",
                latency(times.p99_ns)
            ),
        };
    };
    let begin = if of.moved < 1.0 {
        words::none_moved(measured)
    } else {
        format!("a message takes {mean} on average")
    };
    format!(
        "{begin}; {} of it: {}",
        percent(first.share),
        words::title(&first.name)
    )
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use thrum_broker::HandshakesNow;

    use super::super::measured::{DiskWork, MeanWait, SlowClient};
    use super::*;

    /// A broker that handles 1,000 messages a second for ten seconds, each in 0.1 ms.
    fn healthy() -> Measured {
        Measured {
            millis: 10_000.0,
            part: 1.0,
            sent: 10_000,
            received: 10_000,
            sessions: 10,
            clients: 10,
            times: Some(MessageTimes {
                every: 1000.0,
                deliveries: 10,
                p50_ns: 90_000,
                p99_ns: 200_000,
                read: 0.2,
                authorize: 0.1,
                route: 0.1,
                fan_out: 0.1,
                write: 0.5,
                ..MessageTimes::default()
            }),
            ..Measured::default()
        }
    }

    fn with_times(change: impl FnOnce(&mut MessageTimes)) -> Measured {
        let mut measured = healthy();
        change(measured.times.as_mut().unwrap());
        measured
    }

    fn waits(place: WaitPlace, clients: f64, messages: f64) -> Measured {
        let mut measured = healthy();
        measured.waits[place as usize] = MeanWait { clients, messages };
        if matches!(place, WaitPlace::Window | WaitPlace::Socket) {
            measured.worst.push(client(place, 0.0));
        }
        measured
    }

    fn client(place: WaitPlace, resent: f64) -> SlowClient {
        SlowClient {
            client_id: "hist-1".to_owned(),
            place,
            messages: 50,
            oldest_secs: Some(12),
            inflight: 1,
            output_bytes: 0,
            unsent_bytes: 0,
            round_trip_micros: Some(240_000),
            resent,
            delay: Delay::Millis(500.0),
        }
    }

    fn first(measured: &Measured) -> String {
        let found = causes(measured);
        let first = found.causes.first();
        first.map_or_else(|| found.verdict.clone(), |cause| cause.name.clone())
    }

    #[test]
    fn each_cause_alone_is_named_first() {
        let lossy = || {
            let mut measured = waits(WaitPlace::Socket, 1.0, 50.0);
            measured.worst[0].resent = 0.2;
            measured
        };
        let late = || {
            let mut measured = with_times(|times| times.waited = 100.0);
            measured.work.worker_running = Some(0.99);
            measured
        };
        let handshakes = || {
            let mut measured = late();
            measured.counters.insert("limits/handshakes".to_owned(), 3);
            measured
        };
        for (cause, measured) in [
            ("slow_readers", waits(WaitPlace::Socket, 1.0, 50.0)),
            ("slow_readers", waits(WaitPlace::Answers, 3.0, 5000.0)),
            ("slow_readers", {
                let mut measured = with_times(|times| {
                    times.write = 300.0;
                    times.slow_write = 299.0;
                });
                measured.work.worker_running = Some(0.1);
                measured
            }),
            ("full_windows", waits(WaitPlace::Window, 1.0, 50.0)),
            ("full_windows", with_times(|times| times.queue = 200.0)),
            ("network_loss", lossy()),
            ("disk", with_times(|times| times.sync = 200.0)),
            ("disk", with_times(|times| times.answer_sync = 200.0)),
            ("disk", waits(WaitPlace::Disk, 5.0, 50.0)),
            ("routing", with_times(|times| times.fan_out = 200.0)),
            ("routing", with_times(|times| times.route = 200.0)),
            ("mailboxes", with_times(|times| times.mail = 200.0)),
            ("mailboxes", waits(WaitPlace::Mailbox, 2.0, 50.0)),
            ("authorization", with_times(|times| times.authorize = 200.0)),
            ("authorization", waits(WaitPlace::Backend, 1.0, 9.0)),
            ("rate_limits", waits(WaitPlace::Rate, 1.0, 9.0)),
            ("full_queues", waits(WaitPlace::Room, 1.0, 9.0)),
            ("overload", waits(WaitPlace::Overload, 1.0, 9.0)),
            ("routing", {
                let mut measured = with_times(|times| times.write = 500.0);
                for (name, count) in [("sent", 400_000), ("received", 1000)] {
                    let name = format!("publish/messages/{name}");
                    measured.counters.insert(name, count);
                }
                measured
            }),
            ("cpu", {
                let mut measured = healthy();
                measured.work.cpu_wait_millis = 4.0;
                measured
            }),
            ("cpu", {
                let mut measured = healthy();
                measured.work.worker_ready = Some(0.6);
                measured
            }),
            ("cpu", late()),
            ("handshakes", handshakes()),
        ] {
            assert_eq!(first(&measured), cause, "{measured:?}");
        }
    }

    #[test]
    fn every_cause_has_its_own_name_and_words() {
        let mut names: Vec<&str> = LatencyCause::ALL.map(LatencyCause::name).into();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), LatencyCause::ALL.len());
        for (number, cause) in LatencyCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, number);
            assert_ne!(words::title(cause.name()), cause.name(), "no words");
            for measured in [healthy(), waits(WaitPlace::Rate, 1.0, 9.0)] {
                assert!(!words::fact(cause, &measured).is_empty());
                assert!(!words::remedy(cause, &measured).is_empty());
            }
        }
    }

    #[test]
    fn shares_sum_and_rank_two_causes() {
        let mut measured = with_times(|times| {
            times.sync = 100.0;
            times.authorize = 300.0;
        });
        measured.work.disk = Some(DiskWork::default());
        let found = causes(&measured);
        let names: Vec<&str> = found.causes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["authorization", "disk"]);
        let shares = found.causes.iter().map(|one| one.share);
        let others = found.not_causes.iter().map(|one| one.share);
        let sum: f64 = shares.chain(others).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        assert!((0.74..0.76).contains(&found.causes[0].share));
        assert!((40.0..40.2).contains(&found.mean_ms), "{}", found.mean_ms);
        assert_eq!(
            found.causes.len() + found.not_causes.len() + found.not_measured.len(),
            LatencyCause::ALL.len()
        );
    }

    #[test]
    fn nothing_wrong_says_so_with_figures() {
        let found = causes(&healthy());
        assert_eq!(found.causes.len(), 0);
        assert_eq!(
            found.verdict,
            "nothing is slow: a message takes 100µs on average, and 99 % are in the broker for at most 200µs"
        );
        assert_eq!(found.state, LatencyState::NotSlow);
    }

    #[test]
    fn where_no_message_was_delivered_nothing_is_excluded_that_was_not_measured() {
        let quiet = causes(&Measured::default());
        assert_eq!(
            quiet.verdict,
            "nothing was measured: no message was delivered"
        );
        assert_eq!(quiet.state, LatencyState::NotMeasured);
        assert_eq!((quiet.not_causes.len(), quiet.not_measured.len()), (2, 10));
        assert!(quiet.not_causes.iter().all(|one| one.share == 0.0));
        // Messages of others were timed, and none of this client.
        let mut away = healthy();
        (away.part, away.sent, away.received) = (0.0, 0, 0);
        (away.sessions, away.clients, away.away) = (1, 0, 1000);
        let found = causes(&away);
        assert!(found.verdict.contains("the client is away"), "{found:?}");
        assert_eq!((found.measured_deliveries, found.p99_ms), (0, 0.0));
    }

    #[test]
    fn a_broker_that_drops_messages_is_not_said_to_be_well() {
        let mut measured = healthy();
        measured.dropped = 4550;
        let found = causes(&measured);
        assert!(!found.verdict.contains("nothing is slow"), "{found:?}");
        assert!(
            found
                .verdict
                .starts_with("455 messages a second are dropped; those that are"),
            "{found:?}"
        );
        assert!((found.dropped_per_second - 455.0).abs() < 1e-9);
        (measured.sent, measured.received, measured.times) = (0, 4550, None);
        assert_eq!(
            causes(&measured).verdict,
            "455 messages a second are dropped; nothing was measured: no message was delivered"
        );
    }

    #[test]
    fn busy_cpus_of_the_machine_are_not_excluded_without_a_word() {
        let said = |ready| {
            let mut measured = healthy();
            measured.work.cpu_busy = Some(0.99);
            measured.work.worker_ready = ready;
            words::fact(LatencyCause::Cpu, &measured)
        };
        assert!(said(None).ends_with("is not known"), "{}", said(None));
        assert!(said(Some(0.01)).contains("other programs keep them busy"));
    }

    #[test]
    fn where_nothing_has_moved_no_mean_is_told() {
        let mut stuck = waits(WaitPlace::Window, 1.0, 1804.0);
        (stuck.sent, stuck.received, stuck.times) = (0, 0, None);
        let found = causes(&stuck);
        assert_eq!(
            found.verdict,
            "no message has moved in 10s: 1 804 messages wait, the oldest for 12 s; 100 % of it: clients that do not acknowledge"
        );
        assert_eq!(found.messages, 0);
        assert!((found.mean_ms - 10_000.0).abs() < 1e-6, "{found:?}");
        stuck.worst.clear();
        assert!(causes(&stuck).verdict.contains("messages wait; 100 %"));
        // With one that moved, no message takes longer than it was looked at.
        stuck.sent = 1;
        let found = causes(&stuck);
        assert_eq!(found.messages, 1);
        assert!((9_990.0..10_000.0).contains(&found.mean_ms), "{found:?}");
        assert!(found.verdict.starts_with("a message takes 10s on average"));
    }

    #[test]
    fn publishers_that_are_held_are_a_cause_beside_the_queue_that_is_full() {
        let mut measured = waits(WaitPlace::Socket, 1.0, 5000.0);
        measured.waits[WaitPlace::Room as usize] = MeanWait {
            clients: 1.0,
            messages: 18.0,
        };
        let names = |measured: &Measured| -> Vec<String> {
            let causes = causes(measured).causes.into_iter();
            causes.map(|cause| cause.name).collect()
        };
        assert_eq!(names(&measured), ["slow_readers", "full_queues"]);
        measured.waits[WaitPlace::Room as usize].clients = 0.3;
        assert_eq!(names(&measured), ["slow_readers"]);
    }

    #[test]
    fn workers_without_a_place_for_handshakes_are_told_though_no_message_waits() {
        let mut measured = Measured {
            handshakes: HandshakesNow {
                open: 100,
                full_workers: 1,
                full_for: Duration::from_secs(15),
            },
            ..Measured::default()
        };
        let found = causes(&measured);
        assert_eq!(found.causes[0].name, "handshakes");
        assert_eq!(
            found.verdict,
            "new connections wait: 1 worker has accepted none for 15 s, as 100 handshakes are unfinished; of messages: \
             nothing was measured: no message was delivered"
        );
        let sentence = &found.causes[0].sentence;
        assert!(sentence.contains("accepted none for 15 s"), "{sentence}");
        assert!(found.causes[0].remedy.contains("limits.handshakes"));
        assert_eq!(found.causes[0].evidence["handshakes_unfinished"], 100);
        measured.handshakes.full_workers = 0;
        assert_eq!(causes(&measured).causes.len(), 0);
    }

    #[test]
    fn what_has_no_part_of_a_slow_client_is_not_its_cause() {
        // The node is slow because of its disk, but this client has a hundredth of the messages.
        let mut measured = with_times(|times| times.sync = 200.0);
        measured.part = 0.01;
        measured.sent = 100;
        measured.received = 0;
        measured.waits[WaitPlace::Window as usize] = MeanWait {
            clients: 1.0,
            messages: 50.0,
        };
        measured.worst.push(client(WaitPlace::Window, 0.0));
        let found = causes(&measured);
        assert_eq!(found.causes[0].name, "full_windows");
        assert!(found.causes[0].share > 0.99, "{found:?}");
    }

    #[test]
    fn a_late_worker_is_not_taken_for_a_slow_reader() {
        let mut measured = with_times(|times| {
            times.write = 300.0;
            times.slow_write = 299.0;
        });
        measured.work.worker_running = Some(0.99);
        assert_eq!(first(&measured), "cpu");
        measured.waits[WaitPlace::Socket as usize].messages = 100.0;
        measured.worst.push(client(WaitPlace::Socket, 0.0));
        assert_eq!(first(&measured), "slow_readers");
    }
}
