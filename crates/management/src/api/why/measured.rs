//! What happened between readings of the broker, as plain figures.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use thrum_broker::{
    ClientConnection, ClientTraffic, DropRow, Figures, HandshakesNow, MachineFigures, MessageStage,
    ROWS_MAX, StageFigures, ThreadTimes, WaitPlace, Waiting, WaitingClient,
};
use thrum_figures::{fraction, ratio};

use super::away::Receivers;

/// A write that takes longer than this waits for the receiver, and not for the rest of a turn:
/// turns end after some milliseconds.
pub(super) const SLOW_WRITE_NS: u64 = 10_000_000;
const NANOS_OF_MILLI: f64 = 1e6;
/// Bytes of a full segment, to count the segments that a socket has sent.
const SEGMENT_BYTES: u64 = 1400;

/// Fewer segments that were sent again are no sign of a bad network: a peer that acknowledges late
/// makes the system send one again.
const RESENT_MIN: u32 = 5;

/// One look at the broker.
#[derive(Debug)]
pub(super) struct Reading {
    /// Since the start of the node.
    pub(super) at: Duration,
    pub(super) figures: Figures,
    pub(super) machine: MachineFigures,
    /// None if the workers did not answer.
    pub(super) waiting: Option<Waiting>,
    pub(super) drops: Vec<DropRow>,
}

/// What happened between the first and the last reading. Times are in milliseconds.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Between the readings.
    pub(super) millis: f64,
    /// The part of the node's messages that the question is about: 1 for all.
    pub(super) part: f64,
    /// None if no message is stamped.
    pub(super) times: Option<MessageTimes>,
    /// By [`WaitPlace`].
    pub(super) waits: [MeanWait; WaitPlace::ALL.len()],
    /// Messages in the queues of clients that are away, at the end.
    pub(super) away: u64,
    /// Those for which most waits, as of the last reading.
    pub(super) worst: Vec<SlowClient>,
    /// PUBLISH packets to the clients in question.
    pub(super) sent: u64,
    /// PUBLISH packets from them.
    pub(super) received: u64,
    /// As of the last reading.
    pub(super) handshakes: HandshakesNow,
    pub(super) work: Work,
    /// Differences of counters by their names below `$SYS/broker/`.
    pub(super) counters: BTreeMap<String, u64>,
    /// The same of backends.
    pub(super) backends: BTreeMap<String, u64>,
    /// By reason, client and topic, the most first.
    pub(super) drops: Vec<DroppedMessages>,
    /// The workers answered twice, so that `drops` has all that were dropped.
    pub(super) has_drop_rows: bool,
    /// The receivers whose full queues dropped most.
    pub(super) receivers: Receivers,
    /// Messages that were dropped for all reasons.
    pub(super) dropped: u64,
    /// Sessions that the question is about, connected or not, at the end.
    pub(super) sessions: u64,
    /// Of these the connected ones, as the largest number of all looks.
    pub(super) clients: u64,
    /// The workers did not answer some reading.
    pub(super) unanswered: bool,
}

/// Sums of the times of the stamped messages that were written meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MessageTimes {
    /// One of this many is stamped.
    pub(super) every: f64,
    pub(super) deliveries: u64,
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) waited: f64,
    pub(super) read: f64,
    pub(super) authorize: f64,
    pub(super) route: f64,
    /// On the way to another worker.
    pub(super) mail: f64,
    /// Behind earlier receivers.
    pub(super) fan_out: f64,
    /// In the queues of sessions.
    pub(super) queue: f64,
    pub(super) sync: f64,
    pub(super) write: f64,
    /// The part of `write` in which it took long.
    pub(super) slow_write: f64,
    /// Answers to publishers that waited for the disk.
    pub(super) answer_sync: f64,
}

/// What waited at a place, as a mean of the readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct MeanWait {
    pub(super) clients: f64,
    pub(super) messages: f64,
}

/// A client for which messages wait.
#[derive(Clone, Debug)]
pub(super) struct SlowClient {
    pub(super) client_id: String,
    pub(super) place: WaitPlace,
    pub(super) messages: u64,
    pub(super) oldest_secs: Option<u64>,
    pub(super) inflight: u64,
    pub(super) output_bytes: u64,
    pub(super) unsent_bytes: u64,
    pub(super) round_trip_micros: Option<u32>,
    /// The part of its segments that were sent again meanwhile.
    pub(super) resent: f64,
    /// How long a message waits.
    pub(super) delay: Delay,
}

