//! Metrics of the process, the node and its parts.

use std::borrow::Cow;

use thrum_broker::{
    Figures, ListenerFigures, NodeFigures, ProcessFigures, SinkFigures, StorageFigures,
    WorkerFigures,
};

use super::family::{Family, Histogram, Kind, Label, Value};

/// A metric whose only series has no labels, and is absent if its value is not known.
fn single(name: &'static str, kind: Kind, help: &'static str, value: Option<Value>) -> Family {
    let family = Family::new(name, kind, help);
    match value {
        Some(value) => family.with(value),
        None => family,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times need no more than 15 digits"
)]
fn as_real(number: u64) -> f64 {
    number as f64
}

/// The process, under the names that Prometheus prescribes.
pub(super) fn of_process(figures: &Figures) -> Vec<Family> {
    let ProcessFigures {
        cpu_millis,
        resident_bytes,
        virtual_bytes,
        open_files,
        open_files_max,
        threads,
    } = figures.process;
    let started = Value::Real(as_real(figures.node.started_at) / 1e3);
    vec![
        single(
            "process_cpu_seconds",
            Kind::Counter,
            "CPU time of the process in user and system mode.",
            cpu_millis.map(|millis| Value::Real(as_real(millis) / 1e3)),
        ),
        single(
            "process_resident_memory_bytes",
            Kind::Gauge,
            "Resident memory of the process.",
            Value::whole(resident_bytes),
        ),
        single(
            "process_virtual_memory_bytes",
            Kind::Gauge,
            "Address space of the process.",
            Value::whole(virtual_bytes),
        ),
        single(
            "process_open_fds",
            Kind::Gauge,
            "Open files of the process, sockets among them (Linux 6.2 and newer).",
            Value::whole(open_files),
        ),
        single(
            "process_max_fds",
            Kind::Gauge,
            "Limit of the open files of the process.",
            Value::whole(open_files_max),
        ),
        single(
            "process_threads",
            Kind::Gauge,
            "Threads of the process.",
            Value::whole(threads),
        ),
        single(
            "process_start_time_seconds",
            Kind::Gauge,
            "Start of the broker in seconds of the Unix epoch.",
            Some(started),
        ),
    ]
}

/// What is true of the whole node.
pub(super) fn of_node(figures: &Figures) -> Vec<Family> {
    let NodeFigures {
        version,
        retained,
        retained_withheld,
        memory_limit_bytes,
        memory_level,
        stamp_every,
        ..
    } = figures.node;
    let workers = figures.workers.len() as u64;
    let gauge = |name, help, value| single(name, Kind::Gauge, help, Some(Value::Whole(value)));
    vec![
        Family::new(
            "thrum_build",
            Kind::Info,
            "Version of the broker, as a label.",
        )
        .with_labels(vec![("version", version.into())], Value::Whole(1)),
        gauge("thrum_workers", "Worker threads.", workers),
        single(
            "thrum_memory_limit_bytes",
            Kind::Gauge,
            "Limit of the resident memory (limits.memory).",
            Value::whole(memory_limit_bytes),
        ),
        gauge(
            "thrum_memory_level",
            "How short memory is, from 0 (not at all) to 4 (new clients are refused).",
            memory_level,
        ),
        gauge(
            "thrum_retained_messages",
            "Retained messages of clients.",
            retained.messages,
        ),
        gauge(
            "thrum_retained_bytes",
            "Memory of the retained messages.",
            retained.bytes,
        ),
        gauge(
            "thrum_retained_messages_withheld",
            "Retained messages that new subscribers do not get because their publishers may no longer publish them.",
            retained_withheld,
        ),
        gauge(
            "thrum_stamp_every",
            "One of this many PUBLISH packets is stamped (node.stamp_messages), and none if it is 0.",
            stamp_every.into(),
        ),
    ]
}

