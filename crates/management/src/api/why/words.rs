//! Causes of latency in words, with their figures.

use thrum_broker::WaitPlace;
use thrum_figures::{bytes, count, figure, fraction, latency, percent, ratio, whole};

use super::latency::{BUSY, LOSSY, LatencyCause, STARVED};
use super::measured::{Delay, Measured, SlowClient};

/// Clients that a sentence names.
const NAMED_MAX: usize = 3;
/// Shorter times are no time: the broker measures them by two looks at its clock.
const NANOS_MIN: u64 = 10;
/// Bytes of a client identifier in a sentence; the evidence has all of it.
const NAME_BYTES_MAX: usize = 64;

/// What a cause is, in some words.
pub(super) fn title(name: &str) -> &str {
    match name {
        "slow_readers" => "clients that do not take their messages",
        "full_windows" => "clients that do not acknowledge",
        "network_loss" => "a network that loses segments",
        "disk" => "the disk",
        "routing" => "matching and fan-out",
        "mailboxes" => "the way between workers",
        "authorization" => "rules and backends that decide",
        "rate_limits" => "rate limits",
        "full_queues" => "publishers that wait for full queues",
        "overload" => "protection against overload",
        "handshakes" => "handshakes of new connections",
        "cpu" => "the CPU time of the workers",
        other => other,
    }
}

/// The sentence of a cause.
pub(super) fn because(cause: LatencyCause, share: f64, measured: &Measured) -> String {
    let (title, fact) = (title(cause.name()), fact(cause, measured));
    if share == 0.0 {
        return format!("{title}: {fact}");
    }
    format!("{} of the time: {title}: {fact}", percent(share))
}

/// The figures of a cause in words, whether it is one or not.
pub(super) fn fact(cause: LatencyCause, measured: &Measured) -> String {
    match cause {
        LatencyCause::SlowReaders => slow_readers(measured),
        LatencyCause::FullWindows => full_windows(measured),
        LatencyCause::NetworkLoss => network_loss(measured),
        LatencyCause::Disk => disk(measured),
        LatencyCause::Routing => routing(measured),
        LatencyCause::Mailboxes => mailboxes(measured),
        LatencyCause::Authorization => authorization(measured),
        LatencyCause::RateLimits => rate_limits(measured),
        LatencyCause::FullQueues => waiting(
            measured,
            WaitPlace::Room,
            "no publisher waits for room in a queue",
            "publishers are stopped until there is room in the queue of a receiver",
        ),
        LatencyCause::Overload => overload(measured),
        LatencyCause::Handshakes => handshakes(measured),
        LatencyCause::Cpu => cpu(measured),
    }
}

/// The mean of a time of stamped messages. Of a stage that takes no time, a nanosecond is counted.
fn mean(measured: &Measured, millis: f64) -> String {
    let times = measured.times.unwrap_or_default();
    match whole(millis * 1e6).checked_div(times.deliveries) {
        None => "a time that was not measured".to_owned(),
        Some(0..NANOS_MIN) => "no time".to_owned(),
        Some(ns) => latency(ns),
    }
}

/// A number and what is counted.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    if number == 1 {
        format!("1 {one}")
    } else {
        format!("{} {many}", count(number))
    }
}

fn clients(number: f64) -> String {
    counted(whole(number.max(1.0)), "client", "clients")
}

/// How many wait at a place.
fn waiting(measured: &Measured, place: WaitPlace, none: &str, what: &str) -> String {
    let wait = measured.at(place);
    if wait.clients == 0.0 {
        return none.to_owned();
    }
    let messages = count(whole(wait.messages));
    format!("{what}: {} with {messages} messages", clients(wait.clients))
}

/// The worst clients at some places, by name.
fn named(
    measured: &Measured,
    places: &[WaitPlace],
    words: impl Fn(&SlowClient) -> String,
) -> String {
    let all = measured.worst.iter();
    let all = all.filter(|client| places.contains(&client.place));
    let some: Vec<String> = all
        .take(NAMED_MAX)
        .map(|client| format!("{} ({})", shortened(&client.client_id), words(client)))
        .collect();
    some.join(", ")
}