/// How long each message of a client waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Delay {
    /// It was not among the clients for which most waits at the first reading.
    Unknown,
    Millis(f64),
    /// No message of it has moved.
    AllTheTime,
}

impl Delay {
    /// In milliseconds; none if it is not known, or longer than the measurement.
    pub(super) const fn millis(self) -> Option<f64> {
        match self {
            Self::Millis(millis) => Some(millis),
            Self::Unknown | Self::AllTheTime => None,
        }
    }
}

/// The work of the node and the machine.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Parts of the time of all CPUs; none if the system does not tell.
    pub(super) cpu_busy: Option<f64>,
    pub(super) cpu_stolen: Option<f64>,
    /// The part of the time that the busiest worker ran.
    pub(super) worker_running: Option<f64>,
    /// The longest part of the time that a worker was ready, and others had the CPU.
    pub(super) worker_ready: Option<f64>,
    /// How long a worker waits for a CPU each time, as a mean of all workers; 0 if it is not known.
    pub(super) cpu_wait_millis: f64,
    /// The part of the segments of this machine that were sent again.
    pub(super) resent: Option<f64>,
    /// None without storage.
    pub(super) disk: Option<DiskWork>,
    /// How many workers the broker has.
    pub(super) workers: usize,
    /// Mail that waits for workers, at the end.
    pub(super) mail: u64,
    /// 0 is enough memory, 4 is none.
    pub(super) memory_level: u64,
    /// Workers that are late, and read publishers less.
    pub(super) slowing: u64,
}

/// The work of the disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DiskWork {
    pub(super) is_healthy: bool,
    pub(super) commits: u64,
    /// Together.
    pub(super) commit_micros: u64,
    /// The class of the longest one; none if it is the last class, or there is none.
    pub(super) longest_micros_below: Option<u64>,
}

/// Messages that were dropped meanwhile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DroppedMessages {
    pub(super) reason: &'static str,
    pub(super) client_id: String,
    pub(super) topic: Option<String>,
    pub(super) messages: u64,
}

/// The readings that are compared.
struct Ends<'a, T> {
    first: &'a T,
    last: &'a T,
    /// The workers answered both.
    are_answered: bool,
}

impl<'a, T> Ends<'a, T> {
    /// The first and the last one that the workers answered. Without two of these it is those of
    /// all: at least the counters of the node are compared.
    fn of(readings: &'a [T], is_answered: impl Fn(&T) -> bool) -> Option<Self> {
        let mut answered = readings.iter().filter(|reading| is_answered(reading));
        let ends = answered.next().zip(answered.next_back());
        let all = readings.first().zip(readings.last());
        let (first, last) = ends.or(all)?;
        Some(Self {
            first,
            last,
            are_answered: ends.is_some(),
        })
    }
}

impl Measured {
    /// From the first to the last of some readings that the workers answered; the subject is all of
    /// the node, or a part.
    pub(super) fn between(readings: &[Reading], is_whole: bool) -> Self {
        let Some(ends) = Ends::of(readings, |reading| reading.waiting.is_some()) else {
            return Self::default();
        };
        let (first, last) = (ends.first, ends.last);
        let looks: Vec<&Waiting> = readings
            .iter()
            .filter_map(|reading| reading.waiting.as_ref())
            .collect();
        let counters = difference(&first.figures.counters, &last.figures.counters);
        let mut measured = Self {
            millis: millis(last.at.saturating_sub(first.at)),
            part: 1.0,
            times: times(&first.figures, &last.figures),
            work: work(first, last),
            backends: difference(&first.figures.backends, &last.figures.backends),
            drops: if ends.are_answered {
                drops(&first.drops, &last.drops)
            } else {
                Vec::new()
            },
            has_drop_rows: ends.are_answered,
            unanswered: looks.len() < readings.len(),
            ..Self::default()
        };
        let count = |name: &str| counters.get(name).copied().unwrap_or(0);
        let sent = count("publish/messages/sent");
        let received = count("publish/messages/received");
        (measured.sent, measured.received) = (sent, received);
        measured.counters = counters;
        if let (Some(before), Some(after)) = (looks.first(), looks.last()) {
            measured.look(before, after, &looks);
            if !is_whole {
                (measured.sent, measured.received) = exchanged(&before.traffic, &after.traffic);
                let of_all = ratio(measured.sent + measured.received, sent + received);
                measured.part = of_all.min(1.0);
            }
        }
        measured
    }