/// Alarms that are raised, by name: a name has more than one if they are about several things.
pub(super) fn of_alarms(alarms: &[(&'static str, u64)]) -> Family {
    let family = Family::new(
        "thrum_alarm",
        Kind::Gauge,
        "Alarms that are raised, by name; GET /api/v1/alarms says what they are about.",
    );
    family.with_each("name", alarms, |(name, count)| {
        Some((Cow::Borrowed(*name), *count))
    })
}

/// A metric with a series for each of some things.
struct Each<T> {
    name: &'static str,
    kind: Kind,
    help: &'static str,
    /// Of one of them; none if it has none.
    value: fn(&T) -> Option<u64>,
}

const fn each_counts<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<u64>,
) -> Each<T> {
    Each {
        name,
        kind: Kind::Counter,
        help,
        value,
    }
}

const fn each_has<T>(
    name: &'static str,
    help: &'static str,
    value: fn(&T) -> Option<u64>,
) -> Each<T> {
    Each {
        name,
        kind: Kind::Gauge,
        help,
        value,
    }
}

/// The metrics of some things; the label has the name of each.
fn of_each<T, const N: usize>(
    label: &'static str,
    things: &[T],
    name: impl Fn(usize, &T) -> Cow<'static, str>,
    metrics: [Each<T>; N],
) -> Vec<Family> {
    let family = |metric: Each<T>| {
        let family = Family::new(metric.name, metric.kind, metric.help);
        family.with_each(label, things.iter().enumerate(), |(number, thing)| {
            Some((name(number, thing), (metric.value)(thing)?))
        })
    };
    metrics.map(family).into()
}

/// The workers.
pub(super) fn of_workers(figures: &Figures) -> Vec<Family> {
    let number = |number: usize, _: &WorkerFigures| number.to_string().into();
    of_each("worker", &figures.workers, number, OF_WORKER)
}

const OF_WORKER: [Each<WorkerFigures>; 8] = [
    each_has(
        "thrum_worker_sessions",
        "Sessions that a worker owns.",
        |worker| Some(worker.sessions),
    ),
    each_has(
        "thrum_worker_clients_connected",
        "Clients that are connected to a worker.",
        |worker| Some(worker.clients),
    ),
    each_counts(
        "thrum_worker_messages_received",
        "PUBLISH packets that a worker received from clients.",
        |worker| Some(worker.messages_received),
    ),
    each_counts(
        "thrum_worker_messages_sent",
        "PUBLISH packets that a worker sent to clients.",
        |worker| Some(worker.messages_sent),
    ),
    each_counts(
        "thrum_worker_turns",
        "Turns of the event loop of a worker.",
        |worker| Some(worker.turns),
    ),
    each_has(
        "thrum_worker_mailbox_messages",
        "Mail of other workers that waits for a worker.",
        |worker| Some(worker.mailbox.messages),
    ),
    each_has(
        "thrum_worker_mailbox_bytes",
        "Bytes of the messages in that mail.",
        |worker| Some(worker.mailbox.bytes),
    ),
    each_has(
        "thrum_worker_overload",
        "How a worker defers work because of overload: 0 not at all, 1 it leaves new connections in the backlog, 2 it \
         reads publishers less.",
        |worker| match (worker.slows_publishers, worker.defers_connections) {
            (true, _) => Some(2),
            (false, true) => Some(1),
            (false, false) => Some(0),
        },
    ),
];

/// The listeners.
pub(super) fn of_listeners(figures: &Figures) -> Vec<Family> {
    let name = |_, listener: &ListenerFigures| Cow::Owned(listener.name.to_string());
    of_each("listener", &figures.listeners, name, OF_LISTENER)
}

const OF_LISTENER: [Each<ListenerFigures>; 2] = [
    each_has(
        "thrum_listener_connections",
        "Open connections through a listener, those in their handshake among them.",
        |listener| Some(listener.connections),
    ),
    each_has(
        "thrum_listener_connections_limit",
        "Limit of the connections through a listener (max_connections), if it has one.",
        |listener| listener.connections_max,
    ),
];

/// The sinks.
pub(super) fn of_sinks(figures: &Figures) -> Vec<Family> {
    let name = |_, sink: &SinkFigures| Cow::Owned(sink.name.clone());
    of_each("sink", &figures.sinks, name, OF_SINK)
}

const OF_SINK: [Each<SinkFigures>; 6] = [
    each_counts(
        "thrum_sink_messages_offered",
        "Messages that a sink got.",
        |sink| Some(sink.counts.offered),
    ),
    each_counts(
        "thrum_sink_messages_written",
        "Messages that a sink has written.",
        |sink| Some(sink.counts.written),
    ),
    each_counts(
        "thrum_sink_messages_dropped",
        "Messages that a full sink did not get.",
        |sink| Some(sink.counts.dropped),
    ),
    each_counts(
        "thrum_sink_failures",
        "Writes of a sink that failed; each is tried again.",
        |sink| Some(sink.counts.failures),
    ),
    each_has(
        "thrum_sink_messages_waiting",
        "Messages in the queue of a sink.",
        |sink| Some(sink.counts.waiting),
    ),
    each_has(
        "thrum_sink_waiting_bytes",
        "Bytes of the messages in the queue of a sink.",
        |sink| Some(sink.counts.waiting_bytes),
    ),
];

/// The name of a backend and of its figure, of `authentication/backends/NAME/FIGURE`.
fn of_backend<'a>(topic: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let rest = topic.strip_prefix(part)?.strip_prefix("/backends/")?;
    rest.split_once('/')
}

fn answers_of_backends(figures: &[(String, u64)]) -> Family {
    let mut answers = Family::new(
        "thrum_backend_answers",
        Kind::Counter,
        "Answers of a backend, by question (login, topic) and answer.",
    );
    let parts = [("authentication", "login"), ("authorization", "topic")];
    for (part, question) in parts {
        let of_part = figures
            .iter()
            .filter_map(|(topic, value)| Some((of_backend(topic, part)?, *value)));
        for ((backend, answer), value) in of_part {
            if !["allowed", "denied", "ignored"].contains(&answer) {
                continue;
            }
            let labels: Vec<Label> = vec![
                ("backend", backend.to_owned().into()),
                ("question", question.into()),
                ("answer", answer.to_owned().into()),
            ];
            answers = answers.with_labels(labels, Value::Whole(value));
        }
    }
    answers
}