/// A client identifier in a sentence.
pub(super) fn shortened(client_id: &str) -> String {
    let end = client_id.floor_char_boundary(NAME_BYTES_MAX);
    let more = if end < client_id.len() { "…" } else { "" };
    format!("{}{more}", &client_id[..end])
}

/// What is known of a client that is behind.
fn behind(client: &SlowClient) -> String {
    let waiting = counted(client.messages, "message waits", "messages wait");
    let mut parts = vec![waiting];
    if let Some(secs) = client.oldest_secs.filter(|secs| *secs > 0) {
        parts.push(format!("the oldest {secs} s"));
    } else {
        match client.delay {
            Delay::Unknown => {}
            Delay::Millis(millis) => {
                parts.push(format!("each about {}", latency(whole(millis * 1e6))));
            }
            Delay::AllTheTime => parts.push("and none moved meanwhile".to_owned()),
        }
    }
    if let Some(micros) = client.round_trip_micros {
        let round_trip = latency(u64::from(micros) * 1000);
        parts.push(format!("round trip {round_trip}"));
    }
    if client.output_bytes > 0 {
        let output = bytes(fraction(client.output_bytes));
        parts.push(format!("{output} in its output"));
    }
    if client.unsent_bytes > 0 {
        let unsent = bytes(fraction(client.unsent_bytes));
        parts.push(format!("{unsent} in its socket"));
    }
    parts.join(", ")
}

fn slow_readers(measured: &Measured) -> String {
    let wait = measured.at(WaitPlace::Socket);
    let answers = measured.at(WaitPlace::Answers);
    if wait.clients + answers.clients == 0.0 {
        let times = measured.times.unwrap_or_default();
        if times.slow_write > 0.0 {
            let slow = mean(measured, times.slow_write);
            return format!("sockets were full for a time: {slow} of the mean");
        }
        return "every client takes its messages as they come".to_owned();
    }
    let names = named(measured, &[WaitPlace::Socket, WaitPlace::Answers], behind);
    let who = clients(wait.clients + answers.clients);
    format!("{who} behind: {names}")
}

fn full_windows(measured: &Measured) -> String {
    let wait = measured.at(WaitPlace::Window);
    if wait.clients == 0.0 {
        let times = measured.times.unwrap_or_default();
        if times.queue > 0.01 {
            let queued = mean(measured, times.queue);
            return format!("messages waited in queues for {queued} on average");
        }
        return "no message waits for an acknowledgement of others".to_owned();
    }
    let names = named(measured, &[WaitPlace::Window], |client| {
        format!("window {}, {}", client.inflight, behind(client))
    });
    format!("{} with a full window: {names}", clients(wait.clients))
}

fn network_loss(measured: &Measured) -> String {
    let lossy = measured.worst.iter().filter(|one| one.resent >= LOSSY);
    let worst = lossy.max_by(|one, other| one.resent.total_cmp(&other.resent));
    let machine = measured.work.resent.map_or_else(
        || "the system does not tell how many segments were sent again".to_owned(),
        |part| {
            format!(
                "{} of the machine's segments were sent again",
                percent(part)
            )
        },
    );
    let Some(client) = worst else {
        return machine;
    };
    let resent = percent(client.resent);
    let name = &client.client_id;
    format!("{resent} of the segments to {name} were sent again; {machine}")
}

fn disk(measured: &Measured) -> String {
    let Some(disk) = measured.work.disk else {
        return "this broker keeps everything in memory".to_owned();
    };
    let mut text = if disk.commits == 0 {
        "nothing was written to it".to_owned()
    } else {
        let mean_ns = whole(ratio(disk.commit_micros, disk.commits) * 1000.0);
        let busy = fraction(disk.commit_micros) / 1000.0 / measured.millis.max(1.0);
        let longest = disk
            .longest_micros_below
            .map_or_else(String::new, |micros| {
                format!(", none took longer than {}", latency(micros * 1000))
            });
        format!(
            "{} took {} on average{longest}, and the disk was busy {} of the time",
            counted(disk.commits, "commit", "commits"),
            latency(mean_ns),
            percent(busy.min(1.0))
        )
    };
    let waits = measured.at(WaitPlace::Disk);
    if waits.clients > 0.0 {
        text.extend([format!("; waiting for it: {}", clients(waits.clients))]);
    }
    if !disk.is_healthy {
        text.push_str("; it is full or fails");
    }
    text
}