    /// What waited, and for whom.
    fn look(&mut self, before: &Waiting, after: &Waiting, looks: &[&Waiting]) {
        self.away = after.away.messages;
        self.sessions = after.sessions;
        let clients = looks.iter().map(|look| look.clients);
        self.clients = clients.max().unwrap_or(0);
        self.handshakes = after.handshakes;
        let number = fraction(looks.len() as u64);
        for (place, mean) in WaitPlace::ALL.into_iter().zip(&mut self.waits) {
            let clients: u64 = looks.iter().map(|look| look.at(place).clients).sum();
            let messages: u64 = looks.iter().map(|look| look.at(place).messages).sum();
            mean.clients = fraction(clients) / number;
            mean.messages = fraction(messages) / number;
        }
        let clients = after.worst.iter();
        self.worst = clients
            .map(|client| {
                let same = |other: &&WaitingClient| {
                    other.client_id == client.client_id && other.connected_at == client.connected_at
                };
                SlowClient::of(before.worst.iter().find(same), client, self.millis)
            })
            .collect();
    }

    /// What waited at a place.
    pub(super) const fn at(&self, place: WaitPlace) -> MeanWait {
        self.waits[place as usize]
    }

    /// Messages that waited somewhere, as a mean of the readings.
    pub(super) fn waiting(&self) -> f64 {
        self.waits.iter().map(|wait| wait.messages).sum()
    }

    /// Whether the time of some messages in question is known.
    pub(super) fn is_timed(&self) -> bool {
        let deliveries = self.times.map_or(0, |times| times.deliveries);
        deliveries > 0 && self.part > 0.0
    }

    /// How much a counter has grown.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// A rate in a second.
    pub(super) fn per_second(&self, count: u64) -> f64 {
        if self.millis > 0.0 {
            fraction(count) * 1000.0 / self.millis
        } else {
            0.0
        }
    }
}

impl SlowClient {
    fn of(before: Option<&WaitingClient>, after: &WaitingClient, millis: f64) -> Self {
        let tcp = after.tcp;
        let earlier = before.and_then(|before| before.tcp);
        let resent = tcp.zip(earlier).map_or(0.0, |(after, before)| {
            let again = after.retransmitted.saturating_sub(before.retransmitted);
            let bytes = after.bytes_sent.saturating_sub(before.bytes_sent);
            let sent = bytes.div_ceil(SEGMENT_BYTES) + u64::from(again);
            if again < RESENT_MIN {
                return 0.0;
            }
            ratio(again.into(), sent)
        });
        let handled = before.map(|before| {
            let sent = after.sent.saturating_sub(before.sent);
            sent + after.received.saturating_sub(before.received)
        });
        Self {
            client_id: after.client_id.clone().into(),
            place: after.place,
            messages: after.messages,
            oldest_secs: after.oldest_secs,
            inflight: after.inflight,
            output_bytes: after.output_bytes,
            unsent_bytes: tcp.and_then(|tcp| tcp.unsent_bytes).unwrap_or(0).into(),
            round_trip_micros: tcp.map(|tcp| tcp.round_trip_micros),
            resent,
            // As many wait as come in the time that one of them waits.
            delay: match handled {
                None => Delay::Unknown,
                Some(0) => Delay::AllTheTime,
                Some(handled) => {
                    Delay::Millis(fraction(after.messages) * millis / fraction(handled))
                }
            },
        }
    }
}

/// A duration in milliseconds.
fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}

/// How much each counter has grown; gauges that sank are 0.
fn difference(before: &[(String, u64)], after: &[(String, u64)]) -> BTreeMap<String, u64> {
    let before: BTreeMap<&str, u64> = before
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let grown = |(name, value): &(String, u64)| {
        let earlier = before.get(name.as_str()).copied().unwrap_or(0);
        (name.clone(), value.saturating_sub(earlier))
    };
    after.iter().map(grown).collect()
}

