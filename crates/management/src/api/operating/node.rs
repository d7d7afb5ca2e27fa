//! `/node`: the node, its process, its host and its workers.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use thrum_broker::{Figures, WorkerFigures};
use utoipa::ToSchema;

use crate::api::ApiState;
use crate::timestamp::timestamp;

/// A node.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Node {
    /// Version of the program.
    pub version: String,
    /// When the broker started.
    #[schema(format = DateTime)]
    pub started_at: String,
    /// Seconds since then.
    pub uptime_secs: u64,
    /// The machine.
    pub host: Host,
    /// The process.
    pub process: Process,
    /// Its workers, by number.
    pub workers: Vec<Worker>,
    /// Its limits.
    pub limits: NodeLimits,
    /// How short memory is, from 0 (not at all) to 4 (new clients are refused).
    pub memory_level: u64,
}

/// The machine, as far as the system tells.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// Its name.
    pub name: Option<String>,
    /// Operating system and its version.
    pub system: String,
    /// Cores that the process may use.
    pub cores: usize,
    /// Memory of the machine.
    pub memory_bytes: Option<u64>,
    /// Load average of one minute.
    pub load: Option<f64>,
}

/// The process; null is what the system does not tell.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Process {
    /// Its number.
    pub id: u32,
    /// CPU time since the start.
    pub cpu_secs: Option<f64>,
    /// Resident memory.
    pub resident_bytes: Option<u64>,
    /// Open files, sockets among them.
    pub open_files: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

/// A worker.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Worker {
    /// Its number.
    pub worker: usize,
    /// CPU time since the start; its part of the uptime is how busy it was. Null if the system does
    /// not tell it.
    pub cpu_secs: Option<f64>,
    /// Sessions that it owns.
    pub sessions: u64,
    /// Of these, those with a connection.
    pub clients: u64,
    /// PUBLISH packets received.
    pub messages_received: u64,
    /// PUBLISH packets sent.
    pub messages_sent: u64,
    /// Turns of its loop.
    pub turns: u64,
    /// Mail of other workers that waits.
    pub mailbox_messages: u64,
    /// `none`; `connections` if it leaves new connections in the backlog, `publishers` if it reads
    /// publishers less, too.
    pub defers: String,
}

/// Limits; null is none.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct NodeLimits {
    /// `limits.memory`.
    pub memory_bytes: Option<u64>,
    /// Open files of the process.
    pub open_files: Option<u64>,
}

/// Shows the node: its process, its machine, its workers and its limits.
#[utoipa::path(
    get,
    path = "/node",
    operation_id = "show_node",
    tag = "status",
    responses((status = 200, body = Node)),
)]
pub(super) async fn show(State(api): State<ApiState>) -> Json<Node> {
    let figures = api.queries.figures();
    let now = api.security.login.now().wall_millis;
    // Files of /proc: they are in memory.
    Json(node(&figures, &api.queries.live().worker_millis(), now))
}

fn node(figures: &Figures, cpu_millis: &[Option<u64>], now: u64) -> Node {
    let process = &figures.process;
    let cpu_millis = cpu_millis.iter().copied().chain(std::iter::repeat(None));
    let workers = figures.workers.iter().zip(cpu_millis).enumerate();
    Node {
        version: figures.node.version.to_owned(),
        started_at: timestamp(figures.node.started_at),
        uptime_secs: now.saturating_sub(figures.node.started_at) / 1000,
        host: host(),
        process: Process {
            id: std::process::id(),
            cpu_secs: process.cpu_millis.map(in_secs),
            resident_bytes: process.resident_bytes,
            open_files: process.open_files,
            threads: process.threads,
        },
        workers: workers
            .map(|(number, (of, millis))| Worker {
                cpu_secs: millis.map(in_secs),
                ..worker(number, of)
            })
            .collect(),
        limits: NodeLimits {
            memory_bytes: figures.node.memory_limit_bytes,
            open_files: process.open_files_max,
        },
        memory_level: figures.node.memory_level,
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "times need no more than 15 digits"
)]
fn in_secs(millis: u64) -> f64 {
    millis as f64 / 1000.0
}

fn worker(number: usize, of: &WorkerFigures) -> Worker {
    let defers = match (of.slows_publishers, of.defers_connections) {
        (true, _) => "publishers",
        (false, true) => "connections",
        (false, false) => "none",
    };
    Worker {
        worker: number,
        cpu_secs: None,
        sessions: of.sessions,
        clients: of.clients,
        messages_received: of.messages_received,
        messages_sent: of.messages_sent,
        turns: of.turns,
        mailbox_messages: of.mailbox.messages,
        defers: defers.to_owned(),
    }
}

fn host() -> Host {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let line = |path: &str| read(path).map(|text| text.trim().to_owned());
    let release = line("/proc/sys/kernel/osrelease");
    let system = [
        Some(std::env::consts::OS.to_owned()),
        release,
        Some(std::env::consts::ARCH.to_owned()),
    ];
    Host {
        name: line("/proc/sys/kernel/hostname"),
        system: system.into_iter().flatten().collect::<Vec<_>>().join(" "),
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        memory_bytes: read("/proc/meminfo").as_deref().and_then(memory_of),
        load: read("/proc/loadavg").as_deref().and_then(load_of),
    }
}

fn memory_of(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn load_of(loadavg: &str) -> Option<f64> {
    loadavg.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_system_are_read() {
        let meminfo = "MemFree:  1 kB\nMemTotal:       2048 kB\n";
        assert_eq!(memory_of(meminfo), Some(2 << 20));
        assert_eq!(memory_of("MemTotal: x"), None);
        assert_eq!(load_of("0.52 0.58 0.59 1/100 5\n"), Some(0.52));
        assert_eq!(load_of(""), None);
    }
}