fn routing(measured: &Measured) -> String {
    let times = measured.times.unwrap_or_default();
    if times.deliveries == 0 {
        return "no message was measured".to_owned();
    }
    let mut text = format!(
        "finding the receivers takes {}, and writing to those before it {}",
        mean(measured, times.route),
        mean(measured, times.fan_out),
    );
    if measured.part >= 1.0 {
        let receivers = figure(ratio(measured.sent, measured.received));
        let receivers = match receivers.as_str() {
            "1" => "1 receiver".to_owned(),
            _ => format!("{receivers} receivers"),
        };
        text.extend([format!("; {receivers} for each message")]);
    }
    text
}

fn mailboxes(measured: &Measured) -> String {
    if measured.work.workers == 1 {
        return "there is 1 worker, so no message goes to another one".to_owned();
    }
    let times = measured.times.unwrap_or_default();
    let way = mean(measured, times.mail);
    let waits = measured.at(WaitPlace::Mailbox);
    let paused = if waits.clients > 0.0 {
        format!(
            "; waiting for a worker with too much to do: {}",
            clients(waits.clients)
        )
    } else {
        String::new()
    };
    let mail = counted(measured.work.mail, "message is", "messages are");
    format!("the way to another worker takes {way}, {mail} on it now{paused}")
}

fn authorization(measured: &Measured) -> String {
    let times = measured.times.unwrap_or_default();
    let asked = measured.count("authorization/asked");
    let mut text = format!("the decision takes {}", mean(measured, times.authorize));
    if asked > 0 {
        let asked = counted(asked, "time", "times");
        text.extend([format!("; backends were asked {asked}")]);
    }
    let timeouts = timeouts(measured);
    if timeouts > 0 {
        let timeouts = counted(timeouts, "time", "times");
        text.extend([format!(", {timeouts} without an answer in time")]);
    }
    let waits = measured.at(WaitPlace::Backend);
    if waits.clients > 0.0 {
        let who = clients(waits.clients);
        text.extend([format!("; waiting for a backend: {who}")]);
    }
    text
}

/// How often a backend did not answer in time.
pub(super) fn timeouts(measured: &Measured) -> u64 {
    let backends = measured.backends.iter();
    let late = backends.filter(|(name, _)| name.ends_with("/timeouts"));
    late.map(|(_, grown)| grown).sum()
}

/// Pauses because of rates, by the counters of all of them.
pub(super) fn pauses(measured: &Measured) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for of in ["client", "user", "address", "listener"] {
        for what in ["messages", "bytes"] {
            let grown = measured.count(&format!("limits/{of}/{what}"));
            if grown > 0 {
                found.push((format!("limits.{of}.{what}"), grown));
            }
        }
    }
    found.sort_by_key(|(_, grown)| std::cmp::Reverse(*grown));
    found
}

fn rate_limits(measured: &Measured) -> String {
    let reached = pauses(measured);
    let waits = measured.at(WaitPlace::Rate);
    if reached.is_empty() && waits.clients == 0.0 {
        return "no client has used up a rate".to_owned();
    }
    let reached: Vec<String> = reached
        .iter()
        .map(|(key, grown)| format!("{key} {}", counted(*grown, "time", "times")))
        .collect();
    let reached = if reached.is_empty() {
        "a rate".to_owned()
    } else {
        reached.join(", ")
    };
    let names = named(measured, &[WaitPlace::Rate], |client| {
        format!("{} messages unread", count(client.messages))
    });
    let who = if names.is_empty() {
        String::new()
    } else {
        format!(", {names}")
    };
    format!(
        "reached: {reached}; not read meanwhile: {}{who}",
        clients(waits.clients)
    )
}