/// Messages to and from the clients that both looks have: others came to the question meanwhile,
/// with all messages of their connections.
fn exchanged(before: &[ClientTraffic], after: &[ClientTraffic]) -> (u64, u64) {
    let earlier: HashMap<ClientConnection, &ClientTraffic> =
        before.iter().map(|one| (one.connection, one)).collect();
    let (mut sent, mut received) = (0, 0);
    for client in after {
        let Some(before) = earlier.get(&client.connection) else {
            continue;
        };
        sent += u64::from(client.sent.saturating_sub(before.sent));
        received += u64::from(client.received.saturating_sub(before.received));
    }
    (sent, received)
}

fn times(before: &Figures, after: &Figures) -> Option<MessageTimes> {
    let none = StageFigures::default();
    let earlier = before.stages.as_ref().unwrap_or(&none);
    let figures = after.stages.as_ref()?.since(earlier);
    Some(MessageTimes::of(&figures, after.node.stamp_every))
}

impl MessageTimes {
    /// The times in the difference of two readings, where one of `every` messages is stamped.
    pub(super) fn of(figures: &StageFigures, every: u32) -> Self {
        let sum = |stage| fraction(figures.series(stage).sum_ns) / NANOS_OF_MILLI;
        let whole = figures.series(MessageStage::Broker);
        let write = figures.series(MessageStage::Write);
        let mail = sum(MessageStage::Mail);
        let queued = sum(MessageStage::Queued);
        Self {
            every: fraction(every.max(1).into()),
            deliveries: whole.count(),
            p50_ns: whole.quantile_ns(500),
            p99_ns: whole.quantile_ns(990),
            waited: sum(MessageStage::Waited),
            read: sum(MessageStage::Read),
            authorize: sum(MessageStage::Authorize),
            route: sum(MessageStage::Route),
            mail,
            fan_out: (queued - mail).max(0.0),
            queue: (sum(MessageStage::Queue) - queued).max(0.0),
            sync: sum(MessageStage::Sync),
            write: sum(MessageStage::Write),
            slow_write: (fraction(write.sum_above_ns(SLOW_WRITE_NS)) / NANOS_OF_MILLI)
                .min(sum(MessageStage::Write)),
            answer_sync: sum(MessageStage::AnswerSync),
        }
    }
}

fn work(before: &Reading, after: &Reading) -> Work {
    let mut work = Work {
        workers: after.figures.workers.len(),
        mail: after
            .figures
            .workers
            .iter()
            .map(|worker| worker.mailbox.messages)
            .sum(),
        memory_level: after.figures.node.memory_level,
        slowing: after
            .figures
            .workers
            .iter()
            .map(|worker| u64::from(worker.slows_publishers))
            .sum(),
        disk: disk(&before.figures, &after.figures),
        ..Work::default()
    };
    let elapsed = after.at.saturating_sub(before.at);
    machine(&mut work, &before.machine, &after.machine, elapsed);
    let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
    let (mut waited, mut runs) = (0, 0);
    for worker in &after.machine.workers {
        let same = |other: &&ThreadTimes| other.thread == worker.thread;
        let Some(before) = before.machine.workers.iter().find(same) else {
            continue;
        };
        let part = |after: u64, before: u64| ratio(after.saturating_sub(before), elapsed).min(1.0);
        let running = part(worker.running_ns, before.running_ns);
        let ready = part(worker.ready_ns, before.ready_ns);
        work.worker_running = Some(work.worker_running.unwrap_or(0.0).max(running));
        work.worker_ready = Some(work.worker_ready.unwrap_or(0.0).max(ready));
        waited += worker.ready_ns.saturating_sub(before.ready_ns);
        runs += worker.runs.saturating_sub(before.runs);
    }
    work.cpu_wait_millis = ratio(waited, runs) / NANOS_OF_MILLI;
    work
}