/// Backends of authentication and authorization.
pub(super) fn of_backends(figures: &[(String, u64)]) -> Vec<Family> {
    let plain = |figure: &str| {
        let mut figures = figures.iter();
        let found = figures.find(|(topic, _)| topic == figure);
        found.map(|(_, value)| *value)
    };
    let outcomes = ["allowed", "denied", "overloaded"];
    let logins = Family::new(
        "thrum_logins",
        Kind::Counter,
        "Logins that the backends decided, by outcome; overloaded ones were denied because too many waited.",
    )
    .with_each("outcome", &outcomes, |outcome| {
        let value = plain(&format!("authentication/{outcome}"))?;
        Some(((*outcome).into(), value))
    });
    let mut families = vec![
        logins,
        single(
            "thrum_logins_pending",
            Kind::Gauge,
            "Logins and questions about topics that wait for a backend.",
            Value::whole(plain("authentication/pending")),
        ),
        answers_of_backends(figures),
    ];
    families.extend(OF_BACKEND.map(|(name, wanted, help)| {
        Family::new(name, Kind::Counter, help).with_each("backend", figures, |(topic, value)| {
            let found = of_backend(topic, "authentication");
            let (backend, _) = found.filter(|(_, figure)| *figure == wanted)?;
            Some((Cow::Owned(backend.to_owned()), *value))
        })
    }));
    families
}

/// Metrics of each backend, and the figures that they are.
const OF_BACKEND: [(&str, &str, &str); 4] = [
    (
        "thrum_backend_errors",
        "errors",
        "Questions that a backend could not answer, time-outs included; each is a denial.",
    ),
    (
        "thrum_backend_timeouts",
        "timeouts",
        "Questions that a backend did not answer in time.",
    ),
    (
        "thrum_backend_cache_hits",
        "cache/hits",
        "Passwords of a backend that were found in the cache.",
    ),
    (
        "thrum_backend_cache_misses",
        "cache/misses",
        "Passwords of a backend that had to be hashed.",
    ),
];

/// Counters of the storage and their metrics.
const OF_STORAGE: [(&str, Kind, &str, &str); 9] = [
    (
        "thrum_storage_needed_bytes",
        Kind::Gauge,
        "storage/bytes/needed",
        "Bytes of the log that are needed.",
    ),
    (
        "thrum_storage_used_bytes",
        Kind::Gauge,
        "storage/bytes/used",
        "Bytes of the files of the log.",
    ),
    (
        "thrum_storage_limit_bytes",
        Kind::Gauge,
        "storage/bytes/maximum",
        "Limit of the bytes of the files (storage.max_disk).",
    ),
    (
        "thrum_storage_written_bytes",
        Kind::Counter,
        "storage/bytes/written",
        "Bytes written to the log, moved ones included.",
    ),
    (
        "thrum_storage_waiting_bytes",
        Kind::Gauge,
        "storage/bytes/waiting",
        "Bytes that wait for the storage thread.",
    ),
    (
        "thrum_storage_sessions",
        Kind::Gauge,
        "storage/sessions",
        "Sessions on the disk.",
    ),
    (
        "thrum_storage_messages",
        Kind::Gauge,
        "storage/messages",
        "Messages on the disk that a session or a topic needs.",
    ),
    (
        "thrum_storage_commits_failed",
        Kind::Counter,
        "storage/commits/failed",
        "Commits that failed; each is tried again.",
    ),
    (
        "thrum_storage_damaged_places",
        Kind::Counter,
        "storage/damaged",
        "Damaged places that were found in the log.",
    ),
];

/// The storage.
pub(super) fn of_storage(storage: &StorageFigures) -> Vec<Family> {
    let states = ["healthy", "full", "failing"];
    let health = Family::new(
        "thrum_storage_health",
        Kind::Gauge,
        "Whether the storage is in a state: 1 for the one that it is in, and 0 for the others.",
    )
    .with_each("state", &states, |state| {
        Some(((*state).into(), u64::from(*state == storage.health)))
    });
    let mut families = vec![health];
    families.extend(OF_STORAGE.map(|(name, kind, source, help)| {
        let mut counters = storage.counters.iter();
        let found = counters.find(|(name, _)| *name == source);
        let value = found.map(|(_, value)| *value);
        single(name, kind, help, Value::whole(value))
    }));
    families.push(commit_times(storage));
    families
}

fn commit_times(storage: &StorageFigures) -> Family {
    let mut count = 0;
    let mut buckets = Vec::with_capacity(storage.commit_times.len());
    for class in &storage.commit_times {
        count += class.count;
        if let Some(micros) = class.micros_below {
            buckets.push((as_real(micros) / 1e6, count));
        }
    }
    let help = "Time of commits: one write and one sync for all changes that wait.";
    let times = Histogram {
        buckets,
        count,
        sum: as_real(storage.commit_micros) / 1e6,
        cells: None,
    };
    Family::new("thrum_storage_commit_seconds", Kind::Histogram, help).with(Value::Histogram(times))
}