fn overload(measured: &Measured) -> String {
    let waits = waiting(
        measured,
        WaitPlace::Overload,
        "no publisher is slowed down",
        "publishers are read less",
    );
    let memory = match measured.work.memory_level {
        0 => "memory is sufficient".to_owned(),
        level => format!("memory is short (level {level} of 4)"),
    };
    let late = measured.count("protection/overload/lag");
    let late = if late > 0 {
        format!("; workers were late {}", counted(late, "time", "times"))
    } else {
        String::new()
    };
    format!("{waits}; {memory}{late}")
}

/// How long new connections wait, and why.
pub(super) fn newcomers(measured: &Measured) -> String {
    let now = &measured.handshakes;
    let workers = counted(now.full_workers, "worker has", "workers have");
    let open = counted(now.open, "handshake is", "handshakes are");
    format!(
        "{workers} accepted none for {} s, as {open} unfinished",
        now.full_for.as_secs()
    )
}

/// That no message was delivered, how many wait, and how long.
pub(super) fn none_moved(measured: &Measured) -> String {
    let seconds = latency(whole(measured.millis * 1e6));
    let waiting = whole(measured.waiting().max(1.0));
    let waiting = counted(waiting, "message waits", "messages wait");
    let oldest = measured
        .worst
        .iter()
        .filter_map(|client| client.oldest_secs);
    let oldest = oldest.max().filter(|secs| *secs > 0);
    let oldest = oldest.map_or_else(String::new, |secs| format!(", the oldest for {secs} s"));
    format!("no message has moved in {seconds}: {waiting}{oldest}")
}

fn handshakes(measured: &Measured) -> String {
    if measured.handshakes.full_workers > 0 {
        return newcomers(measured);
    }
    let opened = figure(measured.per_second(measured.count("connections/opened")));
    let deferred = measured.count("limits/handshakes");
    if deferred == 0 {
        return format!("{opened} new connections a second, none deferred");
    }
    format!(
        "{opened} new connections a second; unfinished handshakes made workers leave new ones in the backlog {} times",
        count(deferred)
    )
}

fn cpu(measured: &Measured) -> String {
    let work = &measured.work;
    let mut parts = Vec::new();
    if let Some(running) = work.worker_running {
        parts.push(format!(
            "the busiest worker ran {} of the time",
            percent(running)
        ));
    }
    if let Some(ready) = work.worker_ready {
        let ready = percent(ready);
        let each = latency(whole(work.cpu_wait_millis * 1e6));
        parts.push(format!(
            "was kept waiting for a CPU {ready} ({each} each time)"
        ));
    }
    if let Some(busy) = work.cpu_busy {
        parts.push(format!("the machine's CPUs were busy {}", percent(busy)));
    }
    if let Some(stolen) = work.cpu_stolen {
        parts.push(format!("the hypervisor took {}", percent(stolen)));
    }
    if work.cpu_busy.is_some_and(|busy| busy > BUSY) {
        parts.push(
            match work.worker_ready {
                None => "whether a worker was kept waiting for one is not known",
                Some(ready) if ready > STARVED => "other programs may need them too",
                Some(_) => "other programs keep them busy, and a worker still gets one soon",
            }
            .to_owned(),
        );
    }
    if parts.is_empty() {
        return "the system does not tell the time of its CPUs".to_owned();
    }
    parts.join(", ")
}