/// The time of the CPUs, and what the network lost.
///
/// The idle time of a CPU may stand still or go back, as the system enters it late: a share is one
/// of the time that has passed.
fn machine(work: &mut Work, before: &MachineFigures, after: &MachineFigures, elapsed: Duration) {
    if let (Some(before), Some(after)) = (before.cpu, after.cpu) {
        let busy = after.busy.saturating_sub(before.busy);
        let stolen = after.stolen.saturating_sub(before.stolen);
        let elapsed = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let counted = busy + stolen + after.idle.saturating_sub(before.idle);
        let all = counted.max(elapsed.saturating_mul(after.count));
        work.cpu_busy = (all > 0).then(|| ratio(busy, all));
        work.cpu_stolen = (all > 0).then(|| ratio(stolen, all));
    }
    if let (Some(before), Some(after)) = (before.segments, after.segments) {
        let again = after.retransmitted.saturating_sub(before.retransmitted);
        let sent = after.sent.saturating_sub(before.sent) + again;
        work.resent = Some(ratio(again, sent));
    }
}

fn disk(before: &Figures, after: &Figures) -> Option<DiskWork> {
    let after = after.storage.as_ref()?;
    let earlier = before.storage.as_ref();
    let commits_before = |class: usize| {
        let class = earlier.and_then(|earlier| earlier.commit_times.get(class));
        class.map_or(0, |class| class.count)
    };
    let classes = after.commit_times.iter().enumerate();
    let grown = classes.map(|(number, class)| {
        let grown = class.count.saturating_sub(commits_before(number));
        (class.micros_below, grown)
    });
    let grown: Vec<(Option<u64>, u64)> = grown.filter(|(_, grown)| *grown > 0).collect();
    let micros_before = earlier.map_or(0, |earlier| earlier.commit_micros);
    Some(DiskWork {
        is_healthy: after.health == "healthy",
        commits: grown.iter().map(|(_, grown)| grown).sum(),
        commit_micros: after.commit_micros.saturating_sub(micros_before),
        longest_micros_below: grown.last().and_then(|(below, _)| *below),
    })
}

/// What was dropped meanwhile, at least: a combination that took the place of another one has
/// inherited its number, which is not counted.
fn drops(before: &[DropRow], after: &[DropRow]) -> Vec<DroppedMessages> {
    let key = |row: &DropRow| (row.reason, row.client.clone(), row.topic.clone());
    let own = |row: &DropRow| row.messages.saturating_sub(row.at_most_less);
    let earlier: BTreeMap<_, u64> = before.iter().map(|row| (key(row), own(row))).collect();
    // Combinations behind the last row may have had as many.
    let unlisted = before.last().filter(|_| before.len() >= ROWS_MAX);
    let unlisted = unlisted.map_or(0, |row| row.messages);
    let mut found: Vec<DroppedMessages> = after
        .iter()
        .map(|row| DroppedMessages {
            reason: row.reason,
            client_id: row.client.clone().into(),
            topic: row.topic.clone().map(Into::into),
            messages: own(row).saturating_sub(earlier.get(&key(row)).copied().unwrap_or(unlisted)),
        })
        .filter(|dropped| dropped.messages > 0)
        .collect();
    found.sort_by_key(|dropped| Reverse(dropped.messages));
    found
}

#[cfg(test)]
mod tests {
    use thrum_broker::{CpuTimes, TcpCounts};

    use super::*;

    fn client(messages: u64, sent: u64, retransmitted: u32) -> WaitingClient {
        WaitingClient {
            client_id: "a".into(),
            place: WaitPlace::Socket,
            messages,
            oldest_secs: None,
            inflight: 0,
            output_bytes: 0,
            tcp: Some(TcpCounts {
                retransmitted,
                bytes_sent: sent * SEGMENT_BYTES,
                ..TcpCounts::default()
            }),
            received: 0,
            sent,
            connected_at: 7,
        }
    }

    #[test]
    fn messages_of_a_client_wait_as_long_as_so_many_take_to_come() {
        let slow = |sent| SlowClient::of(Some(&client(10, 100, 0)), &client(50, sent, 0), 10_000.0);
        assert_eq!(slow(200).delay, Delay::Millis(5000.0));
        assert_eq!(slow(100).delay, Delay::AllTheTime);
        let unknown = SlowClient::of(None, &client(50, 100, 0), 10_000.0);
        assert_eq!(unknown.delay, Delay::Unknown);
    }