/// What to do about a cause.
pub(super) fn remedy(cause: LatencyCause, measured: &Measured) -> String {
    let text = match cause {
        LatencyCause::SlowReaders => {
            let worst = measured.worst.iter();
            let mut worst =
                worst.filter(|one| matches!(one.place, WaitPlace::Socket | WaitPlace::Answers));
            let id = worst.next().map_or("ID", |client| &client.client_id);
            return format!(
                "thrum clients get {} shows the client; let it read faster, or give its work to several \
                 members of a shared group ($share/GROUP/FILTER); limits.client.queue and queue_policy bound \
                 what waits for it",
                quoted(id)
            );
        }
        LatencyCause::FullWindows => {
            "let the client ask for a larger receive maximum, up to limits.client.inflight, or \
             acknowledge sooner; several members of a shared group ($share/GROUP/FILTER) have a window each"
        }
        LatencyCause::NetworkLoss => {
            "look for a bad link between the broker and the client; QoS 0 and larger windows suffer less"
        }
        LatencyCause::Disk => {
            "a faster disk (thrum status shows its health); storage.durability = \"os\" does not wait \
             for it, and loses the last seconds with the power"
        }
        LatencyCause::Routing => {
            "fewer subscriptions that match the topic: thrum clients ls --sort subscriptions; shared \
             groups ($share/GROUP/FILTER) deliver to one member each"
        }
        LatencyCause::Mailboxes => {
            "as many node.workers as the broker has cores, not more; limits.mailbox_messages bounds \
             what waits for one of them"
        }
        LatencyCause::Authorization => {
            "a faster backend, or rules that decide before it (acl.rules); the answers of backends are \
             remembered by acl.cache and acl.cache_ttl"
        }
        LatencyCause::RateLimits => {
            "raise the rate that is reached (limits.client, limits.user, limits.address or the \
             listener's), or publish less"
        }
        LatencyCause::FullQueues => {
            "the receiver behind is the cause: thrum clients ls --sort queued-messages; a larger \
             limits.client.queue, or another queue_policy than \"hold\""
        }
        LatencyCause::Overload => {
            "more memory (limits.memory) or more cores (node.workers), or fewer messages; the guide \
             about protection explains the steps"
        }
        LatencyCause::Handshakes if measured.handshakes.full_workers > 0 => {
            "connections that begin a handshake and go no further keep their places for \
             limits.handshake_timeout: lower it, raise limits.handshakes, and bound what one address opens with \
             limits.address.connects; the log names addresses whose handshake took too long"
        }
        LatencyCause::Handshakes => {
            "let clients reconnect with a random wait; limits.connect_rate spreads them"
        }
        LatencyCause::Cpu if measured.work.worker_ready.is_some_and(|part| part > 0.1) => {
            "other programs, or the hypervisor, take the CPUs of the broker: give it its own"
        }
        LatencyCause::Cpu => {
            "more cores (node.workers), or fewer messages; thrum clients ls --sort messages-received \
             shows who publishes most"
        }
    };
    text.to_owned()
}

/// A client identifier as the last argument in a shell.
pub(crate) fn quoted(client_id: &str) -> String {
    if client_id.starts_with('-') {
        return format!("-- {}", quoted_word(client_id));
    }
    quoted_word(client_id)
}

fn quoted_word(client_id: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/@".contains(&byte);
    if !client_id.is_empty() && client_id.bytes().all(is_plain) {
        return client_id.to_owned();
    }
    format!("'{}'", client_id.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_identifier_is_one_argument() {
        assert_eq!(quoted("meter-7"), "meter-7");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("a'; rm"), "'a'\\''; rm'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("-x"), "-- -x", "no option");
    }

    #[test]
    fn a_client_that_is_behind_is_described_with_its_figures() {
        let client = SlowClient {
            client_id: "hist-1".to_owned(),
            place: WaitPlace::Window,
            messages: 4000,
            oldest_secs: Some(12),
            inflight: 1,
            output_bytes: 2048,
            unsent_bytes: 0,
            round_trip_micros: Some(240_000),
            resent: 0.0,
            delay: Delay::Unknown,
        };
        let mut measured = Measured::default();
        measured.waits[WaitPlace::Window as usize].clients = 1.0;
        measured.worst.push(client);
        assert_eq!(
            fact(LatencyCause::FullWindows, &measured),
            "1 client with a full window: hist-1 (window 1, 4 000 messages wait, the oldest 12 s, \
             round trip 240ms, 2 KiB in its output)"
        );
    }
}