    #[test]
    fn a_few_segments_that_are_sent_again_are_no_bad_network() {
        let resent = |again| {
            let after = client(10, 200, again);
            SlowClient::of(Some(&client(10, 100, 0)), &after, 10_000.0).resent
        };
        assert!(resent(4) == 0.0 && resent(0) == 0.0);
        assert!((resent(25) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn an_idle_time_that_the_system_enters_late_does_not_make_the_cpus_busy() {
        let busy = |idle: [u64; 2]| {
            let figures = |busy, idle| MachineFigures {
                cpu: Some(CpuTimes {
                    busy,
                    idle,
                    stolen: 0,
                    count: 2,
                }),
                ..MachineFigures::default()
            };
            let (before, after) = (figures(1000, idle[0]), figures(1200, idle[1]));
            let mut work = Work::default();
            machine(&mut work, &before, &after, Duration::from_secs(10));
            work.cpu_busy.unwrap()
        };
        for idle in [[50_000, 69_800], [50_000, 50_000], [50_000, 49_000]] {
            assert!((busy(idle) - 0.01).abs() < 1e-9, "{idle:?}");
        }
    }

    fn dropped(client: &str, messages: u64, at_most_less: u64) -> DropRow {
        DropRow {
            reason: "queue_full",
            client: client.into(),
            topic: Some("t".into()),
            messages,
            at_most_less,
            last_at: 0,
        }
    }

    #[test]
    fn a_number_that_a_combination_inherited_was_not_dropped_meanwhile() {
        let found = |before: &[DropRow], after: &[DropRow]| -> Vec<(String, u64)> {
            let found = drops(before, after).into_iter();
            found.map(|one| (one.client_id, one.messages)).collect()
        };
        let before = [dropped("old", 100, 40), dropped("a", 48, 0)];
        let after = [dropped("old", 107, 40), dropped("new", 49, 48)];
        let expected = [("old".to_owned(), 7), ("new".to_owned(), 1)];
        assert_eq!(found(&before, &after), expected);
        // It went and came again.
        let again = [dropped("old", 120, 110)];
        assert_eq!(found(&before, &again), []);
        let full: Vec<DropRow> = (0..ROWS_MAX)
            .map(|one| dropped(&format!("c{one}"), 50, 0))
            .collect();
        let risen = [dropped("behind", 53, 0)];
        assert_eq!(found(&full, &risen), [("behind".to_owned(), 3)]);
    }

    #[test]
    fn a_client_that_subscribes_meanwhile_does_not_bring_its_earlier_messages() {
        let traffic = |client, received, sent| ClientTraffic {
            connection: ClientConnection {
                client,
                connected_at: 7,
            },
            received,
            sent,
        };
        let before = [traffic(1, 10, 100), traffic(2, 5, 5)];
        let after = [traffic(3, 0, 90_000), traffic(1, 12, 107)];
        assert_eq!(exchanged(&before, &after), (7, 2));
    }

    #[test]
    fn what_was_dropped_before_the_first_answer_is_not_counted() {
        let ends = |answered: &[bool]| {
            let readings: Vec<(usize, bool)> = answered.iter().copied().enumerate().collect();
            let ends = Ends::of(&readings, |reading| reading.1)?;
            Some((ends.first.0, ends.last.0, ends.are_answered))
        };
        assert_eq!(ends(&[true, false, true]), Some((0, 2, true)));
        assert_eq!(ends(&[false, true, true]), Some((1, 2, true)));
        assert_eq!(ends(&[true, true, false]), Some((0, 1, true)));
        assert_eq!(ends(&[false, true, false]), Some((0, 2, false)));
        assert_eq!(ends(&[]), None);
    }

    #[test]
    fn counters_are_subtracted_and_gauges_that_sank_are_none() {
        let at = |numbers: [u64; 2]| -> Vec<(String, u64)> {
            let names = ["a", "b"].map(str::to_owned);
            names.into_iter().zip(numbers).collect()
        };
        let found = difference(&at([1, 9]), &at([4, 3]));
        assert_eq!(found.into_values().collect::<Vec<_>>(), [3, 0]);
    }
}
